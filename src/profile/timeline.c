// SPDX-License-Identifier: GPL-3.0-or-later
#include "timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"

/* Initial step, if the step follows from the recording's length. */
#define FIRST_STEP_NS 1000000

__u64 timeline__due_ns(const struct timeline *timeline, __u64 time_ns)
{
	return timeline->next_ns > time_ns ? timeline->next_ns - time_ns : 0;
}

/* Removes every second moment; the first stays. */
static void thin_out(struct timeline *timeline)
{
	size_t n = 0;

	for (size_t i = 0; i < timeline->n; i += 2)
		timeline->moments[n++] = timeline->moments[i];
	timeline->n = n;
	timeline->step_ns *= 2;
}

int timeline__add(struct timeline *timeline, const struct profile_moment *moment)
{
	if (!timeline->step_ns)
		timeline->step_ns = timeline->interval_ns ? timeline->interval_ns : FIRST_STEP_NS;
	if (timeline->n && timeline->moments[timeline->n - 1].time_ns >= moment->time_ns) {
		timeline->moments[timeline->n - 1] = *moment;
		return 0;
	}
	if (!timeline->interval_ns && timeline->n == TIMELINE_MOMENTS)
		thin_out(timeline);
	if (array__reserve(&timeline->moments, &timeline->room, timeline->n + 1,
			   sizeof(*timeline->moments)))
		return -ENOMEM;
	timeline->moments[timeline->n++] = *moment;
	/* A multiple of the step, so that moments are evenly spaced after thinning. */
	timeline->next_ns =
		moment->time_ns - moment->time_ns % timeline->step_ns + timeline->step_ns;
	return 0;
}

void timeline__pause(struct timeline *timeline, __u64 pause_ns)
{
	__u64 earliest_ns;

	if (!timeline->n)
		return;
	earliest_ns = timeline->moments[timeline->n - 1].time_ns + pause_ns;
	if (timeline->next_ns < earliest_ns)
		timeline->next_ns = earliest_ns;
}

void timeline__release(struct timeline *timeline)
{
	free(timeline->moments);
	timeline->moments = NULL;
	timeline->n = timeline->room = 0;
}
