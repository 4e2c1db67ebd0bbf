/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The process that this library is in: whether it is measured, and what its threads count. */
#ifndef ALLOCPROF_INSIDE_PROCESS_H
#define ALLOCPROF_INSIDE_PROCESS_H

#include <linux/types.h>
#include <stdbool.h>

#include "inside_abi.h"
#include "memory.h"
#include "sys.h"

/*
 * A call that has a thread's memory for itself. A signal's handler may interrupt it, call the allocator again, and leave by a jump
 * (siglongjmp(3)), after which nobody gives the memory back.
 */

/* Lies in the stack of the call. */
struct claim {
	__u64 sign; /* CLAIM_SIGN ^ the struct's address */
	/* The frame of the function that the program has called: its caller's frame pointer, and the return address. */
	const __u64 *frame;
	__u64 return_address;
};

#define CLAIM_SIGN 0x6d69616c6361704fULL

/* Returns the claim's address. */
static inline __u64 claim__sign(struct claim *claim, const __u64 *frame)
{
	__u64 address = (__u64)claim;

	claim->frame = frame;
	claim->return_address = frame[1];
	__atomic_store_n(&claim->sign, CLAIM_SIGN ^ address, __ATOMIC_RELEASE);
	/* cppcheck-suppress uninitvar ; what was filled here is not read. */
	return address;
}

/* Afterwards, or its place would look as that of an earlier call that a jump has left. */
static inline void claim__end(struct claim *claim)
{
	__atomic_store_n(&claim->sign, 0, __ATOMIC_RELEASE);
}

/* Whether the call whose claim is at @address, and which has not ended, will never go on. False if it may. @now is a claim of the
 * calling function. */
bool claim__is_gone(__u64 address, const struct claim *now);

/* The last call of a counted function, while an allocator's own functions are counted, too: such a function may end in
 * a jump to another one. */
struct last_call {
	const __u64 *frame;
	__u64 return_address, pointer, size_bytes;
	__u32 function; /* a number of its own; of jumps the first one's */
};

/* Calls of a thread that are under way, of which signals have interrupted all but the last, and those that a jump has left and that
 * may go on as far as is known. */
#define THREAD_CLAIMS 16

/* A thread's own state. The memory is used again by a thread that begins after it has ended: by one of the same name, and what
 * has nothing to do with counters by any. */
struct thread {
	struct inside_thread *shared;
	struct thread *next;	 /* of the process */
	struct thread *namesake; /* the next one of those that are counted by the same name */
	__u32 tid;
	/* Addresses of the struct claim of the calls that are under way; 0: none. That of the first changes what is here, that of
	 * each other one a stand-in. Only the thread itself writes them, and its signals' handlers. */
	__u64 claims[THREAD_CLAIMS];
	/* A stand-in has here the thread that uses it, plus the index of that thread's claim; 0: nobody uses it. */
	__u64 lent;
	/* Calls that passed by what a jump may have left, since one has looked, and how many are to before the next one looks. */
	__u32 n_passed, n_to_pass;
	/* Only with stacks; the counts are shared->counts as this process has them mapped. */
	struct walker *walker;
	struct table counts; /* struct inside_count; shared->counts */
	struct inside_count *last_count;
	/* Only when blocks are followed. */
	struct table records, lifetimes; /* shared->records, shared->lifetimes */
	struct inside_lifetime *last_lifetime;
	/* Entries of @records by number: a hash table with twice their room. */
	struct indexed {
		__u32 record; /* 0: free */
		__u32 at;
	} * index;
	struct live_memory *live;
	/* The thread itself, or the one that this is a stand-in for. */
	struct thread *owner;
	/* Sums of the thread's live blocks that are not in struct inside_live yet. */
	__s64 live_bytes, live_blocks;
	/* The part of them that another thread has added there, before it added its own. */
	__s64 given_bytes, given_blocks;
	__u32 number, sequence; /* as in struct ap_thread; the owner's count */
	__u64 random;		/* state of its random numbers, with sampling */
	struct last_call last_call;
	struct regions *regions; /* NULL: it has begun none */
};

/* What does not change between forks; all of it is written before @alive points to a word of 1. */
struct process {
	/* A word that the kernel clears in a forked child; 0 until the process is measured. */
	volatile __u32 *alive;
	struct inside_header *header;
	__u32 program; /* number */
	bool inherits; /* it is a forked child */
	__u32 mode;    /* enum inside_mode */
	bool has_stacks;
	bool within; /* only calls beneath a function of --within count */
	bool walks;  /* has_stacks or within */
	bool samples;
	__u32 count_bytes,
		record_bytes; /* size of an entry of thread->counts and thread->records */
	__u64 recorded;
	/* Where a thread has its number, from the address in FS; 0: the dynamic linker keeps @self, and clears it in a new thread. */
	__u64 tid_offset;
};

