/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names for a recording that was made elsewhere or earlier. */
#ifndef ALLOCPROF_PROFILE_OFFLINE_H
#define ALLOCPROF_PROFILE_OFFLINE_H

struct profile;
struct symbols;

struct profile_offline_options {
	const char *const *debug_dirs; /* as module_file__open()'s */
	/* Told of a module whose file cannot be used, and why: what names it has it keeps. */
	void (*missing)(const char *why, void *context);
	void *context;
};

/*
 * Looks up all frames whose source line is not known in the files of their modules. Names that are
 * there already stay where nothing better is found. @symbols must know no modules yet. 0 or -ENOMEM.
 */
int profile__symbolize_offline(struct profile *profile, struct symbols *symbols,
			       const struct profile_offline_options *options);

#endif
