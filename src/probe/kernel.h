/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What this kernel and this user can do; found out by trying, not from version numbers. */
#ifndef ALLOCPROF_KERNEL_H
#define ALLOCPROF_KERNEL_H

#include <stdbool.h>

struct error;

struct kernel {
	char release[65];		/* uname -r */
	char missing_capabilities[128]; /* "CAP_BPF, CAP_PERFMON", "" where none is missing */
	bool bpf;			/* bpf(2) works for us */
	bool btf;			/* /sys/kernel/btf/vmlinux, which CO-RE needs */
	bool uprobe_pmu;		/* probes by perf_event_open(2), 4.17 */
	bool uprobe_multi;		/* one link for all probes, 6.6 */
	bool uprobe_session;		/* entry and return in one program, 6.13 */
	bool mapping_hook;		/* a program can be run where code is mapped: fentry */
	/* Tracepoints show a process with its memory before it exits and before it executes another program, 6.16; */
	bool exit_tracepoints;
	bool exit_hook;	       /* else fentry programs can be run there */
	bool uprobe_multi_pid; /* its pid filter takes all threads of the process, 6.10 and stable */
};

/* Never fails: what cannot be found out is false. */
void kernel__probe(struct kernel *kernel);

/*
 * 0 where recording can work, else -EPERM (capabilities), -ENOSYS (no BPF) or -EOPNOTSUPP (no BTF,
 * no uprobes) and the sentence for the user.
 */
int kernel__require(const struct kernel *kernel, struct error *error);

#endif
