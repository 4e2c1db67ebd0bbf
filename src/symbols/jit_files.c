// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens the perf map and the jitdumps of a process, if they are of its user and nobody else may write to them. */
#include "jit_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "file.h"
#include "mapped_file.h"
#include "path.h"
#include "proc.h"

void jit_files__init(struct jit_files *files, __u32 pid)
{
	*files = (struct jit_files){ .pid = pid, .map = -1 };
}

void jit_files__close(struct jit_files *files)
{
	close_fd(&files->map);
	for (size_t i = 0; i < files->n_dumps; i++)
		close_fd(&files->dumps[i]);
	files->n_dumps = 0;
}

size_t jit_files__n_open(const struct jit_files *files)
{
	return files->n_dumps + (files->map >= 0);
}

/* Returns whether only the process's user can have written the file. */
static bool is_trusted(int fd, uid_t uid)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == uid &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens @path below the directory @at. Returns a descriptor, -ENOENT, or -EPERM if it is a link or not trusted. */
static int open_trusted(int at, const char *path, __u64 resolve, uid_t uid)
{
	struct open_how how = {
		/* O_PATH: opening a device for reading may have effects. */
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = resolve,
	};
	_cleanup_(close_fd) int path_fd = syscall(SYS_openat2, at, path, &how, sizeof(how));

	if (path_fd < 0)
		return errno == ELOOP ? -EPERM : -ENOENT;
	return is_trusted(path_fd, uid) ? regular_file__reopen(path_fd) : -EPERM;
}

int jit_file__open(int root_fd, const char *name, uid_t uid)
{
	char path[64];

	snprintf(path, sizeof(path), "tmp/%s", name);
	/* Links in the path resolve within the process's root. */
	return open_trusted(root_fd, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS, uid);
}

/* Finds the effective user, and the pid in the process's own PID namespace. */
static void identify(struct jit_files *files)
{
	_cleanup_(close_file) FILE *status = NULL;
	bool has_uid = false, has_pid = false;
	char path[64], line[512];

	snprintf(path, sizeof(path), "/proc/%u/status", files->pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		unsigned int uid;

		if (sscanf(line, "Uid: %*u %u", &uid) == 1) {
			files->uid = uid;
			has_uid = true;
		} else if (!strncmp(line, "NSpid:", 6)) {
			char *last = strrchr(line, '\t');

			files->own_pid = last ? atoi(last + 1) : 0;
			has_pid = files->own_pid > 0;
		}
	}
	files->is_known = has_uid && has_pid;
}

static void open_map(struct jit_files *files, int root_fd)
{
	char name[64];

	if (files->map >= 0)
		return;
	snprintf(name, sizeof(name), "perf-%d.map", files->own_pid);
	files->map = jit_file__open(root_fd, name, files->uid);
}

/* How many mappings with the name of a dump are looked at, of a process that may have any number of them. */
#define MAX_TRIED 64

static bool is_same_file(int fd, int other)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Takes over @fd, which may be an error. */
static void add_dump(struct jit_files *files, int fd)
{
	bool is_new = fd >= 0 && files->n_dumps < JIT_MAX_DUMPS && is_trusted(fd, files->uid);

	for (size_t i = 0; i < files->n_dumps && is_new; i++)
		is_new = !is_same_file(fd, files->dumps[i]);
	if (is_new)
		files->dumps[files->n_dumps++] = fd;
	else
		close_fd(&fd);
}

/* A process that forked may have mapped its parent's dump, whose code it has, too: the number in the name is not compared. */
static bool is_dump_name(const char *path)
{
	static const char deleted[] = " (deleted)", suffix[] = ".dump";
	const char *name = path__name(path);
	size_t length = strlen(name);

	if (length > strlen(deleted) && !strcmp(name + length - strlen(deleted), deleted))
		length -= strlen(deleted);
	return !strncmp(name, "jit-", 4) && length > strlen(suffix) &&
	       !strncmp(name + length - strlen(suffix), suffix, strlen(suffix));
}

void jit_files__open_dump(struct jit_files *files, const struct mapped_file *file)
{
	static const struct file_identifier none;
	struct file_identities identities;

	if (files->n_dumps == JIT_MAX_DUMPS || files->n_tried >= MAX_TRIED || !file->path ||
	    !is_dump_name(file->path))
		return;
	files->n_tried++;
	if (!files->is_known)
		files->uid = geteuid();
	add_dump(files, mapped_file__open(file, &none, &identities));
}

static int open_mapped(void *context, const struct proc_mapping *mapping)
{
	struct jit_files *files = context;
	const struct mapped_file file = {
		.pid = files->pid,
		.start = mapping->start,
		.end = mapping->end,
		.identity = file_identity__of_mapping(mapping),
		.path = mapping->path,
	};

	if (mapping->is_executable)
		jit_files__open_dump(files, &file);
	return files->n_tried >= MAX_TRIED;
}

void jit_files__open(struct jit_files *files, bool dumps)
{
	_cleanup_(close_fd) int root = -1;
	char path[64];

	if (!files->is_known)
		identify(files);
	if (!files->is_known)
		return;
	snprintf(path, sizeof(path), "/proc/%u/root", files->pid);
	root = open(path, O_PATH | O_CLOEXEC);
	if (root < 0)
		return;
	open_map(files, root);
	if (dumps)
		(void)proc_maps__each(files->pid, open_mapped, files);
}

/* Takes over @fd, which may be an error. Another process that had the number may have left the dump. */
static void add_last_dump(struct jit_files *files, int fd, const struct timespec *since)
{
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) &&
	    (st.st_mtim.tv_sec < since->tv_sec ||
	     (st.st_mtim.tv_sec == since->tv_sec && st.st_mtim.tv_nsec < since->tv_nsec)))
		close_fd(&fd);
	else
		add_dump(files, fd);
}

/* Directories of dumps that are looked at. */
#define MOST_DIRECTORIES 4096

/* Looks in the directories of LLVM and of agents of the JVM, one for each process, in $HOME/.debug/jit. */
static void open_in_home(struct jit_files *files, const char *name, const struct timespec *since)
{
	const char *home = getenv("HOME");
	_cleanup_(close_directory) DIR *directory = NULL;
	struct dirent *entry;
	char path[PATH_MAX];

	if (!home || snprintf(path, sizeof(path), "%s/.debug/jit", home) >= (int)sizeof(path))
		return;
	directory = opendir(path);
	for (int i = 0; directory && i < MOST_DIRECTORIES && (entry = readdir(directory)); i++) {
		if (entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", entry->d_name, name) >= (int)sizeof(path))
			continue;
		add_last_dump(files,
			      open_trusted(dirfd(directory), path,
					   RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, files->uid),
			      since);
	}
}

void jit_files__open_last(struct jit_files *files, const struct timespec *since)
{
	_cleanup_(close_fd) int root = open("/", O_PATH | O_CLOEXEC);
	char name[64];

	if (root < 0)
		return;
	if (!files->is_known) {
		files->own_pid = files->pid;
		files->uid = geteuid();
	}
	open_map(files, root);
	if (files->n_dumps)
		return;
	snprintf(name, sizeof(name), "jit-%d.dump", files->own_pid);
	add_last_dump(files, jit_file__open(root, name, files->uid), since);
	add_last_dump(files, open_trusted(AT_FDCWD, name, RESOLVE_NO_SYMLINKS, files->uid), since);
	open_in_home(files, name, since);
}
