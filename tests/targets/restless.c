// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * restless WHAT [LIBRARY]: prints "ready" and does one thing again and again until its input ends. Ends with 0 if each block had what was
 * written to it, each child ended as it should and nothing else failed, with 3 otherwise. WHAT is
 *
 *   signals     a signal each 100 us, whose handler allocates; the program itself does not
 *   jumps       the same, and each handler jumps out of itself
 *   forks       children that allocate and end
 *   vforks      children of vfork(2) that execute the program again, as "restless child"
 *   threads     threads that allocate and end
 *   libraries   loads and unloads LIBRARY
 *   coroutines  two of them, on stacks of their own, that allocate in turns
 *   no-new-code allocates after prctl(PR_SET_MDWE)
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

static volatile int errors;
static const char *program, *library;

static void allocate(void)
{
	unsigned char *block = malloc(200);

	memset(block, 0x5a, 200);
	block = realloc(block, 1000);
	errors += block[0] != 0x5a || block[199] != 0x5a;
	free(block);
}

static bool has_ended(int wait_ms)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return poll(&input, 1, wait_ms) > 0;
}

static sigjmp_buf back;
static bool jumps;

static void handle(int signal)
{
	allocate();
	if (jumps)
		siglongjmp(back, 1);
}

static void take_signals(void)
{
	const struct itimerval each = { { 0, 100 }, { 0, 100 } }, none = { 0 };
	struct sigaction action = { .sa_handler = handle };

	sigaction(SIGALRM, &action, NULL);
	sigsetjmp(back, 1);
	setitimer(ITIMER_REAL, &each, NULL);
	while (!has_ended(1))
		;
	setitimer(ITIMER_REAL, &none, NULL);
}

static void fork_children(void)
{
	while (!has_ended(0)) {
		int status = 0;
		pid_t child = fork();

		if (!child) {
			allocate();
			_exit(errors ? 3 : 7);
		}
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		errors += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
		allocate();
	}
}

static void vfork_children(void)
{
	while (!has_ended(0)) {
		int status = 0;
		pid_t child = vfork();

		if (!child) {
			execl(program, program, "child", (char *)NULL);
			_exit(4);
		}
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		errors += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
		allocate();
		/* Whoever waits for a child of vfork(2) cannot be stopped. */
		usleep(1000);
	}
}

static void *run_thread(void *unused)
{
	for (int i = 0; i < 20; i++)
		allocate();
	return NULL;
}

static void run_threads(void)
{
	while (!has_ended(0)) {
		pthread_t threads[8];

		for (int i = 0; i < 8; i++)
			errors += pthread_create(&threads[i], NULL, run_thread, NULL) != 0;
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	}
}

static void load_libraries(void)
{
	while (!has_ended(0)) {
		void *loaded = dlopen(library, RTLD_NOW);
		void (*later)(int) = loaded ? (void (*)(int))dlsym(loaded, "later") : NULL;

		if (later)
			later(3);
		else
			errors++;
		if (loaded)
			dlclose(loaded);
	}
}

static ucontext_t contexts[3];

static void run_coroutine(int number)
{
	while (!has_ended(0)) {
		for (int i = 0; i < 100; i++)
			allocate();
		swapcontext(&contexts[number], &contexts[1 - number]);
	}
}

#define STACK_BYTES (256 << 10)

static void run_coroutines(void)
{
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		contexts[i].uc_link = &contexts[2];
		makecontext(&contexts[i], (void (*)(void))run_coroutine, 1, i);
	}
	swapcontext(&contexts[2], &contexts[0]);
}

static void allocate_without_new_code(void)
{
	/* Not known before Linux 6.3, where nothing is forbidden then. */
	(void)prctl(PR_SET_MDWE, 1, 0, 0, 0);
	while (!has_ended(0))
		allocate();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{ "signals", take_signals },	  { "jumps", take_signals },
		{ "forks", fork_children },	  { "vforks", vfork_children },
		{ "threads", run_threads },	  { "libraries", load_libraries },
		{ "coroutines", run_coroutines }, { "no-new-code", allocate_without_new_code },
	};

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "child")) {
		allocate();
		return errors ? 3 : 7;
	}
	program = argv[0];
	library = argv[2];
	jumps = !strcmp(argv[1], "jumps");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name) != 0)
			continue;
		puts("ready");
		fflush(stdout);
		all[i].run();
		return errors ? 3 : 0;
	}
	return 2;
}
