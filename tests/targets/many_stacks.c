// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * many_stacks [-t THREADS] CALLS STACKS
 * many_stacks -p PROCESSES CALLS STACKS
 *
 * CALLS times malloc and free, from STACKS distinct call stacks, at most 2^24. Call number i takes stack
 * i % STACKS, whose 16 frames, 24 with more than 65536 stacks, spell the number by left and right. Above
 * start-up:
 *
 *   malloc: CALLS calls of 1 + (i % STACKS) % 64 bytes; free: CALLS calls
 *   calloc: with -t one per thread, by pthread_create
 *
 * Without -t the main thread calls, with it each thread does a share of the numbers; with -p each of so many
 * children does all of them, one after the other. Built with frame pointers. Prints the number of calls made,
 * exit status 0.
 */
#include <pthread.h>
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

#define MAX_THREADS 64

static unsigned int depth = 16;

struct share {
	pthread_t thread;
	unsigned long first;
	unsigned long end;
	unsigned long stacks;
	unsigned long made;
};

unsigned long left(unsigned long stack, unsigned int levels);
unsigned long right(unsigned long stack, unsigned int levels);

static __attribute__((noinline)) void leaf(unsigned long size)
{
	void *block = malloc(size);

	sink = block;
	free(block);
}

static inline __attribute__((always_inline)) unsigned long
go(unsigned long bits, unsigned int levels, unsigned long stack)
{
	if (!levels) {
		leaf(1 + stack % 64);
		return 1;
	}
	return bits & 1 ? right(stack, levels) : left(stack, levels);
}

/* The sums after the calls keep them from being tail calls, and the two functions from being one. */
__attribute__((noinline)) unsigned long left(unsigned long stack, unsigned int levels)
{
	return go(stack >> (depth - levels + 1), levels - 1, stack) + 2;
}

__attribute__((noinline)) unsigned long right(unsigned long stack, unsigned int levels)
{
	return go(stack >> (depth - levels + 1), levels - 1, stack) + 3;
}

static void *work(void *arg)
{
	struct share *share = arg;
	unsigned long stack = share->first % share->stacks;

	for (unsigned long i = share->first; i < share->end; i++) {
		go(stack, depth, stack);
		share->made++;
		if (++stack == share->stacks)
			stack = 0;
	}
	return NULL;
}

/* The calls that @n children make, each all of @share; 0 if one of them fails. */
static unsigned long fork_one_by_one(struct share *share, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			work(share);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 0;
	}
	return n * share->end;
}

int main(int argc, char **argv)
{
	static struct share shares[MAX_THREADS];
	unsigned long calls, stacks, threads = 0, processes = 0, n, made = 0;
	int at = 1;

	if (argc > 2 && !strcmp(argv[1], "-t")) {
		threads = number_or(argv[2], 0);
		at = 3;
	} else if (argc > 2 && !strcmp(argv[1], "-p")) {
		processes = number_or(argv[2], 0);
		at = 3;
	}
	if (argc != at + 2 || threads > MAX_THREADS)
		return 2;
	calls = number_or(argv[at], 0);
	stacks = number_or(argv[at + 1], 0);
	if (!stacks || stacks > 1ul << 24)
		return 2;
	if (stacks > 1ul << depth)
		depth = 24;
	if (processes) {
		shares[0] = (struct share){ .end = calls, .stacks = stacks };
		say_number("", fork_one_by_one(&shares[0], processes), " calls\n");
		return 0;
	}

	n = threads ? threads : 1;
	for (unsigned long i = 0; i < n; i++) {
		shares[i].first = calls / n * i;
		shares[i].end = i + 1 < n ? calls / n * (i + 1) : calls;
		shares[i].stacks = stacks;
		if (!threads)
			work(&shares[i]);
		else if (pthread_create(&shares[i].thread, NULL, work, &shares[i]))
			return 1;
	}
	for (unsigned long i = 0; i < n; i++) {
		if (threads)
			pthread_join(shares[i].thread, NULL);
		made += shares[i].made;
	}
	say_number("", made, " calls\n");
	return 0;
}
