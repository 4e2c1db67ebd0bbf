/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds programs that take memory from the kernel without ever hitting a probe: their allocator is
 * unknown or has no symbols. They are checked when they end, by exit or exec, and when the
 * recording ends. A program that allocates nothing takes hardly any memory.
 */
#ifndef ALLOCPROF_UNPROBED_BPF_H
#define ALLOCPROF_UNPROBED_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"

/* What programs take that allocate nothing. A static C library grows the heap for thread-local
 * storage: glibc by less than a page. A dynamic linker maps the libraries' data: some 100 KiB for
 * the C library, 50 more for OpenSSL. */
#define START_BRK_BYTES	 4096
#define START_DATA_PAGES 64

static __always_inline __u64 mm__brk_bytes(struct mm_struct *mm)
{
	return BPF_CORE_READ(mm, brk) - BPF_CORE_READ(mm, start_brk);
}

/* Notes the memory of a new image. */
static __always_inline void unprobed__begin(struct process *process, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	process->taken_bytes = 0;
	if (!mm)
		return;
	process->first_data_pages = BPF_CORE_READ(mm, data_vm);
	process->first_brk_bytes = mm__brk_bytes(mm);
}

/* Memory that the image has taken so far, or 0 if one that allocates nothing may take as much. */
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

static __always_inline void unprobed__report(const struct process *process,
					     struct task_struct *task, __u64 taken_bytes)
{
	struct ap_unprobed_record *record;

	if (!taken_bytes)
		return;
	stat__add(AP_STAT_UNPROBED);
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	/* The process is still in the count of unprobed programs, but not named. */
	if (!record)
		return;
	record->type = AP_RECORD_UNPROBED;
	record->pid = process->pid;
	record->size_bytes = taken_bytes;
	bpf_core_read(record->comm, sizeof(record->comm), &task->comm);
	bpf_ringbuf_submit(record, 0);
}

/* The process exits. Before Linux 6.16 its mm is gone by now. */
static __always_inline void unprobed__end(const struct process *process, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (config.finds_unprobed && !process->is_hit && !process->is_elsewhere)
		unprobed__report(process, task,
				 mm ? unprobed__taken(process, mm) : process->taken_bytes);
}

/* The current process if it has not hit a probe, or NULL. */
static __always_inline struct process *unprobed__current(void)
{
	struct process *process = process__current();

	return process && !process->is_hit ? process : NULL;
}

#endif
