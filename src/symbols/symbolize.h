/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Gives a profile's frames their functions and lines: during its recording, after it, or on another machine.
 */
#ifndef ALLOCPROF_SYMBOLIZE_H
#define ALLOCPROF_SYMBOLIZE_H

#include <stdbool.h>

struct profile;
struct symbols;

/* Symbolizes a profile after its recording, or on another machine. */

struct profile_offline_options {
	const char *const *debug_dirs; /* as for module_file__open() */
	/* Called with the reason for each module whose file cannot be used; its existing names
	 * stay. */
	void (*missing)(const char *why, void *context);
	void *context;
	/* Look up only frames that have no name yet, and insert no tail calls: of a recording that goes on,
	 * whose earlier frames have been looked up. */
	bool only_new;
};

/* Looks up all frames without a source line, or only new ones, in their modules' files. Existing names stay if no
 * better ones are found. @symbols must have no modules yet. Returns 0 or -ENOMEM. */
int profile__symbolize_offline(struct profile *profile, struct symbols *symbols,
			       const struct profile_offline_options *options);

#endif
