/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which file an address belongs to, asked of the kernel itself while the process stands at it.
 * User space would be too late for a process that lives 5 ms.
 */
#ifndef ALLOCPROF_MODULE_BPF_H
#define ALLOCPROF_MODULE_BPF_H

#include "maps.bpf.h"
#include "process.bpf.h"
#include "unwind_abi.h"
#include "waits.bpf.h"

struct file_key {
	__u64 inode;
	__u32 device;
	__u32 version; /* inode numbers are used again, and files written over */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNWIND_MAX_MODULES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct file_key);
	__type(value, __u32);
} modules SEC(".maps");

__u32 last_module_id = AP_MODULE_VDSO;

/* An executable mapping. */
struct vma {
	__u64 start, end;
	__u64 bias;   /* file offset minus address */
	__u32 module; /* 0: anonymous memory */
	__u32 seq;    /* mappings__seq() when it was seen */
};

/*
 * Answers of bpf_find_vma(), which takes about 150 ns and a lock that is held while any thread of the
 * process maps memory, and all of a time slice long where that one was preempted. So each is kept twice:
 * by the page that was asked for, and among the process's mappings, which are looked through where the
 * lock is held and the page is a new one.
 */
struct vma_key {
	__u64 page; /* or VMA_LISTED and the place in the list */
	__u32 process;
	__u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct vma_key);
	__type(value, struct vma);
} vmas SEC(".maps");

/* No page has this number. A mapping's start decides on its place, or on those behind it. */
#define VMA_LISTED	(1ULL << 63)
#define VMA_LIST_LENGTH 128
#define VMA_LIST_TRIES	8

/* Of bpf_find_vma(). One object in place of several: the stack of all functions that are active at
 * once has 512 bytes, of which older kernels count each function's share up to a multiple of 32. */
struct vma_answer {
	struct vma vma;
	struct file_key file;
	__u8 executable;
	__u8 is_vdso;
	__u16 pad;
	__u32 generation; /* of the inode number */
};

/* Of the file's contents: a number that is another where the file was written to in between. */
static __always_inline __u32 contents_version(struct inode *inode)
{
	struct inode___6_7 *inode_6_7 = (void *)inode;
	struct inode___6_11 *inode_6_11 = (void *)inode;
	__u64 seconds, nanoseconds;

	if (bpf_core_field_exists(inode_6_11->i_mtime_sec)) {
		seconds = inode_6_11->i_mtime_sec;
		nanoseconds = inode_6_11->i_mtime_nsec;
	} else if (bpf_core_field_exists(inode_6_7->__i_mtime)) {
		seconds = inode_6_7->__i_mtime.tv_sec;
		nanoseconds = inode_6_7->__i_mtime.tv_nsec;
	} else {
		seconds = inode->i_mtime.tv_sec;
		nanoseconds = inode->i_mtime.tv_nsec;
	}
	/* The same for times a multiple of 2^32 ns apart, and no others. */
	return seconds * 1000000000 + nanoseconds;
}

static long read_vma(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct vma_answer *answer = context;
	struct file *file = vma->vm_file;

	answer->executable = !!(vma->vm_flags & VM_EXEC);
	answer->vma.start = vma->vm_start;
	answer->vma.end = vma->vm_end;
	answer->vma.bias = -vma->vm_start;
	if (!file) {
		answer->is_vdso = vma->vm_start == (__u64)task->mm->context.vdso;
		return 0;
	}
	answer->vma.bias += vma->vm_pgoff << PAGE_SHIFT;
	answer->file.inode = file->f_inode->i_ino;
	answer->file.device = file->f_inode->i_sb->s_dev;
	answer->generation = file->f_inode->i_generation;
	answer->file.version = contents_version(file->f_inode) ^ answer->generation * 0x9e3779b1;
	return 0;
}

/* Gives the file an id and sends it to user space. 0 where the ring buffer has no room: then no id is spent, and the
 * next hit tries again. */
