/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compresses into a FILE, as gzip(1) does. The same bytes always give the same file. */
#ifndef ALLOCPROF_GZIP_H
#define ALLOCPROF_GZIP_H

#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

struct gzip {
	z_stream stream;
	FILE *to;
	unsigned char in[65536]; /* bytes that are to be compressed next */
	size_t n_in;
	unsigned char out[65536]; /* bytes that were compressed last */
};

/* Begins a file. @level is zlib's. Returns 0 or -ENOMEM. The caller closes it in either case. */
int gzip__open(struct gzip *gzip, FILE *to, int level);
/* Returns 0 or the negative errno of the write. */
int gzip__write(struct gzip *gzip, const void *bytes, size_t size);
/* Writes what is left. */
int gzip__finish(struct gzip *gzip);
void gzip__close(struct gzip *gzip);

#endif
