// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the sentence of every kind of gap: what a recording lacks is put into words only here. */
#include "completeness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "number.h"
#include "profile.h"
#include "text.h"

#define NOT_COMPLETE "not complete"
#define IN_REGIONS   "calls in regions are missing"
#define UNSEEN                                                                                     \
	" that no counted call had allocated: an allocator of the target hands out memory by a "   \
	"function that is not known"
#define PROGRAM "%n process{|es} of the program %o%i"

/*
 * The sentence, in the form that plural__of() takes for the gap's number: %n is that number, %o
 * the object, %d the first line of the detail, %f " named A or B" of its further lines, %b the
 * bytes, %p the process, %i " (PID)", and %m the largest number of regions that are counted.
 * @effect is what the gap does to the numbers that were counted; NULL if calls are missing.
 */
/* clang-format off */
static const struct gap_words {
	const char *sentence, *effect;
} words[GAPS] = {
	[GAP_NOT_NESTED] = {
		"%n call{|s} of defined allocators could not be matched with {its return|their returns}, so "
		"allocator calls inside {it|them} are counted as well",
		"numbers may be too large" },
	[GAP_MAPPINGS_UNSURE] = {
		"%n call{|s} of munmap and mremap {is|are} counted although the mapping may not have been "
		"anonymous",
		"numbers may be too large" },
	[GAP_MAPPING_CHANGES] = {
		"%n change{|s} of mappings found the ring buffer full, so that mappings may count as live that are not, "
		"or lack parts",
		"live mappings may be wrong" },
	[GAP_OPERANDS_UNREAD] = {
		"%n argument{|s} of USDT probes could not be read and count{s|} as 0",
		"numbers may be too small" },
	[GAP_CALLS_UNREAD] = {
		"%n return address{|es}, argument{|s} or result{|s} of calls could not be read: bytes and "
		"blocks may be missing, and calls that allocators make themselves may be counted",
		"numbers may be wrong" },
	[GAP_PROCESSES_UNFOLLOWED] = { "%n process{|es} could not be followed" },
	[GAP_PROCESSES_REFUSED] = {
		"%n program{|s} had more privileges than the user who measured, and {was|were} not measured; "
		"run allocprof as root" },
	[GAP_PROCESSES_UNNOTICED] = {
		"%n beginning{|s} or end{|s} of processes went unnoticed, and with {it|them} perhaps an "
		"allocator" },
	[GAP_MAPPINGS_LOST] = { "%n mapping{|s} of files went unnoticed, and with {it|them} perhaps an allocator" },
	[GAP_COUNTERS_UNREAD] = { "%n of the kernel's counters could not be read, so that numbers may be too small" },
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_C] = {
		"%n block{|s} {was|were} freed as in C (free, realloc)" UNSEEN },
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_CXX] = {
		"%n block{|s} {was|were} freed as in C++ (operator delete)" UNSEEN },
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_JEMALLOC] = {
		"%n block{|s} {was|were} freed by jemalloc's interface (dallocx, sdallocx, rallocx)" UNSEEN },
	[GAP_ALLOCATIONS_UNSEEN + AP_FAMILY_DEFINED] = {
		"%n block{|s} {was|were} freed by functions of defined allocators (--allocator, --probe, --usdt)" UNSEEN },
	[GAP_TORN] = {
		"%n millisecond{|s} passed while this copy was taken of a running target",
		"numbers may be of moments that far apart" },
	[GAP_OTHERS_UNPROBED] = {
		"%n other process{|es} took memory from the kernel and called no function that is probed" },
	[GAP_WINDOW_UNNOTICED] = { "%n beginning{|s} or end{|s} of the window went unnoticed" },
	[GAP_REGION_DEPTH] = { "%n region{|s} {was|were} begun within too many others", IN_REGIONS },
	[GAP_REGION_THREADS] = { "%n region{|s} {was|were} begun by threads that found no room", IN_REGIONS },
	[GAP_REGION_SETS] = { "%n call{|s} {was|were} in too many different sets of regions", IN_REGIONS },
	[GAP_REGION_UNNOTICED] = { "%n beginning{|s} or end{|s} of regions went unnoticed", IN_REGIONS },
	[GAP_REGION_UNNUMBERED] = {
		"there are more than %m regions; %n beginning{|s} of further ones {is|are} not counted", IN_REGIONS },
	[GAP_REGION_UNNAMED] = {
		"%n beginning{|s} of regions {is|are} not counted: {its name is|their names are} empty, too long "
		"or not printable", IN_REGIONS },
	[GAP_PROGRAMS_UNCOUNTED] = {
		"%n program{|s} found no room in the shared memory, or may not call "
		"getpid(2), and {its|their} calls are missing" },
	[GAP_THREADS_UNCOUNTED] = {
		"%n time{|s} a thread found no room in the shared memory, and its calls are missing" },
	[GAP_CALLS_EARLY] = {
		"%n call{|s} {is|are} missing that came before the library had found the shared memory, or room "
		"in it" },
	[GAP_OWN_FUNCTIONS] = {
		"%n call{|s} or use{|s} of functions of an allocator's own {is|are} not followed: what these "
		"do with memory is not known, or their calls cannot be counted; --engine=uprobe names them" },
	[GAP_COLLECTORS] = {
		"%n process{|es} {has|have} a collector, which frees unreachable blocks without a call, so "
		"that too much counts as live" },
	[GAP_LIBRARIES_UNSEEN] = {
		"%n librar{y was|ies were} loaded by dlmopen, as an auditor (LD_AUDIT) or with "
		"RTLD_DEEPBIND, so that {its|their} calls are missing; --engine=uprobe counts them" },
	[GAP_WORDS_UNBOUND] = {
		"%n word{|s} by which objects call the allocator {was|were} changed by others, or {is|are} of "
		"libraries that came later, so that calls may be missing; --engine=uprobe counts them" },
	[GAP_PROGRAM_EXECUTED] = {
		"%n process{|es} executed another program, whose calls are missing; --engine=uprobe counts them" },
	[GAP_PROCESS_NOT_LEFT] = {
		"%n process{|es} could not be left: stopped, or with a thread that did not stop, so that it is not known "
		"whether calls are missing; the next allocprof that measures {it leaves it|them leaves them}" },
	[GAP_COUNTED_UNSEEN] = {
		"%n time{|s} a library has a function of a `count` line that it may call itself, or a program looked its "
		"address up, so that calls may be missing; --engine=uprobe counts them" },
	[GAP_MEMORY_REPLACED] = {
		"%n process{|es} mapped other memory over that in which {its|their} calls are counted, so "
		"that what came afterwards is missing; --engine=uprobe counts it" },
	[GAP_PROGRAMS_UNNAMED] = { "%n further program{ was|s were} executed that the library could not be preloaded into" },
	[GAP_ENTRIES_UNFINISHED] = {
		"%n entr{y|ies} of the shared memory {was|were} being written when {its|their} process was "
		"killed or stopped" },
	[GAP_ENTRIES_DAMAGED] = {
		"%n entr{y|ies} of the shared memory cannot be right: a process has written over {it|them}" },
	[GAP_ALLOCATOR_UNPROBED] = { "allocator %o was %d" },
	[GAP_FUNCTION_UNKNOWN] = {
		"%o exports %d, which is not known: %n call{ of it is|s of it are} not counted (--ignore=%d "
		"where it hands out no memory)" },
	[GAP_FUNCTION_ENDS] = {
		"%o: %d was called %n time{|s} and ended blocks; which ones is not known, so they count as "
		"live" },
	[GAP_DEFINITION_LACKING] = {
		"no file of the target%f has a function of %o, such as %d: its calls are not counted (where "
		"a file is loaded later, name it with --expect)" },
	[GAP_PROGRAM_UNPROBED] = {
		PROGRAM " took %b bytes from the kernel and called no function that is probed: its allocator is "
		"unknown; define it (allocprof-allocators(5))" },
	[GAP_PROGRAM_REFUSED] = {
		PROGRAM ", %d: the preloaded library does not see its calls; --engine=uprobe may count them" },
	[GAP_PROGRAM_TRANSLATED] = {
		PROGRAM ", %d: the preloaded library does not see its calls; run it without the translator" },
	[GAP_PROGRAM_FOREIGN] = { PROGRAM ", %d" },
	[GAP_ALLOCATOR_HIDDEN] = {
		"%d is linked into %o, and its functions have no names there: their calls are missing" },
	[GAP_ALLOCATOR_UNFOLLOWED] = { "the blocks of allocator %o were %d" },
	[GAP_CALLS_BYPASSED] = {
		"%n call{|s} of process %p in the first moments did not come to the library, for the most part from "
		"%o, and calls of that kind are missing; --engine=uprobe counts them" },
	[GAP_RESIDENT_UNREAD] = { "the resident memory of process %p is not known: %d" },
	[GAP_REACH_UNREAD] = { "which blocks of process %p can be reached is not known: %d" },
	[GAP_REGION_MARKS_MORE] = { "%o has more than %n marks of regions; the others are ignored", IN_REGIONS },
	[GAP_REGION_MANY] = { "there are more than %m regions; '%d' of %o is not counted", IN_REGIONS },
	[GAP_REGION_MARKS_NO_NOP] = {
		"%n mark{|s} of regions in %o {is|are} not at a nop and ignored", IN_REGIONS },
	[GAP_REGION_MARKS_UNNAMED] = { "%n mark{|s} of regions in %o {has|have} no printable name", IN_REGIONS },
	[GAP_REGION_MARKS_OLD] = {
		"the regions of %o are not counted: it was compiled with an allocprof.h whose marks uprobes alone "
		"can see; compile it anew, or use --engine=uprobe, as root", IN_REGIONS },
	[GAP_REGION_LATE] = {
		"the regions of %o were found only after process %p had mapped it: earlier calls in them are "
		"missing (--expect names such files beforehand)", IN_REGIONS },
	[GAP_REGION_FAILED] = { "the regions of %o are not counted: %d", IN_REGIONS },
	[GAP_REGION_UNREAD] = { "the regions of %o, if any, are unknown: %d", IN_REGIONS },
	[GAP_CALLS_LOST] = { "%n call{|s} lost (%o): %d" },
	[GAP_CALLS_UNTRACKED] = { "the blocks of %n call{|s} are not followed (%o): %d" },
	[GAP_UNDECIDED] = {
		"%n call{|s} {has an incomplete stack|have incomplete stacks} and may belong to the window" },
	[GAP_RELABELLED] = {
		"%n call{|s} {is|are} counted under the function that {it|they} led to",
		"numbers are right for all functions together" },
	[GAP_BLOCKS_DROPPED] = {
		"%n block{|s} that a failed realloc kept, or that ended within interrupted calls, {is|are} not "
		"followed any more, and count{s|} as live" },
};
/* clang-format on */

