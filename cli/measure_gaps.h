/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sentences for the coverage gaps of a measurement. */
#ifndef ALLOCPROF_MEASURE_GAPS_H
#define ALLOCPROF_MEASURE_GAPS_H

#include "session.h"
#include "sources.h"

/*
 * Arguments: the allocator's path, the function, the number of calls, the words that depend on that
 * number, and the function.
 */
#define UNKNOWN_FUNCTION                                                                           \
	"%s exports %s, which is not known: %s call%s of it %s not counted (--ignore=%s where it " \
	"hands out no memory)"

#define BLOCKS_ENDED                                                                               \
	"%s: %s was called %s time%s, which ended blocks, and it is not known which: they count as live"

/* Arguments: the number of processes, the program's name, the first pid, bytes. */
#define UNPROBED_PROGRAM                                                                            \
	"%s process%s of the program %s (%u) took %s bytes from the kernel and called no function " \
	"that is probed: its allocator is not known"

#define UNPROBED_OTHERS                                                                            \
	"%s other processes took memory from the kernel and called no function that is probed"

/* Arguments: the source's patterns (patterns_text__of()), its name, and its first function. */
#define LACKING_SOURCE                                                                             \
	"no file of the target%s has a function of %s, such as %s: its calls are not counted "     \
	"(where a file is loaded later, name it with --expect)"

/* " named A, B or C": the file patterns of a source, truncated; "" for any file. */
struct patterns_text {
	char text[256];
};
struct patterns_text patterns_text__of(const struct source *source);
#define NOT_NESTED "allocator calls within %s calls of defined sources are counted, too"

/* Messages with one argument, a number. */
#define OPERANDS_UNREAD "%s arguments of USDT probes could not be read and count as 0"
#define MAPPINGS_UNSURE                                                                            \
	"%s calls of munmap and mremap are counted although the mapping may not have been anonymous"

/* Reports all coverage gaps on stderr, and which process goes on without probes. */
void measure__report_gaps(const struct session *session, const struct session_results *results);

#endif
