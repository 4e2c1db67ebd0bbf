// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads when runs of a profile began and ended, and how long their epochs are. */
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "error.h"
#include "profile_runs.h"

/* Reads a run's clock, and validates the values, which come from a file. */
static int read_clock(const struct profile *profile, __u32 run, struct run_clock *clock,
		      struct error *error)
{
	const char *epoch = profile__run_meta(profile, run, "epoch_ns");
	const char *elapsed = profile__run_meta(profile, run, "elapsed_seconds");
	double seconds = elapsed ? strtod(elapsed, NULL) : 0;

	clock->epoch_ns = epoch ? strtoull(epoch, NULL, 10) : 0;
	if (epoch && !clock->epoch_ns)
		return error__set(error, -EINVAL,
				  "the data file is damaged: its epoch_ns is '%.32s'; record again",
				  epoch);
	if (seconds > 0 && seconds < 9e9)
		clock->end_ns = seconds * 1e9;
	return 0;
}

/* Stores the last epoch of each run, indexed by its number - 1. */
static void find_last(const struct profile *profile, __u64 *last)
{
	struct profile_lifetime cell;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &cell)) {
		__u32 run = profile__count_run(profile, &profile->counts[cell.count - 1]);
		__u32 epoch = profile_lifetime__last_epoch(&cell);

		if (epoch > last[run - 1])
			last[run - 1] = epoch;
	}
}

/* elapsed_seconds is rounded: moves the end of a run to the last sample of its time line if that is later. */
static void include_timeline(const struct profile *profile, struct run_clock *clocks)
{
	for (size_t i = 0; i < profile->n_timeline; i++) {
		const struct timeline_sample *sample = &profile->timeline[i];
		struct run_clock *clock = &clocks[profile->n_runs ? sample->run - 1 : 0];

		if (sample->time_ns > clock->end_ns)
			clock->end_ns = sample->time_ns;
	}
}

int run_clocks__read(const struct profile *profile, struct run_clock **out, struct error *error)
{
	__u32 n = profile__n_runs(profile);
	_cleanup_(free_ptr) struct run_clock *clocks = calloc(n, sizeof(*clocks));
	_cleanup_(free_ptr) __u64 *last = calloc(n, sizeof(*last));

	if (!clocks || !last)
		return error__set(error, -ENOMEM, "cannot read the runs: out of memory");
	find_last(profile, last);
	for (__u32 i = 0; i < n; i++) {
		struct run_clock *clock = &clocks[i];
		__u64 end;
		int err = read_clock(profile, i + 1, clock, error);

		if (err)
			return err;
		/* If the end is unknown or rounded, it is the end of the last epoch. */
		if (__builtin_mul_overflow(last[i] + !clock->end_ns, clock->epoch_ns, &end))
			end = INT64_MAX;
		if (end > clock->end_ns)
			clock->end_ns = end;
	}
	include_timeline(profile, clocks);
	*out = clocks;
	clocks = NULL;
	return 0;
}

__u64 run_clock__epoch_start(const struct run_clock *clock, __u64 epoch)
{
	__u64 start;

	if (__builtin_mul_overflow(epoch, clock->epoch_ns, &start) || start > clock->end_ns)
		return clock->end_ns;
	return start;
}

__u64 run_clock__epoch_last(const struct run_clock *clock, __u64 epoch)
{
	__u64 start = run_clock__epoch_start(clock, epoch),
	      next = run_clock__epoch_start(clock, epoch + 1);

	return next > start ? next - 1 : start;
}
