// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that count anonymous memory that processes get from the kernel and return to it:
 * mmap, mremap, brk and munmap (docs/mappings.md). A call is counted at the end of the system
 * call, when its result is known.
 */
#include <asm-generic/errno-base.h>

#include "arch.bpf.h"
#include "kernel.h"
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
#define MAP_ANONYMOUS 0x20

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

/* Called at the entry of munmap or mremap: notes the anonymous bytes in the range. */
static __noinline int unmapping__begin(__u64 start, __u64 bytes)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct range_scan scan = { .at = start & ~(PAGE_SIZE - 1) };
	struct unmapping unmapping = {};

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
	bpf_map_delete_elem(&unmappings, &thread);
	return bytes;
}

static __always_inline bool mmap__read(struct mapping *mapping, const struct pt_regs *regs,
				       long result)
{
	if (!(arch__syscall_arg4(regs) & MAP_ANONYMOUS))
		return false;
	mapping->function = AP_MMAP;
	mapping->size_bytes = pages(arch__syscall_arg2(regs));
	mapping->failed = result__is_error(result);
	return true;
}

static __always_inline bool munmap__read(struct mapping *mapping, const struct pt_regs *regs,
					 long result)
{
	__u64 bytes = unmapping__end(mapping);

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

	if (!unmapping__end(mapping))
		return false;
	mapping->function = AP_MREMAP;
	mapping->pointer = arch__syscall_arg1(regs) | 1;
	mapping->failed = result__is_error(result);
	mapping->size_bytes = after > before ? after - before : 0;
	mapping->returned_bytes = before > after && !mapping->failed ? before - after : 0;
	mapping->neither = before == after;
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
		return true;
	}
	mapping->failed = now == before;
	mapping->size_bytes = (mapping->failed ? asked : now) - before;
	return now > before || asked > now;
}

/* The programs run at every system call of every process, so they test this first. */
static __always_inline bool is_mapping(const struct pt_regs *regs)
{
	__u64 number = arch__syscall(regs);

	return number == ARCH_SYS_MMAP || number == ARCH_SYS_MUNMAP || number == ARCH_SYS_BRK ||
	       number == ARCH_SYS_MREMAP;
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
	if (number == ARCH_SYS_MUNMAP)
		unmapping__begin(arch__syscall_arg1(regs), arch__syscall_arg2(regs));
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

/* Returns the mapping call that ends, or NULL if this one does not count. */
static __always_inline struct mapping *mapping__end(struct process *process,
						    const struct pt_regs *regs, long result)
{
	__u32 zero = 0;
	struct mapping *mapping = bpf_map_lookup_elem(&ending_mapping, &zero);
	bool is_counted = false;

	if (!mapping)
		return NULL;
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
	return is_counted ? mapping : NULL;
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
