// SPDX-License-Identifier: GPL-3.0-or-later
#include "findings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "filter.h"
#include "frame_kind.h"
#include "growth.h"
#include "hash_table.h"
#include "stack_groups.h"

/* Parts that are smaller than this share of the whole are not worth a sentence. */
#define LEAST_SHARE 0.05
/* What is lost or grows may be small, and grow. */
#define LEAST_LEAK_SHARE 0.001
#define LEAST_CALLS	 1000
/* What grows for a shorter time may be what the program begins with. */
#define LEAST_GROWING_NS NS_PER_S
#define MOST_LIFETIMES	 0.9
/* A cost that changes by less did not move. */
#define LEAST_MOVE 0.01

/* Charges stacks to functions. */

static const char *module_of(const struct profile *profile, const struct stack_label *label)
{
	return label->module ? profile->modules[label->module - 1].path : NULL;
}

static enum frame_kind kind_of(const struct profile *profile, const struct stack_label *label)
{
	enum frame_kind kind = frame_kind__of(label->text, module_of(profile, label), NULL);

	return kind == FRAME_KIND_OWN && label->of_library ? FRAME_KIND_RUNTIME : kind;
}

/* Returns the depth of the frame of @group that it is charged to. */
static __u32 charged_depth(const struct profile *profile, const struct stack_groups *groups,
			   const struct stack_group *group)
{
	__u32 next_best = 0;
	bool has_library = false, has_own = false;

	for (__u32 i = 0; i < group->n_seen; i++) {
		const struct stack_label *label = &groups->labels[group->frames[i]];
		enum frame_kind kind = kind_of(profile, label);

		if (kind == FRAME_KIND_OWN && label->function)
			return i;
		/* A name of a library tells more than an address of a stripped program. */
		if (kind == FRAME_KIND_LIBRARY && label->function && !has_library) {
			next_best = i;
			has_library = true;
		} else if (kind == FRAME_KIND_OWN && !has_own && !has_library) {
			next_best = i;
			has_own = true;
		}
	}
	return next_best;
}

struct charging {
	const struct profile *profile;
	const struct stack_groups *groups;
	struct charges *charges;
	size_t room;
	struct hash_table index; /* functions: index + 1 */
	__u64 seed;
};

/* Frames that are inlined somewhere have a label of their own, and are the same function. */
static bool match_function(const void *owner, __u32 id, const void *key)
{
	const struct charging *charging = owner;
	const struct stack_label *labels = charging->groups->labels;
	const struct stack_label *label = &labels[charging->charges->functions[id - 1].label];
	const struct stack_label *wanted = key;

	return label->module == wanted->module && !strcmp(label->text, wanted->text);
}

static int charge_group(struct charging *charging, __u32 group)
{
	struct charges *charges = charging->charges;
	const struct stack_group *of = &charging->groups->groups[group];
	__u32 depth = charged_depth(charging->profile, charging->groups, of);
	const struct stack_label *label = &charging->groups->labels[of->frames[depth]];
	__u64 hash = hash_mix(hash_string(charging->seed, label->text), label->module);
	__u32 found = hash_table__find(&charging->index, hash, match_function, charging, label);

	if (!found) {
		if (array__reserve(&charges->functions, &charging->room, charges->n + 1,
				   sizeof(*charges->functions)) ||
		    hash_table__insert(&charging->index, hash, charges->n + 1))
			return -ENOMEM;
		charges->functions[charges->n] =
			(struct charged_function){ .label = of->frames[depth] };
		found = ++charges->n;
	}
	charges->of_groups[group] = found;
	charges->depths[group] = depth;
	return 0;
}

static void charge(struct charged_function *function, const struct selection *of)
{
	function->allocations = profile__add_up(function->allocations, of->allocations);
	function->size_bytes = profile__add_up(function->size_bytes, of->size_bytes);
	function->live = profile__add_up(function->live, of->live);
	function->live_bytes = profile__add_up(function->live_bytes, of->live_bytes);
	function->peak = profile__add_up(function->peak, of->peak);
	function->peak_bytes = profile__add_up(function->peak_bytes, of->peak_bytes);
	function->lost = profile__add_up(function->lost, cost__blocks(COST_LOST, of));
	function->lost_bytes = profile__add_up(function->lost_bytes, cost__bytes(COST_LOST, of));
}

