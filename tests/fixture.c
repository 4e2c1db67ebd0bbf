// SPDX-License-Identifier: GPL-3.0-or-later
#include "fixture.h"

static const struct {
	__u32 module;
	__u64 offset;
	const char *function;
} frames[] = {
	{ 1, 0x1100, "_start" },				 /* 1 */
	{ 1, 0x1234, "main" },					 /* 2 */
	{ 2, 0x8010, "std::map<int, a b>::insert(int, char*)" }, /* 3 */
	{ 2, 0x8020, NULL },					 /* 4 */
	{ 0, 0x7fffdeadbeef, NULL },				 /* 5 */
	{ 2, 0x8030, "operator new(unsigned long)" },		 /* 6 */
	{ 1, 0x1240, "main" },					 /* 7: another place in main */
	{ 3, 0xffffffffff600001, "odd;name\twith\nall\x01\xff\xc3\xa9" }, /* 8 */
};

static const struct {
	__u32 frames[4];
	size_t n_frames;
	enum ap_stack_end end;
} stacks[] = {
	{ { 2, 1 }, 2, AP_END_COMPLETE },	/* 1 */
	{ { 7, 1 }, 2, AP_END_COMPLETE },	/* 2: folds into 1 */
	{ { 6, 3, 2, 1 }, 4, AP_END_COMPLETE }, /* 3 */
	{ { 4, 5 }, 2, AP_END_NO_MAPPING },	/* 4 */
	{ { 8, 2 }, 2, AP_END_MAX_DEPTH },	/* 5 */
	{ { 0 }, 0, AP_END_UNREADABLE },	/* 6 */
};

static const struct {
	__u32 thread, stack;
	enum ap_function function;
	__u64 calls, size_bytes;
} counts[] = {
	{ 1, 1, AP_MALLOC, 10, 1000 }, { 1, 2, AP_MALLOC, 5, 500 },
	{ 1, 3, AP_MALLOC, 7, 7777 },  { 1, 3, AP_CALLOC, 1, 64 },
	{ 1, 1, AP_FREE, 9, 0 },       { 2, 4, AP_REALLOC, 3, 300 },
	{ 2, 5, AP_MALLOC, 2, 0 },     { 3, 6, AP_POSIX_MEMALIGN, 4, 4096 },
	{ 2, 1, AP_MALLOC, 1, 8 },
};

/* What became of the first count's blocks. */
static const struct profile_blocks blocks = {
	.count = 1,
	.failed = 1,
	.allocations = 9,
	.size_bytes = 900,
	.frees = 5,
	.freed_bytes = 500,
	.discarded = 1,
	.discarded_bytes = 100,
	.temporary = 2,
	.temporary_bytes = 200,
	.peak = 4,
	.peak_bytes = 400,
	.oldest_ns = 1500000000,
	.sizes = { [7] = 9 },
	.lifetimes = { [10] = 2, [30] = 3 },
};

int fixture__name_frame(struct profile *profile, __u32 frame, const char *name)
{
	struct profile_line line = { 0 };
	int err = profile__add_function(profile, name, name, name, &line.function);

	return err ? err : profile__set_frame_lines(profile, frame, &line, 1);
}

static int add_live(struct profile *profile)
{
	static const struct timeline_sample samples[] = {
		{ 1000000000, 3, 300, 3, 300, 1048576 },
		{ 2000000000, 3, 300, 9, 900, 2097152 },
	};
	int err = profile__add_blocks(profile, &blocks);

	err |= fixture__add_lifetime(profile, 1, 0, 0, 2, 200);
	err |= fixture__add_lifetime(profile, 1, 0, 7, 3, 300);
	err |= fixture__add_lifetime(profile, 1, 3, PROFILE_LIVE, 3, 300);
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		err |= profile__add_timeline_sample(profile, &samples[i]);
	return err | profile__set_meta(profile, "epoch_ns", "500000000");
}

static int fill(struct profile *profile)
{
	const __u64 lost[AP_LOST_REASONS] = { [AP_LOST_RING_FULL] = 2, [AP_LOST_UNACCOUNTED] = 1 };
	int err = 0;
	__u32 id;

	err |= profile__add_module(profile, "/usr/bin/app", "00ff", &id);
	err |= profile__add_module(profile, "/usr/lib/libfoo.so.1", "abcdef0123", &id);
	err |= profile__add_module(profile, "/tmp/my lib;1", "", &id);
	err |= profile__add_process(profile, 0, 100, 5000000000, "app", &id);
	err |= profile__add_process(profile, 1, 101, 5000001000, "wor ker;2", &id);
	profile->processes[1].end_ns = 7000000000;
	profile->processes[1].execed = true;
	err |= profile__add_thread(profile, 1, "app", &id);
	err |= profile__add_thread(profile, 2, "wor ker;2", &id);
	err |= profile__add_thread(profile, 2, "pool", &id);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		err |= profile__add_frame(profile, frames[i].module, frames[i].offset, false, &id);
		if (frames[i].function)
			err |= fixture__name_frame(profile, id, frames[i].function);
	}
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
		err |= profile__add_stack(profile, stacks[i].frames, stacks[i].n_frames,
					  stacks[i].end, &id);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		err |= profile__add_count(profile, counts[i].thread, counts[i].stack,
					  counts[i].function, counts[i].calls, counts[i].size_bytes,
					  &id);
	err |= add_live(profile);
	err |= profile__set_meta(profile, "command", "app --flag");
	err |= profile__set_meta(profile, "kernel", "6.18.0");
	err |= profile__set_meta(profile, "machine", "aarch64");
	err |= profile__settle_ledger(profile, 45, lost);
	return err;
}

struct profile *fixture__new(void)
{
	struct profile *profile = profile__new();

	if (profile && fill(profile)) {
		profile__free(profile);
		return NULL;
	}
	return profile;
}
