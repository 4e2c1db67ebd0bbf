// SPDX-License-Identifier: GPL-3.0-or-later
#include "output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"

int output__open(const char *path, const char *input, FILE **output, struct error *error)
{
	struct stat in, out;
	FILE *file;

	if (!path) {
		*output = stdout;
		return 0;
	}
	if (!stat(path, &out) && !stat(input, &in) && in.st_dev == out.st_dev &&
	    in.st_ino == out.st_ino)
		return error__set(error, -EINVAL,
				  "%s is the data file itself; name another file with -o", path);
	file = fopen(path, "we");
	if (!file) {
		int err = -errno;

		return error__set(error, err, "cannot write %s: %s; name another file with -o",
				  path, strerror(-err));
	}
	*output = file;
	return 0;
}

int output__close(FILE *output, const char *path, int err, struct error *error)
{
	if (!err && fflush(output))
		err = -errno;
	if (path && fclose(output) && !err)
		err = -errno;
	if (!err || err == -EPIPE)
		return err;
	return error__set(error, err, "cannot write %s: %s; %s", path ? path : "standard output",
			  strerror(-err),
			  err == -ENOSPC || err == -EDQUOT ? "free space there or write elsewhere"
							   : "write elsewhere");
}
