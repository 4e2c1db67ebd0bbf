/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes are followed. The set is kept by fork, exec and exit themselves, so a child is in
 * it before its first instruction. Keys are the kernel's own ids: inside a PID namespace user space
 * knows only others.
 */
#ifndef ALLOCPROF_PROCESS_BPF_H
#define ALLOCPROF_PROCESS_BPF_H

#include "maps.bpf.h"

enum process_state {
	PROCESS_WAITING, /* forked by allocprof to run the command, has not exec'ed it yet */
	PROCESS_COUNTED,
};

struct process {
	__u32 id; /* of the image */
	__u32 state;
	__u32 pid; /* in allocprof's PID namespace */
	/* Together they name one state of the address space's code: mappings that were resolved
	 * before it changed are not trusted. */
	__u32 generation;
	__u64 exec_pages;
	__u32 closed; /* 1: what it calls is not counted now */
	/* Calls of brk(2) under way, and where the heap ends; with mappings. */
	__s32 brk_calls;
	__u64 brk;
	/* With live. */
	__u32 space;	/* number of the address space */
	__u32 owner;	/* tgid of the process whose space it shares (vfork), or 0 */
	__u32 sharers;	/* processes that share this one's */
	__u32 inherits; /* 1: forked, it has copies of blocks that another space was given */
	__s64 live_bytes, live_blocks; /* part of the run's that go when it ends */
	/* In unprobed.bpf.h: */
	__u32 is_hit; /* 1: the image, or the one that it was forked from, has hit a probe */
	__u32 pad2;
	__u64 first_data_pages, first_brk_bytes; /* memory that the image began with */
	__u64 taken_bytes;			 /* when its last thread gave its memory up */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct process);
} processes SEC(".maps");

/* The launcher is allocprof itself; user space arms it around the one fork that is the command. */
__u32 launcher_armed;
__u32 launcher_tgid;
/* What the iterator looks for, in allocprof's PID namespace, and whether it was there. */
__u32 seed_pid;
__u32 seed_is_launcher;
__u32 seed_found;

__u32 last_process_id;
/* Processes (not images) that were followed. */
__u64 processes_seen;

/* With live, live.bpf.h: */
static __noinline void live__end_thread(__u64 id);
static __noinline __u32 live__end_image(struct process *process);
static __always_inline __u32 live__new_space(void);
static __always_inline void live__fork(struct process *child, struct process *parent,
				       __u32 parent_tgid, bool shares);
static __always_inline __u64 live__generation(void);

/* In hit.bpf.h: */
static __always_inline void hit__end_thread(__u64 thread);

/* In unprobed.bpf.h: */
static __always_inline void unprobed__begin(struct process *process, struct task_struct *task);
static __always_inline void unprobed__end(const struct process *process, struct task_struct *task);

/* With regions, regions.bpf.h: */
static __always_inline bool regions__are_active(void);
static __noinline int regions__fork(__u64 parent, __u64 child);
static __always_inline void regions__end_thread(__u64 id);

/* The id of @task's process in the PID namespace of @namespace_level, 0 where it has none there. */
static __always_inline __u32 task__pid_at(struct task_struct *task, __u32 namespace_level)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid upid;

	if (!pid || namespace_level > level)
		return 0;
	if (bpf_core_read(&upid.nr, sizeof(upid.nr),
			  (void *)pid + bpf_core_field_offset(struct pid, numbers) +
				  namespace_level * bpf_core_type_size(struct upid) +
				  bpf_core_field_offset(struct upid, nr)))
		return 0;
	return upid.nr;
}

/* How deep allocprof's own PID namespace is nested; set by the seeding run in its context. */
__u32 launcher_namespace_level;

static __always_inline void process__report(const struct process *process, __u32 event,
					    __u32 parent, __u32 by_thread, struct task_struct *task,
					    __u32 ended_space)
{
	struct ap_process_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		stat__add(AP_STAT_PROCESSES_UNNOTICED);
		return;
	}
	record->type = AP_RECORD_PROCESS;
	record->event = event;
	record->id = process->id;
	record->parent = parent;
	record->pid = process->pid;
	record->by_thread = by_thread;
	record->time_ns = bpf_ktime_get_ns();
	bpf_core_read(record->comm, sizeof(record->comm), &task->comm);
	record->generation = config.live ? live__generation() : 0;
	record->space = process->space;
	record->ended_space = ended_space;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

static __always_inline void process__add(struct task_struct *task, __u32 state, __u32 event,
					 struct process *parent, __u32 parent_tgid, bool shares)
{
	struct process process = {
		.id = __sync_fetch_and_add(&last_process_id, 1) + 1,
		.state = state,
		.pid = task__pid_at(task, launcher_namespace_level),
		.closed = parent ? parent->closed : config.starts_closed,
	};
	__u32 tgid = task->tgid;

