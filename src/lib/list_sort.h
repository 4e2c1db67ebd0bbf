/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorts lists of numbers, such as stacks, of which there may be a million. */
#ifndef ALLOCPROF_LIST_SORT_H
#define ALLOCPROF_LIST_SORT_H

#include <linux/types.h>
#include <stddef.h>

/* The number at index @at of list @list; UINT32_MAX at its end, after which it is not asked for. */
typedef __u32 (*list_sort_number_fn)(const void *owner, __u32 list, size_t at);

/*
 * Sorts the @n lists that are numbered in @lists by their numbers, the first ones first; a list comes
 * before those that it begins. The order of equal lists is arbitrary. 0 or -ENOMEM.
 */
int list_sort(__u32 *lists, size_t n, list_sort_number_fn number, const void *owner);

#endif
