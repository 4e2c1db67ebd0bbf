/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A small profile with one of everything, for unit and golden tests. */
#ifndef ALLOCPROF_TESTS_FIXTURE_H
#define ALLOCPROF_TESTS_FIXTURE_H

#include "profile.h"

/* NULL where anything failed. */
struct profile *fixture__new(void);

/* Says that @frame is in the function called @name in every form. 0 or a negative errno. */
int fixture__name_frame(struct profile *profile, __u32 frame, const char *name);

/* The bucket of a histogram that @value belongs to. */
static inline unsigned int fixture__bucket(__u64 value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

/* Adds blocks of @count that were freed in the epoch @died, or are live at the end. 0 or a negative
 * errno. */
static inline int fixture__add_lifetime(struct profile *profile, __u32 count, __u32 born,
					__u32 died, __u64 blocks, __u64 size_bytes)
{
	const struct profile_lifetime lifetime = { count,	 born,	 died,
						   PROFILE_LIVE, blocks, size_bytes };

	return profile__add_lifetime(profile, &lifetime);
}

#endif
