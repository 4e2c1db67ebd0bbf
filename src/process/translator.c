// SPDX-License-Identifier: GPL-3.0-or-later
/* Recognises binary translators by the names of programs, and finds those of their processes that
 * have a file mapped. */
#include "translator.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "path.h"
#include "proc.h"
#include "refusal_abi.h"

bool translator__is_one(const char *path)
{
#define WORD(text) text,
	static const char *const names[] = { TRANSLATOR_NAMES(WORD) };
	static const char *const directories[] = { TRANSLATOR_DIRECTORIES(WORD) };
#undef WORD
	const char *name = path__name(path);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (strstr(path, directories[i]))
			return true;
	return false;
}

int translator__refuse(const char *path, struct error *error)
{
	if (!translator__is_one(path))
		return 0;
	return error__set(
		error, -ENOTSUP,
		"%s runs copies of its program's code, which would end at the first probe; "
		"measure the program without it",
		path);
}

/* Reads the target of a link. Returns false if it cannot be read. */
static bool read_link(const char *link, char path[PATH_MAX])
{
	ssize_t length = readlink(link, path, PATH_MAX - 1);

	if (length < 0)
		return false;
	path[length] = '\0';
	return true;
}

static bool read_program(int pid, char path[PATH_MAX])
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	return read_link(link, path);
}

int translator__refuse_process(int pid, struct error *error)
{
	char path[PATH_MAX];

	return read_program(pid, path) ? translator__refuse(path, error) : 0;
}

struct wanted_file {
	__u64 inode;
	char path[PATH_MAX]; /* path without links */
};

/* Compares inode and name, but not the device: on btrfs, and in each container that has the file
 * from the same layer, mappings show another device than stat(2). */
static int is_wanted(void *context, const struct proc_mapping *mapping)
{
	const struct wanted_file *file = context;

	return mapping->inode == file->inode &&
	       !strcmp(path__name(mapping->path), path__name(file->path));
}

int translator__refuse_mapped(int fd, const char *path, struct error *error)
{
	_cleanup_(close_directory) DIR *processes = opendir("/proc");
	struct wanted_file file;
	struct dirent *entry;
	char link[64], program[PATH_MAX];
	struct stat st;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!processes || fstat(fd, &st) || !read_link(link, file.path))
		return 0;
	file.inode = st.st_ino;
	while ((entry = readdir(processes))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || !read_program(pid, program) || !translator__is_one(program) ||
		    proc_maps__each(pid, is_wanted, &file) != 1)
			continue;
		return error__set(
			error, -EBUSY,
			"process %d, which %s runs, has mapped %s: probes in it would end that "
			"process; wait for its end, measure a command with --isolate or "
			"--engine=preload, or set them all the same with --force",
			pid, path__name(program), path);
	}
	return 0;
}
