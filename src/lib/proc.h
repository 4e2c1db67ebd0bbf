/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads /proc/PID/maps and /proc/PID/stat. */
#ifndef ALLOCPROF_PROC_H
#define ALLOCPROF_PROC_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

/* A line of /proc/PID/maps. */
struct proc_mapping {
	__u64 start, end, offset; /* addresses; offset in the file */
	bool is_executable, is_shared;
	unsigned int major, minor; /* of the device */
	__u64 inode;		   /* 0: anonymous memory */
	const char *path;	   /* as the kernel shows it, "" for anonymous memory */
};

/* A nonzero result ends the iteration and is returned. */
typedef int proc_maps_visit(void *context, const struct proc_mapping *mapping);

/*
 * Calls @visit with each mapping of the process @pid, 0 for this one, in the order of their addresses. 0, what @visit
 * returned, or a negative errno: -ENOENT or -ESRCH where there is no such process.
 */
int proc_maps__each(pid_t pid, proc_maps_visit *visit, void *context);

/* Some fields of /proc/PID/stat (proc_pid_stat(5)). */
struct proc_stat {
	char state;	       /* 'Z': its first thread has ended */
	pid_t parent;	       /* 0: it is not in this PID namespace */
	unsigned int terminal; /* as the kernel's new_encode_dev() has it; 0: none */
	unsigned long flags;   /* PF_*, include/linux/sched.h */
};

/* 0, or a negative errno: -ESRCH or -ENOENT if there is no such process. */
int proc_stat__read(pid_t pid, struct proc_stat *out);

/* The same of one thread of the process. */
int proc_stat__read_thread(pid_t pid, pid_t tid, struct proc_stat *out);

#endif
