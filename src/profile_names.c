// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile.h"

#include <errno.h>
#include <string.h>

static const char *const function_names[AP_FUNCTIONS] = {
	[AP_MALLOC] = "malloc",
	[AP_CALLOC] = "calloc",
	[AP_REALLOC] = "realloc",
	[AP_REALLOCARRAY] = "reallocarray",
	[AP_POSIX_MEMALIGN] = "posix_memalign",
	[AP_ALIGNED_ALLOC] = "aligned_alloc",
	[AP_MEMALIGN] = "memalign",
	[AP_VALLOC] = "valloc",
	[AP_PVALLOC] = "pvalloc",
	[AP_FREE] = "free",
};

static const char *const lost_names[AP_LOST_REASONS] = {
	[AP_LOST_RECURSION] = "recursion",     [AP_LOST_NO_SCRATCH] = "no_scratch",
	[AP_LOST_RING_FULL] = "ring_full",     [AP_LOST_COUNTS_FULL] = "counts_full",
	[AP_LOST_UNACCOUNTED] = "unaccounted",
};

static const char *const end_names[AP_STACK_ENDS] = {
	[AP_END_COMPLETE] = "complete",	      [AP_END_MAX_DEPTH] = "max_depth",
	[AP_END_NO_MAPPING] = "no_mapping",   [AP_END_BAD_FRAME] = "bad_frame",
	[AP_END_UNREADABLE] = "unreadable",   [AP_END_NO_TABLE] = "no_table",
	[AP_END_UNSUPPORTED] = "unsupported", [AP_END_FRAME_POINTERS] = "frame_pointers",
	[AP_END_DUMP_SHORT] = "dump_short",
};

static const char *const untracked_names[AP_UNTRACKED_REASONS] = {
	[AP_UNTRACKED_LIVE_FULL] = "live_full", [AP_UNTRACKED_NO_MEMORY] = "no_memory",
	[AP_UNTRACKED_NESTED] = "nested",	[AP_UNTRACKED_THREADS_FULL] = "threads_full",
	[AP_UNTRACKED_NO_RETURN] = "no_return",
};

const char *profile__function_name(enum ap_function function)
{
	return (unsigned int)function < AP_FUNCTIONS ? function_names[function] : "unknown";
}

const char *profile__lost_name(enum ap_lost reason)
{
	return (unsigned int)reason < AP_LOST_REASONS ? lost_names[reason] : "unknown";
}

const char *profile__untracked_name(enum ap_untracked reason)
{
	return (unsigned int)reason < AP_UNTRACKED_REASONS ? untracked_names[reason] : "unknown";
}

const char *profile__stack_end_name(enum ap_stack_end end)
{
	return (unsigned int)end < AP_STACK_ENDS ? end_names[end] : "unknown";
}

static int find_name(const char *const *names, int n_names, const char *name)
{
	for (int i = 0; i < n_names; i++) {
		if (!strcmp(names[i], name))
			return i;
	}
	return -ENOENT;
}

int profile__function_by_name(const char *name)
{
	return find_name(function_names, AP_FUNCTIONS, name);
}

int profile__stack_end_by_name(const char *name)
{
	return find_name(end_names, AP_STACK_ENDS, name);
}
