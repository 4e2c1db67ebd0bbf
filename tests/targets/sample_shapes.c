// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * sample_shapes [CASE]: the same blocks in every run, for --sample. Prints "done", exit status 0.
 *
 *   shapes (default): keep_small makes 40,000 blocks of 40 bytes that stay. churn makes 12,000 of 200
 *   that are temporary. make_mixed makes 4,000 of 16 to 6,015, every other of which stays; the others are
 *   freed at the end. grow makes 10,000 of 200, each of which realloc makes one of 1,500 at once; every
 *   other stays, the others are temporary. make_zeroed makes 5,000 of 1,200 by calloc, freed at the end.
 *   shrink: 100 blocks of 1 MB, of each of which realloc makes one of 1 byte.
 *   between: 100 blocks of 1 MB, freed after the thread has made one of 1 byte.
 */
#include "raw.h"

DEFINE_SINK;

#define N_MIXED	 4000
#define N_ZEROED 5000
#define BIG	 (1 << 20)

static void *mixed[N_MIXED], *zeroed[N_ZEROED];

__attribute__((noinline)) static void keep_small(void)
{
	sink = malloc(40);
}

__attribute__((noinline)) static void churn(void)
{
	sink = malloc(200);
	free(sink);
}

__attribute__((noinline)) static void make_mixed(unsigned int i)
{
	mixed[i] = malloc(16 + i * 2654435761U % 6000);
}

__attribute__((noinline)) static void grow(unsigned int i)
{
	sink = malloc(200);
	sink = realloc(sink, 1500);
	if (i % 2)
		free(sink);
}

__attribute__((noinline)) static void make_zeroed(unsigned int i)
{
	zeroed[i] = calloc(3, 400);
}

__attribute__((noinline)) static void shrink(void)
{
	sink = malloc(BIG);
	sink = realloc(sink, 1);
}

__attribute__((noinline)) static void between(void)
{
	void *big = malloc(BIG);

	sink = malloc(1);
	free(big);
}

static void shapes(void)
{
	for (unsigned int i = 0; i < 40000; i++) {
		keep_small();
		if (i < 12000)
			churn();
		if (i < N_MIXED)
			make_mixed(i);
		if (i < 10000)
			grow(i);
		if (i < N_ZEROED)
			make_zeroed(i);
	}
	for (unsigned int i = 1; i < N_MIXED; i += 2)
		free(mixed[i]);
	for (unsigned int i = 0; i < N_ZEROED; i++)
		free(zeroed[i]);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "shapes";

	if (!strcmp(name, "shapes"))
		shapes();
	for (int i = 0; i < 100 && !strcmp(name, "shrink"); i++)
		shrink();
	for (int i = 0; i < 100 && !strcmp(name, "between"); i++)
		between();
	say("done\n");
	return 0;
}
