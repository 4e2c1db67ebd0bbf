/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interfaces between the files of diff. */
#ifndef ALLOCPROF_DIFF_INTERNAL_H
#define ALLOCPROF_DIFF_INTERNAL_H

#include "diff.h"

/* Compares by the names' texts: <0, 0 or >0. Does not depend on the sides of the stacks. */
int diff__compare_stacks(const struct diff *diff, __u32 a, __u32 b);

/* profile__add_up(), which notes in @diff that a sum stopped at the greatest number. */
__u64 diff__add_up(struct diff *diff, __u64 a, __u64 b);

/* Fills names, stacks and profiles of @diff. 0 or -ENOMEM. */
int diff__read_stacks(struct diff *diff, const struct diff_input inputs[DIFF_SIDES]);

/* Sorts the names and fills in their other fields; frames then have indexes instead of index + 1. 0
 * or -ENOMEM. */
int diff__order_names(struct diff *diff);

/* Limit of pairs per name; longer names are compared by their beginnings. */
#define DIFF_NAME_PAIRS 256

/* Names below this similarity, in thousandths, are different ones. */
#define DIFF_NAMES_ALIKE 500

/* Stores the sorted pairs of adjacent characters of @name; returns their number. */
size_t diff_name__pairs(const char *name, __u16 pairs[DIFF_NAME_PAIRS]);
/* Dice's coefficient of two names by their pairs of characters, in thousandths. */
unsigned int diff_name__shared_pairs(const __u16 *a, size_t n_a, const __u16 *b, size_t n_b);
/* Whether the similarity of two names' texts means anything. */
bool diff_name__is_comparable(const struct diff_name *a, const struct diff_name *b);

#endif
