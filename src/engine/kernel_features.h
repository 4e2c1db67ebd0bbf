/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Features of this kernel, and what this user may do. */
#ifndef ALLOCPROF_KERNEL_FEATURES_H
#define ALLOCPROF_KERNEL_FEATURES_H

#include <stdbool.h>

struct kernel {
	char release[65];		/* uname -r */
	char missing_capabilities[128]; /* "CAP_BPF, CAP_PERFMON"; "" if none is missing */
	/* A seccomp filter kills whoever calls bpf(2), perf_event_open(2) or fsopen(2). */
	bool is_filtered;
	bool bpf;	       /* bpf(2) works */
	bool btf;	       /* /sys/kernel/btf/vmlinux exists, which CO-RE needs */
	bool uprobe_pmu;       /* probes by perf_event_open(2), Linux 4.17 */
	bool uprobe_multi;     /* one link for many probes, Linux 6.6 */
	bool uprobe_session;   /* entry and return probe in one program, Linux 6.13 */
	bool preempts;	       /* tracepoints do not disable preemption, Linux 7.0 */
	bool perf_tracepoints; /* tracefs can be read, which has perf's numbers of tracepoints */
	bool sleepable;	       /* programs at probes can read absent pages in, Linux 6.9 */
	bool mapping_hook;     /* fentry at perf_event_mmap(), which runs when code is mapped */
	/* Tracepoints run before exit and exec release the mm, Linux 6.16. */
	bool exit_tracepoints;
	bool exit_hook; /* if not: fentry at exit_mm_release() and exec_mm_release() */
	/* The pid filter of uprobe_multi matches all threads of the process, Linux 6.10 and stable
	 * kernels. */
	bool uprobe_multi_pid;
};

#endif
