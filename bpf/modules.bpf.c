// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Finds the file that is mapped at an address, by the kernel's VMAs while the process runs: user
 * space would be too late for a process that lives 5 ms.
 */
#include <asm-generic/errno-base.h>

#include "arch.bpf.h"
#include "fault.bpf.h"
#include "gate.bpf.h"
#include "kernel.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "python.bpf.h"
#include "scratch.bpf.h"
#include "waits.bpf.h"
#include "walk.bpf.h"

struct file_key {
	__u64 inode;
	__u32 device;
	/* Hash of mtime and generation, since inode numbers are reused and files rewritten. */
	__u32 version;
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
	__u32 seq;    /* mappings__seq() at the look-up */
};

/*
 * Cache of bpf_find_vma(), which takes about 150 ns and fails while another thread of the process
 * holds mmap_lock to map memory, for a whole time slice if that thread was preempted. Each answer
 * is stored twice: by page, and in a list of the process's mappings, which is searched when
 * bpf_find_vma() fails and the page is not cached.
 */
struct vma_key {
	__u64 page; /* or VMA_LISTED | index in the list */
	__u32 process;
	__u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct vma_key);
	__type(value, struct vma);
} vmas SEC(".maps");

/* The flag VMA_LISTED distinguishes a key of the list from a page number. A hash of the mapping's
 * start selects the first of VMA_LIST_TRIES slots that are tried. */
#define VMA_LISTED	(1ULL << 63)
#define VMA_LIST_LENGTH 128
#define VMA_LIST_TRIES	8

/* Result of bpf_find_vma(). One object, since the stack frames of all active functions together
 * have 512 bytes, and older kernels round each up to a multiple of 32. */
struct vma_answer {
	struct vma vma;
	struct file_key file;
	__u8 executable;
	__u8 is_vdso;
	__u8 may_be_old; /* 1: an answer from before the last change of the mappings will do */
	__u8 pad;
	__u32 generation; /* of the inode number */
};

/* A number that changes with the file's modification time. */
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
	/* Two times have the same number only if they are a multiple of 2^32 ns apart. */
	return seconds * 1000000000 + nanoseconds;
}

/* Returns whether the current process's vDSO is at @address. Global, so that the verifier checks
 * it once: Linux 6.18's searches all type information for each pointer that is read, each time
 * that it comes to the instruction. */
__noinline int mm__has_vdso_at(__u64 address)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return address == (__u64)task->mm->context.vdso;
}

/* A callback of bpf_find_vma() for mappings of the current process. */
static long read_vma(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct vma_answer *answer = context;
	struct file *file = vma->vm_file;
	struct inode *inode;

	answer->executable = !!(vma->vm_flags & VM_EXEC);
	answer->vma.start = vma->vm_start;
	answer->vma.end = vma->vm_end;
	answer->vma.bias = -vma->vm_start;
	if (!file) {
		answer->is_vdso = mm__has_vdso_at(vma->vm_start);
		return 0;
	}
	answer->vma.bias += vma->vm_pgoff << PAGE_SHIFT;
	/* The pointer is read once: mm__has_vdso_at() says what that costs the verifier. */
	inode = file->f_inode;
	answer->file.inode = inode->i_ino;
	answer->file.device = inode->i_sb->s_dev;
	answer->generation = inode->i_generation;
	answer->file.version = contents_version(inode) ^ answer->generation * 0x9e3779b1;
	return 0;
}

/* Stores the mapping around @address of the current process in @answer. Returns 0 or a negative errno: -EBUSY while somebody else
 * has its mmap_lock, -ENOENT if nothing is mapped there. Global like mm__has_vdso_at(). */
__noinline long vma__ask(struct vma_answer *answer, __u64 address)
{
	struct vma_answer found = {}; /* the helper needs its argument on the stack */
	long err;

	if (!answer)
		return -22; /* EINVAL */
	err = bpf_find_vma(bpf_get_current_task_btf(), address, read_vma, &found, 0);
	if (!err)
		*answer = found;
	return err;
}

/* Assigns an id to the file and sends its record. Returns 0 if the ring buffer is full; then no id
 * is used, and the next hit tries again. */
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

/* Returns the id of the file in @answer; assigns one on first sight and sends a record. Returns 0
 * if the record could not be sent. Two CPUs may give a file two ids, which user space merges. */
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

/* State of a search in the list. It has few fields, since the stack frames of all active functions
 * may take only 512 bytes in Linux 6.1. */
