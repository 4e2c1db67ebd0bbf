// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that count anonymous memory that processes get from the kernel and return to it:
 * mmap, mremap, brk and munmap (docs/mappings.md). A call is counted at the end of the system
 * call, when its result is known. With --live they also send what each call does to the mappings,
 * which user space follows.
 */
#include <asm-generic/errno-base.h>

#include "arch.bpf.h"
#include "blocks.bpf.h"
#include "kernel.h"
#include "live_hit.bpf.h"
#include "process.bpf.h"
#include "recording.bpf.h"
#include "regions.bpf.h"
#include "waits.bpf.h"
#include "within.bpf.h"

/* Index of the first of AP_MAPPING_FUNCTIONS sites; set by user space before processes are
 * followed. */
__u32 mappings_first_site;

/* Anonymous memory in the range of an munmap or mremap. */
struct unmapping {
	__u64 anonymous_bytes;
	__u64 begin_ns; /* CLOCK_MONOTONIC; only with --live */
	/* 1: bpf_find_vma() failed for part of the range; that part counts as anonymous. */
	__u32 unsure;
	__u32 pad;
};

/* Keyed by thread, from the entry of the system call to its exit. Preallocated, see tail_calls in
 * hit.bpf.h. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct unmapping);
} unmappings SEC(".maps");

/* linux/mman.h */
#define MAP_ANONYMOUS	     0x20
#define MAP_GROWSDOWN	     0x100
#define MAP_STACK	     0x20000
#define MREMAP_FIXED	     2
#define MREMAP_DONTUNMAP     4
#define MADV_DONTNEED	     4
#define MADV_FREE	     8
#define MADV_REMOVE	     9
#define MADV_DONTNEED_LOCKED 24
#define PROT_READ	     1
#define PROT_WRITE	     2
#define PROT_EXEC	     4

#define MAX_ERRNO 4095

static __always_inline bool result__is_error(long result)
{
	return (unsigned long)result >= (unsigned long)-MAX_ERRNO;
}

/* Rounds up to whole pages. */
static __always_inline __u64 pages(__u64 bytes)
{
	return (bytes + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1);
}

struct range_scan {
	__u64 at, end;
	__u64 anonymous_bytes;
	__u64 vma_end;
	__u64 until_ns;
	__u32 is_anonymous;
	__u32 pad;
};

static long read_range_vma(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct range_scan *scan = context;

	scan->vma_end = vma->vm_end;
	scan->is_anonymous = vma__is_anonymous(vma);
	return 0;
}

/* Advances by one mapping, or by one unmapped page; retries on -EBUSY, where another thread maps
 * memory. */
static long scan_range(__u32 index, struct range_scan *scan)
{
	__u64 upto;
	long err;

	if (scan->at >= scan->end)
		return 1;
	err = bpf_find_vma(bpf_get_current_task_btf(), scan->at, read_range_vma, scan, 0);
	if (err && bpf_ktime_get_ns() >= scan->until_ns)
		return 1;
	if (err == -EBUSY)
		return 0;
	upto = scan->at + PAGE_SIZE;
	if (!err && scan->vma_end > scan->at)
		upto = scan->vma_end < scan->end ? scan->vma_end : scan->end;
	if (!err && scan->is_anonymous)
		scan->anonymous_bytes += upto - scan->at;
	scan->at = upto;
	return 0;
}

/* Returns whether nothing anonymous is mapped in the range, as far as can be seen. */
static __noinline int range__is_empty(__u64 start, __u64 bytes)
{
	struct range_scan scan = { .at = start, .end = start + bytes };

	scan.until_ns = bpf_ktime_get_ns() + AP_WAIT_NS;
	bpf_loop(WAIT_LOOKS, scan_range, &scan, 0);
	return scan.at >= scan.end && !scan.anonymous_bytes;
}

/* Called at the entry of munmap or mremap: notes the anonymous bytes in the range and, with
 * --live, the time. */
