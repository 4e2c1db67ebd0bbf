// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps counts of calls by process, thread, stack and function, and what became of the blocks that
 * they returned. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "array.h"
#include "hash_table.h"
#include "leb128.h"
#include "profile.h"
#include "profile_internal.h"

__u64 profile__add_up(__u64 a, __u64 b)
{
	__u64 sum;

	return __builtin_add_overflow(a, b, &sum) || sum > PROFILE_MAX ? PROFILE_MAX : sum;
}

static bool match_count(const void *owner, __u32 id, const void *key)
{
	const struct profile_count *count = &((const struct profile *)owner)->counts[id - 1];
	const struct profile_count *wanted = key;

	return count->thread == wanted->thread && count->stack == wanted->stack &&
	       count->function == wanted->function;
}

static __u32 find_closed(const struct profile *profile, const struct profile_count *wanted)
{
	for (__u32 id = 1; id <= profile->index->n_closed; id++)
		if (match_count(profile, id, wanted))
			return id;
	return 0;
}

int profile__add_count(struct profile *profile, __u32 thread, __u32 stack,
		       enum ap_function function, __u64 calls, __u64 size_bytes, __u32 *id)
{
	struct profile_index *index = profile->index;
	struct profile_count count = { .thread = thread, .stack = stack, .function = function };
	__u64 hash = hash_mix(hash_mix(hash_mix(index->seed, thread), stack), function);
	__u32 found;
	int err;

	if (!thread || thread > profile->n_threads || !stack || stack > profile->n_stacks ||
	    (unsigned int)function >= AP_FUNCTIONS)
		return -EINVAL;
	found = hash_table__find(&index->counts, hash, match_count, profile, &count);
	if (!found && profile->threads[thread - 1].is_closed)
		found = find_closed(profile, &count);
	if (!found) {
		count.id = found = profile->n_counts + 1;
		count.process = profile->threads[thread - 1].process;
		err = profile_index__append(&index->counts, hash, &profile->counts,
					    &index->counts_room, &profile->n_counts, &count,
					    sizeof(count));
		if (err)
			return err;
	}
	profile->counts[found - 1].calls = profile__add_up(profile->counts[found - 1].calls, calls);
	profile->counts[found - 1].size_bytes =
		profile__add_up(profile->counts[found - 1].size_bytes, size_bytes);
	*id = found;
	return 0;
}

void profile__close_counts(struct profile *profile)
{
	struct profile_index *index = profile->index;

	for (; index->n_closed < profile->n_counts; index->n_closed++)
		profile->threads[profile->counts[index->n_closed].thread - 1].is_closed = true;
	hash_table__release(&index->counts);
}

void profile__forget_counts(struct profile *profile)
{
	profile->n_counts = profile->index->n_closed = 0;
	profile->index->n_blocks = 0;
	profile->index->has_reach = false;
	profile->n_samples = 0;
	if (profile->index->samples_of)
		memset(profile->index->samples_of, 0,
		       profile->index->samples_of_room * sizeof(*profile->index->samples_of));
	profile->n_lifetimes = profile->index->lifetimes_bytes = 0;
	profile->n_timeline = 0;
	profile->n_rss = profile->n_rss_samples = 0;
	profile->n_heaps = profile->n_size_classes = 0;
	profile->n_mappings = 0;
	hash_table__release(&profile->index->counts);
}

/* The fields of struct profile_blocks that are not histograms. */
static const size_t number_offsets[] = {
	offsetof(struct profile_blocks, failed),
	offsetof(struct profile_blocks, allocations),
	offsetof(struct profile_blocks, size_bytes),
	offsetof(struct profile_blocks, frees),
	offsetof(struct profile_blocks, freed_bytes),
	offsetof(struct profile_blocks, discarded),
	offsetof(struct profile_blocks, discarded_bytes),
	offsetof(struct profile_blocks, temporary),
	offsetof(struct profile_blocks, temporary_bytes),
	offsetof(struct profile_blocks, grown),
	offsetof(struct profile_blocks, grown_bytes),
	offsetof(struct profile_blocks, freed_by_others),
	offsetof(struct profile_blocks, peak),
	offsetof(struct profile_blocks, peak_bytes),
	offsetof(struct profile_blocks, oldest_ns),
	offsetof(struct profile_blocks, resident_bytes),
	offsetof(struct profile_blocks, pages),
	offsetof(struct profile_blocks, unique_pages),
	offsetof(struct profile_blocks, unique_slack_bytes),
	offsetof(struct profile_blocks, rounding_bytes),
	offsetof(struct profile_blocks, reached[PROFILE_LOST].blocks),
	offsetof(struct profile_blocks, reached[PROFILE_LOST].size_bytes),
	offsetof(struct profile_blocks, reached[PROFILE_INDIRECTLY_LOST].blocks),
	offsetof(struct profile_blocks, reached[PROFILE_INDIRECTLY_LOST].size_bytes),
	offsetof(struct profile_blocks, reached[PROFILE_POSSIBLY_LOST].blocks),
	offsetof(struct profile_blocks, reached[PROFILE_POSSIBLY_LOST].size_bytes),
	offsetof(struct profile_blocks, reached[PROFILE_REACHABLE].blocks),
	offsetof(struct profile_blocks, reached[PROFILE_REACHABLE].size_bytes),
};