struct list_search {
	struct vma_answer *answer; /* its vma.seq is the wanted one */
	__u64 address;
	struct vma_key key; /* page 0: found */
};

/*
 * Returns whether a walk may use a cached answer from before the last change of the mappings while
 * bpf_find_vma() fails. In a process with several threads it may: otherwise the walk would wait
 * each time that another thread grows a heap. A process with a single thread may have replaced
 * code itself, so its walk waits until whoever holds its mmap_lock (for example another process
 * that sets probes) releases it. A walk that must not wait, in the middle of a page fault, relies
 * on the number of executable pages: with interrupts disabled the kernel answers
 * once, and fails until they are enabled.
 */
static __always_inline bool vma__may_be_old(const struct walk *walk)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return walk->locked || BPF_CORE_READ(task, signal, live.counter) > 1;
}

static long vma__look_at_listed(__u32 index, struct list_search *search)
{
	struct vma *listed;

	search->key.page = VMA_LISTED | index;
	listed = bpf_map_lookup_elem(&vmas, &search->key);
	if (!listed || search->address < listed->start || search->address >= listed->end)
		return 0;
	if (listed->seq != search->answer->vma.seq && !search->answer->may_be_old)
		return 0;
	search->answer->vma = *listed;
	search->key.page = 0;
	return 1;
}

/* Searches the list for the mapping around @address. Returns VMA_FOUND or VMA_BUSY. */
__noinline int vma__find_listed(struct vma_answer *answer, __u64 address, __u32 process,
				__u32 generation, __u32 seq)
{
	struct list_search search = { .answer = answer, .address = address };

	if (!answer)
		return VMA_BUSY;
	answer->vma.seq = seq;
	search.key.page = VMA_LISTED;
	search.key.process = process;
	search.key.generation = generation;
	bpf_loop(VMA_LIST_LENGTH, vma__look_at_listed, &search, 0);
	return search.key.page ? VMA_BUSY : VMA_FOUND;
}

/* Returns the key of the slot of the list for the mapping that begins at @start; the last slot
 * tried if all are taken. */
__noinline __u64 vma__slot(__u64 start, __u32 process, __u32 generation)
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

/* Caches the answer for the page of @key and in the list. */
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
	key->page = vma__slot(answer->vma.start, key->process, key->generation);
	bpf_map_update_elem(&vmas, key, &answer->vma, BPF_ANY);
	return VMA_FOUND;
}

