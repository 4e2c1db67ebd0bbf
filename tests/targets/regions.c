// SPDX-License-Identifier: GPL-3.0-or-later
/* Allocates inside and outside of the regions that it marks, in all the ways to enter and leave them; the
 * argument is one of the ways in main(). What it allocates it says itself, regions.h. With REGIONS_READ in the
 * environment it says what allocprof_read() tells it at the end, too: "read NAME answer=N allocations=N ...". */
#include "regions.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

NOINLINE static void nest(void)
{
	SCOPE("parse", PARSE);
	void *block = take(10);

	{
		SCOPE("emit", EMIT);
		void *inner = take(20);

		BEGIN("write", WRITE);
		inner = resize(inner, 20, 50);
		inner = resize(inner, 50, 5);
		END("write", WRITE);
		give(inner, 5);
	}
	{
		/* The same within the same frame. */
		SCOPE("parse", PARSE);
		give(take(30), 30);
	}
	give(take(40), 40);
	give(block, 10);
}

NOINLINE static void recurse(int depth)
{
	SCOPE("parse", PARSE);

	give(take(100 + depth), 100 + depth);
	if (depth)
		recurse(depth - 1);
	give(take(200 + depth), 200 + depth);
	BEGIN("write", WRITE);
	if (depth)
		recurse(depth - 1);
	END("write", WRITE);
	give(take(300 + depth), 300 + depth);
}

NOINLINE static int leave_early(int how)
{
	SCOPE("parse", PARSE);

	give(take(1 + how), 1 + how);
	for (int i = 0; i < 4; i++) {
		SCOPE("emit", EMIT);

		give(take(10), 10);
		if (how == 0)
			return i;
		if (how == 1)
			goto out;
		if (how == 2)
			break;
		if (i == 2)
			continue;
		give(take(20), 20);
	}
	give(take(30), 30);
out:
	return how;
}

static jmp_buf out;

NOINLINE static void jump(int depth, int scoped)
{
	char frame[64];

	memset(frame, depth, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
	if (scoped) {
		SCOPE("parse", PARSE);

		give(take(10), 10);
		if (!depth)
			longjmp(out, 1);
		jump(depth - 1, scoped);
		return;
	}
	BEGIN("emit", EMIT);
	give(take(20), 20);
	if (!depth)
		longjmp(out, 1);
	jump(depth - 1, scoped);
	END("emit", EMIT);
}

/* An end that is passed by: a scope is over with the next call from a frame above, a region with a begin
 * of its own with the next one that is not further down. */
NOINLINE static void jump_out(int scoped)
{
	int before[REGIONS];

	memcpy(before, inside, sizeof(before));
	if (!setjmp(out))
		jump(3, scoped);
	memcpy(inside, before, sizeof(before));
	if (!scoped) {
		BEGIN("emit", EMIT);
		END("emit", EMIT);
	}
	give(take(1000), 1000);
	nest();
}

static void jumps(void)
{
	SCOPE("write", WRITE);

	for (int i = 0; i < 3; i++) {
		jump_out(1);
		jump_out(0);
	}
}

/* One begins before the other ends. */
static void overlap(void)
{
	BEGIN("parse", PARSE);
	give(take(1), 1);
	BEGIN("emit", EMIT);
	give(take(2), 2);
	END("parse", PARSE);
	give(take(3), 3);
	END("emit", EMIT);
	give(take(4), 4);
}

static void *thread(void *argument)
{
	SCOPE("write", WRITE);

	for (int i = 0; i < 200; i++) {
		nest();
		give(take(1000), 1000);
		recurse(i % 4);
	}
	return argument;
}

static void threads(void)
{
	pthread_t ids[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&ids[i], NULL, thread, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(ids[i], NULL);
}

static void await(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void forks(void)
{
	SCOPE("parse", PARSE);

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid) {
			/* Goes on in the region that its parent is in. */
			give(take(10), 10);
			recurse(2);
			_exit(0);
		}
		await(pid);
		give(take(20), 20);
	}
}

/* In no region any more: the other program's calls are in none. */
static void execs(char *self)
{
	SCOPE("parse", PARSE);
	pid_t pid;

	give(take(10), 10);
	pid = fork();
	if (!pid) {
		execl(self, self, "outside", NULL);
		_exit(127);
	}
	await(pid);
	give(take(20), 20);
}

static void handle(int signal)
{
	SCOPE("emit", EMIT);

	(void)signal;
	give(take(50), 50);
}

/* A handler on a stack of its own, which may be above or below. */
static void alternate(void)
{
	static char memory[65536];
	char *mapped = (char *)mmap(NULL, sizeof(memory), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 2; i++) {
		stack_t stack = { .ss_sp = i ? mapped : memory, .ss_size = sizeof(memory) };
		SCOPE("parse", PARSE);

		sigaltstack(&stack, NULL);
		give(take(1), 1);
		raise(SIGUSR1);
		give(take(2), 2);
	}
	give(take(3), 3);
}

static volatile sig_atomic_t handled;

static void handle_timer(int signal)
{
	handle(signal);
	handled++;
}

/* Handlers run between any two instructions of the marks, with which the program does nothing else. */
static void interrupt(void)
{
	struct sigaction action = { .sa_handler = handle_timer };
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	unsigned long rounds = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 2000) {
		ALLOCPROF_REGION("a");

		ALLOCPROF_BEGIN("b");
		rounds++;
		ALLOCPROF_END("b");
	}
	setitimer(ITIMER_REAL, &never, NULL);
	nest();
	printf("rounds entered=%lu\n", rounds);
}

