// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds stacks whose numbers tell how calls or memory could be saved. */
#include "advice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "clock.h"

/* Advice is given where it saves this share of all allocations, or of all live bytes. */
#define LEAST_SHARE 0.01
/* Fewer calls are nobody's problem, and samples of fewer are too rough. */
#define LEAST_CALLS   1000
#define LEAST_SAMPLES 100
/* What nearly all blocks of a stack have in common. */
#define NEARLY_ALL 0.9
/* An allocator's own bytes matter beside blocks of up to so many significant bits. */
#define SMALL_BITS 8
/* A growing buffer has had at least so many sizes, each about twice the one before. */
#define LEAST_SIZES 3
/* What is kept without a bound may free so small a share of its blocks. */
#define HARDLY_ANY 0.01
/* This share of an allocator's memory for a stack's blocks is none of their bytes. */
#define MUCH_ROUNDING (1.0 / 3)
/* What grows for a shorter time may be what the program begins with. */
#define LEAST_GROWING_NS NS_PER_S

/* Functions that give a container a larger buffer, each time they allocate. */
static const char *const container_functions[] = {
	"_M_realloc_insert",	       "_M_realloc_append",
	"_M_realloc_unchecked",	       "__push_back_slow_path",
	"__emplace_back_slow_path",    "_M_default_append",
	"alloc::raw_vec::finish_grow", "finish_grow",
};

/* These are frames of the innermost few; the functions of a container are next to the allocator. */
#define CONTAINER_DEPTH 4

static bool names_container(const struct profile *profile, const struct profile_frame *frame)
{
	for (__u32 i = 0; i < frame->n_lines; i++) {
		__u32 function = frame->lines[i].function;
		const char *name = function ? profile->functions[function - 1].name : "";

		for (size_t j = 0; j < ARRAY_SIZE(container_functions); j++)
			if (strstr(name, container_functions[j]))
				return true;
	}
	return false;
}

static bool is_of_container(const struct report *report, const struct report_entry *entry)
{
	const struct profile *profile = report->profile;
	const struct profile_count *count = &profile->counts[entry->count - 1];
	const struct profile_stack *stack = &profile->stacks[count->stack - 1];

	for (__u32 i = 0; i < stack->n_frames && i < CONTAINER_DEPTH; i++)
		if (names_container(profile, &profile->frames[stack->frames[i] - 1]))
			return true;
	return false;
}

/* What the advice on one entry is worked out from. */
struct entry_facts {
	const struct report *report;
	const struct report_entry *entry;
	struct profile_blocks blocks;
	__u64 live, live_bytes;
	__u64 most_of_a_size; /* blocks of the most frequent bucket of sizes */
	int n_sizes;	      /* buckets of sizes with any */
};

static struct entry_facts find_facts(const struct report *report, const struct report_entry *entry)
{
	struct entry_facts facts = { .report = report, .entry = entry };

	report_entry__add_blocks(report, entry, &facts.blocks);
	facts.live = profile_blocks__live(&facts.blocks);
	facts.live_bytes = profile_blocks__live_bytes(&facts.blocks);
	for (int i = 0; i < PROFILE_BUCKETS; i++) {
		__u64 n = facts.blocks.sizes[i];

		facts.n_sizes += n > 0;
		if (n > facts.most_of_a_size)
			facts.most_of_a_size = n;
	}
	return facts;
}

static bool is_most(__u64 part, __u64 whole, double share)
{
	return part >= LEAST_CALLS && part >= share * whole;
}

static bool reserves(const struct entry_facts *facts, struct advice *advice)
{
	if (!is_most(facts->blocks.grown, facts->blocks.allocations, 0.5))
		return false;
	advice->saved_calls = facts->blocks.grown;
	advice->saved_bytes = facts->blocks.grown_bytes;
	return true;
}

/* Buffers that double have one size in each bucket, so that there are at least as many containers
 * as a bucket has blocks. */
static bool sets_capacity(const struct entry_facts *facts, struct advice *advice)
{
	__u64 n = facts->blocks.allocations - facts->most_of_a_size;

	if (facts->n_sizes < LEAST_SIZES || !is_most(n, facts->blocks.allocations, 0.5) ||
	    !is_of_container(facts->report, facts->entry))
		return false;
	advice->saved_calls = n;
	return true;
}

/* What realloc has moved is temporary, too, but a buffer that is kept would not help there. */
static bool reuses(const struct entry_facts *facts, struct advice *advice)
{
	if ((AP_REALLOCATING >> facts->entry->function & 1) ||
	    !is_most(facts->blocks.temporary, facts->blocks.allocations, NEARLY_ALL))
		return false;
	advice->saved_calls = facts->blocks.temporary;
	return true;
}

static bool is_one_block(const struct entry_facts *facts, struct advice *advice)
{
	__u64 small = 0;

	for (int i = 0; i <= SMALL_BITS; i++)
		if (facts->blocks.sizes[i] > small)
			small = facts->blocks.sizes[i];
	if (!is_most(facts->live, facts->blocks.allocations, NEARLY_ALL) ||
	    !is_most(small, facts->blocks.allocations, 1 - HARDLY_ANY))
		return false;
	advice->saved_calls = facts->live;
	advice->saved_bytes = facts->blocks.rounding_bytes;
	return true;
}

static bool rounds_much(const struct entry_facts *facts, struct advice *advice)
{
	__u64 rounding = facts->blocks.rounding_bytes;

	if (facts->live < LEAST_CALLS || rounding <= MUCH_ROUNDING * (facts->live_bytes + rounding))
		return false;
	advice->saved_bytes = rounding;
	return true;
}

