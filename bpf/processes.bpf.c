// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs at fork, exec and exit, which keep the set of followed processes, so that a child
 * is in it before its first instruction; and the program that finds the first process. With --live
 * they also keep the set of address spaces.
 */
#include "blocks.bpf.h"
#include "calls.bpf.h"
#include "faults.bpf.h"
#include "hit.bpf.h"
#include "kernel.h"
#include "maps.bpf.h"
#include "process.bpf.h"
#include "regions.bpf.h"

/* The thread group of allocprof itself, whose next child is followed while this is armed: user
 * space arms it only around the fork of the command. */
__u32 launcher_armed;
__u32 launcher_tgid;
/* The process that seed_process() searches for, and whether it exists. */
__u32 seed_pid;
__u32 seed_is_launcher;
__u32 seed_state;	    /* enum process_state */
__u32 seed_by_other_engine; /* as in struct process */
__u32 seed_found;
__u32 seed_refused; /* 1: config.user could not trace it */

__u32 last_process_id;
/* Number of followed processes (not programs). */
__u64 processes_seen;

__u32 leading_program;
__u64 events_rescued[AP_TRACEPOINTS];
__u32 events_seen[AP_TRACEPOINTS][EVENTS_KNOWN];

/* Number of the last children of a process among which task__child() looks for a new one. */
#define MOST_CHILDREN 32

/* Level of allocprof's own PID namespace; seed_process() sets it. */
__u32 launcher_namespace_level;

/* With --live: address spaces, from fork or exec to the exit of the last process that uses them. */

/* Called when the thread ends, or its process calls exec. */
static __noinline void live__end_thread(__u64 id)
{
	struct ap_thread *thread = bpf_map_lookup_elem(&threads, &id);

	if (!thread)
		return;
	for (int i = 0; i < AP_MAX_PENDING && thread->n_pending && !LOAD(live.stopped); i++)
		thread__abandon(thread);
	if (!LOAD(live.stopped))
		bpf_map_delete_elem(&threads, &id);
}

static __always_inline __u32 live__new_space(void)
{
	return __sync_fetch_and_add(&live.last_space, 1) + 1;
}

/* An address space that several processes use or have used: by clone(CLONE_VM), or by vfork until
 * the exec. */
struct shared_space {
	/* Live sums of those processes that have ended or executed a program. */
	__s64 live_bytes, live_blocks;
	__u32 users;   /* number of processes; the last one removes the entry */
	__u32 is_left; /* 1: the process for which it was made has exited */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct shared_space);
} shared_spaces SEC(".maps");

/* Sends a record of the end of @space. Needed if the last process that used it has executed a
 * program, and the process for which it was made had exited before. */
static __always_inline void space__report(__u32 space)
{
	struct ap_space_record *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		stat__add(AP_STAT_PROCESSES_UNNOTICED);
		return;
	}
	record->type = AP_RECORD_SPACE;
	record->space = space;
	record->time_ns = bpf_ktime_get_ns();
	record->generation = LOAD(live.generation);
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

/* Adds what @process leaves live to what other users of its address space have left. Returns
 * whether there are no other users. */
static __always_inline bool shared_space__leave(struct process *process, bool exits, bool *is_left)
{
	__u32 space = process->space;
	struct shared_space *shared = bpf_map_lookup_elem(&shared_spaces, &space);

	if (!shared)
		return true;
	if (exits && !process->shares)
		shared->is_left = 1;
	__sync_fetch_and_add(&shared->live_bytes, process->live_bytes);
	__sync_fetch_and_add(&shared->live_blocks, process->live_blocks);
	if (__sync_fetch_and_add(&shared->users, -1) != 1)
		return false;
	process->live_bytes = shared->live_bytes;
	process->live_blocks = shared->live_blocks;
	*is_left = shared->is_left;
	bpf_map_delete_elem(&shared_spaces, &space);
	return true;
}

/* Begins a new peak generation, since what is live now may be the peak, though it has not grown by
 * the 1/128 that begins one otherwise. */
static __always_inline void live__note_peak(void)
{
	__u64 mark = LOAD(live.mark_bytes);
	__s64 now = LOAD(live.size_bytes);

	if (now > 0 && (__u64)now > mark &&
	    __sync_val_compare_and_swap(&live.mark_bytes, mark, now) == mark)
		__sync_fetch_and_add(&live.generation, 1);
}

