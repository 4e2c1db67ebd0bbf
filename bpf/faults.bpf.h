/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares what the kernel counts of a thread's page faults (getrusage(2)) with what the programs
 * have seen, and counts the rest as unseen. The kernel may skip a program, and some faults it takes itself, in system calls
 * that fill or lock memory; its counters have them all.
 */
#ifndef ALLOCPROF_FAULTS_BPF_H
#define ALLOCPROF_FAULTS_BPF_H

#include "arch.bpf.h"
#include "kernel.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "recording.bpf.h"

/* Values of the kernel's counters, by kind: those of AP_MINOR_FAULT come first. */
struct fault_counts {
	__u64 of[AP_FAULT_FUNCTIONS];
};

/* Keyed by thread: the counters up to which faults have been seen, or are known to be unseen. */
DECLARE_MAP(fault_threads, HASH, 65536, BPF_F_NO_PREALLOC, __u64, struct fault_counts);

/* Index of the first of AP_FAULT_FUNCTIONS sites; set by user space before processes are followed. */
extern __u32 faults_first_site;
/* Threads for which fault_threads had no room, so that faults may be unseen unknown to anybody. */
extern __u32 faults_unchecked;

static __always_inline struct fault_counts task__faults(struct task_struct *task)
{
	return (struct fault_counts){
		.of = { BPF_CORE_READ(task, min_flt), BPF_CORE_READ(task, maj_flt) },
	};
}

/* Counts @n faults of @kind that no program has seen. A negative @n takes back what was counted
 * too early: another task may look at a counter between the fault and its event. */
static __noinline int faults__miss(const struct process *process, __u32 kind, __s64 n)
{
	__u32 index = faults_first_site + kind;
	const struct ap_site *site = bpf_map_lookup_elem(&sites, &index);
	struct ap_site_counts *sum;

	if (!n || !site || !site->recorded || !gate__is_open(process))
		return 0;
	if (config.within) {
		stat__add_many(AP_STAT_UNDECIDED, n);
		return 0;
	}
	if (config.stacks) {
		stat__add_many(AP_STAT_EVENTS, n);
		stat__add_many(AP_STAT_LOST + AP_LOST_UNSEEN, n);
		return 0;
	}
	/* Without stacks nothing more is known of a fault that a program has seen. */
	sum = bpf_map_lookup_elem(&site_counts, &index);
	if (!sum)
		return 0;
	__sync_fetch_and_add(&sum->calls, n);
	__sync_fetch_and_add(&sum->size_bytes, n * PAGE_SIZE);
	return 0;
}

/* Begins with thread @id, of which the kernel has counted @taken faults so far. */
static __always_inline void fault_thread__begin(__u64 id, const struct fault_counts *taken)
{
	if (bpf_map_update_elem(&fault_threads, &id, taken, BPF_ANY))
		__sync_fetch_and_add(&faults_unchecked, 1);
}

/* Notes that what @now has more than @known was not seen, but for @seen faults of @kind. */
static __always_inline void fault_thread__know(const struct process *process,
					       struct fault_counts *known,
					       const struct fault_counts *now, __u32 kind,
					       __u32 seen)
{
	for (__u32 i = 0; i < AP_FAULT_FUNCTIONS; i++) {
		/* Another CPU may look at the thread at the same time: all differences together
		 * are right. */
		__s64 n = now->of[i] - __sync_lock_test_and_set(&known->of[i], now->of[i]) -
			  (i == kind ? seen : 0);

		if (n)
			faults__miss(process, i, n);
	}
}

/* Called when thread @id, which is @task, ends or executes a program. @process: NULL if it is not followed. */
static __always_inline void fault_thread__end(__u64 id, struct task_struct *task,
					      const struct process *process)
{
	struct fault_counts *known, now;

	if (!config.faults)
		return;
	known = bpf_map_lookup_elem(&fault_threads, &id);
	if (!known)
		return;
	now = task__faults(task);
	if (process && process->state == PROCESS_COUNTED)
		fault_thread__know(process, known, &now, 0, 0);
	bpf_map_delete_elem(&fault_threads, &id);
}

#endif
