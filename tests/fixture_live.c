// SPDX-License-Identifier: GPL-3.0-or-later
#include "fixture_live.h"

#include <stdio.h>
#include <string.h>

#include "fixture.h"

#define LONG_NAME                                                                                  \
	"ns::detail::registry<ns::key<std::pair<int, unsigned long> >, std::vector<ns::value, "    \
	"ns::arena_allocator<ns::value> > >::emplace_or_replace_with_hint_and_notify_%zu"

struct maker {
	struct profile *profile;
	__u64 epoch_ns;
	__u64 random;
	int err;
};

static __u32 random_below(struct maker *maker, __u32 limit)
{
	maker->random = maker->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (maker->random >> 33) % limit;
}

static __u32 add_frame(struct maker *maker, const char *name)
{
	__u32 frame = 0;

	maker->err |= profile__add_frame(maker->profile, 1, 0x1000 + maker->profile->n_frames,
					 false, &frame);
	if (!maker->err)
		maker->err |= fixture__name_frame(maker->profile, frame, name);
	return frame;
}

/* A count of malloc in @name, which is called as @callers says, innermost first, NULL last. */
static __u32 add_count(struct maker *maker, const char *name, const char *const *callers)
{
	__u32 frames[16] = { add_frame(maker, name) }, n = 1, stack = 0, count = 0;

	for (; callers[n - 1]; n++)
		frames[n] = add_frame(maker, callers[n - 1]);
	maker->err |= profile__add_stack(maker->profile, frames, n, AP_END_COMPLETE, &stack);
	maker->err |= profile__add_count(maker->profile, 1, stack, AP_MALLOC, 1, 1, &count);
	return count;
}

static void add(struct maker *maker, __u32 count, __u32 born, __u32 died, __u64 blocks, __u64 size)
{
	if (!maker->err)
		maker->err = fixture__add_lifetime(maker->profile, count, born, died, blocks,
						   blocks * size);
}

static void begin(struct maker *maker, const char *command, __u64 epoch_ns, const char *seconds)
{
	__u32 id;

	maker->profile = profile__new();
	if (!maker->profile) {
		maker->err = -1;
		return;
	}
	maker->epoch_ns = epoch_ns;
	maker->err |= profile__add_module(maker->profile, "/usr/bin/app", "00ff", &id);
	maker->err |= profile__add_process(maker->profile, 0, 100, 5000000000, "app", &id);
	maker->err |= profile__add_thread(maker->profile, 1, "app", &id);
	maker->err |= profile__set_meta(maker->profile, "command", command);
	maker->err |= profile__set_meta(maker->profile, "start_time", "2026-11-21T09:30:00Z");
	maker->err |= profile__set_meta(maker->profile, "elapsed_seconds", seconds);
}

static void add_timeline_samples(struct maker *maker, __u32 n, __u64 step_ns, __u64 rss_bytes,
				 __u64 growth)
{
	for (__u32 i = 1; i <= n; i++) {
		const struct timeline_sample sample = {
			.time_ns = i * step_ns,
			.rss_bytes = rss_bytes + i * growth,
		};

		maker->err |= profile__add_timeline_sample(maker->profile, &sample);
	}
}

static struct profile *end(struct maker *maker, __u64 lost_events)
{
	const __u64 lost[AP_LOST_REASONS] = { [AP_LOST_RING_FULL] = lost_events };
	char epoch_ns[32];

	snprintf(epoch_ns, sizeof(epoch_ns), "%llu", maker->epoch_ns);
	if (!maker->err && maker->epoch_ns)
		maker->err |= profile__set_meta(maker->profile, "epoch_ns", epoch_ns);
	if (!maker->err)
		maker->err |= profile__settle_ledger(maker->profile,
						     maker->profile->n_counts + lost_events, lost);
	if (maker->err) {
		profile__free(maker->profile);
		return NULL;
	}
	return maker->profile;
}

static struct profile *make_behaviours(void)
{
	static const char *const by_main[] = { "run", "main", "_start", NULL };
	static const char *const by_new[] = { "cache_insert", "serve", "main", "_start", NULL };
	struct maker maker = { .random = 1 };
	__u32 leak, end_only, cache, mixture;

	begin(&maker, "behaviours --seconds 2", 2000000, "2.000000");
	leak = add_count(&maker, "leak_linearly", by_main);
	end_only = add_count(&maker, "free_at_the_end", by_main);
	cache = add_count(&maker, "operator new(unsigned long)", by_new);
	mixture = add_count(&maker, "mix", by_main);
	for (__u32 epoch = 0; epoch < 1000; epoch++) {
		add(&maker, leak, epoch, PROFILE_LIVE, 2, 512);
		if (epoch < 980)
			add(&maker, end_only, epoch, 998 + epoch % 2, 3, 700);
		add(&maker, cache, epoch, epoch + 150 < 999 ? epoch + 150 : 999, 4, 1024);
		for (int i = 0; i < 3; i++) {
			__u32 died = epoch + random_below(&maker, epoch % 200 < 60 ? 250 : 30);

			add(&maker, mixture, epoch,
			    died > 999 || !random_below(&maker, 40) ? PROFILE_LIVE : died,
			    1 + random_below(&maker, 4), 256 << random_below(&maker, 4));
		}
	}
	add_timeline_samples(&maker, 100, 20000000, 400 << 10, 36 << 10);
	return end(&maker, 0);
}

