/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A small profile with one of everything, for unit and golden tests. */
#ifndef ALLOCPROF_TESTS_FIXTURE_H
#define ALLOCPROF_TESTS_FIXTURE_H

#include "profile.h"

/* NULL where anything failed. */
struct profile *fixture__new(void);

/* Says that @frame is in the function called @name in every form. 0 or a negative errno. */
int fixture__name_frame(struct profile *profile, __u32 frame, const char *name);

#endif
