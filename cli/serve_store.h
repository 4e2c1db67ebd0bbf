/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The directory in which `allocprof serve` keeps copies of its recording, within limits. */
#ifndef ALLOCPROF_SERVE_STORE_H
#define ALLOCPROF_SERVE_STORE_H

#include <linux/types.h>

struct error;
struct profile;

struct serve_store {
	const char *directory;
	__u64 most;	  /* number of files */
	__u64 most_bytes; /* of all of them */
	__u64 last;	  /* number of the last file */
};

/* Finds the files of earlier runs, whose numbers go on. Makes the directory. Returns 0, or a negative errno
 * with @error set. */
int serve_store__open(struct serve_store *store, struct error *error);

/*
 * Writes @profile as the next file, and removes the oldest ones that are too many: by their numbers, since
 * the clock may be set. The newest one stays, however large it is. If the disk is full older files
 * are removed until there is room. Returns 0, or a negative errno with @error set.
 */
int serve_store__add(struct serve_store *store, const struct profile *profile, struct error *error);

#endif