/* A bitmap of so many bytes says which of them follow. */
#define BITMAP_BYTES 4
_Static_assert(sizeof(number_offsets) / sizeof(number_offsets[0]) <= 8 * BITMAP_BYTES,
	       "more numbers than bits");

#define N_BLOCK_NUMBERS (ARRAY_SIZE(number_offsets))
#define MAX_PACKED                                                                                 \
	(BITMAP_BYTES + LEB128_MAX * N_BLOCK_NUMBERS + 2 * (1 + PROFILE_BUCKETS * (1 + LEB128_MAX)))

static __u64 *number(struct profile_blocks *blocks, size_t i)
{
	return (__u64 *)((char *)blocks + number_offsets[i]);
}

/* Writes the number of used buckets, and each as its index and its value. */
static unsigned char *pack_histogram(unsigned char *to, const __u64 buckets[PROFILE_BUCKETS])
{
	unsigned char *n = to++;

	*n = 0;
	for (unsigned int i = 0; i < PROFILE_BUCKETS; i++) {
		if (!buckets[i])
			continue;
		++*n;
		*to++ = i;
		to = leb128__put(to, buckets[i]);
	}
	return to;
}

static const unsigned char *unpack_histogram(const unsigned char *from,
					     __u64 buckets[PROFILE_BUCKETS])
{
	unsigned int n = *from++;

	while (n--) {
		unsigned int i = *from++;

		from = leb128__get(from, &buckets[i]);
	}
	return from;
}

/* Writes a bitmap of the fields that are not 0, and these fields: many are 0, and most others are
 * small. */
static size_t pack_blocks(struct profile_blocks *blocks, unsigned char packed[MAX_PACKED])
{
	unsigned char *to = packed + BITMAP_BYTES;
	unsigned int set = 0;

	for (size_t i = 0; i < N_BLOCK_NUMBERS; i++) {
		if (!*number(blocks, i))
			continue;
		set |= 1U << i;
		to = leb128__put(to, *number(blocks, i));
	}
	for (int i = 0; i < BITMAP_BYTES; i++)
		packed[i] = set >> 8 * i;
	to = pack_histogram(to, blocks->sizes);
	to = pack_histogram(to, blocks->lifetimes);
	return to - packed;
}

/* Returns the number of bytes read. */
static size_t unpack_blocks(const unsigned char *packed, struct profile_blocks *blocks)
{
	const unsigned char *from = packed + BITMAP_BYTES;
	unsigned int set = 0;

	for (int i = 0; i < BITMAP_BYTES; i++)
		set |= (unsigned int)packed[i] << 8 * i;
	for (size_t i = 0; i < N_BLOCK_NUMBERS; i++)
		if (set >> i & 1)
			from = leb128__get(from, number(blocks, i));
	from = unpack_histogram(from, blocks->sizes);
	from = unpack_histogram(from, blocks->lifetimes);
	return from - packed;
}

void profile_blocks__add(struct profile_blocks *to, const struct profile_blocks *more)
{
	__u64 oldest_ns = to->oldest_ns;

	if (!oldest_ns || (more->oldest_ns && more->oldest_ns < oldest_ns))
		oldest_ns = more->oldest_ns;
	for (size_t i = 0; i < N_BLOCK_NUMBERS; i++)
		*number(to, i) = profile__add_up(
			*number(to, i), *(const __u64 *)((const char *)more + number_offsets[i]));
	to->oldest_ns = oldest_ns;
	for (size_t i = 0; i < PROFILE_BUCKETS; i++) {
		to->sizes[i] = profile__add_up(to->sizes[i], more->sizes[i]);
		to->lifetimes[i] = profile__add_up(to->lifetimes[i], more->lifetimes[i]);
	}
}