	unprobed__begin(&process, task);
	/* It has its parent's allocator, if not its very memory. */
	process.is_hit = shares || (parent && parent->is_hit);
	if (config.live && parent)
		live__fork(&process, parent, parent_tgid, shares);
	else if (config.live)
		process.space = live__new_space();
	if (bpf_map_update_elem(&processes, &tgid, &process, BPF_ANY)) {
		if (config.live)
			live__end_image(&process);
		stat__add(AP_STAT_PROCESSES_LOST);
		return;
	}
	if (state != PROCESS_COUNTED)
		return;
	__sync_fetch_and_add(&processes_seen, 1);
	process__report(&process, event, parent ? parent->id : 0, 0, task, 0);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid;
	struct process *process;

	if ((__u32)child->tgid == parent_tgid)
		return 0;
	if (launcher_armed && parent_tgid == launcher_tgid) {
		process__add(child, PROCESS_WAITING, AP_PROCESS_FORKED, NULL, 0, false);
		return 0;
	}
	if (!config.follow)
		return 0;
	process = bpf_map_lookup_elem(&processes, &parent_tgid);
	if (!process)
		return 0;
	if (regions__are_active())
		regions__fork(bpf_get_current_pid_tgid(), (__u64)child->tgid << 32 | child->pid);
	process__add(child, process->state, AP_PROCESS_FORKED, process, parent_tgid,
		     child->mm == parent->mm);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = task->tgid;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);
	__u32 parent, ended_space = 0;

	if (!process)
		return 0;
	if (config.live) {
		live__end_thread((__u64)tgid << 32 | (__u32)old_pid);
		live__end_thread((__u64)tgid << 32 | tgid);
		ended_space = live__end_image(process);
		process->space = live__new_space();
		process->inherits = 0;
	}
	hit__end_thread((__u64)tgid << 32 | (__u32)old_pid);
	hit__end_thread((__u64)tgid << 32 | tgid);
	regions__end_thread((__u64)tgid << 32 | (__u32)old_pid);
	regions__end_thread((__u64)tgid << 32 | tgid);
	/* All other threads are gone: nobody else looks at this entry now. */
	parent = process->state == PROCESS_COUNTED ? process->id : 0;
	process->id = __sync_fetch_and_add(&last_process_id, 1) + 1;
	process->generation = 0;
	process->exec_pages = 0;
	process->closed = config.starts_closed;
	process->is_hit = 0;
	unprobed__begin(process, task);
	if (process->state == PROCESS_WAITING) {
		process->state = PROCESS_COUNTED;
		__sync_fetch_and_add(&processes_seen, 1);
	}
	process__report(process, AP_PROCESS_EXECED, parent, (__u32)old_pid != tgid, task,
			ended_space);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	__u64 thread = (__u64)tgid << 32 | (__u32)task->pid;
	struct process *process, ended;
	__u32 ended_space = 0;

	process = bpf_map_lookup_elem(&processes, &tgid);
	if (!process)
		return 0;
	if (config.live)
		live__end_thread(thread);
	hit__end_thread(thread);
	regions__end_thread(thread);
	/* do_exit() has taken this thread off the count before the tracepoint: at 0 none of the
	 * process will be in user space again. Two last threads may both see it: the one ends the process
	 * that takes it out of the map. */
	if (task->signal->live.counter > 0)
		return 0;
	ended = *process;
	if (bpf_map_delete_elem(&processes, &tgid))
		return 0;
	if (config.live)
		ended_space = live__end_image(&ended);
	if (ended.state != PROCESS_COUNTED)
		return 0;
	unprobed__end(&ended, task);
	process__report(&ended, AP_PROCESS_EXITED, 0, 0, task, ended_space);
	return 0;
}

/* Run by reading the iterator, in allocprof's own context: finds seed_pid in allocprof's PID
 * namespace, whatever the kernel calls it. */
SEC("iter/task")
int seed_process(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_struct *self = bpf_get_current_task_btf();
	__u32 level;

	if (!task || task->pid != task->tgid)
		return 0;
	level = self->thread_pid->level;
	if (task__pid_at(task, level) != seed_pid)
		return 0;
	launcher_namespace_level = level;
	if (seed_is_launcher)
		launcher_tgid = task->tgid;
	else
		process__add(task, PROCESS_COUNTED, AP_PROCESS_SEEDED, NULL, 0, false);
	seed_found = 1;
	return 0;
}

/* The process that runs now, or NULL where it is not followed. */
static __always_inline struct process *process__current(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);

	if (!process || process->state != PROCESS_COUNTED)
		return NULL;
	return process;
}

/* The same, at a probe of an allocator. */
static __always_inline struct process *process__hit(void)
{
	struct process *process = process__current();

	if (process && !process->is_hit)
		process->is_hit = 1;
	return process;
}

#endif
