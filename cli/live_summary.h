/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `record --live` says at its end. */
#ifndef ALLOCPROF_LIVE_SUMMARY_H
#define ALLOCPROF_LIVE_SUMMARY_H

#include <stdbool.h>

struct selection;
struct session_live;

/* Three lines on stderr: allocations, what is live, what was temporary. @totals: of the profile, where bytes
 * were sampled, else NULL. @target_runs: it goes on. */
void live_summary__print(const struct session_live *live, const struct selection *totals,
			 bool target_runs);

#endif
