/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Between the files of diff. */
#ifndef ALLOCPROF_DIFF_INTERNAL_H
#define ALLOCPROF_DIFF_INTERNAL_H

#include "diff.h"

static inline const __u32 *diff_stack__frames(const struct diff *diff,
					      const struct diff_stack *stack)
{
	return diff->frames + stack->first;
}

/* By their names' texts: <0, 0 or >0. Does not depend on which side a stack is from. */
int diff__compare_stacks(const struct diff *diff, __u32 a, __u32 b);

/* Fills names, stacks and profiles of @diff. 0 or -ENOMEM. */
int diff__read_stacks(struct diff *diff, const struct diff_input inputs[DIFF_SIDES]);

/* Sorts the names, which frames refer to by index + 1 before and by index afterwards, and fills in the rest
 * of them. 0 or -ENOMEM. */
int diff__order_names(struct diff *diff);

/* Longer names are compared by their beginnings. */
#define DIFF_NAME_PAIRS 256

/* Names that are less alike, in thousandths, are other names. */
#define DIFF_NAMES_ALIKE 500

/* The pairs of neighbouring characters in @name, sorted, and how many. */
size_t diff_name__pairs(const char *name, __u16 pairs[DIFF_NAME_PAIRS]);
/* Twice the pairs that two names share, of all that they have, in thousandths. */
unsigned int diff_name__shared_pairs(const __u16 *a, size_t n_a, const __u16 *b, size_t n_b);
/* Whether the texts of two names say how alike they are. */
bool diff_name__is_comparable(const struct diff_name *a, const struct diff_name *b);

#endif
