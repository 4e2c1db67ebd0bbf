// SPDX-License-Identifier: GPL-3.0-or-later
#include "gzip.h"

#include <errno.h>
#include <string.h>

int gzip__open(struct gzip *gzip, FILE *to, int level)
{
	gzip->stream = (z_stream){ 0 };
	gzip->to = to;
	gzip->n_in = 0;
	/* 16 selects gzip's header, in which zlib writes no time. */
	return deflateInit2(&gzip->stream, level, Z_DEFLATED, MAX_WBITS + 16, 8,
			    Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

static int deflate_some(struct gzip *gzip, int flush)
{
	unsigned char *out = gzip->out;
	size_t n;

	do {
		gzip->stream.next_out = out;
		gzip->stream.avail_out = sizeof(gzip->out);
		deflate(&gzip->stream, flush);
		n = sizeof(gzip->out) - gzip->stream.avail_out;
		errno = 0;
		if (fwrite(out, 1, n, gzip->to) != n)
			return errno ? -errno : -EIO;
	} while (!gzip->stream.avail_out);
	return 0;
}

static int flush_input(struct gzip *gzip, int flush)
{
	gzip->stream.next_in = gzip->in;
	gzip->stream.avail_in = gzip->n_in;
	gzip->n_in = 0;
	return deflate_some(gzip, flush);
}

int gzip__write(struct gzip *gzip, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	int err = 0;

	while (size && !err) {
		size_t room = sizeof(gzip->in) - gzip->n_in, n = size < room ? size : room;

		memcpy(gzip->in + gzip->n_in, at, n);
		gzip->n_in += n;
		at += n;
		size -= n;
		if (gzip->n_in == sizeof(gzip->in))
			err = flush_input(gzip, Z_NO_FLUSH);
	}
	return err;
}

int gzip__finish(struct gzip *gzip)
{
	return flush_input(gzip, Z_FINISH);
}

void gzip__close(struct gzip *gzip)
{
	deflateEnd(&gzip->stream);
}