static bool is_of_blocks(const struct profile_count *count)
{
	return !profile__function_frees(count->function) &&
	       !profile__function_maps(count->function) &&
	       !profile__function_faults(count->function);
}

int charges__make(const struct profile *profile, const struct stack_groups *groups,
		  const struct selection *counts, struct charges *charges)
{
	struct charging charging = {
		.profile = profile, .groups = groups, .charges = charges, .seed = hash_seed()
	};
	int err = 0;

	*charges = (struct charges){
		.of_groups = calloc(groups->n_groups + 1, sizeof(*charges->of_groups)),
		.depths = calloc(groups->n_groups + 1, sizeof(*charges->depths)),
	};
	if (!charges->of_groups || !charges->depths)
		err = -ENOMEM;
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];
		__u32 group = groups->by_stack[count->stack - 1];
		struct selection whole;

		if (!is_of_blocks(count) || (counts && !counts[i].allocations))
			continue;
		if (!counts)
			filter__whole(profile, NULL, count, &whole);
		if (!charges->of_groups[group])
			err = charge_group(&charging, group);
		if (!err)
			charge(&charges->functions[charges->of_groups[group] - 1],
			       counts ? &counts[i] : &whole);
	}
	hash_table__release(&charging.index);
	return err;
}

void charges__release(struct charges *charges)
{
	free(charges->functions);
	free(charges->of_groups);
	free(charges->depths);
}

/* Finds what is to be said. */

const char *finding__name(enum finding_kind kind)
{
	static const char *const names[FINDING_KINDS] = {
		[FINDING_INCOMPLETE] = "incomplete", [FINDING_LOST] = "lost",
		[FINDING_GROWING] = "growing",	     [FINDING_PEAK] = "peak",
		[FINDING_CHURN] = "churn",	     [FINDING_RESIDENT] = "resident",
		[FINDING_ADVICE] = "advice",
	};

	return names[kind];
}

static struct finding *add_finding(struct findings *findings, enum finding_kind kind)
{
	struct finding *finding = &findings->list[findings->n++];

	*finding = (struct finding){ .kind = kind };
	return finding;
}

/* Returns the index + 1 of the function that has most by @cost; 0: none has any. */
static __u32 find_most(const struct charges *charges,
		       __u64 (*cost)(const struct charged_function *function))
{
	__u32 most = 0;

	for (size_t i = 0; i < charges->n; i++)
		if (cost(&charges->functions[i]) > (most ? cost(&charges->functions[most - 1]) : 0))
			most = i + 1;
	return most;
}

static __u64 lost_of(const struct charged_function *function)
{
	return function->lost_bytes;
}

static __u64 peak_of(const struct charged_function *function)
{
	return function->peak_bytes;
}

static __u64 freed_of(const struct charged_function *function)
{
	return function->allocations > function->live ? function->allocations - function->live : 0;
}

static bool is_part(__u64 part, __u64 whole, double least)
{
	return part && part >= least * whole;
}

static void find_incomplete(const struct report *report, bool is_complete,
			    struct findings *findings)
{
	__u64 lost = profile__ledger(report->profile, "lost");
	struct finding *finding;

	if (!lost && is_complete)
		return;
	finding = add_finding(findings, FINDING_INCOMPLETE);
	finding->blocks = lost;
	finding->whole = profile__ledger(report->profile, "events");
}

/* Forgets the growth of functions that several processes called: that these become more is none. */
static int forget_sums(const struct profile *profile, const __u32 *of_counts, size_t n,
		       struct growth *growths)
{
	_cleanup_(free_ptr) __u32 *processes = calloc(n + 1, sizeof(*processes));

	if (!processes)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++) {
		__u32 process = profile->counts[i].process, *first;

		if (!of_counts[i])
			continue;
		first = &processes[of_counts[i] - 1];
		if (*first && *first != process)
			growths[of_counts[i] - 1] = (struct growth){ 0 };
		*first = process;
	}
	return 0;
}

/* Stores how each function's live bytes grew. Returns 0, -ENOMEM or -EINVAL. */
static int measure_growth(const struct report *report, const struct charges *charges,
			  struct growth *growths)
{
	const struct profile *profile = report->profile;
	_cleanup_(free_ptr) __u32 *of_counts = calloc(profile->n_counts + 1, sizeof(*of_counts));
	struct exit_frees frees;
	struct error error;
	int err;