static __always_inline __u32 module__report(const struct vma_answer *answer, __u32 pid)
{
	struct ap_module_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	__u32 id;

	if (!record)
		return 0;
	id = __sync_fetch_and_add(&last_module_id, 1) + 1;
	record->type = AP_RECORD_MODULE;
	record->id = id;
	record->pid = pid;
	record->device = answer->file.device;
	record->inode = answer->file.inode;
	record->start = answer->vma.start;
	record->end = answer->vma.end;
	record->offset = answer->vma.bias + answer->vma.start;
	record->generation = answer->generation;
	record->version = answer->file.version;
	record->time_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
	return id;
}

/* Id of the file that @answer found, a new one with a record to user space on first sight; 0 where
 * user space could not be told. Two CPUs may give a file two ids: user space merges them. */
static __always_inline __u32 module__id(const struct vma_answer *answer, __u32 pid)
{
	__u32 *known, id;

	if (answer->is_vdso)
		return AP_MODULE_VDSO;
	known = bpf_map_lookup_elem(&modules, &answer->file);
	if (known)
		return *known;
	id = module__report(answer, pid);
	if (!id)
		return 0;
	bpf_map_update_elem(&modules, &answer->file, &id, BPF_NOEXIST);
	return id;
}

/* 1: on_map() is there. */
__u32 on_map_is_attached;

/* At the end of each mmap and mprotect, before the process can run what it has mapped: other code may be
 * where some was, with as many pages. */
SEC("fentry/perf_event_mmap")
int BPF_PROG(on_map, struct vm_area_struct *vma)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *process;

	if (!(vma->vm_flags & VM_EXEC))
		return 0;
	process = bpf_map_lookup_elem(&processes, &tgid);
	if (process)
		__sync_fetch_and_add(&process->generation, 1);
	return 0;
}

/* What on_map() does not see: code that was moved or unmapped. Where it is not there and the kernel counts
 * no changes either, all that there is: between a dlclose and the dlopen that fills its place with as many
 * pages lies an allocation, a hit that sees another number of executable pages. */
static __always_inline void process__refresh(struct process *process)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 exec_pages = task->mm->exec_vm;

	if (process->exec_pages != exec_pages) {
		process->exec_pages = exec_pages;
		__sync_fetch_and_add(&process->generation, 1);
	}
}

/* Another number after each change of the process's mappings, growing heaps among them; 0 where that is not
 * needed, or the kernel has none. */
static __always_inline __u32 mappings__seq(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct___6_4 *mm_6_4 = (void *)task->mm;
	struct mm_struct___6_13 *mm_6_13 = (void *)task->mm;

	if (on_map_is_attached)
		return 0;
	if (bpf_core_field_exists(mm_6_13->mm_lock_seq.sequence))
		return mm_6_13->mm_lock_seq.sequence;
	if (bpf_core_field_exists(mm_6_4->mm_lock_seq))
		return mm_6_4->mm_lock_seq;
	return 0;
}

enum vma_result {
	VMA_FOUND,
	VMA_NONE, /* nothing executable is mapped there */
	VMA_BUSY, /* the kernel or the ring buffer was too busy: ask again at the next hit */
};

/* The mapping around @address as it was found at another page of it. */
__noinline int vma__find_listed(struct vma_answer *answer, __u64 address, __u32 process,
				__u32 generation)
{
	struct vma_key key;
	struct vma *listed;

	if (!answer)
		return VMA_BUSY;
	key.process = process;
	key.generation = generation;
	for (__u64 i = 0; i < VMA_LIST_LENGTH; i++) {
		key.page = VMA_LISTED | i;
		listed = bpf_map_lookup_elem(&vmas, &key);
		if (listed && address >= listed->start && address < listed->end) {
			answer->vma = *listed;
			return VMA_FOUND;
		}
	}
	return VMA_BUSY;
}

/* Where in the list the mapping that begins at @start is to be; the last of its places if all are taken. */
__noinline __u64 vma__place(__u64 start, __u32 process, __u32 generation)
{
	__u64 hash = (start >> PAGE_SHIFT) * 0x9e3779b97f4a7c15ULL >> 32;
	struct vma_key key;
	struct vma *listed;

	key.process = process;
	key.generation = generation;
	for (int i = 0; i < VMA_LIST_TRIES; i++) {
		key.page = VMA_LISTED | ((hash + i) & (VMA_LIST_LENGTH - 1));
		listed = bpf_map_lookup_elem(&vmas, &key);
		if (!listed || listed->start == start)
			break;
	}
	return key.page;
}

