// SPDX-License-Identifier: GPL-3.0-or-later
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "command.h"
#include "error.h"
#include "event_log.h"
#include "message.h"
#include "new_file.h"
#include "pager.h"

/* The option that names the output of every command. */
#define OPTION "-o"

static int fail(int err, const char *path, const char *option, struct error *error)
{
	return error__set(error, err, "cannot write %s: %s; name another file with %s", path,
			  strerror(-err), option);
}

/* Opens @path, that of @option, and keeps its contents; *@created: the file is new. */
static int reserve(const char *path, const char *option, FILE **output, bool *created,
		   struct error *error)
{
	int fd = new_file__create(path, 0666);
	bool is_new = fd >= 0;
	FILE *file;
	int err;

	if (fd == -EEXIST)
		fd = new_file__open_existing(path);
	if (fd < 0)
		return fail(fd, path, option, error);
	file = fdopen(fd, "w");
	if (!file) {
		err = fail(-errno, path, option, error);
		close(fd);
		return err;
	}
	*output = file;
	*created = is_new;
	return 0;
}

static int empty(FILE *output, const char *path, struct error *error)
{
	/* Pipes and devices cannot be truncated, and need not be. */
	if (!ftruncate(fileno(output), 0) || errno == EINVAL)
		return 0;
	return fail(-errno, path, OPTION, error);
}

int output_file__check(const char *path, const char *option, const char *input, const char *what,
		       struct error *error)
{
	struct stat in, out;

	if (path && input && !stat(path, &out) && !stat(input, &in) && in.st_dev == out.st_dev &&
	    in.st_ino == out.st_ino)
		return error__set(error, -EINVAL, "%s is %s itself; name another file with %s",
				  path, what, option);
	return 0;
}

int output_file__check_log(const char *path, const char *input, struct error *error)
{
	_cleanup_(free_ptr) char *log = path ? event_log__path(input) : NULL;

	return output_file__check(path, OPTION, log, "the event log", error);
}

int output_file__check_data(const char *path, const char *input, struct error *error)
{
	int err = output_file__check(path, OPTION, input, "the data file", error);

	return err ? err : output_file__check_log(path, input, error);
}

static int open_output(const char *path, const char *input, FILE **output, struct error *error)
{
	bool created;
	int err;

	if (!path) {
		*output = stdout;
		return 0;
	}
	err = output_file__check_data(path, input, error);
	if (!err)
		err = reserve(path, OPTION, output, &created, error);
	return err ? err : empty(*output, path, error);
}

/* Flushes, closes, and waits for the pager. @err is the result of the writing. */
static int close_output(FILE *output, const char *path, int err, struct error *error)
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

/* A reader that closes the pipe is an error of the write, not the end of the process. */
static void ignore_closed_pipes(void)
{
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

int output_file__write(const char *path, const char *input, bool pages,
		       int (*write)(FILE *to, const void *context), const void *context,
		       struct error *error)
{
	struct sigaction before;
	FILE *output;
	int err = open_output(path, input, &output, error);

	if (err)
		return err;
	sigaction(SIGPIPE, NULL, &before);
	/* The pager gets what we had. */
	if (pages && !path)
		pager__begin();
	ignore_closed_pipes();
	err = close_output(output, path, write(output, context), error);
	/* What nobody read is not written again when stdout is flushed at the exit. */
	if (err && !path)
		__fpurge(stdout);
	sigaction(SIGPIPE, &before, NULL);
	return err;
}

int output_file__status(int err, const struct error *error)
{
	/* A reader such as head(1) has closed the pipe. */
	if (err == -EPIPE)
		return EXIT_GOOD;
	message__error(error, err);
	return EXIT_FAILED;
}

int late_output__reserve(struct late_output *output, struct error *error)
{
	return output->path ? reserve(output->path, output->option, &output->file, &output->created,
				      error)
			    : 0;
}

int late_output__write(struct late_output *output, const char *text, size_t size,
		       struct error *error)
{
	int fd = fileno(output->file), err = 0;
	FILE *file = output->file;
	struct sigaction before;
	struct stat st;

	/*
	 * Reserves the space before the old contents are removed. Other errors mean a pipe, or a
	 * file system that cannot reserve space.
	 */
	if (size && fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) &&
	    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		err = -errno;
	sigaction(SIGPIPE, NULL, &before);
	ignore_closed_pipes();
	if (!err && (fwrite(text, 1, size, file) != size || fflush(file)))
		err = -errno;
	if (!err && !fstat(fd, &st) && S_ISREG(st.st_mode) && ftruncate(fd, size))
		err = -errno;
	if (err && output->created)
		unlink(output->path);
	output->file = NULL;
	err = close_output(file, output->path, err, error);
	sigaction(SIGPIPE, &before, NULL);
	return err;
}

void late_output__release(struct late_output *output)
{
	if (!output->file)
		return;
	fclose(output->file);
	if (output->created)
		unlink(output->path);
}
