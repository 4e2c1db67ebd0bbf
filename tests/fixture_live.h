/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Profiles as record --live makes them, for the tests of what is drawn of them. */
#ifndef ALLOCPROF_TESTS_FIXTURE_LIVE_H
#define ALLOCPROF_TESTS_FIXTURE_LIVE_H

#include "profile.h"

/*
 * By name, or NULL: "behaviours" (2 s: a leak, what is freed at the very end only, a bounded cache and a
 * mixture), "empty" (no call), "no_live" (recorded without --live), "short_lived" (no block outlives its epoch), "one" (one stack, 5 ms), "many"
 * (100 stacks with names as C++ has them, 10 hours), "rss" (resident memory far above what is live).
 */
struct profile *fixture__live(const char *name);

#endif
