/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of followed processes. Keys are tgids of the initial PID namespace, which user space inside
 * another namespace cannot know.
 */
#ifndef ALLOCPROF_PROCESS_BPF_H
#define ALLOCPROF_PROCESS_BPF_H

#include "maps.bpf.h"

enum process_state {
	PROCESS_COUNTED,
	PROCESS_WAITING, /* forked by allocprof to run the command, not exec'ed yet */
};

struct process {
	__u32 id; /* image id */
	__u32 state;
	__u32 pid; /* in allocprof's PID namespace */
	/* @generation and @exec_pages identify one state of the process's executable mappings;
	 * cached mappings of another state are invalid. */
	__u32 generation;
	__u64 exec_pages;
	__u32 closed; /* 1: its measured window is closed */
	/* These tell the process from an earlier one with its id, and its images apart. */
	__u64 start_ns, execs;
	/* For mappings: brk(2) calls under way, and the current end of the heap. */
	__s32 brk_calls;
	__u64 brk;
	/* Only with live: */
	__u32 space;	/* number of the address space */
	__u32 shares;	/* 1: the address space was another process's before (CLONE_VM, vfork) */
	__u32 inherits; /* 1: forked, and has copies of its parent's blocks */
	/* For unprobed.bpf.c: */
	__u32 is_hit; /* 1: the image, or the one that it was forked from, has hit a probe */
	/* 1: another engine counts its calls. An exec ends that; a fork does not. */
	__u32 is_elsewhere;
	__u64 first_data_pages, first_brk_bytes; /* what it had mapped at its exec or fork */
	__u64 taken_bytes; /* memory taken, noted when its last thread released the mm */
	/* How long it has waited for tables since its exec (wait_abi.h): in all, and lately in vain. */
	__u64 waited_ns, vain_ns;
	/* With live, its part of the run's live bytes and blocks. Last, since all threads add to them,
	 * and every hit reads what is above. */
	__s64 live_bytes, live_blocks;
};

struct processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct process);
};

extern struct processes_map processes SEC(".maps");

/* The process that seed_process() searches for, in allocprof's PID namespace. */
extern __u32 seed_pid;

/* 1 if config.user could trace the current process now; caller.bpf.h. */
int process__is_callers(void);

/*
 * The current process, or NULL if its calls do not count here. With borrowed privileges each hit is judged: a check
 * at the exec alone might be skipped, as the kernel does not nest a program.
 */
static __always_inline struct process *process__current(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);

	if (!process || process->state != PROCESS_COUNTED || process->is_elsewhere)
		return NULL;
	if (config.borrowed && !process__is_callers())
		return NULL;
	return process;
}

/* The same, at a probe of an allocator: notes that the process has hit one. */
static __always_inline struct process *process__hit(void)
{
	struct process *process = process__current();

	if (process && !process->is_hit)
		process->is_hit = 1;
	return process;
}

#endif
