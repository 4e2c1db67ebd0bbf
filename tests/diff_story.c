// SPDX-License-Identifier: GPL-3.0-or-later
#include "diff_story.h"

#include <string.h>

#include "fixture.h"

#define MAX_FRAMES 8

struct call {
	const char *frames[MAX_FRAMES]; /* innermost first, below serve */
	enum ap_function function;
	__u64 calls, size_bytes, temporary, live;
	bool varies;
};

static const struct call calls_before[] = {
	{ { "parse_headers", "handle_request" }, AP_MALLOC, 1000, 64000, 0, 0, false },
	{ { "respond", "handle_request" }, AP_MALLOC, 2000, 256000, 2000, 0, true },
	{ { "read_body", "read_request", "handle_request" },
	  AP_REALLOC,
	  1000,
	  512000,
	  0,
	  0,
	  false },
	{ { "read_request", "accept_one" }, AP_MALLOC, 4, 4096, 0, 4, false },
	{ { "load_config" }, AP_CALLOC, 5, 500, 0, 5, false },
	{ { "open_log" }, AP_MALLOC, 1, 4096, 0, 1, false },
};

static const struct call calls_after[] = {
	{ { "decode_headers", "handle_request" }, AP_MALLOC, 1000, 64000, 0, 0, false },
	{ { "respond", "handle_request" }, AP_MALLOC, 2010, 257280, 2010, 0, true },
	{ { "read_body", "handle_request" }, AP_REALLOC, 1000, 512000, 0, 0, false },
	{ { "read_request", "accept_one" }, AP_MALLOC, 4, 4096, 0, 4, false },
	{ { "operator new", "add_trace", "handle_request" },
	  AP_MALLOC,
	  3000,
	  96000,
	  3000,
	  0,
	  false },
	{ { "open_log" }, AP_MALLOC, 1, 4096, 0, 1, false },
};

static const char *const roots[] = { "serve", "main", "__libc_start_call_main", "__libc_start_main",
				     "_start" };

#define N_ROOTS (sizeof(roots) / sizeof(roots[0]))

static __u32 module_of(const char *name)
{
	return !strncmp(name, "__libc", 6) ? 2 : !strncmp(name, "operator", 8) ? 3 : 1;
}

/* Addresses have nothing to do with the other file's. */
static int add_frame(struct profile *profile, const char *name, bool after, __u32 *id)
{
	int err = profile__add_frame(profile, module_of(name),
				     0x1000 + 0x10 * profile->n_frames + after, false, id);

	return err ? err : fixture__name_frame(profile, *id, name);
}

static int add_call(struct profile *profile, const struct call *call, bool after, __u32 thread,
		    unsigned int more)
{
	__u32 frames[MAX_FRAMES + N_ROOTS], stack, id;
	struct profile_blocks blocks = { 0 };
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < MAX_FRAMES && call->frames[i]; i++)
		err |= add_frame(profile, call->frames[i], after, &frames[n++]);
	for (size_t i = 0; i < N_ROOTS; i++)
		err |= add_frame(profile, roots[i], after, &frames[n++]);
	if (!call->varies)
		more = 0;
	err |= profile__add_stack(profile, frames, n, AP_END_COMPLETE, &stack);
	err |= profile__add_count(profile, thread, stack, call->function, call->calls + more,
				  call->size_bytes, &id);
	if (err)
		return -1;
	blocks.count = id;
	blocks.allocations = call->calls + more;
	blocks.size_bytes = call->size_bytes;
	blocks.frees = blocks.allocations - call->live;
	blocks.freed_bytes = call->size_bytes / (call->calls + more) * blocks.frees;
	blocks.temporary = call->temporary;
	blocks.temporary_bytes = call->size_bytes / (call->calls + more) * call->temporary;
	err = fixture__add_lifetime(profile, id, 0, 0, blocks.frees, blocks.freed_bytes);
	if (!err && call->live)
		err = fixture__add_lifetime(profile, id, 0, PROFILE_LIVE, call->live,
					    profile_blocks__live_bytes(&blocks));
	return err ? err : profile__add_blocks(profile, &blocks);
}

static int fill(struct profile *profile, bool after, unsigned int n_runs)
{
	const struct call *calls = after ? calls_after : calls_before;
	const __u64 lost[AP_LOST_REASONS] = { 0 };
	__u64 events = 0;
	__u32 id;
	int err = 0;

	err |= profile__add_module(profile, "/usr/bin/server", after ? "bb" : "aa", &id);
	err |= profile__add_module(profile, "/usr/lib/libc.so.6", "cc", &id);
	err |= profile__add_module(profile, "/usr/lib/libstdc++.so.6", "dd", &id);
	for (unsigned int run = 1; run <= n_runs && !err; run++) {
		err |= profile__add_process(profile, 0, 100 + run, run, "server", &id);
		profile->processes[id - 1].run = run;
		err |= profile__add_thread(profile, id, "server", &id);
		for (size_t i = 0; i < sizeof(calls_after) / sizeof(calls_after[0]); i++)
			err |= add_call(profile, &calls[i], after, id, run - 1);
	}
	for (size_t i = 0; i < profile->n_counts; i++)
		events += profile->counts[i].calls;
	err |= profile__set_meta(profile, "command", "server --requests=1000");
	err |= profile__set_meta(profile, "epoch_ns", "1000000000");
	err |= profile__settle_ledger(profile, events, lost);
	return err;
}

struct profile *diff_story__new(bool after, unsigned int n_runs)
{
	struct profile *profile = profile__new();

	if (profile && fill(profile, after, n_runs)) {
		profile__free(profile);
		return NULL;
	}
	return profile;
}
