// SPDX-License-Identifier: GPL-3.0-or-later
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
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
#include "file.h"
#include "message.h"
#include "user_terminal.h"

/* The option by which every command names its output. */
#define OPTION "-o"

static int fail(int err, const char *path, const char *option, struct error *error)
{
	return error__set(error, err, "cannot write %s: %s; name another file with %s", path,
			  new_file__reason(err), option);
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

/* Opens @path, or stdout if @path is NULL. The caller releases @file. */
static int open_output(const char *path, const char *input, struct new_file *file, FILE **output,
		       struct error *error)
{
	int err, fd;

	*output = stdout;
	if (!path)
		return 0;
	err = output_file__check_data(path, input, error);
	if (err)
		return err;
	err = new_file__begin_output(file, path);
	if (!err)
		err = new_file__empty(file);
	fd = err ? -1 : fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	*output = fd < 0 ? NULL : fdopen(fd, "w");
	if (!err && !*output) {
		err = -errno;
		close_fd(&fd);
	}
	return err ? fail(err, path, OPTION, error) : 0;
}

static int fail_to_write(int err, const char *path, struct error *error)
{
	if (!err || err == -EPIPE)
		return err;
	return error__set(error, err, "cannot write %s: %s; %s", path ? path : "standard output",
			  new_file__reason(err),
			  err == -ENOSPC || err == -EDQUOT ? "free space there or write elsewhere"
							   : "write elsewhere");
}

/* Gives the file its path if all was written, which @err == 0 says. Otherwise empties an older
 * file that was written in place, so that no piece of the output stays. */
static int settle(struct new_file *file, int err)
{
	if (!err)
		return new_file__finish(file);
	(void)new_file__empty(file);
	return err;
}

/* Flushes and closes the output, and waits for the pager. @err is the result of the writing. */
static int close_output(FILE *output, const char *path, struct new_file *file, int err,
			struct error *error)
{
	if (!err && fflush(output))
		err = -errno;
	if (!path)
		return fail_to_write(pager__end(err), path, error);
	if (fclose(output) && !err)
		err = -errno;
	return fail_to_write(settle(file, err), path, error);
}

/* Ignores SIGPIPE: if a reader closes the pipe, the write fails, and the process does not end. */
static void ignore_closed_pipes(void)
{
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

int output_file__write(const char *path, const char *input, bool pages,
		       int (*write)(FILE *to, const void *context), const void *context,
		       struct error *error)
{
	_cleanup_(new_file__release) struct new_file file = NEW_FILE_NONE;
	struct sigaction before;
	FILE *output;
	int err = open_output(path, input, &file, &output, error);

	if (err)
		return err;
	sigaction(SIGPIPE, NULL, &before);
	/* Call this while SIGPIPE has its original disposition, which the pager inherits. */
	if (pages && !path)
		pager__begin();
	ignore_closed_pipes();
	err = close_output(output, path, &file, write(output, context), error);
	/* Drop output that nobody has read, so that it is not written again when stdout is flushed
	 * at the exit. */
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
	int err = output->path ? new_file__begin_output(&output->file, output->path) : 0;

	if (err)
		return fail(err, output->path, output->option, error);
	output->is_reserved = output->path;
	return 0;
}

int late_output__write(struct late_output *output, const char *text, size_t size,
		       struct error *error)
{
	struct new_file *file = &output->file;
	struct sigaction before;
	int err;

	sigaction(SIGPIPE, NULL, &before);
	ignore_closed_pipes();
	err = new_file__empty(file);
	if (!err)
		err = settle(file, fd__write_all(file->fd, text, size));
	late_output__release(output);
	sigaction(SIGPIPE, &before, NULL);
	return fail_to_write(err, output->path, error);
}

void late_output__release(struct late_output *output)
{
	if (output->is_reserved)
		new_file__release(&output->file);
	output->is_reserved = false;
}
