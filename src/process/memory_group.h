/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads limits of memory that control groups (v2 and v1) set, how much memory a process and the
 * kernel use for it, and whether a group is frozen. */
#ifndef ALLOCPROF_MEMORY_GROUP_H
#define ALLOCPROF_MEMORY_GROUP_H

#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

struct memory_group {
	/* Path of the group as in /proc/PID/cgroup, or of one of its ancestors. */
	char path[PATH_MAX];
	__u64 limit_bytes; /* limit, which is less than the machine's memory */
	__u64 free_bytes;  /* memory that is free below the limit, including pages of files */
};

/* Finds the group with the least free memory among those that contain the process @pid. Returns
 * false if none has a limit below the machine's memory, or none can be read. */
bool memory_group__read(pid_t pid, struct memory_group *out);

/* Opens the kernel's count of processes in @pid's own group that its OOM killer has killed. The
 * caller closes the descriptor. -1: there is none. */
int memory_group__open_kills(pid_t pid);

/* Reads that count. Returns false if it cannot be read, as when the group has been removed. */
bool memory_group__read_kills(int fd, __u64 *kills);

/* Returns the directory of a group of version 2, named as in /proc/PID/cgroup, which the caller
 * frees; NULL if that hierarchy is not mounted. */
char *memory_group__directory(const char *group);

/* Returns whether the process's control group is frozen (v2), or is being frozen, so that no thread
 * runs until it is thawed. */
bool memory_group__is_frozen(pid_t pid);

/* Returns the memory of this process without mapped files, plus the memory of its BPF maps and
 * programs, in bytes. */
__u64 memory_group__own_bytes(void);

#endif