/* Remembers what the kernel answered for the page of @key. */
static __always_inline int vma__keep(struct vma_answer *answer, struct vma_key *key, __u32 pid,
				     __u32 seq)
{
	if (!answer->executable)
		return VMA_NONE;
	if (answer->file.inode || answer->is_vdso) {
		answer->vma.module = module__id(answer, pid);
		if (!answer->vma.module)
			return VMA_BUSY;
	}
	answer->vma.seq = seq;
	bpf_map_update_elem(&vmas, key, &answer->vma, BPF_ANY);
	key->page = vma__place(answer->vma.start, key->process, key->generation);
	bpf_map_update_elem(&vmas, key, &answer->vma, BPF_ANY);
	return VMA_FOUND;
}

/* Finds the mapping around @address; @answer, which is zeroed, gets it as its vma. */
static __always_inline int vma__find(struct vma_answer *answer, __u32 process, __u32 pid,
				     __u64 address, __u32 generation, __u32 seq)
{
	struct vma_key key;
	struct vma *known;
	long err;

	key.page = address >> PAGE_SHIFT;
	key.process = process;
	key.generation = generation;
	known = bpf_map_lookup_elem(&vmas, &key);
	if (known && known->seq == seq) {
		answer->vma = *known;
		return VMA_FOUND;
	}
	err = bpf_find_vma(bpf_get_current_task_btf(), address, read_vma, answer, 0);
	if (err == -2 /* ENOENT */)
		return VMA_NONE;
	if (err && known) {
		answer->vma = *known;
		return VMA_FOUND;
	}
	if (err) {
		if (vma__find_listed(answer, address, process, generation) != VMA_FOUND)
			return VMA_BUSY;
		bpf_map_update_elem(&vmas, &key, &answer->vma, BPF_ANY);
		return VMA_FOUND;
	}
	return vma__keep(answer, &key, pid, seq);
}

struct vma_wait {
	struct vma_answer answer;
	__u64 address;
	__u64 until_ns;
	long err;
};

static long vma__look(__u32 index, struct vma_wait *wait)
{
	wait->err =
		bpf_find_vma(bpf_get_current_task_btf(), wait->address, read_vma, &wait->answer, 0);
	return wait->err != -16 /* EBUSY */ || bpf_ktime_get_ns() >= wait->until_ns;
}

/* Waits until the kernel answers where another thread of the process maps memory all the time; 1 where
 * vma__find() has the answer from now on. */
__noinline int vma__await(__u64 address, __u32 process, __u32 pid, __u32 generation, __u32 seq)
{
	struct vma_wait wait = {};
	struct vma_key key;

	wait.address = address;
	if (!wait__for(vma__look, &wait, &wait.until_ns, AP_LONG_WAIT_NS))
		return 0;
	if (wait.err)
		return wait.err == -2 /* ENOENT */;
	key.page = address >> PAGE_SHIFT;
	key.process = process;
	key.generation = generation;
	return vma__keep(&wait.answer, &key, pid, seq) != VMA_BUSY;
}

/* In: an address in allocprof's own memory. Out: the file that is mapped there, as records tell of it. */
struct identify_file_args {
	__u64 address;
	__u64 inode;
	__u32 device;
	__u32 generation;
};

SEC("syscall")
int identify_file(struct identify_file_args *args)
{
	struct vma_answer answer = {};

	if (bpf_find_vma(bpf_get_current_task_btf(), args->address, read_vma, &answer, 0))
		return 1;
	args->inode = answer.file.inode;
	args->device = answer.file.device;
	args->generation = answer.generation;
	return !args->inode;
}

/* In: an address in allocprof's own memory, where user space has mapped a file that the target will
 * run. The file gets its id and user space its record before the first hit, so that the table is
 * there in time. */
struct find_module_args {
	__u64 address;
};

SEC("syscall")
int find_module(struct find_module_args *args)
{
	struct vma_answer answer = {};

	if (bpf_find_vma(bpf_get_current_task_btf(), args->address, read_vma, &answer, 0))
		return 1;
	if (!answer.file.inode && !answer.is_vdso)
		return 1;
	return !module__id(&answer, seed_pid);
}

#endif