/*
 * Ends a program by exit or exec. Live blocks stay counted while other processes use its mm. Returns
 * the number of the address space if this event has ended it, else 0.
 */
static __noinline __u32 live__end_program(struct process *process, bool exits)
{
	__u32 space = process->space;
	bool is_left = false;

	if (shared_space__leave(process, exits, &is_left)) {
		live.left_bytes = live.size_bytes;
		live.left_blocks = live.blocks;
		live__note_peak();
		__sync_fetch_and_add(&live.size_bytes, -process->live_bytes);
		__sync_fetch_and_add(&live.blocks, -process->live_blocks);
		if (is_left && !exits) {
			space__report(space);
			space = 0;
		}
	} else {
		space = 0;
	}
	process->live_bytes = 0;
	process->live_blocks = 0;
	process->shares = 0;
	return space;
}

/* Sets up the child of @parent, with an address space of its own or, with CLONE_VM, the parent's.
 * Returns false if the kernel has no memory to note that it is shared. */
static __always_inline bool live__fork(struct process *child, const struct process *parent,
				       bool shares)
{
	const struct shared_space alone = { .users = 1 };
	__u32 space = parent->space;
	struct shared_space *shared;

	if (!shares) {
		child->space = live__new_space();
		child->inherits = 1;
		return true;
	}
	/* Another thread may have added the entry. */
	bpf_map_update_elem(&shared_spaces, &space, &alone, BPF_NOEXIST);
	shared = bpf_map_lookup_elem(&shared_spaces, &space);
	if (!shared)
		return false;
	__sync_fetch_and_add(&shared->users, 1);
	child->space = space;
	child->inherits = parent->inherits;
	child->shares = 1;
	return true;
}

/*
 * The programs below are rare, so they read pointers by BPF_CORE_READ(): for each load of a pointer through a
 * trusted one the verifier searches all of the kernel's types by name, several times.
 */

/* @task's tgid in the PID namespace at @namespace_level, 0 if it has none there. */
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
	record->generation = config.live ? LOAD(live.generation) : 0;
	record->space = process->space;
	record->ended_space = ended_space;
	bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

/* Adds the process to the followed ones. Returns whether there was room for it. */
static __always_inline bool process__add(struct task_struct *task, __u32 state, __u32 event,
					 const struct process *parent, bool shares)
{
	struct process process = {
		.id = __sync_fetch_and_add(&last_process_id, 1) + 1,
		.state = state,
		.pid = task__pid_at(task, launcher_namespace_level),
		.closed = parent ? parent->closed : config.starts_closed,
		.start_ns = BPF_CORE_READ(task, start_boottime),
		.execs = BPF_CORE_READ(task, self_exec_id),
	};
	__u32 tgid = BPF_CORE_READ(task, tgid);

	process.by_other_engine = parent ? parent->by_other_engine
					 : event == AP_PROCESS_SEEDED && seed_by_other_engine;
	unprobed__begin(&process, task);
	/* A forked child has its parent's allocator; with CLONE_VM its memory, too. */
	process.is_hit = shares || (parent && parent->is_hit);
	if (config.live && parent) {
		if (!live__fork(&process, parent, shares))
			return false;
	} else if (config.live) {
		process.space = live__new_space();
	}
	if (bpf_map_update_elem(&processes, &tgid, &process, BPF_ANY)) {
		if (config.live)
			live__end_program(&process, true);
		return false;
	}
	if (state != PROCESS_COUNTED)
		return true;
	/* Another engine has already counted the process among its own. */
	if (event != AP_PROCESS_SEEDED || !process.by_other_engine)
		__sync_fetch_and_add(&processes_seen, 1);
	process__report(&process, event, parent ? parent->id : 0, 0, task, 0);
	return true;
}

/* Gives the child its parent's open regions: a forked process continues with a copy of the frames. */
static __noinline int regions__fork(__u64 parent, __u64 child)
{
	const struct ap_region_thread *thread = bpf_map_lookup_elem(&region_threads, &parent);

	if (thread && thread->n && bpf_map_update_elem(&region_threads, &child, thread, BPF_ANY))
		stat__add(AP_STAT_REGION_GAP + AP_REGION_GAP_THREADS);
	return 0;
}

