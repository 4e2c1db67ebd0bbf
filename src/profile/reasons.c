// SPDX-License-Identifier: GPL-3.0-or-later
#include "reasons.h"

#include <string.h>

#include "array.h"

#define FEWER_THREADS "fewer threads at a time lose fewer"

/* In containers /dev/shm often has 64 MiB. */
#define NO_ROOM                                                                                    \
	"the file system of allocprof's shared memory was full, or a process's own file as large as it may be"
#define NO_ROOM_REMEDY                                                                             \
	"give it more room (docker run --shm-size=1g), or name a directory with more in "          \
	"ALLOCPROF_INSIDE_DIR, or for `allocprof env` by -o and --max-size; --sample needs less"

/* clang-format off */
static const struct reason lost[AP_LOST_REASONS] = {
	[AP_LOST_RECURSION] = {
		"recursion", "the kernel skipped the probe's program, as it was already running on that "
		"processor", FEWER_THREADS, NULL },
	[AP_LOST_NO_SCRATCH] = {
		"no_scratch", "all room to build a stack in was taken by threads that had been "
		"interrupted", FEWER_THREADS, NULL },
	[AP_LOST_RING_FULL] = {
		"ring_full", "new stacks came faster than allocprof could read them",
		"record less, with --sample or --within", NULL },
	[AP_LOST_COUNTS_FULL] = {
		"counts_full", "more combinations of stack, thread and process were new than the kernel "
		"side has room for", "give a greater --max-records with --live, or record less, with "
		"--sample, --within or a smaller --max-depth", NULL },
	[AP_LOST_NO_ROOM] = { "no_room", NO_ROOM, NO_ROOM_REMEDY, NULL },
	[AP_LOST_UNSEEN] = {
		"unseen", "the kernel counted page faults that no program of allocprof saw, most likely in "
		"system calls that fill or lock memory (MAP_POPULATE, mlock)",
		"a kernel with fentry (CONFIG_FUNCTION_TRACER) shows those; allocprof doctor says whether "
		"this one has it", NULL },
	[AP_LOST_UNACCOUNTED] = {
		"unaccounted", "they are in no count, and nothing explains it", "do not rely on totals",
		NULL },
};

#define NO_TABLE_REMEDY                                                                            \
	"compile that with -fasynchronous-unwind-tables, or have a JIT compiler keep frame "        \
	"pointers (java -XX:+PreserveFramePointer) and write a perf map (java "                     \
	"-XX:+DumpPerfMapAtExit or jcmd PID Compiler.perfmap, node --perf-basic-prof)"

static const struct reason stack_ends[AP_STACK_ENDS] = {
	[AP_END_COMPLETE] = {
		"complete", "the outermost frame was reached", NULL, "no frames" },
	[AP_END_MAX_DEPTH] = {
		"max_depth", "the stack has more frames than were kept",
		"record with a greater --max-depth, 512 at the most", "more of them than --max-depth" },
	[AP_END_NO_MAPPING] = {
		"no_mapping", "a return address lies in no code of the process", NULL,
		"return address in no code" },
	[AP_END_BAD_FRAME] = {
		"bad_frame", "the caller's frame does not lie further up the stack, as in code that has "
		"neither an unwind table nor frame pointers",
		NO_TABLE_REMEDY, "no frame of a caller" },
	[AP_END_UNREADABLE] = {
		"unreadable", "the stack's memory could not be read", NULL, "stack not readable" },
	[AP_END_NO_TABLE] = {
		"no_table", "a file's unwind table, or what is mapped at an address, was not known yet when "
		"the call came", "name the file with --expect", "unwind table not ready yet" },
	[AP_END_UNSUPPORTED] = {
		"unsupported", "the unwind table has a rule that allocprof cannot follow", NULL,
		"unwind rule not supported" },
	[AP_END_FRAME_POINTERS] = {
		"frame_pointers", "frames may be missing, as code without an unwind table was followed by "
		"its frame pointers", NO_TABLE_REMEDY,
		"no unwind table" },
	[AP_END_DUMP_SHORT] = {
		"dump_short", "too little of the stack was kept to reach its outermost frame",
		"record with a greater --stack-dump", "more stack than --stack-dump" },
	[AP_END_OTHER_STACK] = {
		"other_stack", "the caller's frame is on another stack, and nothing says where", NULL,
		"caller on another stack" },
};

