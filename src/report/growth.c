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

/* Limits of the number of epochs that are judged: half of fewer would have quarters of one epoch,
 * and more mean a damaged file. */
#define LEAST_EPOCHS 8
#define MOST_EPOCHS  65536
/* The line must rise by so many standard deviations. */
#define DEVIATIONS 2
/* The parts of a window; the average must rise from each to the next. */
#define QUARTERS 4
/* The windows are the last half, quarter and eighth, so that growth that began late is found, too. */
#define WINDOWS		 3
#define LEAST_LIFE_SHARE 8
/* A step counts if all later values exceed all earlier ones by this factor. */
#define STEP_NUMERATOR	 9
#define STEP_DENOMINATOR 8

/* The epochs that are judged, which end at @n. */
struct time {
	__u64 n, epoch_ns;
};

/* Live bytes at the end of each epoch, and the least value of each epoch and all later ones. */
struct line {
	__u64 *live_bytes, *floors;
	__u64 first; /* epoch of the first block */
};

/* Lifetimes sorted by group. */
struct grouped {
	__u32 *lifetimes; /* positions for profile__next_lifetime() */
	size_t *starts;	  /* start of each group, and the end of the last */
};

/* Fills the line of a group. Sums wrap modulo 2^64 in between. */
static void follow(const struct profile *profile, const struct time *time, const __u32 *lifetimes,
		   size_t n, struct line *line)
{
	__u64 *live_bytes = line->live_bytes;

	memset(live_bytes, 0, time->n * sizeof(*live_bytes));
	line->first = time->n - 1;
	for (size_t i = 0; i < n; i++) {
		struct profile_lifetime lifetime;
		__u32 at = lifetimes[i], last;

		profile__next_lifetime(profile, &at, &lifetime);
		last = profile_lifetime__end_epoch(&lifetime);
		if (lifetime.born < line->first)
			line->first = lifetime.born;
		if (lifetime.born < time->n)
			live_bytes[lifetime.born] += lifetime.size_bytes;
		if (last < time->n)
			live_bytes[last] -= lifetime.size_bytes;
	}
	for (__u64 i = 1; i < time->n; i++)
		live_bytes[i] += live_bytes[i - 1];
	line->floors[time->n - 1] = live_bytes[time->n - 1];
	for (__u64 i = time->n - 1; i-- > 0;)
		line->floors[i] =
			live_bytes[i] < line->floors[i + 1] ? live_bytes[i] : line->floors[i + 1];
}

static double mean(const __u64 *values, __u64 n)
{
	double sum = 0;

	for (__u64 i = 0; i < n; i++)
		sum += values[i];
	return sum / n;
}

/* Returns whether the average rises from each quarter to the next. Memory that was allocated at
 * once raises at most two quarters. */
static bool rises_throughout(const __u64 *live_bytes, __u64 n)
{
	__u64 quarter = n / QUARTERS;
	const __u64 *first = live_bytes + n - QUARTERS * quarter;

	for (int i = 1; i < QUARTERS; i++)
		if (mean(first + i * quarter, quarter) <= mean(first + (i - 1) * quarter, quarter))
			return false;
	return true;
}

/* Returns whether the least-squares line through @n values rises by more than noise would. */
static bool rises(const __u64 *live_bytes, __u64 n, double *slope)
{
	double middle = (n - 1) / 2.0, average = mean(live_bytes, n);
	double squares = 0, products = 0, rest = 0, deviation;

	for (__u64 i = 0; i < n; i++) {
		squares += (i - middle) * (i - middle);
		products += (i - middle) * (live_bytes[i] - average);
	}
	*slope = products / squares;
	for (__u64 i = 0; i < n; i++) {
		double off = live_bytes[i] - average - *slope * (i - middle);

		rest += off * off;
	}
	deviation = sqrt(rest / n);
	return *slope > 0 && *slope * (n - 1) > DEVIATIONS * deviation &&
	       rises_throughout(live_bytes, n);
}

/* Returns whether the rise of the window from @from on continues in its last quarter, which must
 * exceed everything before the window. */
static bool goes_on(const __u64 *live_bytes, __u64 from, __u64 n)
{
	__u64 quarter = (n - from) / QUARTERS, half = quarter / 2, most = 0;

	for (__u64 i = 0; i < from; i++)
		if (live_bytes[i] > most)
			most = live_bytes[i];
	return mean(live_bytes + n - quarter, quarter) > most &&
	       mean(live_bytes + n - half, half) > mean(live_bytes + n - quarter, half);
}

/* Looks for a steady rise that continues. @slope: bytes per epoch; if there is no such rise, that
 * of the last half. */
static enum growth_verdict judge_rise(const struct time *time, const __u64 *live_bytes,
				      double *slope)
{
	enum growth_verdict verdict = GROWTH_NONE;
	double late;

	for (__u32 i = 0; i < WINDOWS; i++) {
		__u64 from = i ? time->n - time->n / (2U << i) : time->n / 2;

		if (time->n - from < LEAST_EPOCHS)
			break;
		if (!rises(live_bytes + from, time->n - from, i ? &late : slope))
			continue;
		if (!goes_on(live_bytes, from, time->n)) {
			/* The memory may be a cache that is seldom emptied, above a leak or not,
			 * or a leak that has stopped. */
			if (!i)
				verdict = GROWTH_UNDECIDED;
			continue;
		}
		if (i)
			*slope = late;
		return GROWTH_GROWING;
	}
	return verdict;
}

