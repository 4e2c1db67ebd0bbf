/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /proc/PID/stat (proc_pid_stat(5)). */
#ifndef ALLOCPROF_PROC_STAT_H
#define ALLOCPROF_PROC_STAT_H

#include <sys/types.h>

struct proc_stat {
	char state;	       /* 'Z': its first thread has ended */
	pid_t parent;	       /* 0: it is not in this PID namespace */
	unsigned int terminal; /* as the kernel's new_encode_dev() has it; 0: none */
	unsigned long flags;   /* PF_*, include/linux/sched.h */
};

/* 0, or a negative errno: -ESRCH or -ENOENT if there is no such process. */
int proc_stat__read(pid_t pid, struct proc_stat *out);

#endif
