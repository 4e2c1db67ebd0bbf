/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorts lists of numbers, such as stacks; there may be a million lists. */
#ifndef ALLOCPROF_LIST_SORT_H
#define ALLOCPROF_LIST_SORT_H

#include <linux/types.h>
#include <stddef.h>

/* Returns the number at index @at of list @list, or UINT32_MAX at the list's end. No index behind
 * the end is asked for. */
typedef __u32 (*list_sort_number_fn)(const void *owner, __u32 list, size_t at);

/*
 * Sorts @lists, the numbers of @n lists, by the contents of the lists, whose first numbers are
 * compared first. A list comes before longer lists that begin with it. The order of equal lists is
 * arbitrary. Returns 0 or -ENOMEM.
 */
int list_sort(__u32 *lists, size_t n, list_sort_number_fn number, const void *owner);

#endif
