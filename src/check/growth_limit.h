/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How much a figure may grow from one build to another: an absolute number or a share. */
#ifndef ALLOCPROF_GROWTH_LIMIT_H
#define ALLOCPROF_GROWTH_LIMIT_H

#include <linux/types.h>
#include <stdbool.h>

struct error;

/* Zeroed it allows no growth at all. */
struct growth_limit {
	bool is_share;
	double percent;
	__s64 most;
};

/* Parses "1%", "0.5%" or "1000". Returns 0, or -EINVAL with @error set. */
int growth_limit__parse(const char *text, struct growth_limit *growth, struct error *error);

/* Returns whether a figure may go from @before to @after. */
bool growth_limit__allows(const struct growth_limit *growth, __s64 before, __s64 after);

#endif
