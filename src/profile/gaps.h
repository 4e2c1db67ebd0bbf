/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of calls, processes and mappings that a measurement lacks or has counted wrongly, where no more than the number is
 * known. Each such number has the same name in the data file's meta table and in the JSON of stat, and the same sentence for
 * users. */
#ifndef ALLOCPROF_GAPS_H
#define ALLOCPROF_GAPS_H

#include <stdbool.h>
#include <stddef.h>

enum gap {
	/* Calls of sources beneath which calls were counted that should not be. */
	GAP_NOT_NESTED,
	/* munmap and mremap calls counted although bpf_find_vma() did not report in time what was mapped there. */
	GAP_MAPPINGS_UNSURE,
	/* USDT arguments that could not be read. */
	GAP_OPERANDS_UNREAD,
	/* Return addresses, arguments and results in memory that could not be read. */
	GAP_CALLS_UNREAD,
	/* Processes not followed since the map was full: their calls are missing. */
	GAP_PROCESSES_UNFOLLOWED,
	/* Programs with more privileges than the user. */
	GAP_PROCESSES_REFUSED,
	/* Process records for which the ring buffer had no room, and times that the kernel skipped a program that writes
	 * them: an allocator that such a process mapped later may have been missed. */
	GAP_PROCESSES_UNNOTICED,
	/* Mapping events lost by the kernel, and times that it skipped the program that notes changes of mappings for
	 * walks: an allocator may have been missed, or frames be wrong. */
	GAP_MAPPINGS_LOST,
	/* Failed reads of the programs' counters. */
	GAP_COUNTERS_UNREAD,
	/* With live, of a command that was measured from its exec on: frees of blocks whose allocation was not seen. */
	GAP_ALLOCATIONS_UNSEEN,
	/* Milliseconds in which a checkpoint of live memory was read while the target allocated or freed. */
	GAP_TORN,
	GAPS,
};

struct gap_text {
	const char *key;      /* "not_nested" */
	const char *sentence; /* after the number, as plural__of() takes it */
	const char *effect;   /* on the numbers that were counted; NULL where calls are missing */
};

/* Returns the texts of @gap, which is less than GAPS. */
const struct gap_text *gap__text(enum gap gap);

/* Returns whether a gap has the key @key. */
bool gap__is_key(const char *key);

#endif
