// SPDX-License-Identifier: GPL-3.0-or-later
#include "case_study.h"

#include <stdio.h>

#include "fixture.h"
#include "profile.h"

#define EPOCHS	 500U
#define EPOCH_NS 200000000ULL
#define LAST	 (EPOCHS - 1)

enum {
	APP = 1,
	LIBC,
};

enum {
	START = 1,
	MAIN,
	SERVE,
	SERVE_AGAIN, /* another line of serve() */
	LEAK,
	PLUGIN,
	CACHE, /* cache_insert() has its map's insert() inlined */
	PARSE,
	CONFIG,
	WORKER,
	CLONE,
};

static const struct {
	__u32 module;
	__u64 offset;
	struct {
		const char *function, *file;
		__u32 line;
	} lines[2]; /* innermost first */
} frames[] = {
	{ APP, 0x1100, { { "_start", NULL, 0 } } },
	{ APP, 0x1200, { { "main", "/src/server/main.c", 80 } } },
	{ APP, 0x1300, { { "serve", "/src/server/serve.c", 41 } } },
	{ APP, 0x1340, { { "serve", "/src/server/serve.c", 57 } } },
	{ APP, 0x1400, { { "leak_session", "/src/server/session.c", 12 } } },
	{ APP, 0x1500, { { "load_plugin", "/src/server/plugin.c", 30 } } },
	{ APP,
	  0x1600,
	  { { "lru_map<session>::insert", "/src/server/lru.h", 118 },
	    { "cache_insert", "/src/server/cache.c", 22 } } },
	{ APP, 0x1700, { { "parse_request", "/src/server/parse.c", 9 } } },
	{ APP, 0x1800, { { "read_config", "/src/server/config.c", 5 } } },
	{ APP, 0x1900, { { "worker", "/src/server/worker.c", 19 } } },
	{ LIBC, 0x9000, { { "__clone3", NULL, 0 } } },
};

static const struct {
	__u32 frames[4];
	__u32 n_frames, thread;
	enum ap_function function;
} stacks[] = {
	{ { CONFIG, MAIN, START }, 3, 1, AP_MALLOC },		 /* 1 */
	{ { LEAK, SERVE, MAIN, START }, 4, 1, AP_MALLOC },	 /* 2 */
	{ { LEAK, SERVE_AGAIN, MAIN, START }, 4, 1, AP_MALLOC }, /* 3: prints like 2 */
	{ { PLUGIN, SERVE, MAIN, START }, 4, 1, AP_CALLOC },	 /* 4 */
	{ { CACHE, SERVE, MAIN, START }, 4, 1, AP_MALLOC },	 /* 5 */
	{ { PARSE, WORKER, CLONE }, 3, 2, AP_MALLOC },		 /* 6 */
};

static int add_frames(struct profile *profile)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct profile_line lines[2] = { 0 };
		__u32 id, n = 0;

		err |= profile__add_frame(profile, frames[i].module, frames[i].offset, false, &id);
		for (; n < 2 && frames[i].lines[n].function; n++) {
			const char *name = frames[i].lines[n].function;

			err |= profile__add_function(profile, name, name, name, &lines[n].function);
			if (frames[i].lines[n].file)
				err |= profile__add_file(profile, frames[i].lines[n].file,
							 &lines[n].file);
			lines[n].line = frames[i].lines[n].line;
			lines[n].inlined = true;
		}
		lines[n - 1].inlined = false;
		err |= profile__set_frame_lines(profile, id, lines, n);
	}
	return err;
}

/* @n blocks of @size bytes; @lifetime_ns of those that were freed. */
static int add_blocks(struct profile *profile, __u32 count, __u32 born, __u32 died, __u64 n,
		      __u64 size, __u64 lifetime_ns)
{
	struct profile_blocks blocks = {
		.count = count,
		.allocations = n,
		.size_bytes = n * size,
	};

	blocks.sizes[fixture__bucket(size)] = n;
	if (died != PROFILE_LIVE) {
		blocks.frees = n;
		blocks.freed_bytes = n * size;
		blocks.lifetimes[fixture__bucket(lifetime_ns)] = n;
	} else {
		blocks.oldest_ns = born * EPOCH_NS + EPOCH_NS / 2;
	}
	/* The peak is just before the server frees what it has. */
	if (died >= LAST && born < LAST) {
		blocks.peak = n;
		blocks.peak_bytes = n * size;
	}
	if (profile__add_blocks(profile, &blocks))
		return -1;
	profile->counts[count - 1].calls += n;
	profile->counts[count - 1].size_bytes += n * size;
	return fixture__add_lifetime(profile, count, born, died, n, n * size);
}

