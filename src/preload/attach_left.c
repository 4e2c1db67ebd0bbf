// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds and removes what an allocprof has left in a process that was killed while it attached. */
#include "attach_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "proc.h"
#include "remote.h"

static bool is_memory(const char *path)
{
	return !strcmp(path, ATTACH_PATH(ATTACH_MEMORY_NAME)) ||
	       !strcmp(path, ATTACH_PATH(ATTACH_TABLES_NAME));
}

/* Opens the file of a link in the process's directory, if an allocprof has made it. Returns -1 if
 * it is another's, or has ended. */
static int open_ours(pid_t pid, const char *link, bool *is_library)
{
	_cleanup_(close_fd) int path_fd = -1;
	char path[96], target[96];
	struct stat status;
	ssize_t len;

	/* The process may put something else there at any time, such as a pipe that nobody writes to:
	 * what is opened is what has been looked at. */
	snprintf(path, sizeof(path), "/proc/%d/%.64s", pid, link);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	len = path_fd < 0 ? -1 : readlink(path, target, sizeof(target) - 1);
	if (len < 0 || fstat(path_fd, &status) || !S_ISREG(status.st_mode))
		return -1;
	target[len] = '\0';
	*is_library = !strcmp(target, ATTACH_PATH(ATTACH_LIBRARY_NAME));
	return *is_library || is_memory(target) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

/* Opens the library, the memory or the tables that are mapped there. */
static int open_mapped(pid_t pid, __u64 start, __u64 end, bool *is_library)
{
	char link[64];

	snprintf(link, sizeof(link), "map_files/%llx-%llx", start, end);
	return open_ours(pid, link, is_library);
}

static bool is_library(const char *path)
{
	return !strcmp(path, ATTACH_PATH(ATTACH_LIBRARY_NAME));
}

struct looking_for_library {
	const struct mapped_library *but;
	__u64 base;
	__u64 data_end; /* where the data from the file ends; 0: it has not been found yet */
};

/* The data that is not in the file is mapped last, behind that from the file. */
static int look_for_library(void *context, const struct proc_mapping *mapping)
{
	struct looking_for_library *looking = context;
	const struct mapped_library *but = looking->but;

	if (looking->data_end && mapping->start == looking->data_end && mapping->is_writable)
		return 1;
	if (!is_library(mapping->path) ||
	    (but && mapping->start - but->base < but->file->memory_bytes))
		return 0;
	if (!looking->base)
		looking->base = mapping->start;
	if (mapping->is_writable)
		looking->data_end = mapping->end;
	return 0;
}

bool attach_left__find_library(pid_t pid, const struct mapped_library *but, __u64 *base)
{
	struct looking_for_library looking = { .but = but };

	if (proc_maps__each(pid, look_for_library, &looking) != 1)
		return false;
	*base = looking.base;
	return true;
}

struct finding_left {
	struct attach_left *left;
	bool has_library; /* a library is mapped completely */
};

static int add_left_mapping(void *context, const struct proc_mapping *mapping)
{
	const struct finding_left *finding = context;
	struct attach_left *left = finding->left;

	if (is_memory(mapping->path) || (!finding->has_library && is_library(mapping->path))) {
		left->starts[left->n] = mapping->start;
		left->ends[left->n++] = mapping->end;
	}
	return left->n == ATTACH_MOST_LEFT;
}

void attach_left__find(pid_t pid, struct attach_left *out)
{
	_cleanup_(close_directory) DIR *files = NULL;
	struct finding_left finding = { .left = out };
	const struct dirent *entry;
	char path[64];
	__u64 base;

	out->n = out->n_fds = 0;
	finding.has_library = attach_left__find_library(pid, NULL, &base);
	(void)proc_maps__each(pid, add_left_mapping, &finding);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	files = opendir(path);
	while (files && out->n_fds < ATTACH_MOST_LEFT && (entry = readdir(files))) {
		_cleanup_(close_fd) int fd = -1;
		bool is_library;
		char link[64];

		snprintf(link, sizeof(link), "fd/%.32s", entry->d_name);
		fd = open_ours(pid, link, &is_library);
		if (fd >= 0)
			out->fds[out->n_fds++] = atoi(entry->d_name);
	}
}

void attach_left__remove(const struct attach_left *left, const struct mapped_library *library,
			 struct remote *remote)
{
	pid_t pid = library->pid;
	__u64 base;
	/* Another allocprof may have been about to map it. */
	bool is_used = attach_left__find_library(pid, library, &base);

	for (size_t i = 0; i < left->n; i++) {
		bool is_of_library;
		_cleanup_(close_fd) int fd =
			open_mapped(pid, left->starts[i], left->ends[i], &is_of_library);

		if (fd >= 0 && (is_of_library ? !is_used : !flock(fd, LOCK_EX | LOCK_NB)))
			remote__system_call(remote, SYS_munmap, left->starts[i],
					    left->ends[i] - left->starts[i], 0, 0, 0, 0);
	}
	for (size_t i = 0; i < left->n_fds; i++) {
		_cleanup_(close_fd) int fd = -1;
		bool is_library;
		char link[64];

		snprintf(link, sizeof(link), "fd/%d", left->fds[i]);
		fd = open_ours(pid, link, &is_library);
		if (fd >= 0 && (is_library || !flock(fd, LOCK_EX | LOCK_NB)))
			remote__system_call(remote, SYS_close, left->fds[i], 0, 0, 0, 0, 0);
	}
}

/* Returns whether somebody has a lock on the mapped file (proc_locks(5)). Only root may open what is
 * mapped in a process. */
static bool is_locked(const struct proc_mapping *mapping)
{
	_cleanup_(close_file) FILE *locks = fopen("/proc/locks", "re");
	unsigned int major, minor;
	unsigned long long inode;
	char line[256];

	while (locks && fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*d: FLOCK %*s WRITE %*d %x:%x:%llu", &major, &minor, &inode) ==
			    3 &&
		    major == mapping->major && minor == mapping->minor && inode == mapping->inode)
			return true;
	return false;
}

static int look_for_lock(void *context, const struct proc_mapping *mapping)
{
	const pid_t *pid = context;
	_cleanup_(close_fd) int fd = -1;
	bool is_of_library;

	if (strcmp(mapping->path, ATTACH_PATH(ATTACH_MEMORY_NAME)) != 0)
		return 0;
	fd = open_mapped(*pid, mapping->start, mapping->end, &is_of_library);
	return fd >= 0 ? flock(fd, LOCK_EX | LOCK_NB) != 0 : is_locked(mapping);
}

bool attach_left__is_measured(pid_t pid)
{
	return proc_maps__each(pid, look_for_lock, &pid) == 1;
}