/* Appends packed data; the count's earlier data becomes unused. */
static int append(struct profile *profile, struct profile_count *count, const void *packed,
		  size_t size)
{
	struct profile_index *index = profile->index;

	if (index->n_blocks + size >= UINT32_MAX ||
	    array__reserve(&index->blocks, &index->blocks_room, index->n_blocks + size, 1))
		return -ENOMEM;
	memcpy(index->blocks + index->n_blocks, packed, size);
	count->blocks = index->n_blocks + 1;
	index->n_blocks += size;
	return 0;
}

int profile__add_blocks(struct profile *profile, const struct profile_blocks *more)
{
	unsigned char packed[MAX_PACKED];
	struct profile_blocks sum = *more;
	struct profile_count *count;
	size_t size, old_size = 0;

	if (!more->count || more->count > profile->n_counts)
		return -EINVAL;
	for (int i = 0; i < PROFILE_REACHES; i++)
		profile->index->has_reach |= more->reached[i].blocks != 0;
	count = &profile->counts[more->count - 1];
	if (count->blocks) {
		struct profile_blocks old = { 0 };

		old_size = unpack_blocks(profile->index->blocks + count->blocks - 1, &old);
		profile_blocks__add(&sum, &old);
	}
	size = pack_blocks(&sum, packed);
	if (size > old_size)
		return append(profile, count, packed, size);
	memcpy(profile->index->blocks + count->blocks - 1, packed, size);
	return 0;
}

bool profile__has_reach(const struct profile *profile)
{
	return profile->index->has_reach;
}

bool profile__has_blocks(const struct profile *profile)
{
	return profile->index->n_blocks;
}

bool profile__count_blocks(const struct profile *profile, const struct profile_count *count,
			   struct profile_blocks *out)
{
	*out = (struct profile_blocks){ .count = count->id };
	if (!count->blocks)
		return false;
	unpack_blocks(profile->index->blocks + count->blocks - 1, out);
	return true;
}

__u64 profile_blocks__live(const struct profile_blocks *blocks)
{
	return blocks->allocations - blocks->frees - blocks->discarded;
}

__u64 profile_blocks__live_bytes(const struct profile_blocks *blocks)
{
	return blocks->size_bytes - blocks->freed_bytes - blocks->discarded_bytes;
}

int profile__add_timeline_sample(struct profile *profile, const struct timeline_sample *sample)
{
	const struct timeline_sample *last =
		profile->n_timeline ? &profile->timeline[profile->n_timeline - 1] : NULL;
	__u32 run = sample->run ? sample->run : 1;
	int err;

	if (last && (last->run > run || (last->run == run && last->time_ns >= sample->time_ns)))
		return -EINVAL;
	err = profile_index__reserve(&profile->timeline, &profile->index->timeline_room,
				     profile->n_timeline, sizeof(*sample));
	if (err)
		return err;
	profile->timeline[profile->n_timeline] = *sample;
	profile->timeline[profile->n_timeline++].run = run;
	return 0;
}

static const char *const rss_names[RSS_ROWS] = {
	[RSS_BLOCKS] = "blocks", [RSS_SLACK] = "slack",	      [RSS_FREE] = "free",
	[RSS_BEFORE] = "before", [RSS_MAPPINGS] = "mappings", [RSS_INHERITED] = "inherited",
	[RSS_STACKS] = "stacks", [RSS_DATA] = "data",	      [RSS_FILES] = "files",
	[RSS_SHARED] = "shared", [RSS_OWN] = "allocprof",     [RSS_CHANGED] = "changed",
	[RSS_HUGE] = "huge",	 [RSS_HIGHEST] = "highest",
};

const char *rss_kind__name(enum rss_kind kind)
{
	return rss_names[kind];
}

int rss_kind__by_name(const char *name)
{
	for (int i = 0; i < RSS_ROWS; i++)
		if (!strcmp(rss_names[i], name))
			return i;
	return -ENOENT;
}

int profile__add_rss(struct profile *profile, const struct profile_rss *rss)
{
	size_t n = profile->n_rss;
	int err;

	if (!rss->process || rss->process > profile->n_processes ||
	    (n && profile->rss[n - 1].process > rss->process))
		return -EINVAL;
	for (size_t i = n; i-- > 0 && profile->rss[i].process == rss->process;)
		if (profile->rss[i].kind == rss->kind)
			return -EINVAL;
	err = profile_index__reserve(&profile->rss, &profile->index->rss_room, n, sizeof(*rss));
	if (!err)
		profile->rss[profile->n_rss++] = *rss;
	return err;
}