static __noinline int unmapping__begin(__u64 start, __u64 bytes)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct range_scan scan = { .at = start & ~(PAGE_SIZE - 1) };
	struct unmapping unmapping = {};

	if (config.live)
		unmapping.begin_ns = bpf_ktime_get_ns();
	scan.end = scan.at + pages(bytes);
	scan.until_ns = bpf_ktime_get_ns() + AP_WAIT_NS;
	bpf_loop(WAIT_LOOKS, scan_range, &scan, 0);
	unmapping.anonymous_bytes = scan.anonymous_bytes;
	if (scan.at < scan.end) {
		unmapping.anonymous_bytes += scan.end - scan.at;
		unmapping.unsure = 1;
	}
	if (bpf_map_update_elem(&unmappings, &thread, &unmapping, BPF_ANY))
		stat__add(AP_STAT_MAPPINGS_UNSURE);
	return 0;
}

/* A system call that ended. */
struct mapping {
	__u64 size_bytes; /* allocated, or requested if it failed; munmap: returned to the kernel */
	__u64 returned_bytes;
	__u64 pointer; /* 0: a new allocation */
	__u8 function; /* enum ap_function */
	__u8 failed;
	__u8 neither; /* 1: it neither allocated nor returned memory */
	__u8 unsure;
	__u32 pad; /* 0 */
	/* Only with --live: what the call did to the mappings. @record and the fields that are the
	 * same for all calls are set when it is sent. */
	struct ap_mapping_record change;
};

/* The system call that ends on this CPU. There is only one: while the program is preempted, the
 * kernel skips it on this CPU. It is not on the BPF stack, so that the verifier continues with one
 * state for all system calls. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mapping);
} ending_mapping SEC(".maps");

/* Returns the anonymous bytes that unmapping__begin() found; 0 if none, or if the entry was not
 * seen. Not inlined, so that its stack frame is not live during the walk. */
static __noinline __u64 unmapping__end(struct mapping *mapping)
{
	__u64 thread = bpf_get_current_pid_tgid(), bytes;
	const struct unmapping *unmapping = bpf_map_lookup_elem(&unmappings, &thread);

	if (!unmapping)
		return 0;
	bytes = unmapping->anonymous_bytes;
	mapping->unsure = unmapping->unsure;
	mapping->change.begin_ns = unmapping->begin_ns;
	bpf_map_delete_elem(&unmappings, &thread);
	return bytes;
}

/* Notes what the system call did to the range, unless it failed. */
static __always_inline void mapping__change(struct mapping *mapping, enum ap_mapping_change change,
					    __u64 address, __u64 size_bytes)
{
	mapping->change.change = change;
	mapping->change.address = address;
	mapping->change.size_bytes = size_bytes;
}

static __always_inline bool mmap__read(struct mapping *mapping, const struct pt_regs *regs,
				       long result)
{
	__u64 flags = arch__syscall_arg4(regs), bytes = pages(arch__syscall_arg2(regs));

	if (!result__is_error(result)) {
		mapping__change(mapping, AP_MAPPING_MAPPED, result, bytes);
		mapping->change.is_anonymous = (flags & MAP_ANONYMOUS) != 0;
		mapping->change.is_stack = (flags & (MAP_STACK | MAP_GROWSDOWN)) != 0;
		mapping->change.protection = arch__syscall_arg3(regs);
	}
	if (!(flags & MAP_ANONYMOUS))
		return false;
	mapping->function = AP_MMAP;
	mapping->size_bytes = bytes;
	mapping->failed = result__is_error(result);
	return true;
}

static __always_inline bool munmap__read(struct mapping *mapping, const struct pt_regs *regs,
					 long result)
{
	__u64 bytes = unmapping__end(mapping);

	if (!result__is_error(result))
		mapping__change(mapping, AP_MAPPING_UNMAPPED, arch__syscall_arg1(regs),
				pages(arch__syscall_arg2(regs)));
	if (!bytes)
		return false;
	mapping->function = AP_MUNMAP;
	mapping->pointer =
		arch__syscall_arg1(regs) | 1; /* never 0, even if the range was mapped at 0 */
	mapping->failed = result__is_error(result);
	mapping->returned_bytes = mapping->failed ? 0 : bytes;
	mapping->size_bytes = mapping->returned_bytes;
	return true;
}