static struct profile *make_empty(void)
{
	struct maker maker = { 0 };

	begin(&maker, "true", 100000, "0.001500");
	return end(&maker, 0);
}

static struct profile *make_no_live(void)
{
	struct maker maker = { 0 };

	begin(&maker, "true", 0, "0.001500");
	return end(&maker, 0);
}

static struct profile *make_short_lived(void)
{
	static const char *const by_main[] = { "main", NULL };
	struct maker maker = { 0 };
	__u32 count;

	begin(&maker, "churn", 1000000, "0.500000");
	count = add_count(&maker, "churn", by_main);
	for (__u32 epoch = 0; epoch < 500; epoch++)
		add(&maker, count, epoch, epoch, 1000 + epoch, 64);
	add_timeline_samples(&maker, 50, 10000000, 1 << 20, 0);
	return end(&maker, 0);
}

static struct profile *make_one(void)
{
	static const char *const by_main[] = { "main", NULL };
	struct maker maker = { 0 };
	__u32 count;

	begin(&maker, "one", 10000, "0.005000");
	count = add_count(&maker, "only_one", by_main);
	for (__u32 epoch = 0; epoch < 500; epoch++)
		add(&maker, count, epoch, PROFILE_LIVE, 1, 16);
	return end(&maker, 0);
}

static struct profile *make_many(void)
{
	static const char *const callers[] = {
		"ns::detail::registry<ns::key<std::pair<int, unsigned long> > >::insert",
		"std::invoke<ns::handler&, ns::request&&>",
		"ns::server::dispatch<boost::asio::ip::basic_endpoint<boost::asio::ip::tcp> >",
		"main",
		NULL,
	};
	struct maker maker = { .random = 7 };
	char name[512];

	begin(&maker,
	      "/usr/lib/very/deep/directory/of/an/application/bin/server --config "
	      "/etc/server/production/configuration.yaml --listen 0.0.0.0:8080 --workers 64 "
	      "--verbose",
	      36000000000, "36000.000000");
	for (size_t i = 0; i < 100; i++) {
		__u32 count;

		snprintf(name, sizeof(name), LONG_NAME, i);
		count = add_count(&maker, name, callers);
		for (__u32 epoch = 0; epoch < 1000; epoch += 1 + random_below(&maker, 20)) {
			__u32 died = epoch + random_below(&maker, 2 + i * 8);

			add(&maker, count, epoch,
			    died > 999 || !random_below(&maker, 5) ? PROFILE_LIVE : died, 10,
			    (1 + random_below(&maker, 100)) * (101 - i) << 8);
		}
	}
	add_timeline_samples(&maker, 100, 360000000000, 64 << 20, 12 << 20);
	return end(&maker, 1234);
}

static struct profile *make_rss(void)
{
	static const char *const by_main[] = { "main", NULL };
	struct maker maker = { 0 };
	__u32 count;

	begin(&maker, "pool --size 1G", 10000000, "9.990000");
	count = add_count(&maker, "pool_grow", by_main);
	for (__u32 epoch = 0; epoch < 900; epoch += 100)
		add(&maker, count, epoch, epoch + 250 < 999 ? epoch + 250 : PROFILE_LIVE, 1,
		    1 << 20);
	add_timeline_samples(&maker, 99, 100000000, 800 << 20, 1 << 20);
	for (__u64 i = 1; i <= 10; i++) {
		const struct profile_rss_sample sample = {
			.time_ns = i * 999000000,
			.bytes = { [RSS_BLOCKS] = 1 << 20,
				   [RSS_FREE] = (i * 80) << 20,
				   [RSS_FILES] = 3 << 20 },
		};

		maker.err |= profile__add_rss_sample(maker.profile, &sample);
	}
	return end(&maker, 0);
}

struct profile *fixture__live(const char *name)
{
	static const struct {
		const char *name;
		struct profile *(*make)(void);
	} makers[] = {
		{ "behaviours", make_behaviours },
		{ "empty", make_empty },
		{ "no_live", make_no_live },
		{ "short_lived", make_short_lived },
		{ "one", make_one },
		{ "many", make_many },
		{ "rss", make_rss },
	};

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (!strcmp(name, makers[i].name))
			return makers[i].make();
	}
	return NULL;
}
