/* SPDX-License-Identifier: GPL-3.0-or-later */
/* diff --per: how much was done in each of two recordings. */
#ifndef ALLOCPROF_DIFF_RATE_H
#define ALLOCPROF_DIFF_RATE_H

#include "diff_output.h"

struct data_choice;
struct error;
struct profile;

/*
 * Sets *@rate by the argument of --per: "second", two numbers "N:M", or a function, whose calls are counted that lead to
 * allocations. @rate refers to @text. 0, or a negative errno with @error set: -ENODATA if nothing was done in one of the
 * recordings. @names gives functions their names.
 */
int diff_rate__read(const char *text, struct profile *const profiles[DIFF_SIDES],
		    const struct data_choice *names, struct diff_rate *rate, struct error *error);

#endif