static __always_inline bool mremap__read(struct mapping *mapping, const struct pt_regs *regs,
					 long result)
{
	__u64 before = pages(arch__syscall_arg2(regs)), after = pages(arch__syscall_arg3(regs));
	bool keeps_old = !before || arch__syscall_arg4(regs) & MREMAP_DONTUNMAP;
	__u64 kept = keeps_old ? 0 : before;
	bool is_anonymous = unmapping__end(mapping) != 0;

	if (!result__is_error(result)) {
		mapping__change(mapping, AP_MAPPING_MOVED, result, after);
		mapping->change.old_address = arch__syscall_arg1(regs);
		mapping->change.old_bytes = before;
		mapping->change.keeps_old = keeps_old;
		mapping->change.is_anonymous = is_anonymous;
	} else if (config.live && arch__syscall_arg4(regs) & MREMAP_FIXED && after &&
		   result != -EINVAL && range__is_empty(arch__syscall_arg5(regs), after)) {
		/* The kernel may have unmapped the new place before it refused. */
		mapping__change(mapping, AP_MAPPING_UNMAPPED, arch__syscall_arg5(regs), after);
	}
	if (!is_anonymous)
		return false;
	mapping->function = AP_MREMAP;
	mapping->pointer = arch__syscall_arg1(regs) | 1;
	mapping->failed = result__is_error(result);
	mapping->size_bytes = after > kept ? after - kept : 0;
	mapping->returned_bytes = kept > after && !mapping->failed ? kept - after : 0;
	mapping->neither = kept == after;
	return true;
}

/* Reads a brk call as the change since the process's previous result of brk, so that concurrent
 * calls of its threads add up. brk(0), which only queries, counts as nothing. */
static __always_inline bool brk__read(struct mapping *mapping, const struct pt_regs *regs,
				      struct process *process, long result)
{
	__u64 asked = pages(arch__syscall_arg1(regs)), now = pages(result), before;

	/* The system call was entered before the process was followed. */
	if (process->brk_calls <= 0)
		return false;
	before = pages(__sync_lock_test_and_set(&process->brk, result));
	__sync_fetch_and_add(&process->brk_calls, -1);
	mapping->function = AP_BRK;
	if (now < before) {
		mapping->pointer = before;
		mapping->returned_bytes = before - now;
		mapping__change(mapping, AP_MAPPING_UNMAPPED, now, before - now);
		return true;
	}
	mapping->failed = now == before;
	mapping->size_bytes = (mapping->failed ? asked : now) - before;
	if (now > before) {
		mapping__change(mapping, AP_MAPPING_MAPPED, before, now - before);
		mapping->change.is_anonymous = 1;
		mapping->change.protection = PROT_READ | PROT_WRITE;
	}
	return now > before || asked > now;
}

/* Reads a call that does not count, but changes what a live mapping is. */
static __always_inline void attributes__read(struct mapping *mapping, const struct pt_regs *regs,
					     long result)
{
	__u64 argument = arch__syscall_arg3(regs);

	if (result__is_error(result))
		return;
	if (arch__syscall(regs) != ARCH_SYS_MADVISE) {
		mapping__change(mapping, AP_MAPPING_PROTECTED, arch__syscall_arg1(regs),
				pages(arch__syscall_arg2(regs)));
		mapping->change.protection = argument;
	} else if (argument == MADV_DONTNEED || argument == MADV_FREE || argument == MADV_REMOVE ||
		   argument == MADV_DONTNEED_LOCKED) {
		mapping__change(mapping, AP_MAPPING_ADVISED, arch__syscall_arg1(regs),
				pages(arch__syscall_arg2(regs)));
	}
}

/* The programs run at every system call of every process, so they test this first. */
static __always_inline bool is_mapping(const struct pt_regs *regs)
{
	__u64 number = arch__syscall(regs);

	return number == ARCH_SYS_MMAP || number == ARCH_SYS_MUNMAP || number == ARCH_SYS_BRK ||
	       number == ARCH_SYS_MREMAP;
}

/* Returns whether the call may change what a mapping is. */
static __always_inline bool is_attribute(const struct pt_regs *regs)
{
	__u64 number = arch__syscall(regs);

	return number == ARCH_SYS_MPROTECT || number == ARCH_SYS_PKEY_MPROTECT ||
	       number == ARCH_SYS_MADVISE;
}

