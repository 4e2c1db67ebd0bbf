/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the files by which a process says what code it made: its perf map, and jitdumps. */
#ifndef ALLOCPROF_JIT_FILES_H
#define ALLOCPROF_JIT_FILES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct mapped_file;

/* How many dumps of a process are read: compilers that know nothing of each other write one each. */
#define JIT_MAX_DUMPS 4

struct jit_files {
	__u32 pid;
	pid_t own_pid; /* its number in its own PID namespace */
	uid_t uid;
	bool is_known; /* own_pid and uid are set */
	int map;       /* descriptor; -1: it is not open */
	int dumps[JIT_MAX_DUMPS];
	size_t n_dumps;
	unsigned int n_tried; /* how many mappings of dumps were looked at */
};

/* Opens the file /tmp/@name below the root directory @root_fd, if it is a regular file of @uid to which nobody else may write,
 * and no link. Returns a descriptor, -ENOENT, or -EPERM if it is not such a file. */
int jit_file__open(int root_fd, const char *name, uid_t uid);

void jit_files__init(struct jit_files *files, __u32 pid);
void jit_files__close(struct jit_files *files);
size_t jit_files__n_open(const struct jit_files *files);

/*
 * Opens what the process has by now, while it runs; dumps only if @dumps. All have to be regular files of its user to which nobody else may write.
 * The map is /tmp/perf-PID.map in its root, and no link; a dump is whatever file jit-*.dump it has mapped as code, which
 * is how it says where the dump is.
 */
void jit_files__open(struct jit_files *files, bool dumps);
/* Opens @file, which the process had mapped, if it is such a dump. */
void jit_files__open_dump(struct jit_files *files, const struct mapped_file *file);
/* Opens the map of a process that has ended, in the /tmp of this one, and its dumps that were written to after @since
 * (CLOCK_REALTIME), which may also be in this one's working directory, and below .debug/jit in the home. */
void jit_files__open_last(struct jit_files *files, const struct timespec *since);

#endif