	if (!of_counts)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		if (is_of_blocks(&profile->counts[i]))
			of_counts[i] =
				charges->of_groups
					[report->groups->by_stack[profile->counts[i].stack - 1]];
	err = exit_frees__find(profile, &frees, &error);
	if (!err)
		err = growth__measure(profile, of_counts, charges->n, frees.epoch, growths, &error);
	return err ?: forget_sums(profile, of_counts, charges->n, growths);
}

static int find_leaks(const struct report *report, struct findings *findings)
{
	const struct charges *charges = &findings->charges;
	_cleanup_(free_ptr) struct growth *growths = calloc(charges->n + 1, sizeof(*growths));
	__u32 lost = find_most(charges, lost_of), growing = 0;
	struct finding *finding;
	int err = growths ? measure_growth(report, charges, growths) : -ENOMEM;

	if (err)
		return err;
	for (size_t i = 0; i < charges->n && report->end_ns >= LEAST_GROWING_NS; i++)
		if (growths[i].verdict == GROWTH_GROWING &&
		    is_part(charges->functions[i].live_bytes, report->left_bytes,
			    LEAST_LEAK_SHARE) &&
		    (!growing ||
		     growths[i].bytes_per_second > growths[growing - 1].bytes_per_second))
			growing = i + 1;
	if (lost && is_part(charges->functions[lost - 1].lost_bytes, report->left_bytes,
			    LEAST_LEAK_SHARE)) {
		finding = add_finding(findings, FINDING_LOST);
		finding->function = lost;
		finding->blocks = charges->functions[lost - 1].lost;
		finding->bytes = charges->functions[lost - 1].lost_bytes;
		finding->whole = report->left_bytes;
		if (growths[lost - 1].verdict == GROWTH_GROWING &&
		    report->end_ns >= LEAST_GROWING_NS)
			finding->bytes_per_second = growths[lost - 1].bytes_per_second;
	}
	if (growing && growing != lost) {
		finding = add_finding(findings, FINDING_GROWING);
		finding->function = growing;
		finding->blocks = charges->functions[growing - 1].live;
		finding->bytes = charges->functions[growing - 1].live_bytes;
		finding->whole = report->left_bytes;
		finding->bytes_per_second = growths[growing - 1].bytes_per_second;
	}
	return 0;
}

static void find_peak(const struct report *report, struct findings *findings)
{
	const struct charges *charges = &findings->charges;
	__u32 most = find_most(charges, peak_of);
	__u64 whole = report->peak_bytes ? report->peak_bytes : report->total.peak_bytes;
	struct finding *finding;

	if (!most || !is_part(charges->functions[most - 1].peak_bytes, whole, LEAST_SHARE))
		return;
	finding = add_finding(findings, FINDING_PEAK);
	finding->function = most;
	finding->blocks = charges->functions[most - 1].peak;
	finding->bytes = charges->functions[most - 1].peak_bytes;
	finding->whole = whole;
}

/* Returns the time within which most of a function's freed blocks were freed; 0: not known. */
static __u64 find_lifetime(const struct report *report, const struct charges *charges,
			   __u32 function)
{
	const struct profile *profile = report->profile;
	double lifetimes[PROFILE_BUCKETS] = { 0 }, all = 0, sum = 0;
	struct profile_blocks blocks;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];

		if (!is_of_blocks(count) ||
		    charges->of_groups[report->groups->by_stack[count->stack - 1]] != function ||
		    !profile__count_blocks(profile, count, &blocks))
			continue;
		for (int j = 0; j < PROFILE_BUCKETS; j++) {
			lifetimes[j] += blocks.lifetimes[j];
			all += blocks.lifetimes[j];
		}
	}
	for (int i = 0; i < PROFILE_BUCKETS; i++) {
		sum += lifetimes[i];
		if (all > 0 && sum >= MOST_LIFETIMES * all)
			return i < 63 ? 1ULL << i : PROFILE_MAX;
	}
	return 0;
}

