// SPDX-License-Identifier: GPL-3.0-or-later
// Allocates in a way on which `allocprof report --advice` has something to say, and a little in a way on which it has not:
// advice KIND. The numbers are the test's.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <time.h>

#define NOINLINE __attribute__((noinline))

static void *volatile kept[32768];

NOINLINE static void reserve()
{
	for (int i = 0; i < 100; i++) {
		void *block = nullptr;

		for (size_t size = 16; size <= 16 * 41; size += 16)
			block = realloc(block, size);
		kept[i] = block;
	}
}

// The capacities are 1, 2, 4, ..., 1024.
NOINLINE static void capacity()
{
	for (int i = 0; i < 300; i++) {
		std::vector<int> values;

		for (int j = 0; j < 1000; j++)
			values.push_back(j);
		kept[0] = values.data();
	}
}

NOINLINE static void reuse()
{
	for (int i = 0; i < 20000; i++) {
		kept[0] = malloc(100);
		free(kept[0]);
	}
}

static double now()
{
	timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

// Runs on for so long that the blocks do not grow any more, however slow it has been.
NOINLINE static void one_block()
{
	double begin = now(), took;

	for (int i = 0; i < 20000; i++)
		kept[i] = malloc(24);
	took = now() - begin;
	while (now() < begin + 5 * took)
		;
}

NOINLINE static void hand_back()
{
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 10000; i++)
			kept[i] = malloc(200 + 1000 * (i % 2));
		std::thread([] {
			for (int i = 0; i < 10000; i++)
				free(kept[i]);
		}).join();
	}
}

NOINLINE static void bound()
{
	for (int i = 0; i < 1500; i++) {
		const timespec pause = { 0, 1000000 };

		for (int j = 0; j < 4; j++)
			memset(malloc(5000), 1, 5000);
		nanosleep(&pause, nullptr);
	}
}

// glibc and jemalloc have 32 bytes for each, with all that is before it.
NOINLINE static void sizes()
{
	for (int i = 0; i < 30000; i++)
		kept[i] = malloc(17);
	for (int i = 0; i < 30000; i += 3)
		free(kept[i]);
}

// Nothing of it is a pattern: a few blocks of many sizes, of which some are freed.
NOINLINE static void others()
{
	for (int i = 0; i < 900; i++)
		kept[30000 + i] = malloc(10 * i);
	for (int i = 0; i < 900; i += 3)
		free(kept[30000 + i]);
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)();
	} kinds[] = {
		{ "reserve", reserve },	    { "capacity", capacity },	{ "reuse", reuse },
		{ "one_block", one_block }, { "hand_back", hand_back }, { "bound", bound },
		{ "sizes", sizes },
	};

	others();
	for (const auto &kind : kinds)
		if (argc > 1 && !strcmp(argv[1], kind.name))
			kind.run();
}