static const struct reason untracked[AP_UNTRACKED_REASONS] = {
	[AP_UNTRACKED_LIVE_FULL] = {
		"live_full",
		"as many blocks were live as can be followed, or they came faster than allocprof "
		"made room",
		"give a greater --max-live, or --sample", NULL },
	[AP_UNTRACKED_NO_MEMORY] = {
		"no_memory", "the kernel had no memory to follow more blocks", "--sample needs less",
		NULL },
	[AP_UNTRACKED_NESTED] = {
		"nested", "their thread was within as many other calls of the allocator as are followed", NULL, NULL },
	[AP_UNTRACKED_THREADS_FULL] = {
		"threads_full", "there were more threads than can be followed", NULL, NULL },
	[AP_UNTRACKED_NO_RETURN] = {
		"no_return", "the returns of this allocator cannot be probed", NULL, NULL },
	[AP_UNTRACKED_POOL] = {
		"pool", "its definition says that they end with their pool (blocks = none)",
		"record without --live to see their calls", NULL },
	[AP_UNTRACKED_NO_ROOM] = { "no_room", NO_ROOM, NO_ROOM_REMEDY, NULL },
};
/* clang-format on */

/* In the order of allocprof-data(5); a test looks whether all are here. */
static const struct {
	const char *entry, *meaning;
} meanings[] = {
	{ "events", "all calls that the recording was to count" },
	{ "sampled", "calls that were chosen by --sample and are in the counts" },
	{ "not_sampled", "calls that --sample did not choose" },
	{ "attributed", "calls that are in the counts, with their stacks" },
	{ "lost", "calls that are in no count" },
	{ "complete", "calls whose stack was followed to its outermost frame" },
	{ "incomplete", "calls whose stack is, or may be, incomplete" },
	{ "allocations", "calls that got memory" },
	{ "failed", "calls that got none" },
	{ "released", "calls of realloc with size 0 that freed the block" },
	{ "unfinished", "calls that did not return" },
	{ "untracked", "calls whose blocks are not followed" },
	{ "reallocations", "allocations in place of another block, as by realloc" },
	{ "frees", "blocks that ended, by any function" },
	{ "frees_null", "frees of a null pointer" },
	{ "frees_unknown", "frees of blocks whose allocation was not seen" },
	{ "frees_inherited", "frees, in a forked process, of blocks from before the fork" },
	{ "frees_unseen", "frees that were not seen: the block's address was handed out again" },
	{ "discarded", "blocks that went with their address space when a process executed another "
		       "program" },
	{ "lifetimes_missing", "blocks whose lifetimes are not in the recording" },
	{ "blocks_dropped", "blocks, counted as live, that found no room any more to be followed" },
	{ "histograms_missing", "blocks that are not in the histograms" },
	{ "logged", "events in the event log" },
	{ "not_logged", "events that the event log lacks" },
	{ "left_out", "events of blocks that the event log was not asked for" },
	{ "undecided", "calls, not among the events, whose incomplete stack does not tell whether "
		       "they are within what --within named" },
};

static const struct reason unknown = { "unknown", "the reason is not known", NULL, "unknown" };

const struct reason *reason__lost(enum ap_lost number)
{
	return (unsigned int)number < AP_LOST_REASONS ? &lost[number] : &unknown;
}

const struct reason *reason__stack_end(enum ap_stack_end number)
{
	return (unsigned int)number < AP_STACK_ENDS ? &stack_ends[number] : &unknown;
}

const struct reason *reason__untracked(enum ap_untracked number)
{
	return (unsigned int)number < AP_UNTRACKED_REASONS ? &untracked[number] : &unknown;
}

const struct reason *reason__by_ledger(const char *entry)
{
	static const struct {
		const char *prefix;
		const struct reason *reasons;
		size_t n;
	} kinds[] = {
		{ "lost_", lost, AP_LOST_REASONS },
		{ "incomplete_", stack_ends, AP_STACK_ENDS },
		{ "untracked_", untracked, AP_UNTRACKED_REASONS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i].prefix);

		if (strncmp(entry, kinds[i].prefix, len))
			continue;
		for (size_t j = 0; j < kinds[i].n; j++)
			if (!strcmp(kinds[i].reasons[j].name, entry + len))
				return &kinds[i].reasons[j];
	}
	return NULL;
}

const char *reason__ledger_meaning(const char *entry)
{
	const struct reason *reason = reason__by_ledger(entry);

	if (reason)
		return reason->sentence;
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (!strcmp(meanings[i].entry, entry))
			return meanings[i].meaning;
	return NULL;
}
