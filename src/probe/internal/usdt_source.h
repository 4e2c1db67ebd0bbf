/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The USDT probes of a source in a file: each place of one is a site (docs/sources.md). */
#ifndef ALLOCPROF_USDT_SOURCE_H
#define ALLOCPROF_USDT_SOURCE_H

#include <linux/types.h>

#include "abi.h"

struct allocator;
struct error;
struct source;

/* What a site that is a USDT probe has besides its place. */
struct usdt_place {
	__u64 semaphore_offset; /* in the file, of the counter that turns it on, 0: it is always on */
	struct ap_usdt arguments;
};

/*
 * Finds the probes of @source, which has nothing else, in the file behind @fd, which stays the caller's and is called
 * @path. -ENOENT: it has none of them, or is not where the source is looked for; -ENOTSUP: one that cannot be counted
 * by; -ENOEXEC, -EFBIG, -ENOMEM.
 */
int usdt_source__read(int fd, const char *path, const struct source *source, struct allocator **out,
		      struct error *error);

#endif