static bool hands_back(const struct entry_facts *facts, struct advice *advice)
{
	if (!is_most(facts->blocks.freed_by_others, facts->blocks.allocations, 0.5))
		return false;
	advice->saved_calls = facts->blocks.freed_by_others;
	return true;
}

static bool is_unbounded(const struct entry_facts *facts, struct advice *advice)
{
	if (facts->entry->growth.verdict != GROWTH_GROWING ||
	    facts->report->end_ns < LEAST_GROWING_NS ||
	    facts->blocks.frees > HARDLY_ANY * facts->blocks.allocations)
		return false;
	advice->saved_bytes = facts->live_bytes;
	return true;
}

/* Returns whether the numbers are exact, or of enough samples. */
static bool is_sure(const struct report *report, const struct report_entry *entry)
{
	struct selection whole;

	if (!profile__sample_bytes(report->profile))
		return true;
	report_entry__whole(report, entry, COST_ALLOCATIONS, &whole);
	return whole.of_allocations.samples >= LEAST_SAMPLES;
}

/* Returns what allocators have beside the bytes of all live blocks, as far as it is known. */
static __u64 add_up_rounding(const struct profile *profile)
{
	struct profile_blocks blocks;
	__u64 sum = 0;

	for (size_t i = 0; i < profile->n_counts; i++)
		if (profile__count_blocks(profile, &profile->counts[i], &blocks))
			sum = profile__add_up(sum, blocks.rounding_bytes);
	return sum;
}

static double share_of(__u64 part, __u64 whole)
{
	return whole ? (double)part / whole : 0;
}

static __u64 least_bytes(const struct profile_blocks *blocks)
{
	int bits = 0;

	while (bits < PROFILE_BUCKETS - 1 && !blocks->sizes[bits])
		bits++;
	return bits ? 1ULL << (bits - 1) : 0;
}

static __u64 most_bytes(const struct profile_blocks *blocks)
{
	int bits = PROFILE_BUCKETS - 1;

	while (bits && !blocks->sizes[bits])
		bits--;
	return bits ? UINT64_MAX >> (64 - bits) : 0;
}

struct advice_list {
	struct advice *list;
	size_t n, room;
	__u64 rounding_bytes; /* of all live blocks */
};

/* Returns the share that is saved of what there is of the kind. */
static double find_share(const struct report *report, const struct advice_list *list,
			 const struct advice *advice)
{
	if (advice->kind == ADVICE_BOUND)
		return share_of(advice->saved_bytes, report->left_bytes);
	if (advice->kind == ADVICE_SIZES)
		return share_of(advice->saved_bytes,
				profile__add_up(report->left_bytes, list->rounding_bytes));
	return share_of(advice->saved_calls, report->whole.allocations);
}

/* Adds the advice on the entry, the first that fits: a second would be on the same blocks. */
static int advise(const struct report *report, size_t index, struct advice_list *to)
{
	static bool (*const rules[ADVICE_KINDS])(const struct entry_facts *, struct advice *) = {
		[ADVICE_RESERVE] = reserves,   [ADVICE_CAPACITY] = sets_capacity,
		[ADVICE_REUSE] = reuses,       [ADVICE_HAND_BACK] = hands_back,
		[ADVICE_BOUND] = is_unbounded, [ADVICE_ONE_BLOCK] = is_one_block,
		[ADVICE_SIZES] = rounds_much,
	};
	const struct report_entry *entry = &report->entries[index];
	const struct entry_facts facts = find_facts(report, entry);

	if (profile__function_maps(entry->function) || profile__function_faults(entry->function) ||
	    !is_sure(report, entry))
		return 0;
	for (int kind = 0; kind < ADVICE_KINDS; kind++) {
		struct advice advice = {
			.kind = kind,
			.entry = index,
			.allocations = facts.blocks.allocations,
			.least_bytes = least_bytes(&facts.blocks),
			.most_bytes = most_bytes(&facts.blocks),
			.live = facts.live,
			.live_bytes = facts.live_bytes,
		};

		if (!rules[kind](&facts, &advice))
			continue;
		advice.share = find_share(report, to, &advice);
		if (advice.share < LEAST_SHARE)
			continue;
		if (array__reserve(&to->list, &to->room, to->n + 1, sizeof(*to->list)))
			return -ENOMEM;
		to->list[to->n++] = advice;
		return 0;
	}
	return 0;
}

static int compare_advice(const void *left, const void *right)
{
	const struct advice *a = left, *b = right;

	if (a->share != b->share)
		return a->share > b->share ? -1 : 1;
	return a->entry != b->entry ? (a->entry < b->entry ? -1 : 1) : (int)a->kind - (int)b->kind;
}

const char *advice__name(enum advice_kind kind)
{
	static const char *const names[ADVICE_KINDS] = {
		[ADVICE_RESERVE] = "reserve",	  [ADVICE_CAPACITY] = "capacity",
		[ADVICE_REUSE] = "reuse",	  [ADVICE_ONE_BLOCK] = "one_block",
		[ADVICE_HAND_BACK] = "hand_back", [ADVICE_BOUND] = "bound",
		[ADVICE_SIZES] = "sizes",
	};

	return names[kind];
}

int advice__find(const struct report *report, struct advice **list, size_t *n)
{
	struct advice_list found = { .rounding_bytes = add_up_rounding(report->profile) };

	for (size_t i = 0; i < report->n_entries; i++)
		if (advise(report, i, &found)) {
			free(found.list);
			return -ENOMEM;
		}
	if (found.n)
		qsort(found.list, found.n, sizeof(*found.list), compare_advice);
	*list = found.list;
	*n = found.n;
	return 0;
}
