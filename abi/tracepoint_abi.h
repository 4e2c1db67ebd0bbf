/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs at the tracepoints where processes begin and end. */
#ifndef ALLOCPROF_TRACEPOINT_ABI_H
#define ALLOCPROF_TRACEPOINT_ABI_H

enum ap_tracepoint {
	AP_TRACEPOINT_FORK,	    /* sched_process_fork */
	AP_TRACEPOINT_EXEC,	    /* sched_process_exec */
	AP_TRACEPOINT_EXIT,	    /* sched_process_exit */
	AP_TRACEPOINT_PREPARE_EXEC, /* sched_prepare_exec */
	AP_TRACEPOINTS
};

/*
 * Programs at one tracepoint. Linux 7.0 preempts programs at tracepoints, and while one is
 * preempted, the kernel skips it for other tasks on that CPU. So with config.preempts there are
 * three at each tracepoint, and the first that runs does the work.
 */
enum ap_tracepoint_program {
	/* perf calls this one with preemption disabled; the kernel skips it on a CPU on which a
	 * system call on a map is preempted. */
	AP_BY_PERF,
	AP_FIRST,
	AP_AGAIN,
	AP_TRACEPOINT_PROGRAMS
};

#endif
