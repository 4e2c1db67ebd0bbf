// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that count page faults (docs/faults.md): at the kernel's software events for minor
 * and major faults, and at the end of handle_mm_fault(), for faults that the kernel takes itself,
 * without an event.
 */
#include "arch.bpf.h"
#include "faults.bpf.h"
#include "kernel.h"
#include "process.bpf.h"
#include "recording.bpf.h"
#include "regions.bpf.h"
#include "within.bpf.h"

__u32 faults_first_site;
__u32 faults_unchecked;

/* Notes that the current thread's fault of @kind was seen. */
static __noinline int fault__see(const struct process *process, __u32 kind)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct fault_counts *known = bpf_map_lookup_elem(&fault_threads, &id), now;

	now = task__faults(bpf_get_current_task_btf());
	if (known)
		fault_thread__know(process, known, &now, kind, 1);
	else
		fault_thread__begin(id, &now);
	return 0;
}

/*
 * Returns the kind of the fault that the kernel has just taken itself, in the current system call;
 * AP_FAULT_FUNCTIONS if it has counted none: the fault failed, or goes on. Not inlined, so that its
 * stack frame is not live during the walk.
 */
static __noinline __u32 fault__kind(void)
{
	__u64 id = bpf_get_current_pid_tgid();
	const struct fault_counts *known = bpf_map_lookup_elem(&fault_threads, &id);
	struct fault_counts now = task__faults(bpf_get_current_task_btf());

	for (__u32 i = 0; known && i < AP_FAULT_FUNCTIONS; i++)
		if (now.of[i] > known->of[i])
			return i;
	return AP_FAULT_FUNCTIONS;
}

/*
 * Initialises @hit. The stack begins where the thread entered the kernel: at the instruction that
 * faulted, or behind that of the system call. In an exec that has replaced the memory already, in
 * threads that the kernel runs, and in 32-bit code no stack can be read.
 */
static __always_inline bool fault__enter(struct hit *hit, const struct process *process, __u32 kind,
					 const struct pt_regs *regs)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	__u64 ip = arch__ip(regs), address = ip;

	/* As if that instruction were a call of one byte. */
	if (!arch__is_system_call(regs))
		address = ip + 1;
	if (!ip || task->self_exec_id != process->execs || !arch__is_native_code(regs))
		address = 0;
	if (!source__enter(hit, faults_first_site + kind, regs, address))
		return false;
	hit->size_bytes = PAGE_SIZE;
	hit->locked = 1;
	return true;
}

/* For `stat`: counts the fault by site. */
static __always_inline void fault__count(struct process *process, __u32 kind)
{
	struct hit hit;

	fault__see(process, kind);
	if (!fault__enter(&hit, process, kind, task__regs()) ||
	    !hit__is_measured(&hit, process, false))
		return;
	count_hit(&hit);
	regions__count(&hit);
}

/* For `record`: counts the fault by stack. */
static __always_inline void fault__record(struct process *process, __u32 kind)
{
	struct pt_regs *regs = task__regs();
	struct hit hit;

	fault__see(process, kind);
	if (fault__enter(&hit, process, kind, regs))
		source__record(regs, process, &hit);
}

/* Perf calls these with preemption disabled. The cookie is the kind. */
SEC("perf_event")
int fault_count(void *ctx)
{
	struct process *process = process__current();

	if (process)
		fault__count(process, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("perf_event")
int fault_record(void *ctx)
{
	struct process *process = process__current();

	if (process)
		fault__record(process, bpf_get_attach_cookie(ctx));
	return 0;
}

/* The kernel passes no registers for faults that it takes itself, and raises no event for them. */
SEC("fexit/handle_mm_fault")
int BPF_PROG(kernel_fault_count, struct vm_area_struct *vma, unsigned long address,
	     unsigned int flags, struct pt_regs *regs)
{
	struct process *process = regs ? NULL : process__current();
	__u32 kind = process ? fault__kind() : AP_FAULT_FUNCTIONS;

	if (process && kind < AP_FAULT_FUNCTIONS)
		fault__count(process, kind);
	return 0;
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(kernel_fault_record, struct vm_area_struct *vma, unsigned long address,
	     unsigned int flags, struct pt_regs *regs)
{
	struct process *process = regs ? NULL : process__current();
	__u32 kind = process ? fault__kind() : AP_FAULT_FUNCTIONS;

	if (process && kind < AP_FAULT_FUNCTIONS)
		fault__record(process, kind);
	return 0;
}

/* Looks at all threads of followed processes: notes the counters of those that are new, and finds
 * what was not seen of the others. User space runs it at the beginning and at the end. */
SEC("iter/task")
int look_at_faults(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct fault_counts *known, now;
	struct process *process;
	__u32 tgid;
	__u64 id;

	if (!task)
		return 0;
	tgid = BPF_CORE_READ(task, tgid);
	process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process || process->state != PROCESS_COUNTED || process->by_other_engine)
		return 0;
	id = (__u64)tgid << 32 | (__u32)BPF_CORE_READ(task, pid);
	known = bpf_map_lookup_elem(&fault_threads, &id);
	now = task__faults(task);
	if (known)
		fault_thread__know(process, known, &now, 0, 0);
	else
		fault_thread__begin(id, &now);
	return 0;
}