static void find_churn(const struct report *report, struct findings *findings)
{
	const struct charges *charges = &findings->charges;
	__u32 most = find_most(charges, freed_of);
	const struct charged_function *function = most ? &charges->functions[most - 1] : NULL;
	struct finding *finding;
	__u64 lifetime_ns;

	if (!most || function->allocations < LEAST_CALLS ||
	    !is_part(function->allocations, report->total.allocations, LEAST_SHARE) ||
	    freed_of(function) < MOST_LIFETIMES * function->allocations)
		return;
	/* What lives for most of the recording is used, and does not come and go. */
	lifetime_ns = find_lifetime(report, charges, most);
	if (!lifetime_ns || lifetime_ns > report->end_ns / 2)
		return;
	finding = add_finding(findings, FINDING_CHURN);
	finding->function = most;
	finding->blocks = function->allocations;
	finding->bytes = function->size_bytes;
	finding->whole = report->total.allocations;
	finding->lifetime_ns = lifetime_ns;
}

static void find_resident(const struct report *report, struct findings *findings)
{
	const struct profile *profile = report->profile;
	__u64 sums[RSS_KINDS];
	struct finding *finding;

	/* The runs of a recording were not there at one time. */
	if (!profile->n_rss || profile->n_runs > 1)
		return;
	finding = add_finding(findings, FINDING_RESIDENT);
	profile__add_up_rss(profile, sums);
	/* Neither is the program's. */
	sums[RSS_OWN] = sums[RSS_CHANGED] = 0;
	for (enum rss_kind kind = 0; kind < RSS_KINDS; kind++)
		finding->whole = profile__add_up(finding->whole, sums[kind]);
	finding->bytes = sums[RSS_BLOCKS];
	finding->part = RSS_SLACK;
	for (enum rss_kind kind = RSS_SLACK; kind < RSS_KINDS; kind++)
		if (sums[kind] > sums[finding->part])
			finding->part = kind;
	finding->part_bytes = sums[finding->part];
}

/* Returns whether a finding says already that the function's blocks become more and more. */
static bool is_said(const struct findings *findings, const struct advice *advice, __u32 function)
{
	for (size_t i = 0; i < findings->n && advice->kind == ADVICE_BOUND; i++)
		if (findings->list[i].function == function &&
		    findings->list[i].bytes_per_second > 0)
			return true;
	return false;
}

static int find_advice(const struct report *report, struct findings *findings)
{
	if (advice__find(report, &findings->advice, &findings->n_advice))
		return -ENOMEM;
	for (size_t i = 0; i < findings->n_advice && findings->n < FINDINGS_MOST; i++) {
		const struct advice *advice = &findings->advice[i];
		__u32 function = findings->charges.of_groups[report->entries[advice->entry].group];
		struct finding *finding;

		if (is_said(findings, advice, function))
			continue;
		finding = add_finding(findings, FINDING_ADVICE);
		finding->advice = *advice;
		finding->function = function;
		break;
	}
	return 0;
}

int findings__find(const struct report *report, const struct selection *counts, bool is_complete,
		   struct findings *findings)
{
	int err;

	*findings = (struct findings){ 0 };
	err = charges__make(report->profile, report->groups, counts, &findings->charges);
	if (err)
		return err;
	find_incomplete(report, is_complete, findings);
	if (!filter__has_live(report->profile))
		return 0;
	/* What a function has of a sample is too rough for a sentence. */
	if (profile__sample_bytes(report->profile))
		return find_advice(report, findings);
	err = find_leaks(report, findings);
	if (err)
		return err;
	find_peak(report, findings);
	find_churn(report, findings);
	find_resident(report, findings);
	if (findings->n > FINDINGS_MOST)
		findings->n = FINDINGS_MOST;
	return find_advice(report, findings);
}

void findings__release(struct findings *findings)
{
	charges__release(&findings->charges);
	free(findings->advice);
}

/* Finds what moved between two recordings. */

static __u64 cost_of(const struct charged_function *function, enum cost cost)
{
	switch (cost) {
	case COST_ALLOCATIONS:
		return function->allocations;
	case COST_BYTES:
		return function->size_bytes;
	case COST_LIVE_BYTES:
		return function->live_bytes;
	default:
		return function->peak_bytes;
	}
}

/* A function of either recording. It may be in another file in the other one: a program that was
 * renamed. */
struct both {
	const char *text;
	__s64 change[COSTS];
};

