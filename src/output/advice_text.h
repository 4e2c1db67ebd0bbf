/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the parts of the sentences of advice. */
#ifndef ALLOCPROF_ADVICE_TEXT_H
#define ALLOCPROF_ADVICE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "advice.h"

/* Returns what is to be done: "Reserve space before it is needed". */
const char *advice_text__remedy(enum advice_kind kind);
/* Prints what it saves: "saves up to 11,160 allocations, 9.0 % of all, and copies of 1.1 GiB".
 * @exact: bytes are printed to the last one. */
void advice_text__print_saved(const struct report *report, const struct advice *advice, bool exact,
			      FILE *to);
/* Prints the numbers that say so. */
void advice_text__print_reason(const struct report *report, const struct advice *advice, bool exact,
			       FILE *to);

#endif