const char *gap_text__effect(enum gap kind)
{
	return words[kind].effect ?: "this profile is " NOT_COMPLETE;
}

const char *gap_text__verdict(enum gap kind)
{
	if (gap__is_of_regions(kind))
		return "regions " NOT_COMPLETE;
	return words[kind].effect ? "not exact" : NOT_COMPLETE;
}

/* Returns the words that preceded the sentences of older recordings. */
static const char *before_of(const char *key)
{
	static const char *const befores[][2] = {
		{ "unprobed_allocators", "allocator " },
		{ "unknown_functions",
		  "an allocator's function is unknown, so its calls are not counted or the blocks that it "
		  "freed count as live: " },
		{ "refused_programs", "the calls of a program are not seen: " },
		{ "live_gaps", "the blocks of allocator " },
		{ "lacking_sources", "no file of the target had a function of " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(befores); i++)
		if (!strcmp(befores[i][0], key))
			return befores[i][1];
	return "";
}

/* Prints " named A, B or C" with the lines after the first. */
static void print_files(const char *lines, FILE *to)
{
	const char *before = " named ";

	for (const char *line = strchr(lines, '\n'), *next; line; line = next) {
		next = strchr(++line, '\n');
		fprintf(to, "%s%.*s", before, next ? (int)(next - line) : (int)strlen(line), line);
		before = next && !strchr(next + 1, '\n') ? " or " : ", ";
	}
}

static void print_part(char part, const struct profile_gap *gap, FILE *to)
{
	switch (part) {
	case 'n':
		fputs(number__count(gap->number).text, to);
		break;
	case 'b':
		fputs(number__count(gap->size_bytes).text, to);
		break;
	case 'o':
		fputs(gap->object, to);
		break;
	case 'd':
		fprintf(to, "%.*s", (int)strcspn(gap->detail, "\n"), gap->detail);
		break;
	case 'f':
		print_files(gap->detail, to);
		break;
	case 'm':
		fprintf(to, "%d", AP_MAX_REGIONS);
		break;
	case 'p':
		fprintf(to, "%u", gap->pid);
		break;
	case 'i':
		if (gap->pid)
			fprintf(to, " (%u)", gap->pid);
		break;
	}
}

char *gap_text__sentence(const struct profile_gap *gap)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	struct plural_text plural;

	if (!to)
		return NULL;
	if (gap->kind == GAP_SENTENCE) {
		fprintf(to, "%s%s", before_of(gap->detail), gap->object);
	} else {
		plural = plural__of(words[gap->kind].sentence, gap->number);
		for (const char *at = plural.text; *at; at++)
			if (*at == '%' && at[1])
				print_part(*++at, gap, to);
			else
				fputc(*at, to);
	}
	if (fclose(to)) {
		free(text);
		text = NULL;
	}
	for (char *at = text; at && *at; at++)
		if (*at == '\n')
			*at = '?';
	return text;
}
