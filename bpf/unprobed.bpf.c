// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs that check processes which have not hit a probe; those at exit are in processes.bpf.c. */
#include "process.bpf.h"

/* Reports @process, which has not hit a probe, if it has taken memory. It is reported once, by
 * whichever program or thread comes first. */
static __always_inline void unprobed__look(struct process *process, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 taken_bytes = mm ? unprobed__taken(process, mm) : 0;

	if (!taken_bytes)
		return;
	process->is_hit = 1;
	unprobed__report(process, task, taken_bytes);
}

/* Called before an exec, while the process still has its old name and mm. */
static __noinline int process__prepare_exec(struct task_struct *task,
					    enum ap_tracepoint_program program)
{
	struct process *process = unprobed__current();

	tracepoint__see(AP_TRACEPOINT_PREPARE_EXEC, program, task->pid);
	if (process)
		unprobed__look(process, task);
	return 0;
}

SEC("tp_btf/sched_prepare_exec")
int BPF_PROG(on_prepare_exec, struct task_struct *task)
{
	return process__prepare_exec(task, AP_FIRST);
}

SEC("tp_btf/sched_prepare_exec")
int BPF_PROG(on_prepare_exec_again, struct task_struct *task)
{
	return process__prepare_exec(task, AP_AGAIN);
}

SEC("tracepoint/sched/sched_prepare_exec")
int perf_prepare_exec(void *ctx)
{
	return process__prepare_exec(bpf_get_current_task_btf(), AP_BY_PERF);
}

/* The program that checks a thread that exits, before Linux 6.16, where the exit tracepoint runs
 * after the mm is gone. */
SEC("fentry/exit_mm_release")
int BPF_PROG(on_exit_memory, struct task_struct *task, struct mm_struct *mm)
{
	struct process *process = unprobed__current();

	if (process && mm)
		process->taken_bytes = unprobed__taken(process, mm);
	return 0;
}

/* Does the same for a thread that calls exec. */
SEC("fentry/exec_mm_release")
int BPF_PROG(on_exec_memory, struct task_struct *task, struct mm_struct *mm)
{
	struct process *process = unprobed__current();

	if (process && mm)
		unprobed__report(process, task, unprobed__taken(process, mm));
	return 0;
}

/* The program that checks processes which still run when the recording ends. User space runs it by
 * reading the iterator. */
SEC("iter/task")
int look_at_processes(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct process *process;
	__u32 tgid;

	if (!task)
		return 0;
	tgid = task->tgid;
	process = bpf_map_lookup_elem(&processes, &tgid);
	if (process && process->state == PROCESS_COUNTED && !process->is_hit &&
	    !process->by_other_engine)
		unprobed__look(process, task);
	return 0;
}
