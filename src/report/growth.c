// SPDX-License-Identifier: GPL-3.0-or-later
#include "growth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "profile.h"
#include "profile_runs.h"
#include "run_clocks.h"

/* A shorter half would have quarters of one epoch; a longer one is a damaged file. */
#define LEAST_EPOCHS 8
#define MOST_EPOCHS  65536
/* The line must rise by so many standard deviations. */
#define DEVIATIONS 2
/* Parts of the half; the average must rise from each to the next. */
#define QUARTERS 4

/* The epochs of the last half. */
struct half {
	__u64 first, n;
	__u64 epoch_ns;
};

/* Lifetimes sorted by group. */
struct grouped {
	__u32 *lifetimes; /* positions for profile__next_lifetime() */
	size_t *starts;	  /* start of each group, and the end of the last */
};

/* Adds @bytes from epoch @epoch on; epochs before the half count as its first. */
static void change(const struct half *half, __u64 *deltas, __u64 epoch, __u64 bytes)
{
	__u64 at = epoch > half->first ? epoch - half->first : 0;

	if (at < half->n)
		deltas[at] += bytes;
}

/* Computes the live bytes of lifetimes @from to @to at the end of each epoch. Sums wrap modulo 2^64
 * in between. */
static void follow(const struct profile *profile, const struct half *half, const __u32 *lifetimes,
		   size_t n, __u64 *live_bytes)
{
	memset(live_bytes, 0, half->n * sizeof(*live_bytes));
	for (size_t i = 0; i < n; i++) {
		struct profile_lifetime lifetime;
		__u32 at = lifetimes[i], last;

		profile__next_lifetime(profile, &at, &lifetime);
		last = profile_lifetime__end_epoch(&lifetime);
		change(half, live_bytes, lifetime.born, lifetime.size_bytes);
		if (last != PROFILE_LIVE)
			change(half, live_bytes, last, -lifetime.size_bytes);
	}
	for (__u64 i = 1; i < half->n; i++)
		live_bytes[i] += live_bytes[i - 1];
}

static double mean(const __u64 *values, __u64 n)
{
	double sum = 0;

	for (__u64 i = 0; i < n; i++)
		sum += values[i];
	return sum / n;
}

/* Whether the average rises from each quarter to the next. Memory that was allocated at once raises
 * two quarters at most. */
static bool rises_throughout(const __u64 *live_bytes, __u64 n)
{
	__u64 quarter = n / QUARTERS;
	const __u64 *first = live_bytes + n - QUARTERS * quarter;

	for (int i = 1; i < QUARTERS; i++)
		if (mean(first + i * quarter, quarter) <= mean(first + (i - 1) * quarter, quarter))
			return false;
	return true;
}

static struct growth judge(const struct half *half, const __u64 *live_bytes)
{
	__u64 n = half->n;
	double middle = (n - 1) / 2.0, average = mean(live_bytes, n);
	double squares = 0, products = 0, rest = 0, slope, deviation;

	for (__u64 i = 0; i < n; i++) {
		squares += (i - middle) * (i - middle);
		products += (i - middle) * (live_bytes[i] - average);
	}
	slope = products / squares;
	for (__u64 i = 0; i < n; i++) {
		double off = live_bytes[i] - average - slope * (i - middle);

		rest += off * off;
	}
	deviation = sqrt(rest / n);
	return (struct growth){
		.is_known = true,
		.is_growing = slope > 0 && slope * (n - 1) > DEVIATIONS * deviation &&
			      rises_throughout(live_bytes, n),
		/* A damaged file may say anything. */
		.bytes_per_second = fmin(slope * 1e9 / half->epoch_ns, (double)PROFILE_MAX),
	};
}

static int group(const struct profile *profile, const __u32 *groups, size_t n,
		 struct grouped *grouped)
{
	struct profile_lifetime lifetime;
	__u32 lifetime_at = 0, next = 0;
	size_t at = 0;

	grouped->lifetimes = calloc(profile->n_lifetimes + 1, sizeof(*grouped->lifetimes));
	grouped->starts = calloc(n + 2, sizeof(*grouped->starts));
	if (!grouped->lifetimes || !grouped->starts)
		return -ENOMEM;
	while (profile__next_lifetime(profile, &next, &lifetime))
		grouped->starts[groups[lifetime.count - 1]]++;
	/* Counting sort: turns numbers into start offsets, which advance while lifetimes are
	 * placed. */
	for (size_t g = 0; g <= n; g++) {
		size_t here = grouped->starts[g];

		grouped->starts[g] = at;
		at += here;
	}
	for (next = 0; profile__next_lifetime(profile, &next, &lifetime); lifetime_at = next) {
		__u32 g = groups[lifetime.count - 1];

		grouped->lifetimes[grouped->starts[g]++] = lifetime_at;
	}
	return 0;
}

/* Whether a block began or ended in the half. */
static bool has_changes(const struct profile *profile, const struct half *half)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		__u32 last = profile_lifetime__end_epoch(&lifetime);

		if (lifetime.born >= half->first || (last != PROFILE_LIVE && last >= half->first))
			return true;
	}
	return false;
}

static int find_half(const struct profile *profile, struct half *half, struct error *error)
{
	_cleanup_(free_ptr) struct run_clock *clocks = NULL;
	__u64 n;
	int err = run_clocks__read(profile, &clocks, error);

	if (err)
		return err;
	half->epoch_ns = profile__n_runs(profile) == 1 ? clocks[0].epoch_ns : 0;
	if (!half->epoch_ns)
		return 0;
	n = clocks[0].end_ns / half->epoch_ns + !!(clocks[0].end_ns % half->epoch_ns);
	half->first = n / 2;
	half->n = n - half->first;
	return 0;
}

int growth__measure(const struct profile *profile, const __u32 *groups, size_t n,
		    struct growth *growths, struct error *error)
{
	_cleanup_(free_ptr) __u64 *live_bytes = NULL;
	struct grouped grouped = { 0 };
	struct half half = { 0 };
	int err = find_half(profile, &half, error);

	memset(growths, 0, n * sizeof(*growths));
	if (err || half.n < LEAST_EPOCHS || half.n > MOST_EPOCHS)
		return err;
	/* A recording has more epochs than AP_MAX_EPOCHS if it went on for long after the last block, and nothing grew
	 * then. Else the file is damaged, and following each group through so many would take minutes. */
	if (half.n > AP_MAX_EPOCHS) {
		bool is_quiet = !has_changes(profile, &half);

		for (size_t g = 0; g < n; g++)
			growths[g].is_known = is_quiet;
		return 0;
	}
	live_bytes = calloc(half.n, sizeof(*live_bytes));
	err = live_bytes ? group(profile, groups, n, &grouped) : -ENOMEM;
	for (size_t g = 0; g < n && !err; g++) {
		size_t n_lifetimes = grouped.starts[g + 1] - grouped.starts[g];

		growths[g].is_known = true;
		if (!n_lifetimes)
			continue;
		follow(profile, &half, grouped.lifetimes + grouped.starts[g], n_lifetimes,
		       live_bytes);
		growths[g] = judge(&half, live_bytes);
	}
	free(grouped.lifetimes);
	free(grouped.starts);
	return err ? error__set(error, err, "cannot tell what grows: out of memory") : 0;
}
