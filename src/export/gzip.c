// SPDX-License-Identifier: GPL-3.0-or-later
#include "gzip.h"

#include <errno.h>
#include <limits.h>

int gzip__open(struct gzip *gzip, FILE *to)
{
	gzip->stream = (z_stream){ 0 };
	gzip->to = to;
	/* 16: with the header of gzip, in which zlib writes no time. */
	return deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
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

int gzip__write(struct gzip *gzip, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	int err = 0;

	while (size && !err) {
		unsigned int n = size < UINT_MAX ? size : UINT_MAX;

		gzip->stream.next_in = (unsigned char *)at;
		gzip->stream.avail_in = n;
		err = deflate_some(gzip, Z_NO_FLUSH);
		at += n;
		size -= n;
	}
	return err;
}

int gzip__finish(struct gzip *gzip)
{
	return deflate_some(gzip, Z_FINISH);
}

void gzip__close(struct gzip *gzip)
{
	deflateEnd(&gzip->stream);
}