extern struct process process __attribute__((visibility("hidden")));
extern __thread struct thread *self
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The tid of a struct thread that a child of vfork(2) has begun: its parent goes on with it, and has another number. */
#define PARENT_THREAD 0xfffffffe

/* False where @thread, which @self leads to, is that of an ended one on whose stack the calling thread runs: an ending thread may call
 * the allocator when the C library has cleared the words of its own. */
static inline bool thread__is_own(const struct thread *thread)
{
	__u32 tid;

	if (likely(!process.tid_offset))
		return true;
	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(tid) : "r"(process.tid_offset));
	return thread->tid == tid || thread->tid == PARENT_THREAD;
}

/* Begins to measure the process, if there is a measurement, and the thread. NULL: it is not measured. */
struct thread *thread__begin(void);

/* The calling thread; NULL if it is not measured. */
static inline struct thread *thread__current(void)
{
	struct thread *thread = self;

	if (likely(thread && *process.alive && thread__is_own(thread)))
		return thread;
	return thread__begin();
}

/* For a call that finds the calling thread claimed: a stand-in, or the thread where a jump has left that. NULL if there is no memory,
 * or as many calls are under way as may be. */
struct thread *thread__stand_in(struct thread *thread, const struct claim *claim);

/* A stand-in that thread__stand_in() returned is not used any more. */
void thread__give_back(struct thread *stand_in);

/* Whether a signal interrupted a call of @thread, the calling one, that changes what is there. @claim is one of the caller's. */
bool thread__is_claimed(struct thread *thread, const struct claim *claim);

/* Whether there has been one thread of one process only. */
bool process__is_alone(void);

/* Others may count from now on. */
void process__is_joined(void);

/* The entry of this process's program in the shared memory, which allocprof reads. */
struct inside_program *process__program(void);

/* Sums over the process's live blocks that its threads have already added to struct inside_live. */
void process__sum_published(__s64 *blocks, __s64 *size_bytes);

/* Whether this is the process that was measured from its begin on, and not a child of vfork(2), which has its
 * memory. */
bool process__is_itself(void);

/* Number of this process, if it is a child of vfork(2) that has the memory of a measured one; else 0. */
__u32 process__child(void);

/* Directory of the measurement; NULL before thread__begin(), and where the process is not measured. */
const char *process__directory(void);

/* Whether what the process executes is to be measured. */
bool process__follows(void);

/* Names a program whose calls do not come here, or not those of the process that executes it. True: another
 * engine counts them, from the next exec of this process or of a child that it makes on. */
bool process__note_refusal(const char *path, enum inside_refusal reason);

/* Begins to measure a process that runs already; other threads are stopped. 0 or -ENOMEM. */
int process__attach(__u64 memory, __u64 tables);

/* Nothing is counted any more, and threads begin no more. */
void process__detach(void);

/* Afterwards, when no thread is within this library: unmaps all that it has mapped. */
void process__clean(void);

/* The thread's struct, which @keep keeps as thread-specific data (pthread_setspecific(3)): where @self is, so that the C library
 * clears it when the thread ends; and where a thread has its number. */
typedef int (*process_keep_fn)(__u32 key, const void *value);
void process__keep_threads(process_keep_fn keep, __u32 key, __u64 tid_offset);

/* The dynamic linker calls it when it has loaded this library. */
void process__loaded(void);

/* The memory of this library is about to be replaced: nothing of the process is counted any more. */
void process__give_up(void);

/* The process has another name, or the calling thread. */
void process__renamed(void);

/* In the child of a fork, which may never allocate. */
void process__forked(void);

/* Threads' state that process.c and stand_ins.c share. */

/* All stand-ins of the process, linked by next. */
struct thread *stand_ins__first(void);

/* In a forked child, whose only thread has none. */
void stand_ins__forget(void);

/* A thread begins with the memory of one that has ended: so have its calls. */
void thread__drop_claims(struct thread *thread);

/* The functions below are in process.c. */

/* A thread's memory, with counters of their own; NULL if there is none. */
struct thread *thread__new(__u32 tid, const char *comm);

/* Before a thread, or a stand-in, that nobody else has counts: @take tries to give it the walker of another one. False: there is no
 * memory. */
bool thread__have_walker(struct thread *thread, bool (*take)(struct thread *thread));

/* Gives @thread what another one has that has nothing to do with the counters: its walker, and what it knows of entries. */
void thread__give(struct thread *thread, struct thread *from);

bool thread__has_comm(const struct thread *thread, const char *comm);

/* Puts the thread before the others of a list that only grows. */
void thread__push(struct thread **list, struct thread *thread);

#endif
