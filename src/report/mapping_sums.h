/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes of live mappings by what they are for. */
#ifndef ALLOCPROF_MAPPING_SUMS_H
#define ALLOCPROF_MAPPING_SUMS_H

#include <linux/types.h>

#include "profile.h"

struct mapping_sums {
	__u64 bytes[MAPPING_KINDS];
	__u64 given_back_bytes; /* of these: what madvise(2) has given back since */
};

/* Returns the sums by count's id - 1, which the caller frees; NULL if there is no memory, or
 * @profile has no mappings. */
struct mapping_sums *mapping_sums__new(const struct profile *profile);

void mapping_sums__add(struct mapping_sums *sums, const struct mapping_sums *more);
__u64 mapping_sums__total(const struct mapping_sums *sums);

#endif