static int add_epoch(struct profile *profile, __u32 epoch)
{
	__u32 evicted = epoch + 10 + epoch % 5, end = LAST;
	__u64 to_end_ns = (LAST - epoch) * EPOCH_NS + EPOCH_NS / 2;
	int err = 0;

	if (!epoch)
		err |= add_blocks(profile, 1, 0, PROFILE_LIVE, 1, 4096, 0);
	err |= add_blocks(profile, 2, epoch, PROFILE_LIVE, 6, 64, 0);
	err |= add_blocks(profile, 3, epoch, PROFILE_LIVE, 4, 64, 0);
	err |= add_blocks(profile, 4, epoch, end, 4, 256, to_end_ns);
	err |= add_blocks(profile, 5, epoch, evicted < end ? evicted : end, 20, 128,
			  evicted < end ? (evicted - epoch) * EPOCH_NS : to_end_ns);
	err |= add_blocks(profile, 6, epoch, epoch, 98, 48, 900);
	err |= add_blocks(profile, 6, epoch, end, 1, 48, to_end_ns);
	err |= add_blocks(profile, 6, epoch, PROFILE_LIVE, 1, 48, 0);
	return err | profile__add_blocks(profile, &(struct profile_blocks){
							  .count = 6,
							  .temporary = 90,
							  .temporary_bytes = 90 * 48,
						  });
}

static int add_timeline_samples(struct profile *profile)
{
	int err = 0;

	for (__u32 sample = 1; sample <= 100; sample++) {
		struct timeline_sample to = { .time_ns = sample * 1000000000ULL };
		struct profile_lifetime cell;
		__u32 at = 0;

		while (profile__next_lifetime(profile, &at, &cell)) {
			if (cell.born >= sample * 5)
				continue;
			to.allocations += cell.blocks;
			to.size_bytes += cell.size_bytes;
			if (cell.died < sample * 5)
				continue;
			to.live += cell.blocks;
			to.live_bytes += cell.size_bytes;
		}
		to.rss_bytes = 1048576 + to.live_bytes;
		err |= profile__add_timeline_sample(profile, &to);
	}
	return err;
}

static int fill(struct profile *profile)
{
	const __u64 lost[AP_LOST_REASONS] = { 0 };
	__u64 events = 0;
	__u32 id;
	int err = 0;

	err |= profile__add_module(profile, "/usr/bin/server", "00aa", &id);
	err |= profile__add_module(profile, "/usr/lib/libc.so.6", "00bb", &id);
	err |= profile__add_process(profile, 0, 4711, 1000000000, "server", &id);
	profile->processes[0].end_ns = 101000000000;
	err |= profile__add_thread(profile, 1, "server", &id);
	err |= profile__add_thread(profile, 1, "worker", &id);
	err |= add_frames(profile);
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]) && !err; i++) {
		err |= profile__add_stack(profile, stacks[i].frames, stacks[i].n_frames,
					  AP_END_COMPLETE, &id);
		err |= profile__add_count(profile, stacks[i].thread, id, stacks[i].function, 0, 0,
					  &id);
	}
	for (__u32 epoch = 0; epoch < EPOCHS && !err; epoch++)
		err |= add_epoch(profile, epoch);
	if (err)
		return err;
	err |= add_timeline_samples(profile);
	err |= profile__set_meta(profile, "command", "server --port 8080");
	err |= profile__set_meta(profile, "start_time", "2026-11-21T09:30:00Z");
	err |= profile__set_meta(profile, "elapsed_seconds", "100.000000");
	err |= profile__set_meta(profile, "exit_status", "0");
	err |= profile__set_meta(profile, "epoch_ns", "200000000");
	for (size_t i = 0; i < profile->n_counts; i++)
		events += profile->counts[i].calls;
	return err | profile__settle_ledger(profile, events, lost);
}

struct profile *case_study__new(void)
{
	struct profile *profile = profile__new();

	if (profile && fill(profile)) {
		profile__free(profile);
		return NULL;
	}
	return profile;
}
