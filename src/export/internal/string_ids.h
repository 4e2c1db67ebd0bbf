/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers texts in the order in which they occur first; equal texts have one number. */
#ifndef ALLOCPROF_STRING_IDS_H
#define ALLOCPROF_STRING_IDS_H

#include <linux/types.h>
#include <stddef.h>

#include "hash_table.h"

/* Zeroed is empty. To be released. */
struct string_ids {
	const char **texts; /* by number - 1; the caller's, which must outlive it */
	size_t n, room;
	struct hash_table index;
	__u64 seed;
};

/* The number of @text, from 1. 0 or -ENOMEM. */
int string_ids__add(struct string_ids *ids, const char *text, __u32 *id);
void string_ids__release(struct string_ids *ids);

#endif
