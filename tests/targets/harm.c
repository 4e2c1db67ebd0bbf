// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * harm CASE: what breaks easily where a library is in a process that does not know of it. All allocate; each prints what it
 * has seen, and exits with status 0 where that is as it must be.
 *
 *   faults: a handler of SIGSEGV on a stack of its own allocates, and goes on by a jump
 *   small_stack: a handler allocates on an alternate stack of 8 KiB
 *   coroutines: contexts with stacks of 16 KiB, which are unmapped while others run
 *   vforks: 300 children of vfork(2), which exit or execute
 *   forks: threads that allocate and fork children that allocate
 *   libraries LIBRARY: threads that load and unload it
 *   descriptors: all are closed, twice, and new ones have the first numbers
 *   limits: no further descriptor, and little address space
 *   root: another root directory, and another user, where new threads and stacks follow
 *   signals: handlers that allocate
 *   stacks: an alternate stack is unmapped while the thread is on another
 *   memory: what /proc/self/environ and environ have
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "raw.h"

extern char **environ;

static __attribute__((noinline)) void use(size_t size)
{
	void *volatile block = malloc(size);

	free(block);
}

/* Another stack for each depth. */
static __attribute__((noinline)) void use_deep(int depth)
{
	use(depth + 1);
	if (depth)
		use_deep(depth - 1);
	__asm__ volatile("");
}

static void check(int ok, const char *what)
{
	if (ok)
		return;
	say(what);
	say_number(" failed, errno ", errno, "\n");
	_exit(1);
}

static void *map_stack(size_t size)
{
	void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(stack != MAP_FAILED, "mmap");
	return stack;
}

static void handle_on(void *stack, size_t size, int signal, void (*handler)(int))
{
	const stack_t other = { .ss_sp = stack, .ss_size = size };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER };

	check(!sigaltstack(&other, NULL), "sigaltstack");
	check(!sigaction(signal, &action, NULL), "sigaction");
}

static sigjmp_buf back;
static volatile sig_atomic_t handled;

static void jump_back(int signal)
{
	use_deep(5);
	handled++;
	siglongjmp(back, 1);
}

static volatile int *volatile nothing;

static int faults(const char *unused)
{
	handle_on(map_stack(65536), 65536, SIGSEGV, jump_back);
	for (volatile int i = 0; i < 200; i++)
		if (!sigsetjmp(back, 1)) {
			use_deep(i % 20);
			*nothing = i;
		}
	say_number("faults ", handled, "\n");
	return handled != 200;
}

static void allocate(int signal)
{
	use_deep(3);
	handled++;
}

static int small_stack(const char *unused)
{
	char *pages = map_stack(3 * 4096);

	check(!mprotect(pages, 4096, PROT_NONE), "mprotect");
	handle_on(pages + 4096, 2 * 4096, SIGUSR1, allocate);
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	say_number("handled ", handled, "\n");
	return handled != 10;
}

#define COROUTINES	20
#define COROUTINE_BYTES 16384

static ucontext_t scheduler, coroutines[COROUTINES];
static int running;

static void coroutine(void)
{
	for (int i = 0; i < 5; i++) {
		use_deep(i);
		swapcontext(&coroutines[running], &scheduler);
	}
	for (;;)
		swapcontext(&coroutines[running], &scheduler);
}

static int run_coroutines(const char *unused)
{
	char *stacks[COROUTINES];

	for (volatile int round = 0; round < 10; round++) {
		for (volatile int i = 0; i < COROUTINES; i++) {
			stacks[i] = map_stack(COROUTINE_BYTES + 4096);
			check(!mprotect(stacks[i], 4096, PROT_NONE), "mprotect");
			check(!getcontext(&coroutines[i]), "getcontext");
			coroutines[i].uc_stack.ss_sp = stacks[i] + 4096;
			coroutines[i].uc_stack.ss_size = COROUTINE_BYTES;
			makecontext(&coroutines[i], coroutine, 0);
		}
		for (int turn = 0; turn < 6; turn++)
			for (running = 0; running < COROUTINES; running++) {
				/* Every third one's stack is gone from the third turn on. */
				if (running % 3 || turn < 3)
					swapcontext(&scheduler, &coroutines[running]);
				else if (turn == 3)
					munmap(stacks[running], COROUTINE_BYTES + 4096);
				use_deep(turn);
			}
		for (int i = 0; i < COROUTINES; i++)
			if (i % 3)
				munmap(stacks[i], COROUTINE_BYTES + 4096);
	}
	say("coroutines ended\n");
	return 0;
}

static int vforks(const char *unused)
{
	char *argv[] = { (char *)"true", NULL };
	volatile int ended = 0;
	int status;

	for (volatile int i = 0; i < 300; i++) {
		pid_t pid = vfork();

		if (!pid) {
			if (i % 10)
				_exit(i % 7);
			execv(i % 20 ? "/bin/true" : "/nonexistent", argv);
			_exit(i % 7);
		}
		use(i + 1);
		check(waitpid(pid, &status, 0) == pid, "waitpid");
		ended += WIFEXITED(status) &&
			 WEXITSTATUS(status) == (i % 10 || !(i % 20) ? i % 7 : 0);
	}
	say_number("vforks ", ended, "\n");
	return ended != 300;
}

static void *fork_children(void *unused)
{
	long ended = 0;
	int status;

	for (int i = 0; i < 25; i++) {
		pid_t pid;

		use_deep(i % 10);
		pid = fork();
		if (!pid) {
			use_deep(i % 10);
			_exit(i);
		}
		ended += waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
			 WEXITSTATUS(status) == i;
	}
	return (void *)ended;
}

