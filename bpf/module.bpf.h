/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which file an address belongs to, asked of the kernel itself while the process stands at it.
 * User space would be too late for a process that lives 5 ms.
 */
#ifndef ALLOCPROF_MODULE_BPF_H
#define ALLOCPROF_MODULE_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"

struct file_key {
	__u64 inode;
	__u32 device;
	__u32 generation; /* inode numbers are used again */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct file_key);
	__type(value, __u32);
} modules SEC(".maps");

__u32 last_module_id;

/* Answers of bpf_find_vma(), which costs about 150 ns and a lock. */
struct page_key {
	__u64 page;
	__u32 process;
	__u32 generation;
};

struct page {
	__u64 bias; /* file offset minus address */
	__u32 module;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct page_key);
	__type(value, struct page);
} pages SEC(".maps");

struct vma_answer {
	struct file_key file;
	__u64 start, end, offset;
	__u32 executable;
	__u32 pad;
};

static long read_vma(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct vma_answer *answer = context;
	struct file *file = vma->vm_file;

	answer->executable = !!(vma->vm_flags & VM_EXEC);
	if (!file)
		return 0;
	answer->start = vma->vm_start;
	answer->end = vma->vm_end;
	answer->offset = vma->vm_pgoff << PAGE_SHIFT;
	answer->file.inode = file->f_inode->i_ino;
	answer->file.device = file->f_inode->i_sb->s_dev;
	answer->file.generation = file->f_inode->i_generation;
	return 0;
}

/* Id of the file that @answer found, a new one with a record to user space on first sight; 0 where
 * user space could not be told. */
static __always_inline __u32 module__id(const struct vma_answer *answer,
					const struct process *process)
{
	struct ap_module_record *record;
	struct file_key file = answer->file;
	__u32 *known = bpf_map_lookup_elem(&modules, &file);
	__u32 id;

	if (known)
		return *known;
	id = __sync_fetch_and_add(&last_module_id, 1) + 1;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		stat__add(AP_STAT_RECORDS_LOST);
		return 0;
	}
	/* Two CPUs may get here for one file: user space sees two ids for it and merges them. */
	bpf_map_update_elem(&modules, &file, &id, BPF_NOEXIST);
	record->type = AP_RECORD_MODULE;
	record->id = id;
	record->pid = process->pid;
	record->device = file.device;
	record->inode = file.inode;
	record->start = answer->start;
	record->end = answer->end;
	record->offset = answer->offset;
	record->generation = file.generation;
	record->pad = 0;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return id;
}

/* dlopen, dlclose and mmap of code change the number of executable pages, and between a dlclose and
 * the dlopen that fills its place with as many pages lies an allocation: a hit that sees it. */
static __always_inline void process__refresh(struct process *process)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 exec_pages = task->mm->exec_vm;

	if (process->exec_pages != exec_pages) {
		process->exec_pages = exec_pages;
		__sync_fetch_and_add(&process->generation, 1);
	}
}

/*
 * Resolves @address into @frame. True where it lies in an executable mapping; the frame's module is
 * 0, and its offset the address itself, where that is no file or the kernel was too busy to tell.
 */
static __always_inline bool frame__resolve(struct ap_frame *frame, struct process *process,
					   __u64 address)
{
	struct page_key key = {
		.page = address >> PAGE_SHIFT,
		.process = process->id,
		.generation = process->generation,
	};
	struct page *known = bpf_map_lookup_elem(&pages, &key);
	struct vma_answer answer = {};
	struct page page = {};
	long err;

	frame->flags = 0;
	if (known) {
		frame->module = known->module;
		frame->offset = address + known->bias;
		return true;
	}
	frame->module = 0;
	frame->offset = address;
	err = bpf_find_vma(bpf_get_current_task_btf(), address, read_vma, &answer, 0);
	if (err == -2 /* ENOENT */)
		return false;
	if (err) /* the mmap lock is held: user space resolves it from its own list */
		return true;
	if (!answer.executable)
		return false;
	if (!answer.end)
		return true;
	page.module = module__id(&answer, process);
	page.bias = answer.offset - answer.start;
	if (!page.module)
		return true;
	bpf_map_update_elem(&pages, &key, &page, BPF_ANY);
	frame->module = page.module;
	frame->offset = address + page.bias;
	return true;
}

#endif
