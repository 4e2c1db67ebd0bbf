/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of followed processes. Keys are tgids of the initial PID namespace, which user space inside
 * another namespace cannot know. Also the marks of processes for tracepoints and for programs that took memory without hitting a
 * probe, and whether the user of a borrowed privilege could trace a process.
 */
#ifndef ALLOCPROF_PROCESS_BPF_H
#define ALLOCPROF_PROCESS_BPF_H

#include "maps.bpf.h"
#include "tracepoint_abi.h"

enum process_state {
	PROCESS_COUNTED,
	PROCESS_WAITING, /* forked by allocprof to run the command, not exec'ed yet */
};

struct process {
	__u32 id; /* program id */
	__u32 state;
	__u32 pid; /* in allocprof's PID namespace */
	/* @generation and @exec_pages identify one state of the process's executable mappings;
	 * cached mappings of another state are invalid. */
	__u32 generation;
	__u64 exec_pages;
	__u32 closed; /* 1: its measured window is closed */
	/* These tell the process from an earlier one with the same id, and its programs from each
	 * other. */
	__u64 start_ns, execs;
	/* For mappings: number of brk(2) calls under way, and the current end of the heap. */
	__s32 brk_calls;
	__u64 brk;
	/* The next three only with --live. */
	__u32 space;	/* number of the address space */
	__u32 shares;	/* 1: the address space was another process's before (CLONE_VM, vfork) */
	__u32 inherits; /* 1: forked, and has copies of its parent's blocks */
	/* The fields below are for unprobed.bpf.c. */
	__u32 is_hit; /* 1: the program, or the one that it was forked from, has hit a probe */
	/* 1: another engine counts its calls. An exec ends this state, a fork does not. */
	__u32 by_other_engine;
	__u64 first_data_pages, first_brk_bytes; /* memory that it had mapped at its exec or fork */
	__u64 taken_bytes; /* memory taken, noted when its last thread released the mm */
	/* How long the process has waited for tables since its exec (wait_abi.h): in all, and
	 * lately in vain. */
	__u64 waited_ns, vain_ns;
	/* With --live: the process's part of the run's live bytes and blocks. They are last, since
	 * all threads add to them, and every hit reads what is above. */
	__s64 live_bytes, live_blocks;
};

DECLARE_MAP(processes, HASH, 65536, BPF_F_NO_PREALLOC, __u32, struct process);

/* The process that seed_process() searches for, in allocprof's PID namespace. */
extern __u32 seed_pid;

/* Returns 1 if config.user could trace the current process now; see task__is_callers(). */
int process__is_callers(void);

/*
 * Returns the current process, or NULL if its calls do not count here. With borrowed privileges
 * each hit is judged: a check at the exec alone might be skipped, since the kernel does not nest a
 * program.
 */
static __always_inline struct process *process__current(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *process = bpf_map_lookup_elem(&processes, &tgid);

	if (!process || process->state != PROCESS_COUNTED || process->by_other_engine)
		return NULL;
	if (config.borrowed && !process__is_callers())
		return NULL;
	return process;
}

/* Works like process__current(), at a probe of an allocator: notes that the process has hit one. */
static __always_inline struct process *process__hit(void)
{
	struct process *process = process__current();

	if (process && !process->is_hit)
		process->is_hit = 1;
	return process;
}

/* The code below notices changes of a process's mappings, after which cached mappings are invalid. */

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

/* Returns the kernel's count of changes of the process's mappings; 0 if it has none. */
__u32 mm__seq(void);

/* Returns a number that changes with each change of the process's mappings, also when a heap
 * grows; 0 if on_map() is attached, or the kernel has no such count. */
static __always_inline __u32 mappings__seq(void)
{
	return on_map_is_attached ? 0 : mm__seq();
}

/* Shared by the programs at the tracepoints of fork, exec and exit (tracepoint_abi.h). */

/* Number of events at a tracepoint whose marks are kept, a power of two: the leading program leaves a mark for each. */
#define EVENTS_KNOWN 1024

/* The program that is attached first; user space sets it before it attaches the others. */
extern __u32 leading_program;
/* Events that the leading program has not seen, but another has. The kernel counts how often it
 * skipped the leading program; the difference is the number of events that none has seen. */
extern __u64 events_rescued[AP_TRACEPOINTS];
extern __u32 events_seen[AP_TRACEPOINTS][EVENTS_KNOWN]; /* ids of tasks, or 0 */

/* Notes that @program sees the event of the task @pid at @at. Returns whether another program has seen it before. */
static __always_inline bool tracepoint__see(enum ap_tracepoint at,
					    enum ap_tracepoint_program program, __u32 pid)
{
	__u32 *seen = &events_seen[at][pid % EVENTS_KNOWN];
	bool is_leading = program == LOAD(leading_program), is_seen;

