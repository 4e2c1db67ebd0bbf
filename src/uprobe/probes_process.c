// SPDX-License-Identifier: GPL-3.0-or-later
/* Probes the files that a running process has mapped. */
#include "probes_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "mapped_file.h"
#include "proc.h"
#include "program_kind.h"
#include "definitions.h"
#include "user.h"

static bool is_probed(const struct probed_allocator *entry)
{
	for (int role = 0; role < PROBE_ROLES; role++)
		if (entry->attachments[role])
			return true;
	return false;
}

static int is_mapping(void *context, const struct proc_mapping *mapping)
{
	return 1;
}

/* Returns whether the process is ending: an exiting process loses its mappings before its end is
 * reported, and a zombie has none. */
static bool is_ending(pid_t pid)
{
	return proc_maps__each(pid, is_mapping, NULL) <= 0;
}

static bool is_go_process(const struct probes *probes, pid_t pid)
{
	_cleanup_(close_fd) int fd = -1;
	struct program_kind kind;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	fd = regular_file__open(name);
	return fd >= 0 && !program_kind__parse(probes->options.parser, fd, name, &kind) &&
	       kind.is_go;
}

struct mapped_files {
	struct probes *probes;
	pid_t pid;
	struct error *error;
	bool is_probed; /* a file that the process has mapped is */
	int err;	/* error of the last file that should be probed and is not */
	char *unopened; /* path of the last file that could not be opened; NULL: all could be */
	int unopened_err;
};

/* Returns whether the program may have generated the code itself, as JIT compilers do in a memfd. */
static bool is_generated(const char *path)
{
	return path[0] != '/' || !strncmp(path, "/memfd:", strlen("/memfd:"));
}

static void note_unopened(struct mapped_files *files, const struct mapped_file *file, int err)
{
	if (is_generated(file->path))
		return;
	free(files->unopened);
	files->unopened = strdup(file->path);
	files->unopened_err = err;
	probes__add_unopened(files->probes, file, err);
}

static bool has_probed_file(const struct probes *probes, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	for (size_t i = 0; i < probes->n_list; i++)
		if (probes->list[i].device == st.st_dev && probes->list[i].inode == st.st_ino &&
		    is_probed(&probes->list[i]))
			return true;
	return false;
}

static int add_mapped_file(void *context, const struct proc_mapping *mapping)
{
	struct mapped_files *files = context;
	struct mapped_file file = {
		.pid = files->pid,
		.start = mapping->start,
		.end = mapping->end,
		.identity = file_identity__of_mapping(mapping),
		.path = (char *)mapping->path,
	};
	struct file_identities identities;
	struct error error = { 0 };
	int fd, err;

	if (!mapping->is_executable || !mapping->inode)
		return 0;
	fd = mapped_file__open(&file, &files->probes->options.identifier, &identities);
	if (fd < 0) {
		note_unopened(files, &file, fd);
		return 0;
	}
	err = probes__add_file(files->probes, fd, mapping->path, &error);
	files->is_probed |= has_probed_file(files->probes, fd);
	close(fd);
	if (probes__is_failure(err) && err != -ENOEXEC) {
		files->err = err;
		if (files->error)
			*files->error = error;
	}
	return 0;
}

/* Says in the error why nothing of a process is probed. */
static int explain_none(const struct probes *probes, const struct mapped_files *files)
{
	pid_t pid = files->pid;

	if (files->err)
		return files->err;
	if (is_ending(pid))
		return error__set(files->error, -ESRCH,
				  "process %d ended while its probes were set", pid);
	if (is_go_process(probes, pid))
		return error__set(files->error, -ENOTSUP,
				  "process %d is a Go program, " GO_HAS_NO_MALLOC, pid);
	if (files->unopened)
		return error__set(
			files->error, -ENOTSUP,
			"%.200s, which process %d has mapped, cannot be opened: it %s; %s",
			files->unopened, pid, unopened__reason(files->unopened_err),
			files->unopened_err == -EACCES
				? "copy it to where allocprof may read it, and start the "
				  "copy"
				: "run allocprof as root, or with CAP_CHECKPOINT_RESTORE, or "
				  "start the process again");
	return error__set(
		files->error, -ENOTSUP,
		"process %d has no allocator that can be found by name (a static executable "
		"without symbols?); link it dynamically, or leave its symbols in",
		pid);
}

static int add_process(struct mapped_files *files)
{
	const struct probes *probes = files->probes;
	int err = proc_maps__each(files->pid, add_mapped_file, files);

	if (err == -ENOENT || err == -ESRCH)
		return error__set(files->error, -ESRCH,
				  "process %d ended while its probes were set", files->pid);
	if (err)
		return error__set(files->error, err,
				  "cannot read /proc/%d/maps: %s; it takes root, or the same user",
				  files->pid, strerror(-err));
	if (files->is_probed || !probes->options.run.program)
		return 0;
	/* Mappings and page faults are counted for every kind of program. */
	if (!files->err && !is_ending(files->pid) &&
	    definitions__count_in_all(probes->options.definitions))
		return 0;
	return explain_none(probes, files);
}

void probes__add_unmeasured(struct probes *probes, pid_t pid, const char *why)
{
	_cleanup_(close_fd) int fd = -1;
	char name[64], path[PATH_MAX], gap[512];
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	len = readlink(name, path, sizeof(path) - 1);
	fd = regular_file__open(name);
	if (len <= 0 || fd < 0)
		return;
	path[len] = '\0';
	snprintf(gap, sizeof(gap), "not probed: %.400s", why);
	probes__add_unprobed(probes, fd, path, gap);
}

int probes__add_process(struct probes *probes, pid_t pid, struct error *error)
{
	struct mapped_files files = { .probes = probes, .pid = pid, .error = error };
	int err = borrowed__check_process(pid, error);

	if (!err)
		err = add_process(&files);
	/* The process may have executed another program meanwhile. */
	if (!err)
		err = borrowed__check_process(pid, error);
	free(files.unopened);
	return err;
}