static int compare_both(const void *left, const void *right)
{
	return strcmp(((const struct both *)left)->text, ((const struct both *)right)->text);
}

static const enum cost moved_costs[MOVED_COSTS] = { COST_PEAK, COST_LIVE_BYTES, COST_BYTES,
						    COST_ALLOCATIONS };

static void add_changes(const struct moved_side *side, const struct charges *charges, int sign,
			struct both *list)
{
	for (size_t i = 0; i < charges->n; i++) {
		list[i].text = side->groups->labels[charges->functions[i].label].text;
		for (size_t j = 0; j < MOVED_COSTS; j++)
			list[i].change[moved_costs[j]] =
				sign * (__s64)cost_of(&charges->functions[i], moved_costs[j]);
	}
}

static size_t merge(struct both *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), compare_both);
	for (size_t i = 0; i < n; i++) {
		if (!kept || compare_both(&list[kept - 1], &list[i]) != 0) {
			list[kept++] = list[i];
			continue;
		}
		for (size_t j = 0; j < MOVED_COSTS; j++)
			list[kept - 1].change[moved_costs[j]] += list[i].change[moved_costs[j]];
	}
	return kept;
}

static __u64 total_of(const struct charges *charges, enum cost cost)
{
	__u64 sum = 0;

	for (size_t i = 0; i < charges->n; i++)
		sum = profile__add_up(sum, cost_of(&charges->functions[i], cost));
	return sum;
}

static double share_of(const struct moved *moved)
{
	double greater = moved->before > moved->after ? moved->before : moved->after;

	return greater > 0 ? fabs((double)moved->after - moved->before) / greater : 0;
}

static int compare_moved(const void *left, const void *right)
{
	const struct moved *a = left, *b = right;
	double x = share_of(a), y = share_of(b);

	return x != y ? (x > y ? -1 : 1) : (int)a->cost - (int)b->cost;
}

/* Adds @cost to the list if it moved, with the function that moved it most. */
static int add_moved(const struct moved *found, const struct both *functions, size_t n_functions,
		     struct moved *list, size_t *n)
{
	const struct both *most = NULL;
	struct moved *moved = &list[*n];
	int sign = found->after < found->before ? -1 : 1;

	if (share_of(found) < LEAST_MOVE)
		return 0;
	for (size_t i = 0; i < n_functions; i++)
		if (sign * functions[i].change[found->cost] >
		    (most ? sign * most->change[found->cost] : 0))
			most = &functions[i];
	*moved = *found;
	if (most) {
		moved->function = strdup(most->text);
		moved->change = most->change[found->cost];
		if (!moved->function)
			return -ENOMEM;
	}
	(*n)++;
	return 0;
}

int moved__find(const struct moved_side *before, const struct moved_side *after,
		struct moved list[MOVED_COSTS], size_t *n)
{
	bool has_live = filter__has_live(before->profile) && filter__has_live(after->profile);
	struct charges old = { 0 }, new = { 0 };
	struct both *functions = NULL;
	size_t n_functions;
	int err = charges__make(before->profile, before->groups, before->counts, &old);

	*n = 0;
	if (!err)
		err = charges__make(after->profile, after->groups, after->counts, &new);
	if (!err) {
		functions = calloc(old.n + new.n + 1, sizeof(*functions));
		err = functions ? 0 : -ENOMEM;
	}
	if (!err) {
		add_changes(before, &old, -1, functions);
		add_changes(after, &new, 1, functions + old.n);
		n_functions = merge(functions, old.n + new.n);
	}
	for (size_t i = 0; i < MOVED_COSTS && !err; i++) {
		struct moved moved = {
			.cost = moved_costs[i],
			.before = total_of(&old, moved_costs[i]),
			.after = total_of(&new, moved_costs[i]),
		};

		if (moved.cost == COST_PEAK && before->peak_bytes && after->peak_bytes) {
			moved.before = before->peak_bytes;
			moved.after = after->peak_bytes;
		}
		if (has_live || !cost__needs_live(moved.cost))
			err = add_moved(&moved, functions, n_functions, list, n);
	}
	if (!err)
		qsort(list, *n, sizeof(*list), compare_moved);
	free(functions);
	charges__release(&old);
	charges__release(&new);
	return err;
}

void moved__release(struct moved list[MOVED_COSTS], size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].function);
}
