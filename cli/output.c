// SPDX-License-Identifier: GPL-3.0-or-later
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "error.h"
#include "message.h"
#include "new_file.h"
#include "pager.h"

static int fail(int err, const char *path, struct error *error)
{
	return error__set(error, err, "cannot write %s: %s; name another file with -o", path,
			  strerror(-err));
}

int output__reserve(const char *path, FILE **output, bool *created, struct error *error)
{
	int fd = new_file__create(path, 0666);
	bool is_new = fd >= 0;
	FILE *file;
	int err;

	if (fd == -EEXIST) {
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd < 0)
			fd = -errno;
	}
	if (fd < 0)
		return fail(fd, path, error);
	file = fdopen(fd, "w");
	if (!file) {
		err = fail(-errno, path, error);
		close(fd);
		return err;
	}
	*output = file;
	*created = is_new;
	return 0;
}

int output__replace(FILE *output, const char *path, bool created, const char *text, size_t size,
		    struct error *error)
{
	int fd = fileno(output), err = 0;
	struct stat st;

	/*
	 * Reserves the space before the old contents are removed. Other errors mean a pipe, or a
	 * file system that cannot reserve space.
	 */
	if (size && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) &&
	    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		err = -errno;
	if (!err && (fwrite(text, 1, size, output) != size || fflush(output)))
		err = -errno;
	if (!err && !fstat(fd, &st) && S_ISREG(st.st_mode) && ftruncate(fd, size))
		err = -errno;
	if (err && created)
		unlink(path);
	return output__close(output, path, err, error);
}

void output__discard(FILE *output, const char *path, bool created)
{
	fclose(output);
	if (created)
		unlink(path);
}

static int empty(FILE *output, const char *path, struct error *error)
{
	/* Pipes and devices cannot be truncated, and need not be. */
	if (!ftruncate(fileno(output), 0) || errno == EINVAL)
		return 0;
	return fail(-errno, path, error);
}

int output__check(const char *path, const char *input, struct error *error)
{
	struct stat in, out;

	if (path && !stat(path, &out) && !stat(input, &in) && in.st_dev == out.st_dev &&
	    in.st_ino == out.st_ino)
		return error__set(error, -EINVAL,
				  "%s is the data file itself; name another file with -o", path);
	return 0;
}

int output__open(const char *path, const char *input, FILE **output, struct error *error)
{
	bool created;
	int err;

	if (!path) {
		*output = stdout;
		return 0;
	}
	err = output__check(path, input, error);
	if (!err)
		err = output__reserve(path, output, &created, error);
	return err ? err : empty(*output, path, error);
}

int output__close(FILE *output, const char *path, int err, struct error *error)
{
	if (!err && fflush(output))
		err = -errno;
	if (!path)
		err = pager__end(err);
	if (path && fclose(output) && !err)
		err = -errno;
	if (!err || err == -EPIPE)
		return err;
	return error__set(error, err, "cannot write %s: %s; %s", path ? path : "standard output",
			  strerror(-err),
			  err == -ENOSPC || err == -EDQUOT ? "free space there or write elsewhere"
							   : "write elsewhere");
}

int output__write(const char *path, const char *input, bool pages,
		  int (*write)(FILE *to, const void *context), const void *context,
		  struct error *error)
{
	FILE *output;
	int err = output__open(path, input, &output, error);

	if (err)
		return err;
	if (pages && !path)
		pager__begin();
	return output__close(output, path, write(output, context), error);
}

int output__status(int err, const struct error *error)
{
	/* A reader such as head(1) has closed the pipe. */
	if (err == -EPIPE)
		return EXIT_GOOD;
	message__print("%s", error->text);
	return EXIT_FAILED;
}