static volatile int is_over;

static void *allocate_on(void *unused)
{
	while (!is_over)
		use_deep(10);
	return NULL;
}

static int in_threads(int n, void *(*function)(void *), void *argument, int others)
{
	pthread_t threads[16], beside[2];
	long sum = 0;
	void *result;

	for (int i = 0; i < others; i++)
		check(!pthread_create(&beside[i], NULL, allocate_on, NULL), "pthread_create");
	for (int i = 0; i < n; i++)
		check(!pthread_create(&threads[i], NULL, function, argument), "pthread_create");
	for (int i = 0; i < n; i++) {
		check(!pthread_join(threads[i], &result), "pthread_join");
		sum += (long)result;
	}
	is_over = 1;
	for (int i = 0; i < others; i++)
		pthread_join(beside[i], NULL);
	return sum;
}

static int forks(const char *unused)
{
	int ended = in_threads(8, fork_children, NULL, 2);

	say_number("forks ", ended, "\n");
	return ended != 200;
}

static void *load(void *path)
{
	long n = 0;

	for (int i = 0; i < 50; i++) {
		void *library = dlopen(path, RTLD_NOW);

		if (!library)
			continue;
		use_deep(i % 10);
		n++;
		dlclose(library);
	}
	return (void *)n;
}

static int libraries(const char *path)
{
	int loaded = in_threads(4, load, (void *)path, 2);

	say_number("loads ", loaded, "\n");
	return loaded != 200;
}

static int descriptors(const char *unused)
{
	int kept = dup2(1, 200), first;

	check(kept == 200, "dup2");
	for (int i = 0; i < 2; i++) {
		use_deep(3 + i);
		check(!close_range(0, 199, 0), "close_range");
		use_deep(9 + i);
		first = open("/dev/null", O_RDWR);
		check(first == 0 && dup(0) == 1 && dup(0) == 2, "open");
		use_deep(20 + i);
	}
	closefrom(201);
	use_deep(40);
	dup2(200, 1);
	say_number("first descriptor ", first, "\n");
	return first;
}

static int limits(const char *unused)
{
	struct rlimit files = { 3, 3 }, memory = { 0 };
	char line[64] = "";
	unsigned long pages;
	int fd = open("/proc/self/statm", O_RDONLY), n = 0;
	void *block;

	check(fd == 3 && read(fd, line, sizeof(line) - 1) > 0, "statm");
	close(fd);
	check(!setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
	use_deep(10);
	pages = strtoul(line, NULL, 10);
	memory.rlim_cur = memory.rlim_max = pages * 4096 + (8 << 20);
	check(!setrlimit(RLIMIT_AS, &memory), "RLIMIT_AS");
	use_deep(20);
	/* Memory ends, and the error is that of malloc(3). */
	while ((block = malloc(1 << 16)) && n < 100000)
		n++;
	check(!block && errno == ENOMEM, "malloc");
	use_deep(5);
	check(open("/dev/null", O_RDONLY) < 0 && errno == EMFILE, "open");
	say("memory ended\n");
	return 0;
}

static void *allocate_deep(void *unused)
{
	use_deep(12);
	return NULL;
}

static int root(const char *directory)
{
	pthread_t thread;

	use_deep(3);
	check(!chroot(directory) && !chdir("/"), "chroot");
	use_deep(25);
	check(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534), "setuid");
	use_deep(30);
	for (int i = 0; i < 3; i++) {
		check(!pthread_create(&thread, NULL, allocate_deep, NULL), "pthread_create");
		pthread_join(thread, NULL);
	}
	say("in another root\n");
	return 0;
}

static int signals(const char *unused)
{
	struct sigaction action = { .sa_handler = allocate, .sa_flags = SA_RESTART };

	check(!sigaction(SIGALRM, &action, NULL), "sigaction");
	for (int i = 0; i < 50; i++) {
		raise(SIGALRM);
		use_deep(i % 30);
	}
	say_number("handled ", handled, "\n");
	return handled != 50;
}

static int stacks(const char *unused)
{
	const stack_t none = { .ss_flags = SS_DISABLE };

	for (int i = 0; i < 50; i++) {
		void *stack = map_stack(65536);

		handle_on(stack, 65536, SIGUSR1, allocate);
		raise(SIGUSR1);
		check(!sigaltstack(&none, NULL), "sigaltstack");
		munmap(stack, 65536);
		use_deep(i % 10);
	}
	say_number("handled ", handled, "\n");
	return handled != 50;
}

static int memory(const char *unused)
{
	char text[65536];
	int fd = open("/proc/self/environ", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	check(n > 0, "/proc/self/environ");
	text[n] = 0;
	/* What is behind the last entry is empty. */
	for (char *at = text; at < text + n; at += strlen(at) + 1)
		if (*at) {
			say(at);
			say("\n");
		}
	for (char **entry = environ; *entry; entry++) {
		say(*entry);
		say("\n");
	}
	say(getenv("LD_PRELOAD") ? "preloaded\n" : "not preloaded\n");
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const char *argument);
	} cases[] = {
		{ "faults", faults },
		{ "small_stack", small_stack },
		{ "coroutines", run_coroutines },
		{ "vforks", vforks },
		{ "forks", forks },
		{ "libraries", libraries },
		{ "descriptors", descriptors },
		{ "limits", limits },
		{ "root", root },
		{ "signals", signals },
		{ "stacks", stacks },
		{ "memory", memory },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			return cases[i].run(argv[2]);
	return 64;
}
