/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes that the library of src/inside counts in, as built for the host: each test forks one, which begins as the dynamic linker
 * would have it begin, and reads what it has counted from the shared memory.
 */
#ifndef ALLOCPROF_TESTS_UNIT_MEASURED_PROCESS_H
#define ALLOCPROF_TESTS_UNIT_MEASURED_PROCESS_H

#include <stdio.h>
#include <unistd.h>

#include "preload_internal.h"

/* In such a process, where cmocka has no say. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: in the process: does not hold: %s\n", __FILE__,    \
				__LINE__, #condition);                                             \
			_exit(99);                                                                 \
		}                                                                                  \
	} while (0)

struct measured {
	struct preload *preload;
	struct preload_results results;
};

/* A measurement of no process yet. All functions but those that free are recorded; 0 in @settings stands for a depth of 127 and for
 * room for 2^20 blocks. The caller passes *@out to measured__finish(). */
void measured__new(const struct inside_settings *settings, struct measured *out);

/* Has a process run @program, with the library as one that LD_PRELOAD names. */
void measured__run(struct measured *measured, void (*program)(void));

/* Likewise, without the library in it. */
void measured__run_alone(struct measured *measured, void (*program)(void));

/* Reads what processes have counted, in which nothing is damaged or unfinished. */
void measured__read(struct measured *measured);

void measured__finish(struct measured *measured);

/* A measurement of one process, whose counts are read. */
void measure(const struct inside_settings *settings, void (*program)(void), struct measured *out);

/* Ends the process, in a process of these. */
__attribute__((noreturn)) void leave(void);

/* Waits in such a process for the end of its child @pid, which has to succeed. */
void wait_for(int pid);

/* @sums has the number of calls, and of bytes that they asked for: for preload__read_counts(). */
int sum_calls(void *sums, __u32 thread, const struct ap_count_key *key,
	      const struct ap_count *count);

/* Blocks and their bytes: for preload__read_blocks(). */
int sum_block(void *sums, const struct ap_block_key *key, const struct ap_block *block);

#endif