/* Finds the mapping around @address and stores it in @answer->vma; @answer is zeroed. */
static __always_inline int vma__find(struct vma_answer *answer, const struct scratch *scratch,
				     __u32 pid, __u64 address)
{
	const __u32 process = scratch->process, generation = scratch->generation;
	const __u32 seq = scratch->seq;
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
	/* The helper is called here, since another function, vma__ask(), would exceed the 512
	 * bytes of stack as Linux 6.1 counts them. */
	err = bpf_find_vma(bpf_get_current_task_btf(), address, read_vma, answer, 0);
	if (err == -ENOENT)
		return VMA_NONE;
	answer->may_be_old = err && vma__may_be_old(&scratch->walk);
	if (err && known && answer->may_be_old) {
		answer->vma = *known;
		return VMA_FOUND;
	}
	if (err) {
		if (vma__find_listed(answer, address, process, generation, seq) != VMA_FOUND)
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
	wait->err = vma__ask(&wait->answer, wait->address);
	return wait->err != -EBUSY || bpf_ktime_get_ns() >= wait->until_ns;
}

/* Waits while bpf_find_vma() fails since another thread of the process maps memory. Returns 1 if
 * vma__find() will succeed now. */
__noinline int vma__await(__u64 address, __u32 process, __u32 pid, __u32 generation, __u32 seq)
{
	struct vma_wait wait = {};
	struct vma_key key;

	wait.address = address;
	if (!wait__for(vma__look, &wait, &wait.until_ns, AP_LONG_WAIT_NS))
		return 0;
	if (wait.err)
		return wait.err == -ENOENT;
	key.page = address >> PAGE_SHIFT;
	key.process = process;
	key.generation = generation;
	return vma__keep(&wait.answer, &key, pid, seq) != VMA_BUSY;
}

struct fault_look {
	__u64 address, until_ns;
	int err;
	int is_bounded;
};

static long read_faulting_vma(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct fault_look *look = context;

	look->is_bounded = vma__is_anonymous(vma) && !vma__has_handler(vma);
	return 0;
}

static long fault__look(__u32 index, struct fault_look *look)
{
	look->err =
		bpf_find_vma(bpf_get_current_task_btf(), look->address, read_faulting_vma, look, 0);
	return look->err != -EBUSY || bpf_ktime_get_ns() >= look->until_ns;
}

__noinline int fault__is_bounded(__u64 address)
{
	struct fault_look look = { .address = address };

	fault__look(0, &look);
	if (look.err == -EBUSY)
		wait__for(fault__look, &look, &look.until_ns, AP_WAIT_NS);
	return !look.err && look.is_bounded;
}

/* Number of steps of the binary search for a slice of a table. */
#define SLICE_SEARCH_STEPS 14

/* Returns the last slice of the table that begins at or before @file_offset, or NULL. */
static __noinline struct unwind_slice *slice__find(const struct unwind_table *table,
						   __u64 file_offset)
{
	struct unwind_slice *found = NULL;
	__u32 low = table->first_slice, n = table->n_slices;

	for (int i = 0; i < SLICE_SEARCH_STEPS; i++) {
		__u32 middle = low + n / 2;
		struct unwind_slice *slice;

		if (!n)
			break;
		slice = bpf_map_lookup_elem(&unwind_slices, &middle);
		if (!slice)
			break;
		if (slice->file_offset <= file_offset) {
			found = slice;
			low = middle + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return found;
}

__noinline int range__load(struct scratch *scratch, __u64 address, __u32 pid)
{
	struct code_range *range;
	struct unwind_slice *slice;
	struct unwind_table *table;
	__u64 offset;
	struct vma_answer answer = {};
	const struct vma *vma = &answer.vma;
	__u32 module, at;
	int err;

	if (!scratch)
		return -VMA_NONE;
	err = vma__find(&answer, scratch, pid, address);
	if (err)
		return -err;
	at = scratch->next_range++ & (SCRATCH_MAPPINGS - 1);
	range = &scratch->ranges[at];
	range->start = vma->start;
	range->end = vma->end;
	range->bias = vma->bias;
	range->module = vma->module;
	range->within = within__has(vma->module);
	python__meet(scratch, vma->module, vma->bias);
	range->state = UNWIND_TABLE_NONE;
	module = vma->module;
	if (!module)
		return at;
	table = bpf_map_lookup_elem(&unwind_tables, &module);
	if (!table)
		return at;
	range->state = ARCH_LOAD_ACQUIRE(table->state);
	if (range->state == UNWIND_TABLE_AWAITED) {
		range->end = 0; /* valid for this frame only, so that the next walk looks again */
		return at;
	}
	if (range->state != UNWIND_TABLE_READY)
		return at;
	offset = address + vma->bias;
	slice = slice__find(table, offset);
	if (!slice || offset - slice->file_offset >= slice->size) {
		/* Code that no call frame information covers. */
		range->state = UNWIND_TABLE_NONE;
		range->start = address;
		range->end = address + 1;
		return at;
	}
	range->slice = *slice;
	if (slice->file_offset - vma->bias > range->start)
		range->start = slice->file_offset - vma->bias;
	if (slice->file_offset + slice->size - vma->bias < range->end)
		range->end = slice->file_offset + slice->size - vma->bias;
	return at;
}

/* 1: on_map() is attached */
__u32 on_map_is_attached;

/* Runs at the end of mmap and mprotect, before the process can execute the new mapping, which may
 * replace other code with as many pages. */
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

/* The two programs below are run by allocprof for an address in its own memory. They return a
 * negative errno: -EBUSY while another of its threads maps memory, -ENOENT if no file is mapped
 * there. */

/* Out: identity of the file mapped at @address, as in ap_module_record. */
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
	long err = vma__ask(&answer, args->address);

	if (err)
		return err;
	args->inode = answer.file.inode;
	args->device = answer.file.device;
	args->generation = answer.generation;
	return args->inode ? 0 : -ENOENT;
}

/* Assigns an id to the file that user space has mapped at @address and that the target will
 * execute, and sends its record before the first hit, so that its unwind table is ready in time.
 * Returns -ENOSPC if the ring buffer is full. */
struct find_module_args {
	__u64 address;
};

SEC("syscall")
int find_module(struct find_module_args *args)
{
	struct vma_answer answer = {};
	long err = vma__ask(&answer, args->address);

	if (err)
		return err;
	if (!answer.file.inode && !answer.is_vdso)
		return -ENOENT;
	return module__id(&answer, seed_pid) ? 0 : -ENOSPC;
}
