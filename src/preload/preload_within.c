// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the code of the function of --within in the files that processes map. */
#include "preload_engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "error.h"
#include "function_code.h"

#define OPTION "--within"

/* A file in which the function was looked for. */
struct file {
	dev_t device;
	ino_t inode;
	struct function_code code;
	struct file *next;
};

struct preload_within {
	struct wanted_function wanted;
	struct parser *parser; /* belongs to the caller */
	struct file *files;
	struct error error; /* error about the first file that was met while the command ran */
};

int preload_within__new(const char *text, struct parser *parser, struct preload_within **out,
			struct error *error)
{
	struct preload_within *within = calloc(1, sizeof(*within));
	int err = -ENOMEM;

	if (within)
		err = wanted_function__parse(&within->wanted, text, OPTION, true, error);
	if (err) {
		preload_within__free(within);
		return err;
	}
	within->parser = parser;
	*out = within;
	return 0;
}

void preload_within__free(struct preload_within *within)
{
	struct file *file;

	if (!within)
		return;
	while ((file = within->files)) {
		within->files = file->next;
		free(file);
	}
	wanted_function__release(&within->wanted);
	free(within);
}

static struct file *find_file(const struct preload_within *within, const struct stat *st)
{
	struct file *file = within->files;

	while (file && (file->device != st->st_dev || file->inode != st->st_ino))
		file = file->next;
	return file;
}

static int look_up(struct preload_within *within, int fd, const char *path, struct error *error)
{
	struct file *file;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (find_file(within, &st))
		return 0;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	err = wanted_function__find(&within->wanted, within->parser, fd, path, OPTION, &file->code,
				    error);
	if (err)
		file->code.within.n = 0;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	file->next = within->files;
	within->files = file;
	return err;
}

int preload_within__prepare(struct preload_within *within, const char *program,
			    void (*use)(int fd, void *context), void *context, struct error *error)
{
	_cleanup_(free_ptr) char *path = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err;

	if (!wanted_function__is_path(&within->wanted))
		return 0;
	fd = wanted_function__open(&within->wanted, program, "", &path);
	if (fd < 0)
		return error__set(error, fd == -ENOENT ? -ESRCH : fd, OPTION ": cannot read %s: %s",
				  path ? path : "it", strerror(-fd));
	err = look_up(within, fd, path, error);
	if (!err)
		use(fd, context);
	return err;
}

const struct ap_within *preload_within__code(struct preload_within *within, int fd,
					     const char *path)
{
	struct file *file;
	struct stat st;
	struct error error = { 0 };

	if (fstat(fd, &st))
		return NULL;
	if (wanted_function__is_in(&within->wanted, within->parser, fd, path) &&
	    look_up(within, fd, path, &error) && !within->error.text[0])
		within->error = error;
	file = find_file(within, &st);
	return file && file->code.within.n ? &file->code.within : NULL;
}

const char *preload_within__why_none(const struct preload_within *within)
{
	if (within->error.text[0])
		return within->error.text;
	if (!within->wanted.found)
		return wanted_function__not_found(&within->wanted);
	return "no call was made beneath the function of --within";
}
