// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Jumps out of nested calls that allocate, also out of a qsort callback and a signal handler.
 * Above start-up:
 *
 *   malloc: 4300 calls, 90600 bytes
 *   free: 4300 calls, 0 bytes
 *
 * Prints one line per kind, exit status 0.
 */
#include <setjmp.h>
#include <signal.h>
#include "raw.h"

DEFINE_SINK;

#define DEPTH 20

static jmp_buf back;
static sigjmp_buf back_from_signal;
static void *held[DEPTH];

static __attribute__((noinline)) int descend(int depth)
{
	held[depth] = malloc(21);
	if (depth == DEPTH - 1)
		longjmp(back, 1);
	return descend(depth + 1) + 1;
}

static int compare(const void *a, const void *b)
{
	held[0] = malloc(22);
	longjmp(back, 1);
}

static void handler(int signal)
{
	held[0] = malloc(22);
	siglongjmp(back_from_signal, 1);
}

int main(void)
{
	int numbers[20] = { 0 };
	volatile unsigned long jumps = 0;

	for (volatile int i = 0; i < 200; i++) {
		if (!setjmp(back))
			descend(0);
		jumps++;
		for (int j = 0; j < DEPTH; j++)
			free(held[j]);
	}
	say_number("longjmp: ", jumps, "\n");

	jumps = 0;
	for (volatile int i = 0; i < 100; i++) {
		if (!setjmp(back))
			qsort(numbers, 20, sizeof(*numbers), compare);
		jumps++;
		free(held[0]);
	}
	say_number("qsort: ", jumps, "\n");

	jumps = 0;
	signal(SIGUSR1, handler);
	for (volatile int i = 0; i < 200; i++) {
		if (!sigsetjmp(back_from_signal, 1))
			raise(SIGUSR1);
		jumps++;
		free(held[0]);
	}
	say_number("siglongjmp: ", jumps, "\n");
	return 0;
}
