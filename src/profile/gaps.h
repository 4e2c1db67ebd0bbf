/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gaps of a measurement: calls, blocks and names that it lacks or has counted wrongly, apart from lost calls and blocks that are not
 * followed, which are in the ledger. Each kind has one name, in the data file and in the JSON of
 * stat; src/output has its sentence for users. */
#ifndef ALLOCPROF_GAPS_H
#define ALLOCPROF_GAPS_H

#include <stdbool.h>

#include "abi.h"

enum gap {
	/* Calls of definitions beneath which calls were counted that should not count. */
	GAP_NOT_NESTED,
	/* munmap and mremap calls that were counted although bpf_find_vma() did not report in time
	 * what was mapped there. */
	GAP_MAPPINGS_UNSURE,
	/* With --live: changes of mappings that the ring buffer had no room for, so that some may
	 * count as live that are not. */
	GAP_MAPPING_CHANGES,
	/* USDT arguments that could not be read. */
	GAP_OPERANDS_UNREAD,
	/* Return addresses, arguments and results in memory that could not be read. */
	GAP_CALLS_UNREAD,
	/* Processes not followed since the map was full: their calls are missing. */
	GAP_PROCESSES_UNFOLLOWED,
	/* Programs that were not followed, since they had more privileges than the user. */
	GAP_PROCESSES_REFUSED,
	/* Process records for which the ring buffer had no room, and times that the kernel skipped
	 * a program that sends them: an allocator that such a process mapped later may have been
	 * missed. */
	GAP_PROCESSES_UNNOTICED,
	/* Mapping events that the kernel lost, and times that it skipped the program that notes
	 * changes of mappings for walks: an allocator may have been missed, or frames may be
	 * wrong. */
	GAP_MAPPINGS_LOST,
	/* Failed reads of the programs' counters. */
	GAP_COUNTERS_UNREAD,
	/* With --live, for a command that was measured from its exec on: frees of blocks whose
	 * allocation was not seen, by family: the first of AP_FAMILIES kinds. */
	GAP_ALLOCATIONS_UNSEEN,
	/* For how many milliseconds a checkpoint of live memory was read while the target
	 * allocated or freed. */
	GAP_TORN = GAP_ALLOCATIONS_UNSEEN + AP_FAMILIES,
	/* Processes that took memory from the kernel and hit no probe, and whose programs are not
	 * listed as gaps. */
	GAP_OTHERS_UNPROBED,
	/* Times that the kernel skipped the program that opens and closes the window. */
	GAP_WINDOW_UNNOTICED,

	/* These concern regions alone: other counts are complete. The first ones are in the order
	 * of enum ap_region_gap. */
	GAP_REGION_DEPTH,
	GAP_REGION_THREADS,
	GAP_REGION_SETS,
	/* Times that the kernel skipped the program at the marks. */
	GAP_REGION_UNNOTICED,
	/* Begins of regions beyond AP_MAX_REGIONS, and of regions whose name is invalid. */
	GAP_REGION_UNNUMBERED,
	GAP_REGION_UNNAMED,

	/* The preloaded library counts these (--engine=preload). */
	/* Programs that found no room in the shared memory. */
	GAP_PROGRAMS_UNCOUNTED,
	GAP_THREADS_UNCOUNTED,
	/* Calls that came before the library had found the shared memory. */
	GAP_CALLS_EARLY,
	/* Calls and uses of an allocator's own functions that are not followed. */
	GAP_OWN_FUNCTIONS,
	/* Processes with a garbage collector. */
	GAP_COLLECTORS,
	/* Libraries whose calls do not reach the preloaded library's functions. */
	GAP_LIBRARIES_UNSEEN,
	/* With -p: words of objects that at the end did not lead to the library, or may not have;
	 * a program that the process executed; and a process that could not be left. */
	GAP_WORDS_UNBOUND,
	GAP_PROGRAM_EXECUTED,
	GAP_PROCESS_NOT_LEFT,
	/* Functions that are only counted, and that may be called past the library. */
	GAP_COUNTED_UNSEEN,
	/* Processes that mapped other memory over the shared memory. */
	GAP_MEMORY_REPLACED,
	/* Programs into which the library could not be loaded, beyond those that are named. */
	GAP_PROGRAMS_UNNAMED,
	/* Entries of the shared memory that a process did not finish, or that cannot be right. */
	GAP_ENTRIES_UNFINISHED,
	GAP_ENTRIES_DAMAGED,

