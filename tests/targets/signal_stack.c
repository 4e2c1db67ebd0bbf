// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Has an allocator of its own, from within which a signal is raised at each call of 77 bytes. The handler runs on
 * a stack of its own, above the one that it interrupts, and calls malloc, too: both calls are under way at a time.
 *
 *   malloc: 20 calls, 1100 bytes
 *   free: 10 calls
 *
 * A second thread, whose stack lies below, makes 10 blocks of 77 bytes and frees them; the handler makes 10 of
 * 33, which stay. Exit status 0.
 */
#include <pthread.h>
#include <signal.h>
#include "raw.h"

DEFINE_SINK;

#define ARENA_BYTES 65536

/* The compiler might put it between malloc and free, where code is taken for the allocator's own. */
#define CALLER __attribute__((section(".text.callers"), noinline))

static char arena[ARENA_BYTES];
static size_t used;
static void *volatile kept[10];
static volatile int n_kept;
/* The compiler is not to know them, or it makes mallocs of them that are not called malloc. */
static volatile size_t raising = 77, other = 33;

static __attribute__((noinline)) void *take(size_t size)
{
	void *block = arena + used;

	used += (size + 15) & ~(size_t)15;
	return used <= ARENA_BYTES ? block : NULL;
}

__attribute__((noinline)) void *malloc(size_t size)
{
	if (size == raising)
		raise(SIGUSR1);
	return take(size);
}

__attribute__((noinline)) void free(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

/* Not called. */
__attribute__((noinline)) void *calloc(size_t n, size_t size)
{
	return take(n * size);
}

__attribute__((noinline)) void *realloc(void *block, size_t size)
{
	__asm__ volatile("" : : "r"(block) : "memory");
	return take(size);
}

static CALLER void handle(int signal)
{
	void *block = malloc(other);

	kept[n_kept] = block;
	n_kept++;
}

static CALLER void *work(void *stack)
{
	stack_t own = { .ss_sp = stack, .ss_size = 65536 };

	if ((char *)stack < (char *)&own || sigaltstack(&own, NULL))
		_exit(3);
	for (int i = 0; i < 10; i++) {
		sink = malloc(raising);
		free(sink);
	}
	return NULL;
}

int main(void)
{
	/* In main's frame: the main thread's stack is above those of all others. */
	char stack[65536] __attribute__((aligned(64)));
	static char threads[1 << 18] __attribute__((aligned(4096)));
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	pthread_attr_t attributes;
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	/* So that pthread_create() allocates no stack. */
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, threads, sizeof(threads));
	if (pthread_create(&thread, &attributes, work, stack))
		return 1;
	pthread_join(thread, NULL);
	return n_kept == 10 ? 0 : 2;
}
