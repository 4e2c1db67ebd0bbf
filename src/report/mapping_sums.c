// SPDX-License-Identifier: GPL-3.0-or-later
/* Adds up live mappings by count and kind. */
#include "mapping_sums.h"

#include <stdlib.h>

struct mapping_sums *mapping_sums__new(const struct profile *profile)
{
	struct mapping_sums *sums =
		profile->n_mappings ? calloc(profile->n_counts + 1, sizeof(*sums)) : NULL;

	for (size_t i = 0; sums && i < profile->n_mappings; i++) {
		const struct profile_mapping *mapping = &profile->mappings[i];
		struct mapping_sums one = { 0 };

		one.bytes[mapping->kind] = mapping->size_bytes;
		if (mapping->was_given_back)
			one.given_back_bytes = mapping->size_bytes;
		mapping_sums__add(&sums[mapping->count - 1], &one);
	}
	return sums;
}

void mapping_sums__add(struct mapping_sums *sums, const struct mapping_sums *more)
{
	for (int i = 0; i < MAPPING_KINDS; i++)
		sums->bytes[i] = profile__add_up(sums->bytes[i], more->bytes[i]);
	sums->given_back_bytes = profile__add_up(sums->given_back_bytes, more->given_back_bytes);
}

__u64 mapping_sums__total(const struct mapping_sums *sums)
{
	__u64 total = 0;

	for (int i = 0; i < MAPPING_KINDS; i++)
		total = profile__add_up(total, sums->bytes[i]);
	return total;
}
