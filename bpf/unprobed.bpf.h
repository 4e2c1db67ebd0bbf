/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that take memory from the kernel and never hit a probe: their allocator has a name that nobody knows, or
 * none. A program is looked at when it ends, by exit or exec, and when the recording does. One that allocates nothing
 * takes next to none.
 */
#ifndef ALLOCPROF_UNPROBED_BPF_H
#define ALLOCPROF_UNPROBED_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"

/* What programs take that allocate nothing. The C library of a static one grows the heap for its thread's own
 * variables: glibc's by less than a page. A dynamic linker maps what libraries write to: some 100 KiB for the C
 * library, 50 more for OpenSSL's. */
#define START_BRK_BYTES	 4096
#define START_DATA_PAGES 64

static __always_inline __u64 mm__brk_bytes(struct mm_struct *mm)
{
	return BPF_CORE_READ(mm, brk) - BPF_CORE_READ(mm, start_brk);
}

/* Declared in process.bpf.h: an image begins. */
static __always_inline void unprobed__begin(struct process *process, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	process->taken_bytes = 0;
	if (!mm)
		return;
	process->first_data_pages = BPF_CORE_READ(mm, data_vm);
	process->first_brk_bytes = mm__brk_bytes(mm);
}

/* What the image has taken by now, or 0 where it is no more than what one that allocates nothing takes. */
static __always_inline __u64 unprobed__taken(const struct process *process, struct mm_struct *mm)
{
	__u64 pages = BPF_CORE_READ(mm, data_vm) - process->first_data_pages;
	__u64 brk_bytes = mm__brk_bytes(mm) - process->first_brk_bytes;

	if ((__s64)pages < 0)
		pages = 0;
	if ((__s64)brk_bytes <= START_BRK_BYTES && pages < START_DATA_PAGES)
		return 0;
	return pages << 12;
}

static __always_inline void unprobed__tell(const struct process *process, struct task_struct *task,
					   __u64 taken_bytes)
{
	struct ap_unprobed_record *record;

	if (!taken_bytes)
		return;
	stat__add(AP_STAT_UNPROBED);
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	/* Then its name is missing from the report, but not the process. */
	if (!record)
		return;
	record->type = AP_RECORD_UNPROBED;
	record->pid = process->pid;
	record->size_bytes = taken_bytes;
	bpf_core_read(record->comm, sizeof(record->comm), &task->comm);
	bpf_ringbuf_submit(record, 0);
}

/* Declared in process.bpf.h: the process exits. Before Linux 6.16 it has given its memory up by now. */
static __always_inline void unprobed__end(const struct process *process, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (config.finds_unprobed && !process->is_hit)
		unprobed__tell(process, task,
			       mm ? unprobed__taken(process, mm) : process->taken_bytes);
}

/* The process that gives memory up and has not hit a probe, or NULL. */
static __always_inline struct process *unprobed__current(void)
{
	struct process *process = process__current();

	return process && !process->is_hit ? process : NULL;
}

/* An image is about to execute another, and has its name and its memory still. */
SEC("tp_btf/sched_prepare_exec")
int BPF_PROG(on_prepare_exec, struct task_struct *task)
{
	struct process *process = unprobed__current();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (process && mm)
		unprobed__tell(process, task, unprobed__taken(process, mm));
	return 0;
}

/* The same before Linux 6.16, where the tracepoint of an exit comes too late: a thread exits, */
SEC("fentry/exit_mm_release")
int BPF_PROG(on_exit_memory, struct task_struct *task, struct mm_struct *mm)
{
	struct process *process = unprobed__current();

	if (process && mm)
		process->taken_bytes = unprobed__taken(process, mm);
	return 0;
}

/* or executes another image. */
SEC("fentry/exec_mm_release")
int BPF_PROG(on_exec_memory, struct task_struct *task, struct mm_struct *mm)
{
	struct process *process = unprobed__current();

	if (process && mm)
		unprobed__tell(process, task, unprobed__taken(process, mm));
	return 0;
}

/* Run by reading the iterator when the recording ends: processes that go on. */
SEC("iter/task")
int look_at_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct process *process;
	struct mm_struct *mm;
	__u64 taken_bytes;
	__u32 tgid;

	if (!task)
		return 0;
	tgid = task->tgid;
	process = bpf_map_lookup_elem(&processes, &tgid);
	mm = BPF_CORE_READ(task, mm);
	if (!process || !mm || process->state != PROCESS_COUNTED || process->is_hit)
		return 0;
	taken_bytes = unprobed__taken(process, mm);
	if (!taken_bytes)
		return 0;
	/* Once, whichever of its threads comes first, and not again when it exits. */
	process->is_hit = 1;
	unprobed__tell(process, task, taken_bytes);
	return 0;
}

#endif
