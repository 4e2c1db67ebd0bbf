// SPDX-License-Identifier: GPL-3.0-or-later
#include "runs_story.h"

#include <stdio.h>

#include "fixture.h"
#include "profile_runs.h"

#define APP    1
#define PLUGIN 2

struct place {
	const char *name;
	__u32 module;
	__u64 offset;
};

static __u32 add_frame(struct profile *profile, const struct place *place, int *err)
{
	__u32 id = 0;

	*err |= profile__add_frame(profile, place->module, place->offset, false, &id);
	*err |= *err ? *err : fixture__name_frame(profile, id, place->name);
	return id;
}

/* Sets *@blocks to @n blocks of @size_bytes each, called from main, @n_freed of which are freed. */
static int add_blocks(struct profile *profile, const struct place *place, __u64 n, __u64 size_bytes,
		      __u64 n_freed, struct profile_blocks *blocks)
{
	static const struct place main_place = { "main", APP, 0x1010 };
	__u32 frames[2], stack, count;
	int err = 0;

	frames[0] = add_frame(profile, place, &err);
	frames[1] = add_frame(profile, &main_place, &err);
	if (err)
		return err;
	err |= profile__add_stack(profile, frames, 2, AP_END_COMPLETE, &stack);
	err |= profile__add_count(profile, 1, stack, AP_MALLOC, n, n * size_bytes, &count);
	*blocks = (struct profile_blocks){
		.count = count,
		.allocations = n,
		.size_bytes = n * size_bytes,
		.frees = n_freed,
		.freed_bytes = n_freed * size_bytes,
	};
	blocks->sizes[fixture__bucket(size_bytes)] = n;
	return err;
}

static int add_calls(struct profile *profile, unsigned int number)
{
	const struct place handle = { "handle", APP, 0x2010 }, cache = { "cache", APP, 0x3010 };
	const struct place plugin = { "plugin", PLUGIN, 0x10 };
	const struct place jit = { number == 3 ? "jit_mul" : "jit_add", 0, 0x7000 };
	__u64 n = 999 + number, epoch_ns = number * 100000000ULL;
	struct profile_blocks blocks;
	int err = add_blocks(profile, &handle, n, 100, n, &blocks);

	blocks.lifetimes[10] = n - 10;
	blocks.lifetimes[33] = 10;
	blocks.peak = number == 2 ? 9 : 5;
	blocks.peak_bytes = 100 * blocks.peak;
	err |= profile__add_blocks(profile, &blocks);
	err |= fixture__add_lifetime(profile, 1, 10, 10, n - 10, 100 * (n - 10));
	err |= fixture__add_lifetime(profile, 1, 10, 99, 10, 1000);
	err |= add_blocks(profile, &cache, 5, 1000, 0, &blocks);
	blocks.oldest_ns = 20 * epoch_ns;
	err |= profile__add_blocks(profile, &blocks);
	err |= fixture__add_lifetime(profile, 2, 20, PROFILE_LIVE, 5, 5000);
	err |= add_blocks(profile, &plugin, 1, 8, 1, &blocks);
	err |= profile__add_blocks(profile, &blocks);
	err |= add_blocks(profile, &jit, 1, 8, 1, &blocks);
	err |= profile__add_blocks(profile, &blocks);
	err |= fixture__add_lifetime(profile, 3, 30, 30, 1, 8);
	return err | fixture__add_lifetime(profile, 4, 40, 40, 1, 8);
}

static int add_time(struct profile *profile, unsigned int number)
{
	int err = 0;

	for (unsigned int i = 0; i < 4; i++)
		err |= profile__add_timeline_sample(profile,
						    &(struct timeline_sample){
							    .time_ns = i * number * 2500000000ULL,
							    .live = i ? 5 : 0,
							    .live_bytes = i ? 5000 : 0,
							    .allocations = i ? 1006 : 0,
							    .size_bytes = i ? 105016 : 0,
							    .rss_bytes = 1 << 20,
						    });
	return err;
}

static int set_meta(struct profile *profile, unsigned int number)
{
	const __u64 lost[AP_LOST_REASONS] = { 0 };
	char text[64];
	int err = profile__set_meta(profile, "command", "app");

	snprintf(text, sizeof(text), "2026-11-21T09:3%u:00Z", number);
	err |= profile__set_meta(profile, "start_time", text);
	snprintf(text, sizeof(text), "%u.000000", number * 10);
	err |= profile__set_meta(profile, "elapsed_seconds", text);
	snprintf(text, sizeof(text), "%u", number * 100000000);
	err |= profile__set_meta(profile, "epoch_ns", text);
	err |= profile__set_meta(profile, "peak_bytes", number == 2 ? "5900" : "5500");
	err |= profile__set_meta(profile, "exit_status", number == 2 ? "3" : "0");
	err |= profile__set_meta(profile, "allocators",
				 number == 3 ? "/lib/libc.so.6\n/opt/plugin.so" : "/lib/libc.so.6");
	err |= profile__settle_ledger(profile, 1006 + number, lost);
	return err | profile__set_ledger(profile, "allocations", 1006 + number);
}

static int fill(struct profile *profile, unsigned int number)
{
	__u32 id;
	int err = profile__add_module_file(profile, "/usr/bin/app", "aa", number, &id);

	err |= profile__add_module_file(profile, "/opt/plugin.so", "", number == 3 ? 33 : 11, &id);
	err |= profile__add_process(profile, 0, 100 + number, number, "app", &id);
	err |= profile__end_process(profile, 1, number + 1, false);
	err |= profile__add_thread(profile, 1, "app", &id);
	err |= err ? err : add_calls(profile, number);
	err |= add_time(profile, number);
	return err ? err : set_meta(profile, number);
}

struct profile *runs_story__run(unsigned int number)
{
	struct profile *profile = profile__new();

	if (profile && fill(profile, number)) {
		profile__free(profile);
		return NULL;
	}
	return profile;
}

struct profile *runs_story__new(void)
{
	struct profile *profile = profile__new();
	int err = profile ? 0 : -1;

	for (unsigned int number = 1; number <= RUNS_STORY_RUNS && !err; number++) {
		struct profile *run = runs_story__run(number);

		err = run ? profile__add_run(profile, run) : -1;
		profile__free(run);
	}
	if (!err)
		err = profile__settle_runs(profile, RUNS_STORY_RUNS + 1, 1);
	if (!err)
		return profile;
	profile__free(profile);
	return NULL;
}
