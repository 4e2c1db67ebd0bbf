/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A small profile with one of everything, for unit and golden tests. */
#ifndef ALLOCPROF_TESTS_FIXTURE_H
#define ALLOCPROF_TESTS_FIXTURE_H

#include "profile.h"

/* NULL where anything failed. */
struct profile *fixture__new(void);

#endif