int profile__add_rss_sample(struct profile *profile, const struct profile_rss_sample *sample)
{
	size_t n = profile->n_rss_samples;
	int err;

	if (n && profile->rss_samples[n - 1].time_ns >= sample->time_ns)
		return -EINVAL;
	err = profile_index__reserve(&profile->rss_samples, &profile->index->rss_samples_room, n,
				     sizeof(*sample));
	if (!err)
		profile->rss_samples[profile->n_rss_samples++] = *sample;
	return err;
}

static const char *const mark_kinds[MARK_KINDS] = {
	[MARK_DUMP] = "dump",
	[MARK_STOP] = "stop",
	[MARK_START] = "start",
};

const char *mark_kind__name(enum mark_kind kind)
{
	return mark_kinds[kind];
}

int mark_kind__by_name(const char *name)
{
	for (int kind = 0; kind < MARK_KINDS; kind++)
		if (!strcmp(mark_kinds[kind], name))
			return kind;
	return -1;
}

int profile__add_mark(struct profile *profile, __u64 time_ns, enum mark_kind kind, const char *name)
{
	size_t n = profile->n_marks;
	char *copy;
	int err;

	if (n >= PROFILE_MAX_MARKS || (n && profile->marks[n - 1].time_ns > time_ns))
		return -EINVAL;
	err = profile_index__reserve(&profile->marks, &profile->index->marks_room, n,
				     sizeof(*profile->marks));
	copy = err ? NULL : strdup(name);
	if (!copy)
		return -ENOMEM;
	profile->marks[profile->n_marks++] = (struct profile_mark){ time_ns, kind, copy };
	return 0;
}

void profile__add_up_rss(const struct profile *profile, __u64 bytes[RSS_KINDS])
{
	memset(bytes, 0, RSS_KINDS * sizeof(*bytes));
	for (size_t i = 0; i < profile->n_rss; i++)
		if (profile->rss[i].kind < RSS_KINDS)
			bytes[profile->rss[i].kind] = profile__add_up(bytes[profile->rss[i].kind],
								      profile->rss[i].size_bytes);
}

__u64 profile_rss_sample__sum(const struct profile_rss_sample *sample)
{
	__u64 sum = 0;

	for (int kind = 0; kind < RSS_KINDS; kind++)
		sum = profile__add_up(sum, sample->bytes[kind]);
	return sum;
}

int profile__copy_rss(struct profile *to, const struct profile *from, const __u32 *processes)
{
	int err = 0;

	for (size_t i = 0; i < from->n_rss && !err; i++) {
		struct profile_rss rss = from->rss[i];

		rss.process = processes[rss.process - 1];
		if (rss.process)
			err = profile__add_rss(to, &rss);
	}
	return err;
}

static const char *const mapping_names[MAPPING_KINDS] = {
	[MAPPING_HEAP] = "heap",	 [MAPPING_STACK] = "stack", [MAPPING_CODE] = "code",
	[MAPPING_RESERVED] = "reserved", [MAPPING_OTHER] = "other",
};

const char *mapping_kind__name(enum mapping_kind kind)
{
	return mapping_names[kind];
}

int mapping_kind__by_name(const char *name)
{
	for (int i = 0; i < MAPPING_KINDS; i++)
		if (!strcmp(mapping_names[i], name))
			return i;
	return -ENOENT;
}

int profile__add_mapping(struct profile *profile, const struct profile_mapping *mapping)
{
	size_t n = profile->n_mappings;
	int err;

	if (!mapping->count || mapping->count > profile->n_counts || !mapping->size_bytes ||
	    mapping->size_bytes > UINT64_MAX - mapping->address ||
	    (unsigned int)mapping->kind >= MAPPING_KINDS)
		return -EINVAL;
	err = profile_index__reserve(&profile->mappings, &profile->index->mappings_room, n,
				     sizeof(*mapping));
	if (!err)
		profile->mappings[profile->n_mappings++] = *mapping;
	return err;
}

int profile__copy_mappings(struct profile *to, const struct profile *from, const __u32 *counts)
{
	int err = 0;

	for (size_t i = 0; i < from->n_mappings && !err; i++) {
		struct profile_mapping mapping = from->mappings[i];

		mapping.count = counts[mapping.count - 1];
		if (mapping.count)
			err = profile__add_mapping(to, &mapping);
	}
	return err;
}