/* A new thread has taken no faults. It is noted before it runs, so that none remains unseen
 * unnoticed. */
static __noinline int faults__fork(__u32 tgid, __u32 pid)
{
	const struct fault_counts none = {};

	if (bpf_map_lookup_elem(&processes, &tgid))
		fault_thread__begin((__u64)tgid << 32 | pid, &none);
	return 0;
}

/* Returns whether another program at this tracepoint has added the process. */
static __always_inline bool process__is_added(struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	const struct process *process = bpf_map_lookup_elem(&processes, &tgid);

	return process && process->start_ns == BPF_CORE_READ(task, start_boottime);
}

static __noinline int process__fork(struct task_struct *parent, struct task_struct *child,
				    enum ap_tracepoint_program program)
{
	__u32 parent_tgid = parent->tgid, tgid = BPF_CORE_READ(child, tgid);
	struct process *process;
	bool is_seen, is_added;

	is_seen = tracepoint__see(AP_TRACEPOINT_FORK, program, BPF_CORE_READ(child, pid));
	if (tgid == parent_tgid && config.faults)
		faults__fork(tgid, BPF_CORE_READ(child, pid));
	if (tgid == parent_tgid || process__is_added(child))
		return 0;
	if (launcher_armed && parent_tgid == launcher_tgid) {
		is_added = process__add(child, PROCESS_WAITING, AP_PROCESS_FORKED, NULL, false);
		goto out;
	}
	if (!config.follow)
		return 0;
	process = bpf_map_lookup_elem(&processes, &parent_tgid);
	if (!process)
		return 0;
	if (regions__are_active())
		regions__fork(bpf_get_current_pid_tgid(),
			      (__u64)tgid << 32 | (__u32)BPF_CORE_READ(child, pid));
	is_added = process__add(child, process->state, AP_PROCESS_FORKED, process,
				BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm));
out:
	if (!is_added && !is_seen)
		stat__add(AP_STAT_PROCESSES_LOST);
	if (is_added && config.faults)
		faults__fork(tgid, tgid);
	return 0;
}

/* Stops following @process, whose number is @tgid, since it executes a program that the user is
 * not allowed to trace. */
static __always_inline void process__refuse(const struct process *process, __u32 tgid,
					    struct task_struct *task)
{
	struct process ended = *process;
	__u32 ended_space = 0;

	if (bpf_map_delete_elem(&processes, &tgid))
		return;
	stat__add(AP_STAT_PROCESSES_REFUSED);
	if (config.live)
		ended_space = live__end_program(&ended, true);
	if (ended.state == PROCESS_COUNTED)
		process__report(&ended, AP_PROCESS_EXITED, 0, 0, task, ended_space);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	return process__fork(parent, child, AP_FIRST);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork_again, struct task_struct *parent, struct task_struct *child)
{
	return process__fork(parent, child, AP_AGAIN);
}

/* Returns the child of @parent with the id @pid, or NULL. A thread is not in the list of children.
 * The kernel has just appended the child; children that lost their parent may follow it. */
static __always_inline struct task_struct *task__child(struct task_struct *parent, int pid)
{
	const __u64 offset = bpf_core_field_offset(struct task_struct, sibling);
	const void *list = (void *)parent + bpf_core_field_offset(struct task_struct, children);
	struct list_head *at = BPF_CORE_READ(parent, children.prev);

	for (int i = 0; i < MOST_CHILDREN && at != list; i++) {
		struct task_struct *child = (void *)at - offset;

		if (BPF_CORE_READ(child, pid) == pid)
			return child;
		at = BPF_CORE_READ(at, prev);
	}
	return NULL;
}

SEC("tracepoint/sched/sched_process_fork")
int perf_fork(struct trace_event_raw_sched_process_fork *ctx)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct task_struct *child = task__child(parent, ctx->child_pid);

	if (child)
		return process__fork(parent, child, AP_BY_PERF);
	/* The task is a thread or, with CLONE_PARENT, a child of the parent's parent: other
	 * programs handle both. */
	tracepoint__see(AP_TRACEPOINT_FORK, AP_BY_PERF, ctx->child_pid);
	return 0;
}