static __always_inline int mapping__begin(const struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process *process;

	if (!is_mapping(regs) || number == ARCH_SYS_MMAP || !arch__is_native_syscall(task))
		return 0;
	process = process__current();
	if (!process)
		return 0;
	if (number == ARCH_SYS_MUNMAP) /* With --live user space knows what is anonymous. */
		unmapping__begin(arch__syscall_arg1(regs),
				 config.live ? 0 : arch__syscall_arg2(regs));
	else if (number == ARCH_SYS_MREMAP) /* the first page suffices: mremap moves one mapping */
		unmapping__begin(arch__syscall_arg1(regs), 1);
	else if (__sync_fetch_and_add(&process->brk_calls, 1) == 0)
		process->brk = task->mm->brk;
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(mapping_begin, struct pt_regs *regs, long number)
{
	return mapping__begin(regs, number);
}

/* On kernels that preempt other programs at tracepoints perf calls these (tracepoint_abi.h). */
SEC("tracepoint/raw_syscalls/sys_enter")
int perf_mapping_begin(struct trace_event_raw_sys_enter *ctx)
{
	return mapping__begin(task__regs(), ctx->id);
}

/* Reads the call that ends. Returns whether it counts. */
static __always_inline bool mapping__read(struct mapping *mapping, struct process *process,
					  const struct pt_regs *regs, long result)
{
	bool is_counted = false;

	__builtin_memset(mapping, 0, sizeof(*mapping));
	switch (arch__syscall(regs)) {
	case ARCH_SYS_MMAP:
		is_counted = mmap__read(mapping, regs, result);
		break;
	case ARCH_SYS_MUNMAP:
		is_counted = munmap__read(mapping, regs, result);
		break;
	case ARCH_SYS_MREMAP:
		is_counted = mremap__read(mapping, regs, result);
		break;
	case ARCH_SYS_BRK:
		is_counted = brk__read(mapping, regs, process, result);
		break;
	}
	return is_counted;
}

/* Returns the mapping call that ends, or NULL if this one does not count. */
static __always_inline struct mapping *mapping__end(struct process *process,
						    const struct pt_regs *regs, long result)
{
	__u32 zero = 0;
	struct mapping *mapping = bpf_map_lookup_elem(&ending_mapping, &zero);

	return mapping && mapping__read(mapping, process, regs, result) ? mapping : NULL;
}

/* Initialises @hit from @mapping. */
static __always_inline bool mapping__enter(const struct mapping *mapping, struct hit *hit,
					   const struct pt_regs *regs)
{
	__u32 site = mappings_first_site + mapping->function - AP_MMAP;

	if (!source__enter(hit, site, regs, arch__ip(regs)))
		return false;
	hit->size_bytes = mapping->size_bytes;
	hit->pointer = mapping->pointer;
	hit->overflows = mapping->neither;
	if (mapping->unsure)
		stat__add(AP_STAT_MAPPINGS_UNSURE);
	return true;
}

/* For `stat`: counts the call by site. */
static __always_inline int mapping__count(const struct pt_regs *regs, long result)
{
	struct ap_site_counts *sum;
	struct mapping *mapping;
	struct process *process;
	struct hit hit;

	if (!is_mapping(regs) || !arch__is_native_syscall(bpf_get_current_task_btf()))
		return 0;
	process = process__current();
	mapping = process ? mapping__end(process, regs, result) : NULL;
	if (!mapping || !mapping__enter(mapping, &hit, regs) ||
	    !hit__is_measured(&hit, process, false))
		return 0;
	count_hit(&hit);
	regions__count(&hit);
	sum = bpf_map_lookup_elem(&site_counts, &hit.site);
	if (!sum)
		return 0;
	__sync_fetch_and_add(&sum->failed, mapping->failed);
	__sync_fetch_and_add(&sum->returned_bytes, mapping->returned_bytes);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(mapping_count, struct pt_regs *regs, long result)
{
	return mapping__count(regs, result);
}

SEC("tracepoint/raw_syscalls/sys_exit")
int perf_mapping_count(struct trace_event_raw_sys_exit *ctx)
{
	return mapping__count(task__regs(), ctx->ret);
}

/* For `record`: counts the call by stack. */
static __always_inline int mapping__record(struct pt_regs *regs, long result)
{
	struct mapping *mapping;
	struct process *process;
	struct hit hit;

	if (!is_mapping(regs) || !arch__is_native_syscall(bpf_get_current_task_btf()))
		return 0;
	process = process__current();
	mapping = process ? mapping__end(process, regs, result) : NULL;
	if (mapping && mapping__enter(mapping, &hit, regs))
		source__record(regs, process, &hit);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(mapping_record, struct pt_regs *regs, long result)
{
	return mapping__record(regs, result);
}

SEC("tracepoint/raw_syscalls/sys_exit")
int perf_mapping_record(struct trace_event_raw_sys_exit *ctx)
{
	return mapping__record(task__regs(), ctx->ret);
}

/* Sends what the call did. Returns whether there was room for it. Not inlined, so that its
 * variables take no stack during a walk. */
static __noinline bool mapping__send(struct mapping *mapping, __u32 record, __u32 space)
{
	struct ap_mapping_record *change = &mapping->change;

	change->type = AP_RECORD_MAPPING;
	change->function = mapping->function;
	change->failed = mapping->failed;
	change->record = record;
	change->space = space;
	change->thread = bpf_get_current_pid_tgid();
	change->end_ns = bpf_ktime_get_ns();
	if (bpf_ringbuf_output(&ring, change, sizeof(*change), ring__flags())) {
		ring__await();
		if (bpf_ringbuf_output(&ring, change, sizeof(*change), ring__flags()))
			return false;
	}
	stat__add(AP_STAT_MAPPING_CHANGES);
	return true;
}

/* Sends what a call did that is not counted; only what ends by it matters. */
static __always_inline void mapping__send_uncounted(struct mapping *mapping, __u32 space)
{
	if (mapping->change.change != AP_MAPPING_FAILED &&
	    !mapping__send(mapping, AP_NO_RECORD, space))
		stat__add(AP_STAT_MAPPING_CHANGES_LOST);
}

/* Counts the call by its stack, and sends it. */
static __always_inline void mapping__follow_counted(struct mapping *mapping, struct pt_regs *regs,
						    struct process *process)
{
	__u64 thread = bpf_get_current_pid_tgid();
	__u32 record = AP_NO_RECORD;
	struct scratch *scratch;
	struct hit hit;

	process__refresh(process);
	if (!mapping__enter(mapping, &hit, regs) || !gate__is_open(process) ||
	    !hit__is_event(&hit)) {
		mapping__send_uncounted(mapping, process->space);
		return;
	}
	scratch = scratch__claim(thread);
	if (!scratch) {
		lose_unwalked();
		mapping__send_uncounted(mapping, process->space);
		return;
	}
	scratch__enter(scratch, thread, process);
	stack__read(scratch, &hit, false);
	stack__walk(scratch, process, &hit, false);
	if (walked__counts(regs, scratch, &hit, process))
		record = find_record(regs, scratch, &hit, process);
	scratch__release(scratch);
	if (record == AP_NO_RECORD) {
		mapping__send_uncounted(mapping, process->space);
	} else if (mapping__send(mapping, record, process->space)) {
		record__count(record, &hit);
		regions__count(&hit);
	} else {
		lose(AP_LOST_RING_FULL);
		if (mapping->change.change != AP_MAPPING_FAILED)
			stat__add(AP_STAT_MAPPING_CHANGES_LOST);
	}
}

/* For `record --live`: counts the call by stack, and tells user space what it did. */
static __always_inline int mapping__follow(struct pt_regs *regs, long result)
{
	struct mapping *mapping;
	struct process *process;
	__u32 zero = 0;

	if ((!is_mapping(regs) && !is_attribute(regs)) ||
	    !arch__is_native_syscall(bpf_get_current_task_btf()))
		return 0;
	process = process__current();
	mapping = bpf_map_lookup_elem(&ending_mapping, &zero);
	if (!process || !mapping || LOAD(live.stopped))
		return 0;
	if (mapping__read(mapping, process, regs, result)) {
		mapping__follow_counted(mapping, regs, process);
		return 0;
	}
	if (is_attribute(regs))
		attributes__read(mapping, regs, result);
	mapping__send_uncounted(mapping, process->space);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(mapping_follow, struct pt_regs *regs, long result)
{
	return mapping__follow(regs, result);
}

SEC("tracepoint/raw_syscalls/sys_exit")
int perf_mapping_follow(struct trace_event_raw_sys_exit *ctx)
{
	return mapping__follow(task__regs(), ctx->ret);
}
