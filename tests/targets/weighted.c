// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A program with a sampler of its own, which tells of its samples by OpenTelemetry's probes
 * (otel_memory:alloc(BLOCK, SIZE, WEIGHT), otel_memory:free(BLOCK)).
 *
 * weighted FILE: takes the number in FILE, writes the next one there, and allocates the same as always. A Poisson process
 * over the bytes, whose seed is the number, chooses what is sampled: one byte of INTERVAL on average. WEIGHT is the size
 * divided by the chance that one of its bytes is chosen.
 *
 * weighted tell N FREED SIZE WEIGHT: tells of N samples of the same SIZE and WEIGHT, and then that the first FREED are
 * freed. It allocates nothing.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>

#define INTERVAL 2048.0
#define KEPT	 4000

static uint64_t state;
static double left; /* bytes up to the next one that is chosen */

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static double next_distance(void)
{
	return -log(((double)(next_random() >> 11) + 1) / 9007199254740992.0) * INTERVAL;
}

struct block {
	void *at;
	int is_sampled;
};

/* In its callers' frames, so that probe and malloc have the same stack. */
static inline __attribute__((always_inline)) struct block allocate(size_t size)
{
	struct block block = { malloc(size), 0 };

	for (left -= (double)size; left < 0; left += next_distance())
		block.is_sampled = 1;
	if (block.is_sampled) {
		uint64_t weight =
			(uint64_t)llround((double)size / -expm1(-(double)size / INTERVAL));

		STAP_PROBE3(otel_memory, alloc, block.at, size, weight);
	}
	return block;
}

static inline __attribute__((always_inline)) void release(struct block block)
{
	if (block.is_sampled)
		STAP_PROBE1(otel_memory, free, block.at);
	free(block.at);
}

static struct block small[KEPT], mixed[KEPT], large[KEPT];

__attribute__((noinline)) void keep_small(void)
{
	for (int i = 0; i < KEPT; i++)
		small[i] = allocate(64);
}

__attribute__((noinline)) void make_mixed(void)
{
	for (unsigned int i = 0; i < KEPT; i++)
		mixed[i] = allocate(16 + i * 2654435761U % 3000);
	for (unsigned int i = 0; i < KEPT; i += 2)
		release(mixed[i]);
}

__attribute__((noinline)) void churn(void)
{
	for (int i = 0; i < KEPT; i++)
		release(allocate(300));
}

/* About the size at which one call is as likely sampled as not, and the rounding of its weight matters most. */
__attribute__((noinline)) void keep_large(void)
{
	for (int i = 0; i < KEPT; i++)
		large[i] = allocate(2000);
}

__attribute__((noinline)) void tell(char **numbers)
{
	unsigned long n = strtoul(numbers[0], NULL, 0), freed = strtoul(numbers[1], NULL, 0);
	unsigned long size = strtoul(numbers[2], NULL, 0), weight = strtoul(numbers[3], NULL, 0);

	for (unsigned long i = 1; i <= n; i++)
		STAP_PROBE3(otel_memory, alloc, i << 32, size, weight);
	for (unsigned long i = 1; i <= freed; i++)
		STAP_PROBE1(otel_memory, free, i << 32);
}

static uint64_t take_seed(const char *path)
{
	unsigned long long seed;
	FILE *file = fopen(path, "r+");

	if (!file || fscanf(file, "%llu", &seed) != 1)
		exit(2);
	rewind(file);
	fprintf(file, "%llu\n", seed + 1);
	fclose(file);
	return seed;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "tell")) {
		tell(argv + 2);
		return 0;
	}
	if (argc != 2)
		return 2;
	state = take_seed(argv[1]) * 0x2545f4914f6cdd1d;
	left = next_distance();
	keep_small();
	make_mixed();
	churn();
	keep_large();
	return 0;
}