/* The control group of which processes are followed; its own level of groups does not matter. */
struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} joined_group SEC(".maps");

/* Each step goes on in the name, or in the pattern, or back to the last *: fewer than this decide. */
#define MOST_STEPS (AP_COMM_LEN * AP_COMM_LEN + 1)

/* 0. Linux 6.1 verifies the function of bpf_loop() for its first step alone, and takes out what cannot
 * happen there: it must not know how a comparison begins. */
__u32 first_position;

/* The state of a comparison of a name with the pattern. */
struct name_match {
	char name[AP_COMM_LEN];
	__u32 in_name, in_pattern;
	__u32 star; /* position behind the last * in the pattern; 0: none */
	__u32 from; /* where what that stands for ends in the name */
};

/* Returns 1 if the name does not match. */
static long name__step(__u32 index, struct name_match *match)
{
	char is = match->name[match->in_name & (AP_COMM_LEN - 1)];
	char wanted = config.joins_name[match->in_pattern & (AP_COMM_LEN - 1)];

	if (wanted == '*') {
		match->star = ++match->in_pattern;
		match->from = match->in_name;
		return 0;
	}
	if (!is)
		return wanted != '\0';
	if (wanted == is || wanted == '?') {
		match->in_name++;
		match->in_pattern++;
		return 0;
	}
	if (!match->star)
		return 1;
	match->in_pattern = match->star;
	match->in_name = ++match->from;
	return 0;
}

static __always_inline bool name__is_joined(struct name_match *match)
{
	if (!config.joins_name[0])
		return true;
	match->name[AP_COMM_LEN - 1] = '\0';
	match->in_name = match->in_pattern = match->star = match->from = LOAD(first_position);
	return bpf_loop(MOST_STEPS, name__step, match, 0) == MOST_STEPS;
}

/* Returns whether @task, the current one, executes a program that is to be followed. */
static __noinline bool task__joins(struct task_struct *task)
{
	struct name_match match = {};

	if (!config.joins || (config.borrowed && !task__is_callers(task)))
		return false;
	if (!config.joins_any_user && BPF_CORE_READ(task, real_cred, uid.val) != config.joins_user)
		return false;
	if (config.joins_group && bpf_current_task_under_cgroup(&joined_group, 0) != 1)
		return false;
	bpf_core_read(match.name, sizeof(match.name), &task->comm);
	return name__is_joined(&match);
}

static __noinline int process__exec(struct task_struct *task, int old_pid,
				    enum ap_tracepoint_program program)
{
	__u32 tgid = task->tgid;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);
	__u64 execs = BPF_CORE_READ(task, self_exec_id);
	__u32 parent, ended_space = 0;

	tracepoint__see(AP_TRACEPOINT_EXEC, program, tgid);
	if (!process && task__joins(task) &&
	    !process__add(task, PROCESS_COUNTED, AP_PROCESS_EXECED, NULL, false))
		stat__add(AP_STAT_PROCESSES_LOST);
	if (!process || process->execs == execs)
		return 0;
	process->execs = execs;
	fault_thread__end((__u64)tgid << 32 | (__u32)old_pid, task, process);
	if (config.live) {
		live__end_thread((__u64)tgid << 32 | (__u32)old_pid);
		live__end_thread((__u64)tgid << 32 | tgid);
	}
	hit__end_thread((__u64)tgid << 32 | (__u32)old_pid);
	hit__end_thread((__u64)tgid << 32 | tgid);
	regions__end_thread((__u64)tgid << 32 | (__u32)old_pid);
	regions__end_thread((__u64)tgid << 32 | tgid);
	if (config.borrowed && !task__is_callers(task)) {
		process__refuse(process, tgid, task);
		return 0;
	}
	if (config.live) {
		ended_space = live__end_program(process, false);
		process->space = live__new_space();
		process->inherits = 0;
	}
	/* All other threads are gone, so that nothing else uses this entry now. */
	parent = process->state == PROCESS_COUNTED ? process->id : 0;
	process->id = __sync_fetch_and_add(&last_process_id, 1) + 1;
	process->generation = 0;
	process->exec_pages = 0;
	process->closed = config.starts_closed;
	process->is_hit = 0;
	process->by_other_engine = 0;
	process->waited_ns = 0;
	process->vain_ns = 0;
	unprobed__begin(process, task);
	if (process->state == PROCESS_WAITING) {
		process->state = PROCESS_COUNTED;
		__sync_fetch_and_add(&processes_seen, 1);
	}
	process__report(process, AP_PROCESS_EXECED, parent, (__u32)old_pid != tgid, task,
			ended_space);
	if (config.faults) {
		const struct fault_counts now = task__faults(task);

		fault_thread__begin((__u64)tgid << 32 | tgid, &now);
	}
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid)
{
	return process__exec(task, old_pid, AP_FIRST);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec_again, struct task_struct *task, int old_pid)
{
	return process__exec(task, old_pid, AP_AGAIN);
}

