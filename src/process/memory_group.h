/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Limits of memory that control groups set, of cgroup v2 and v1, and what a process and the kernel keep for it. */
#ifndef ALLOCPROF_MEMORY_GROUP_H
#define ALLOCPROF_MEMORY_GROUP_H

#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

struct memory_group {
	char path[PATH_MAX]; /* as /proc/PID/cgroup has it, or that of an ancestor */
	__u64 limit_bytes;   /* less than the machine has */
	__u64 free_bytes;    /* below it, with what is used for files' pages */
};

/* Finds the group with the least memory left among those that the process @pid is in. Returns false where none has a limit that is
 * less than the machine's memory, or none can be read. */
bool memory_group__read(pid_t pid, struct memory_group *out);

/* Opens the kernel's count of processes of @pid's own group that its OOM killer has ended; the caller closes it. -1: there is none. */
int memory_group__open_kills(pid_t pid);

/* Reads that count. Returns false where it cannot be read, as when the group has been removed. */
bool memory_group__read_kills(int fd, __u64 *kills);

/* Returns the memory of this process, but for what it has mapped of files, and that of its BPF maps and programs. */
__u64 memory_group__own_bytes(void);

#endif
