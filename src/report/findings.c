// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds what is to be said of a recording first: who leaks, who holds the peak, who churns. */
#include "findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "filter.h"
#include "growth.h"
#include "stack_groups.h"

/* Parts that are smaller than this share of the whole are not worth a sentence. */
#define LEAST_SHARE 0.05
/* What is lost or grows may be small, and grow. */
#define LEAST_LEAK_SHARE 0.001
#define LEAST_CALLS	 1000
/* What grows for a shorter time may be what the program begins with. */
#define LEAST_GROWING_NS NS_PER_S
#define MOST_LIFETIMES	 0.9

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
		if (charges__include(profile, &profile->counts[i]))
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

		if (!charges__include(profile, count) ||
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
	/* A sample tells too little of a single function for a sentence. */
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
