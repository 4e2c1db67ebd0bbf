// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the names of the kinds of gaps. */
#include "gaps.h"

#include <errno.h>
#include <string.h>

static const char *const keys[GAPS] = {
	[GAP_NOT_NESTED] = "not_nested",
	[GAP_MAPPINGS_UNSURE] = "mappings_unsure",
	[GAP_MAPPING_CHANGES] = "mapping_changes_lost",
	[GAP_OPERANDS_UNREAD] = "operands_unread",
	[GAP_CALLS_UNREAD] = "calls_unread",
	[GAP_PROCESSES_UNFOLLOWED] = "processes_unfollowed",
	[GAP_PROCESSES_REFUSED] = "processes_refused",
	[GAP_PROCESSES_UNNOTICED] = "processes_unnoticed",
	[GAP_MAPPINGS_LOST] = "mappings_lost",
	[GAP_COUNTERS_UNREAD] = "counters_unread",
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_C] = "allocations_unseen_c",
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_CXX] = "allocations_unseen_cxx",
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_JEMALLOC] = "allocations_unseen_jemalloc",
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_DEFINED] = "allocations_unseen_defined",
	[GAP_TORN] = "torn_ms",
	[GAP_OTHERS_UNPROBED] = "others_unprobed",
	[GAP_WINDOW_UNNOTICED] = "window_unnoticed",
	[GAP_REGION_DEPTH] = "region_depth",
	[GAP_REGION_THREADS] = "region_threads",
	[GAP_REGION_SETS] = "region_sets",
	[GAP_REGION_UNNOTICED] = "region_unnoticed",
	[GAP_REGION_UNNUMBERED] = "region_unnumbered",
	[GAP_REGION_UNNAMED] = "region_unnamed",
	[GAP_PROGRAMS_UNCOUNTED] = "programs_uncounted",
	[GAP_THREADS_UNCOUNTED] = "threads_uncounted",
	[GAP_CALLS_EARLY] = "calls_early",
	[GAP_OWN_FUNCTIONS] = "own_functions",
	[GAP_COLLECTORS] = "collectors",
	[GAP_LIBRARIES_UNSEEN] = "libraries_unseen",
	[GAP_WORDS_UNBOUND] = "words_unbound",
	[GAP_PROGRAM_EXECUTED] = "program_executed",
	[GAP_PROCESS_NOT_LEFT] = "process_not_left",
	[GAP_COUNTED_UNSEEN] = "counted_unseen",
	[GAP_MEMORY_REPLACED] = "memory_replaced",
	[GAP_PROGRAMS_UNNAMED] = "programs_unnamed",
	[GAP_ENTRIES_UNFINISHED] = "entries_unfinished",
	[GAP_ENTRIES_DAMAGED] = "entries_damaged",
	[GAP_ALLOCATOR_UNPROBED] = "allocator_unprobed",
	[GAP_FUNCTION_UNKNOWN] = "function_unknown",
	[GAP_FUNCTION_ENDS] = "function_ends",
	[GAP_DEFINITION_LACKING] = "source_lacking",
	[GAP_PROGRAM_UNPROBED] = "program_unprobed",
	[GAP_PROGRAM_REFUSED] = "program_refused",
	[GAP_PROGRAM_TRANSLATED] = "program_translated",
	[GAP_PROGRAM_FOREIGN] = "program_foreign",
	[GAP_ALLOCATOR_HIDDEN] = "allocator_hidden",
	[GAP_ALLOCATOR_UNFOLLOWED] = "allocator_unfollowed",
	[GAP_CALLS_BYPASSED] = "calls_bypassed",
	[GAP_RESIDENT_UNREAD] = "resident_unread",
	[GAP_REACH_UNREAD] = "reach_unread",
	[GAP_SENTENCE] = "sentence",
	[GAP_REGION_MARKS_MORE] = "region_marks_more",
	[GAP_REGION_MANY] = "region_many",
	[GAP_REGION_MARKS_NO_NOP] = "region_marks_no_nop",
	[GAP_REGION_MARKS_UNNAMED] = "region_marks_unnamed",
	[GAP_REGION_MARKS_OLD] = "region_marks_old",
	[GAP_REGION_LATE] = "region_late",
	[GAP_REGION_FAILED] = "region_failed",
	[GAP_REGION_UNREAD] = "region_unread",
	[GAP_CALLS_LOST] = "lost",
	[GAP_CALLS_UNTRACKED] = "untracked",
	[GAP_RELABELLED] = "relabelled",
	[GAP_UNDECIDED] = "undecided",
	[GAP_BLOCKS_DROPPED] = "blocks_dropped",
};

const char *gap__key(enum gap gap)
{
	return keys[gap];
}

int gap__by_key(const char *key)
{
	for (int gap = 0; gap < GAPS; gap++)
		if (!strcmp(keys[gap], key))
			return gap;
	return -ENOENT;
}

bool gap__is_of_regions(enum gap gap)
{
	return !strncmp(keys[gap], "region_", strlen("region_"));
}
