/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The lines of /proc/PID/maps. */
#ifndef ALLOCPROF_PROC_MAPS_H
#define ALLOCPROF_PROC_MAPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

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

#endif