SEC("tracepoint/sched/sched_process_exec")
int perf_exec(struct trace_event_raw_sched_process_exec *ctx)
{
	return process__exec(bpf_get_current_task_btf(), ctx->old_pid, AP_BY_PERF);
}

static __noinline int process__exit(struct task_struct *task, enum ap_tracepoint_program program)
{
	__u32 tgid = task->tgid;
	__u64 thread = (__u64)tgid << 32 | (__u32)task->pid;
	struct process *process, ended;
	__u32 ended_space = 0;

	tracepoint__see(AP_TRACEPOINT_EXIT, program, task->pid);
	/* This is done also if the process has ended: its last two threads may exit at once. */
	if (config.live)
		live__end_thread(thread);
	hit__end_thread(thread);
	regions__end_thread(thread);
	process = bpf_map_lookup_elem(&processes, &tgid);
	fault_thread__end(thread, task, process);
	if (!process)
		return 0;
	/* do_exit() has decremented the count before the tracepoint: at 0 no thread of the process
	 * returns to user space. The last two threads may both see 0: the one that deletes the map
	 * entry ends the process. */
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	ended = *process;
	if (bpf_map_delete_elem(&processes, &tgid))
		return 0;
	if (config.live)
		ended_space = live__end_program(&ended, true);
	if (ended.state != PROCESS_COUNTED)
		return 0;
	unprobed__end(&ended, task);
	process__report(&ended, AP_PROCESS_EXITED, 0, 0, task, ended_space);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	return process__exit(task, AP_FIRST);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit_again, struct task_struct *task)
{
	return process__exit(task, AP_AGAIN);
}

SEC("tracepoint/sched/sched_process_exit")
int perf_exit(void *ctx)
{
	return process__exit(bpf_get_current_task_btf(), AP_BY_PERF);
}

/* The program at INSIDE_BEGINS (inside_abi.h), which a process passes before its first call that
 * the other engine counts. */
SEC("uprobe")
int program_begins(struct pt_regs *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);
	struct ap_program_record *record;

	kernel_stack__use(ctx);
	if (!process || process->state != PROCESS_COUNTED)
		return 0;
	process->by_other_engine = 1;
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		stat__add(AP_STAT_PROCESSES_UNNOTICED);
		return 0;
	}
	record->type = AP_RECORD_PROGRAM;
	record->id = process->id;
	record->program = arch__arg1(ctx);
	record->pad = 0;
	bpf_ringbuf_submit(record, 0);
	return 0;
}

/* The program that finds seed_pid in allocprof's PID namespace. User space runs it in allocprof's
 * own context, by reading the iterator. */
SEC("iter/task")
int seed_process(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_struct *self = bpf_get_current_task_btf();
	__u32 level, tgid;

	if (!task || task->pid != task->tgid)
		return 0;
	level = BPF_CORE_READ(self, thread_pid, level);
	if (task__pid_at(task, level) != seed_pid)
		return 0;
	launcher_namespace_level = level;
	tgid = task->tgid;
	if (seed_is_launcher)
		launcher_tgid = task->tgid;
	else if (config.borrowed && seed_state == PROCESS_COUNTED && !task__is_callers(task))
		seed_refused = 1;
	else if (!bpf_map_lookup_elem(&processes, &tgid) &&
		 !process__add(task, seed_state, AP_PROCESS_SEEDED, NULL, false))
		stat__add(AP_STAT_PROCESSES_LOST);
	seed_found = 1;
	return 0;
}
