/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Changes of a process's mappings, after which what is cached of them is invalid. */
#ifndef ALLOCPROF_CHANGES_BPF_H
#define ALLOCPROF_CHANGES_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"

/* 1: on_map() is attached */
extern __u32 on_map_is_attached;

/* Detects what on_map() does not see: code that was moved or unmapped. Without on_map() and
 * mm_lock_seq it has to detect all changes: between a dlclose() and a dlopen() that maps as many
 * pages there, the loader allocates, and that hit sees another number of executable pages. */
static __always_inline void process__refresh(struct process *process)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 exec_pages = task->mm->exec_vm;

	if (process->exec_pages != exec_pages) {
		process->exec_pages = exec_pages;
		__sync_fetch_and_add(&process->generation, 1);
	}
}

/* The kernel's count of changes of the process's mappings; 0 if it has none. */
__u32 mm__seq(void);

/* A number that changes with each change of the process's mappings, also when a heap grows; 0 if
 * on_map() is attached, or the kernel has none. */
static __always_inline __u32 mappings__seq(void)
{
	return on_map_is_attached ? 0 : mm__seq();
}

#endif