	/* The kinds below name an object. */
	/* A file that contains an allocator whose functions have no names there; the detail is the allocator's name. */
	GAP_ALLOCATOR_HIDDEN,
	/* An allocator, and how it was probed: late, in part or not at all. */
	GAP_ALLOCATOR_UNPROBED,
	/* Calls of a function that an allocator exports, and whose effect, or the blocks that it
	 * ends, are unknown. */
	GAP_FUNCTION_UNKNOWN,
	GAP_FUNCTION_ENDS,
	/* A defined allocator none of whose functions was found. The detail is its first function
	 * and, one per line, the names of the files in which it was sought. */
	GAP_DEFINITION_LACKING,
	/* From here to GAP_PROGRAM_FOREIGN: processes whose calls are not counted, which `stat
	 * --json` adds up. This kind: a program that took memory from the kernel and hit no probe. */
	GAP_PROGRAM_UNPROBED,
	/* Processes of a program into which the library cannot be loaded, and why; processes that
	 * a translator runs; and processes of another machine, which no engine measures. */
	GAP_PROGRAM_REFUSED,
	GAP_PROGRAM_TRANSLATED,
	GAP_PROGRAM_FOREIGN,
	/* With --live: an allocator, and why its blocks are not followed. */
	GAP_ALLOCATOR_UNFOLLOWED,
	/* With -p: calls that probes saw in the first moments, and that did not come to the library;
	 * the object is the file that made the most of them. */
	GAP_CALLS_BYPASSED,
	/* With --resident: a process whose resident memory is not known; the detail says why. */
	GAP_RESIDENT_UNREAD,
	/* With --reachable: a process in which it is not known what can be reached; the detail says why. */
	GAP_REACH_UNREAD,
	/* A sentence of a recording from before gaps had kinds; the detail is the key that it had
	 * in meta. */
	GAP_SENTENCE,

	/* A file that marks regions: it has more marks than are read, or more regions than are
	 * counted (the detail is the first further one), or marks without a nop or a name, or
	 * marks of an old allocprof.h; or it was found after a process had mapped it, or could not
	 * be probed or read. */
	GAP_REGION_MARKS_MORE,
	GAP_REGION_MANY,
	GAP_REGION_MARKS_NO_NOP,
	GAP_REGION_MARKS_UNNAMED,
	GAP_REGION_MARKS_OLD,
	GAP_REGION_LATE,
	GAP_REGION_FAILED,
	GAP_REGION_UNREAD,

	/* These are in the ledger or the figures, and in no list of gaps: calls that were lost;
	 * calls whose blocks are not followed (the object is the reason); calls counted under the
	 * function that they tail-called; calls that may be within the window; and, with --live,
	 * blocks that lost their slot in the tables. */
	GAP_CALLS_LOST,
	GAP_CALLS_UNTRACKED,
	GAP_RELABELLED,
	GAP_UNDECIDED,
	GAP_BLOCKS_DROPPED,
	GAPS,
};

/* Kinds below this one have only a number. */
#define GAP_NUMBERS GAP_ALLOCATOR_HIDDEN

/* Returns the name of @gap, such as "not_nested", in data files and JSON. @gap is less than GAPS. */
const char *gap__key(enum gap gap);

/* Returns the gap with that name, or -ENOENT. */
int gap__by_key(const char *key);

/* Returns whether the gap concerns only counts by region. */
bool gap__is_of_regions(enum gap gap);

#endif