static void *on_large_stack(void *argument)
{
	/* Above the frames of this thread, if anything is. */
	static __thread char memory[65536];
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	{
		SCOPE("parse", PARSE);
		give(take(1), 1);
		raise(SIGUSR1);
		give(take(2), 2);
	}
	give(take(3), 3);
	return argument;
}

static void alternate_above(void)
{
	pthread_t id;

	pthread_create(&id, NULL, on_large_stack, NULL);
	pthread_join(id, NULL);
}

static void in_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*run)(void) = library ? (void (*)(void))dlsym(library, "library_run") : NULL;

	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	SCOPE("parse", PARSE);
	give(take(7), 7);
	run();
}

/* Deeper than there is room for. */
NOINLINE static void deep(int depth)
{
	SCOPE("parse", PARSE);

	give(take(1), 1);
	if (depth)
		deep(depth - 1);
	__asm__ volatile("");
}

/* More sets of regions than there is room for. */
#define MAY_BEGIN(letter, bit)                                                                     \
	if (set & (bit)) {                                                                         \
		ALLOCPROF_BEGIN(letter);                                                           \
	}
#define MAY_END(letter, bit)                                                                       \
	if (set & (bit)) {                                                                         \
		ALLOCPROF_END(letter);                                                             \
	}

static void sets(void)
{
	for (int set = 0; set < 128; set++) {
		MAY_BEGIN("a", 1)
		MAY_BEGIN("b", 2)
		MAY_BEGIN("c", 4)
		MAY_BEGIN("d", 8)
		MAY_BEGIN("e", 16)
		MAY_BEGIN("f", 32)
		MAY_BEGIN("g", 64)
		give(take(1), 1);
		MAY_END("g", 64)
		MAY_END("f", 32)
		MAY_END("e", 16)
		MAY_END("d", 8)
		MAY_END("c", 4)
		MAY_END("b", 2)
		MAY_END("a", 1)
	}
}

/* Asked for what to do while it is in a region. */
static void obey(void)
{
	char line[64];

	ALLOCPROF_BEGIN("parse");
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "end\n")) {
			give(take(1), 1);
			ALLOCPROF_END("parse");
		} else {
			nest();
		}
		printf("done\n");
		fflush(stdout);
	}
}

static void read_all(void)
{
	static const char *const names[] = { "parse", "emit", "write", "a", NULL };
	struct allocprof_figures all[ARRAY_SIZE(names)];
	int answers[ARRAY_SIZE(names)];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		answers[i] = allocprof_read(names[i], &all[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct allocprof_figures *f = &all[i];

		printf("read %s answer=%d allocations=%llu reallocations=%llu deallocations=%llu "
		       "bytes_allocated=%llu bytes_reallocated=%lld bytes_deallocated=%llu live=%lld "
		       "live_bytes=%lld peak_bytes=%llu temporary=%llu temporary_bytes=%llu "
		       "entered=%llu\n",
		       names[i] ? names[i] : "process", answers[i], f->allocations,
		       f->reallocations, f->deallocations, f->bytes_allocated, f->bytes_reallocated,
		       f->bytes_deallocated, f->live, f->live_bytes, f->peak_bytes, f->temporary,
		       f->temporary_bytes, f->entered);
	}
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	static char buffer[1 << 16];

	/* No memory for the output, which stat would count after the reading. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	regions__prepare();
	give(take(1000), 1000);
	if (!strcmp(way, "nest"))
		nest();
	else if (!strcmp(way, "recurse"))
		recurse(6);
	else if (!strcmp(way, "leave"))
		for (int i = 0; i < 4; i++)
			leave_early(i);
	else if (!strcmp(way, "jump"))
		jumps();
	else if (!strcmp(way, "overlap"))
		overlap();
	else if (!strcmp(way, "threads"))
		threads();
	else if (!strcmp(way, "fork"))
		forks();
	else if (!strcmp(way, "exec"))
		execs(argv[0]);
	else if (!strcmp(way, "alternate"))
		alternate();
	else if (!strcmp(way, "alternate_above"))
		alternate_above();
	else if (!strcmp(way, "interrupt"))
		interrupt();
	else if (!strcmp(way, "library"))
		in_library(argv[2]);
	else if (!strcmp(way, "deep"))
		deep(19);
	else if (!strcmp(way, "sets"))
		sets();
	else if (!strcmp(way, "obey"))
		obey();
	else if (!strcmp(way, "outside"))
		for (int i = 0; i < 5; i++)
			give(take(5), 5);
	give(take(2000), 2000);
	if (getenv("REGIONS_READ"))
		read_all();
	if (strcmp(way, "outside") != 0)
		regions__print();
	return 0;
}