	if (!config.preempts)
		return false;
	is_seen = !is_leading && LOAD(*seen) == pid;
	if (!is_leading && !is_seen)
		__sync_fetch_and_add(&events_rescued[at], 1);
	/* The last program removes the mark: the task may come here again, or another task may get
	 * its id. */
	LOAD(*seen) = program == AP_AGAIN ? 0 : pid;
	return is_seen;
}

/*
 * The functions below find programs that take memory from the kernel without ever hitting a probe:
 * their allocator is unknown or has no symbols. They are checked when they end, by exit or exec,
 * and when the recording ends. A program that allocates nothing takes hardly any memory.
 */

/* How much memory programs take that allocate nothing. A static C library grows the heap for
 * thread-local storage, glibc by less than a page. A dynamic linker maps the libraries' data: some
 * 100 KiB for the C library, 50 more for OpenSSL. */
#define START_BRK_BYTES	 4096
#define START_DATA_PAGES 64

static __always_inline __u64 mm__brk_bytes(struct mm_struct *mm)
{
	return BPF_CORE_READ(mm, brk) - BPF_CORE_READ(mm, start_brk);
}

/* Notes the memory of a new program. */
static __always_inline void unprobed__begin(struct process *process, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	process->taken_bytes = 0;
	if (!mm)
		return;
	process->first_data_pages = BPF_CORE_READ(mm, data_vm);
	process->first_brk_bytes = mm__brk_bytes(mm);
}

/* Returns how much memory the program has taken so far, or 0 if a program that allocates nothing
 * might take as much. */
static __always_inline __u64 unprobed__taken(const struct process *process, struct mm_struct *mm)
{
	__u64 pages = BPF_CORE_READ(mm, data_vm) - process->first_data_pages;
	__u64 brk_bytes = mm__brk_bytes(mm) - process->first_brk_bytes;

	if ((__s64)pages < 0)
		pages = 0;
	if ((__s64)brk_bytes <= START_BRK_BYTES && pages < START_DATA_PAGES)
		return 0;
	return pages << 12;
}

static __always_inline void unprobed__report(const struct process *process,
					     struct task_struct *task, __u64 taken_bytes)
{
	struct ap_unprobed_record *record;

	if (!taken_bytes)
		return;
	stat__add(AP_STAT_UNPROBED);
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	/* Without a record the process still counts as unprobed, but is not named. */
	if (!record)
		return;
	record->type = AP_RECORD_UNPROBED;
	record->pid = process->pid;
	record->size_bytes = taken_bytes;
	bpf_core_read(record->comm, sizeof(record->comm), &task->comm);
	bpf_ringbuf_submit(record, 0);
}

/* Called when the process exits. Before Linux 6.16 its mm is gone by now. */
static __always_inline void unprobed__end(const struct process *process, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (config.finds_unprobed && !process->is_hit && !process->by_other_engine)
		unprobed__report(process, task,
				 mm ? unprobed__taken(process, mm) : process->taken_bytes);
}

/* Returns the current process if it has not hit a probe, else NULL. */
static __always_inline struct process *unprobed__current(void)
{
	struct process *process = process__current();

	return process && !process->is_hit ? process : NULL;
}

/*
 * The functions below decide which processes may be measured for a user who runs allocprof by file
 * capabilities: those that ptrace(2) would let the user trace without capabilities, as
 * __ptrace_may_access() of the kernel does.
 */

static __always_inline bool mm__is_dumpable(struct mm_struct *mm)
{
	struct mm_struct___6_18 *mm_6_18 = (void *)mm;
	struct mm_struct___5_17 *mm_5_17 = (void *)mm;
	unsigned long flags = 0;

	if (!mm)
		return false;
	if (bpf_core_field_exists(mm_6_18->flags))
		bpf_core_read(&flags, sizeof(flags), &mm_6_18->flags);
	else
		bpf_core_read(&flags, sizeof(flags), &mm_5_17->flags);
	return (flags & MMF_DUMPABLE_MASK) == SUID_DUMP_USER;
}

/*
 * Returns whether the credentials give the process no more rights than the user has. Capabilities
 * in a user namespace that the user has made do not count, since the user has all of them there;
 * all other capabilities do.
 */
static __always_inline bool cred__is_callers(const struct cred *cred)
{
	__u64 permitted = ~0ULL;

	if (!cred || BPF_CORE_READ(cred, uid.val) != config.user ||
	    BPF_CORE_READ(cred, euid.val) != config.user ||
	    BPF_CORE_READ(cred, suid.val) != config.user ||
	    BPF_CORE_READ(cred, gid.val) != config.group ||
	    BPF_CORE_READ(cred, egid.val) != config.group ||
	    BPF_CORE_READ(cred, sgid.val) != config.group)
		return false;
	bpf_core_read(&permitted, sizeof(permitted), &cred->cap_permitted);
	return !permitted || BPF_CORE_READ(cred, user_ns, owner.val) == config.user;
}

static __always_inline bool task__is_callers(struct task_struct *task)
{
	return cred__is_callers(BPF_CORE_READ(task, real_cred)) &&
	       mm__is_dumpable(BPF_CORE_READ(task, mm));
}

#endif
