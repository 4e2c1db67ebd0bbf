// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes data files with many stacks for bench/diff: before.data, and what it is compared with. In
 * after.data one function in 50 has another name, one in 50 was inlined and one stack in 10 another
 * cost; in renamed.data each stack has another frame near its root; other.data is of another program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_file.h"
#include "error.h"
#include "profile.h"

#define FUNCTIONS 5000
#define MODULES	  20
#define MIN_DEPTH 12
#define MAX_DEPTH 40

enum variant {
	BEFORE,
	AFTER,
	RENAMED,
	OTHER,
	VARIANTS,
};

static const char *const names[VARIANTS] = { "before", "after", "renamed", "other" };

static __u64 mix(__u64 value)
{
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
	return value ^ value >> 31;
}

static void check(int err)
{
	if (err) {
		fprintf(stderr, "%s\n", strerror(-err));
		exit(1);
	}
}

static void name_function(enum variant variant, __u32 function, char *name, size_t size)
{
	const char *end = "";

	if (variant == AFTER && function % 50 == 7)
		end = "_with_options";
	if (variant == RENAMED && function < 3)
		end = "_loop";
	snprintf(name, size, "%s::part_%llu::handle_%llu_%u%s",
		 variant == OTHER ? "another" : "service", mix(function) % 50,
		 mix(function + (variant == OTHER ? 7777 : 0)) % 100000, function, end);
}

/* Frames are places in functions, three each, at other addresses in each file. */
static void add_frames(struct profile *profile, enum variant variant)
{
	for (__u32 i = 0; i < 3 * FUNCTIONS; i++) {
		struct profile_line line = { 0 };
		char name[128];
		__u32 id;

		check(profile__add_frame(profile, 1 + i / 3 % MODULES,
					 0x1000 + 64ULL * i + 16 * variant, false, &id));
		name_function(variant, i / 3, name, sizeof(name));
		check(profile__add_function(profile, name, name, name, &line.function));
		check(profile__set_frame_lines(profile, id, &line, 1));
	}
}

static void add_stack(struct profile *profile, enum variant variant, __u64 seed)
{
	__u32 depth = MIN_DEPTH + mix(seed) % (MAX_DEPTH - MIN_DEPTH + 1);
	__u32 path[MAX_DEPTH], frames[MAX_DEPTH], n = 0, id;
	__u32 function = mix(seed + 1) % 3;
	__u64 calls = 1 + mix(seed + 2) % 1000;

	for (__u32 i = 0; i < depth; i++) {
		if (variant != AFTER || function % 50 != 9)
			path[n++] = 3 * function + mix(seed + 3 + i) % 3 + 1;
		function = 3 + mix(function * 4ULL + mix(seed + 100 + i) % 4) % (FUNCTIONS - 3);
	}
	for (__u32 i = 0; i < n; i++)
		frames[i] = path[n - 1 - i];
	if (variant != BEFORE && mix(seed + 200) % 10 == 0)
		calls += mix(seed + 201) % 100;
	check(profile__add_stack(profile, frames, n, AP_END_COMPLETE, &id));
	check(profile__add_count(profile, 1, id, AP_MALLOC, calls, 32 * calls, &id));
}

static void write_variant(const char *directory, enum variant variant, __u64 n_stacks)
{
	struct profile *profile = profile__new();
	const __u64 lost[AP_LOST_REASONS] = { 0 };
	struct error error = { 0 };
	char path[4096], build_id[8];
	__u64 events = 0;
	__u32 id;

	check(profile ? 0 : -1);
	for (int i = 0; i < MODULES; i++) {
		snprintf(path, sizeof(path), "/usr/lib/libpart%d.so.1", i);
		snprintf(build_id, sizeof(build_id), "%02x%02x", variant, i);
		check(profile__add_module(profile, path, build_id, &id));
	}
	check(profile__add_process(profile, 0, 1, 0, "service", &id));
	check(profile__add_thread(profile, id, "service", &id));
	add_frames(profile, variant);
	for (__u64 i = 0; i < n_stacks; i++)
		add_stack(profile, variant,
			  mix(i) + (variant != BEFORE && i % 100 == 0 ? 12345 : 0));
	for (size_t i = 0; i < profile->n_counts; i++)
		events += profile->counts[i].calls;
	check(profile__settle_ledger(profile, events, lost));
	snprintf(path, sizeof(path), "%s/%s.data", directory, names[variant]);
	if (data_file__write(profile, path, &error)) {
		fprintf(stderr, "%s\n", error.text);
		exit(1);
	}
	profile__free(profile);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: diff_profiles DIRECTORY STACKS\n");
		return 64;
	}
	for (int i = 0; i < VARIANTS; i++)
		write_variant(argv[1], i, strtoull(argv[2], NULL, 10));
	return 0;
}
