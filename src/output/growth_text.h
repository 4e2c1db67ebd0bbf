/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Says how much something grew, and may grow. */
#ifndef ALLOCPROF_GROWTH_TEXT_H
#define ALLOCPROF_GROWTH_TEXT_H

#include <linux/types.h>

#include "growth_limit.h"

struct growth_text {
	char text[80];
};

/* Returns "no growth", "a growth of 1,000" or "a growth of 0.5 %". */
struct growth_text growth_limit__text(const struct growth_limit *growth);

/* Returns "+3,000 (+74.8 %)", "-5 (-100.0 %)" or, from 0, "+3,000". */
struct growth_text growth_text__difference(__s64 before, __s64 after);

#endif