/*
 * Looks for steps: a container that doubles takes all its memory at once, after twice the time
 * each time. A step counts if no later value is as low as the highest one before it. The growth
 * continues if the next step is not overdue. @slope: bytes per epoch, between the steps of the
 * last four fifths of its life.
 */
static enum growth_verdict judge_steps(const struct time *time, const struct line *line,
				       double *slope)
{
	const __u64 *live_bytes = line->live_bytes;
	__u64 first = line->first, life = time->n - first, settled = life / 16 + 1;
	__u64 most = live_bytes[first], below = most, last = first, gap = 0;
	__u64 since = 0, since_bytes = 0;
	__u32 n_recent = 0;

	for (__u64 i = first + 1; i + settled <= time->n; i++) {
		/* 9/8, without an overflow. */
		if (line->floors[i] / STEP_NUMERATOR > below / STEP_DENOMINATOR) {
			gap = i - last;
			last = i;
			if (i >= time->n - life / 5 * 4 && !n_recent++) {
				since = i;
				since_bytes = live_bytes[i - 1];
			}
			below = live_bytes[i] > most ? live_bytes[i] : most;
		}
		if (live_bytes[i] > most)
			most = live_bytes[i];
	}
	if (!n_recent || time->n - last > 2 * gap + gap / 2 + settled)
		return GROWTH_NONE;
	if (n_recent == 1)
		return GROWTH_UNDECIDED;
	*slope = ((double)live_bytes[last - 1] - since_bytes) / (last - since);
	return GROWTH_GROWING;
}

static struct growth judge(const struct time *time, const struct line *line)
{
	double slope, of_steps;
	enum growth_verdict rise = judge_rise(time, line->live_bytes, &slope);
	enum growth_verdict steps = judge_steps(time, line, &of_steps);
	enum growth_verdict verdict = rise > steps ? rise : steps;

	if (rise != GROWTH_GROWING && steps == GROWTH_GROWING)
		slope = of_steps;
	/* A group that has existed only for a moment may be a burst. */
	if (verdict == GROWTH_GROWING && time->n - line->first < time->n / LEAST_LIFE_SHARE)
		verdict = GROWTH_UNDECIDED;
	return (struct growth){
		.is_known = true,
		.verdict = verdict,
		/* A damaged file may have any number. */
		.bytes_per_second = fmin(slope * 1e9 / time->epoch_ns, (double)PROFILE_MAX),
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

/* Returns whether a block began or ended in the last half. */
static bool has_changes(const struct profile *profile, const struct time *time)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		__u32 last = profile_lifetime__end_epoch(&lifetime);

		if (lifetime.born >= time->n / 2 || (last != PROFILE_LIVE && last >= time->n / 2))
			return true;
	}
	return false;
}

static int read_time(const struct profile *profile, struct time *time, struct error *error)
{
	_cleanup_(free_ptr) struct run_clock *clocks = NULL;
	int err = run_clocks__read(profile, &clocks, error);

	if (err)
		return err;
	time->epoch_ns = profile__n_runs(profile) == 1 ? clocks[0].epoch_ns : 0;
	if (time->epoch_ns)
		time->n = clocks[0].end_ns / time->epoch_ns + !!(clocks[0].end_ns % time->epoch_ns);
	return 0;
}

int growth__measure(const struct profile *profile, const __u32 *groups, size_t n, __u64 before,
		    struct growth *growths, struct error *error)
{
	_cleanup_(free_ptr) __u64 *values = NULL;
	struct grouped grouped = { 0 };
	struct time time = { 0 };
	struct line line;
	int err = read_time(profile, &time, error);

	memset(growths, 0, n * sizeof(*growths));
	if (before && before < time.n)
		time.n = before;
	if (err || time.n < 2 * LEAST_EPOCHS - 1 || time.n > 2 * MOST_EPOCHS)
		return err;
	/* A recording has more epochs than AP_MAX_EPOCHS if it went on for long after the last
	 * block, and then nothing grew. Otherwise the file is damaged, and it would take minutes
	 * to follow each group through so many epochs. */
	if (time.n > 2 * AP_MAX_EPOCHS) {
		bool is_quiet = !has_changes(profile, &time);

		for (size_t g = 0; g < n; g++)
			growths[g].is_known = is_quiet;
		return 0;
	}
	values = calloc(2 * time.n, sizeof(*values));
	line = (struct line){ values, values + time.n, 0 };
	err = values ? group(profile, groups, n, &grouped) : -ENOMEM;
	for (size_t g = 0; g < n && !err; g++) {
		size_t n_lifetimes = grouped.starts[g + 1] - grouped.starts[g];

		growths[g].is_known = true;
		if (!n_lifetimes)
			continue;
		follow(profile, &time, grouped.lifetimes + grouped.starts[g], n_lifetimes, &line);
		growths[g] = judge(&time, &line);
	}
	free(grouped.lifetimes);
	free(grouped.starts);
	return err ? error__set(error, err, "cannot tell what grows: out of memory") : 0;
}