#define N_LIFETIME_NUMBERS 5

__u32 profile_lifetime__end_epoch(const struct profile_lifetime *lifetime)
{
	return lifetime->died != PROFILE_LIVE ? lifetime->died : lifetime->exited;
}

__u32 profile_lifetime__last_epoch(const struct profile_lifetime *lifetime)
{
	__u32 end = profile_lifetime__end_epoch(lifetime);

	return end == PROFILE_LIVE ? lifetime->born : end;
}

/* Packs the age, and whether an exit has ended the block, in place of the epoch: most blocks die
 * soon, so this takes fewer bytes. */
static __u64 pack_end(const struct profile_lifetime *lifetime)
{
	__u32 last = profile_lifetime__end_epoch(lifetime);

	if (last == PROFILE_LIVE)
		return 0;
	return ((__u64)last - lifetime->born + 1) << 1 | (lifetime->died == PROFILE_LIVE);
}

static unsigned char *pack(unsigned char *to, const struct profile_lifetime *lifetime)
{
	to = leb128__put(to, lifetime->count);
	to = leb128__put(to, lifetime->born);
	to = leb128__put(to, pack_end(lifetime));
	to = leb128__put(to, lifetime->blocks);
	return leb128__put(to, lifetime->size_bytes);
}

static const unsigned char *unpack(const unsigned char *from, struct profile_lifetime *out)
{
	__u64 numbers[N_LIFETIME_NUMBERS];
	bool has_exited;
	__u32 last;

	for (int i = 0; i < N_LIFETIME_NUMBERS; i++)
		from = leb128__get(from, &numbers[i]);
	has_exited = numbers[2] & 1;
	last = numbers[2] ? numbers[1] + (numbers[2] >> 1) - 1 : PROFILE_LIVE;
	*out = (struct profile_lifetime){
		.count = numbers[0],
		.born = numbers[1],
		.died = has_exited ? PROFILE_LIVE : last,
		.exited = has_exited ? last : PROFILE_LIVE,
		.blocks = numbers[3],
		.size_bytes = numbers[4],
	};
	return from;
}

int profile__add_lifetime(struct profile *profile, const struct profile_lifetime *lifetime)
{
	struct profile_index *index = profile->index;
	size_t most = index->lifetimes_bytes + N_LIFETIME_NUMBERS * LEB128_MAX;

	if (!lifetime->count || lifetime->count > profile->n_counts ||
	    lifetime->born > lifetime->died || lifetime->born > lifetime->exited)
		return -EINVAL;
	if (lifetime->died != PROFILE_LIVE && lifetime->exited != PROFILE_LIVE)
		return -EINVAL;
	if (most > UINT32_MAX || array__reserve(&index->lifetimes, &index->lifetimes_room, most, 1))
		return -ENOMEM;
	index->lifetimes_bytes =
		pack(index->lifetimes + index->lifetimes_bytes, lifetime) - index->lifetimes;
	profile->n_lifetimes++;
	return 0;
}

bool profile__next_lifetime(const struct profile *profile, __u32 *at, struct profile_lifetime *out)
{
	const struct profile_index *index = profile->index;

	if (*at >= index->lifetimes_bytes)
		return false;
	*at = unpack(index->lifetimes + *at, out) - index->lifetimes;
	return true;
}

__u32 profile__fold_epoch(__u32 epoch, __u32 by)
{
	if (epoch == PROFILE_LIVE)
		return epoch;
	return by < 32 ? epoch >> by : 0;
}

/* Rewrites the packed numbers in place: a number that was shifted right never takes more bytes than before. */
void profile__fold_lifetimes(struct profile *profile, __u32 by)
{
	struct profile_index *index = profile->index;
	unsigned char *to = index->lifetimes;
	struct profile_lifetime lifetime;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		lifetime.born = profile__fold_epoch(lifetime.born, by);
		lifetime.died = profile__fold_epoch(lifetime.died, by);
		lifetime.exited = profile__fold_epoch(lifetime.exited, by);
		to = pack(to, &lifetime);
	}
	index->lifetimes_bytes = to - index->lifetimes;
}

__u32 profile__last_epoch(const struct profile *profile)
{
	struct profile_lifetime lifetime;
	__u32 last = 0, at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		__u32 epoch = profile_lifetime__last_epoch(&lifetime);

		if (epoch > last)
			last = epoch;
	}
	return last;
}
