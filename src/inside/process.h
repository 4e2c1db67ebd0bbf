/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Knows whether the process that this library is in is measured, and what its threads count. */
#ifndef ALLOCPROF_INSIDE_PROCESS_H
#define ALLOCPROF_INSIDE_PROCESS_H

#include <linux/types.h>
#include <stdbool.h>

#include "inside_abi.h"
#include "memory.h"
#include "sys.h"

/*
 * The claim of a call on a thread's memory. A signal handler may interrupt the call, call the
 * allocator again, and leave by a jump (siglongjmp(3)); then nobody gives the memory back.
 */

/* The struct is in the stack frame of the call. */
struct claim {
	__u64 sign;	    /* CLAIM_SIGN ^ the struct's address */
	const __u64 *frame; /* of the function that the program has called (processor.h) */
	__u64 return_address;
};

#define CLAIM_SIGN 0x6d69616c6361704fULL

/* Fills the claim. Returns its address. */
static inline __u64 claim__sign(struct claim *claim, const __u64 *frame)
{
	__u64 address = (__u64)claim;

	claim->frame = frame;
	claim->return_address = frame[1];
	__atomic_store_n(&claim->sign, CLAIM_SIGN ^ address, __ATOMIC_RELEASE);
	/* cppcheck-suppress uninitvar ; nothing reads what was filled in here */
	return address;
}

/* To be called when the call ends: else its place on the stack would look like the claim of a call
 * that a jump has left. */
static inline void claim__end(struct claim *claim)
{
	__atomic_store_n(&claim->sign, 0, __ATOMIC_RELEASE);
}

/* The last call of a counted function, kept while an allocator's own functions are counted, too:
 * such a function may end in a jump to another one, which must not count again. */
struct last_call {
	__u64 sp; /* frame__sp() of its frame; 0: none */
	__u64 return_address, pointer, size_bytes;
	__u32 function; /* number of the function; after jumps that of the first one */
};

/* How many calls of a thread can be under way. Signals have interrupted all but the last one; also
 * counts calls that a jump has left and that may still go on as far as is known. */
#define THREAD_CLAIMS 16

/* The state of one thread. A thread that begins later takes over the memory of an ended thread:
 * one of the same name all of it, any other thread only the parts without counters. */
struct thread {
	struct inside_thread *shared;
	struct thread *next;	 /* next struct of the process */
	struct thread *namesake; /* the next of those that are counted under the same name */
	__u32 tid;
	/* Addresses of the claims of the calls that are under way; 0: none. The first call uses
	 * this struct, each other one a stand-in. Only the thread itself and its signal handlers
	 * write these words. */
	__u64 claims[THREAD_CLAIMS];
	/* In a stand-in: the address of the thread that uses it, plus the index of that thread's
	 * claim; 0: nobody uses it. */
	__u64 lent;
	/* How many calls have skipped the search for claims that a jump has left, since the last
	 * search, and how many are to skip it before the next one. */
	__u32 n_passed, n_to_pass;
	/* Only with stacks. The counts are shared->counts as this process has mapped them. */
	struct walker *walker;
	struct table counts; /* struct inside_count; shared->counts */
	struct inside_count *last_count;
	/* Only with --live. */
	struct table records, lifetimes; /* shared->records, shared->lifetimes */
	struct inside_lifetime *last_lifetime;
	/* Finds the entries of @records by record number: a hash table with twice as many slots. */
	struct indexed {
		__u32 record; /* 0: free */
		__u32 at;
	} * index;
	struct live_memory *live;
	/* The thread itself, or the one that this is a stand-in for. */
	struct thread *owner;
	/* The part of the thread's live sums that is not in struct inside_live yet. */
	__s64 live_bytes, live_blocks;
	/* The part of these sums that another thread has added to struct inside_live, when it made
	 * the process have two threads. */
	__s64 given_bytes, given_blocks;
	__u32 number, sequence; /* as in struct ap_thread; in a stand-in the owner's */
	__u64 random;		/* state of the thread's random numbers, with sampling */
	/* With events: the chunk that the thread adds its events to, and the place of the next one;
	 * NULL: it has none. */
	__u32 *chunk_state;
	struct inside_event *next_event, *events_end;
	struct last_call last_call;
	/* The call of a domain's function that is under way, beneath which no other call counts; only sp and
	 * return_address are set. */
	struct last_call outermost;
	struct inside_thread_defined
		*defined;	 /* shared->defined; NULL: no definition has a domain */
	struct regions *regions; /* NULL: the thread has begun no region */
};

/* The state that does not change between forks. All of it is written before @alive points to a word of 1. */
struct process {
	/* Points to a word that the kernel clears in a forked child. The word is 0 until the
	 * process is measured. */
	volatile __u32 *alive;
	struct inside_header *header;
	__u32 program; /* number of its struct inside_program */
	bool inherits; /* the process is a forked child */
	__u32 mode;    /* enum inside_mode */
	bool has_stacks;
	bool within; /* only calls beneath a function of --within count */
	bool walks;  /* has_stacks or within */
	bool samples;
	bool events;
	__u32 count_bytes,
		record_bytes; /* size in bytes of an entry of thread->counts and thread->records */
	__u64 recorded;
	/* Offset from processor__thread_data() to the thread's number; 0: the dynamic linker provides
	 * @self, and clears it in new threads. */
	__u64 tid_offset;
};

extern struct process process __attribute__((visibility("hidden")));
extern __thread struct thread *self
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The tid of a struct thread that a child of vfork(2) has begun: its parent, whose number is
 * another one, goes on using it. */
#define PARENT_THREAD 0xfffffffe

/* Returns false if @thread, to which @self points, belongs to an ended thread on whose stack the
 * calling thread runs: a thread that ends may call the allocator after the C library has cleared
 * the words that identify it. */
static inline bool thread__is_own(const struct thread *thread)
{
	__u32 tid;

	if (likely(!process.tid_offset))
		return true;
	tid = processor__thread_word(process.tid_offset);
	return thread->tid == tid || thread->tid == PARENT_THREAD;
}

/* Begins to measure the process, if there is a measurement, and the calling thread. NULL: it is
 * not measured. */
struct thread *thread__begin(void);

/* Returns the calling thread's struct; NULL if the thread is not measured. */
static inline struct thread *thread__current(void)
{
	struct thread *thread = self;

	if (likely(thread && *process.alive && thread__is_own(thread)))
		return thread;
	return thread__begin();
}

/* To be called for a call that finds the calling thread claimed. Returns a stand-in, or the thread
 * itself if a jump has left the call that claimed it. NULL if there is no memory, or too many
 * calls are under way. */
struct thread *thread__stand_in(struct thread *thread, const struct claim *claim);

/* Gives back the stand-in that thread__stand_in() has returned. */
void thread__give_back(struct thread *stand_in);

/* Returns whether a signal has interrupted a call that changes @thread, which is the calling
 * thread's. @claim is a claim of the caller. */
bool thread__is_claimed(struct thread *thread, const struct claim *claim);

/* Returns whether only one thread of one process has been measured so far. */
bool process__is_alone(void);

/* To be called when other threads or processes may count from now on. */
void process__is_joined(void);

/* Returns this process's entry in the shared memory, which allocprof reads. */
struct inside_program *process__program(void);

/* Stores the sums over the process's live blocks that its threads have added to struct inside_live
 * so far. */
void process__sum_published(__s64 *blocks, __s64 *size_bytes);

/* Returns whether this is the measured process itself, and not a child of vfork(2), which uses the
 * same memory. */
bool process__is_itself(void);

/* Returns the number of this process if it is a child of vfork(2) that uses the memory of a
 * measured process; else 0. */
__u32 process__child(void);

/* Returns the directory of the measurement; NULL before thread__begin(), and if the process is not
 * measured. */
const char *process__directory(void);

/* Returns whether the programs that the process executes are to be measured. */
bool process__follows(void);

/* Reports a program whose calls are not counted here, by path and reason. Returns true if another
 * engine counts them, beginning with the next exec of this process or of a child that it makes. */
bool process__note_refusal(const char *path, enum inside_refusal reason);

/* Begins to measure a process that runs already, while its other threads are stopped. Returns 0 or
 * -ENOMEM. */
int process__attach(__u64 memory, __u64 tables);

/* Ends counting: calls count no more, and new threads are not measured. */
void process__detach(void);

/* To be called after process__detach(), when no thread is within this library: unmaps all memory
 * that the library has mapped. */
void process__clean(void);

/* From now on @keep keeps each thread's struct as thread-specific data under @key
 * (pthread_setspecific(3)), where @self is, too: so the C library clears it when the thread ends.
 * @tid_offset is where a thread has its number, from processor__thread_data(). */
typedef int (*process_keep_fn)(__u32 key, const void *value);
void process__keep_threads(process_keep_fn keep, __u32 key, __u64 tid_offset);

/* The constructor of this library, which the dynamic linker calls. */
void process__loaded(void);

/* To be called when the memory of this library is about to be replaced: the process is not
 * measured any more. */
void process__give_up(void);

/* To be called when the name of the process or of the calling thread has changed. */
void process__renamed(void);

/* To be called in the child of a fork, also if it never allocates. */
void process__forked(void);

/* Returns the thread's counters of the function. */
static inline __attribute__((always_inline)) struct ap_site_counts *
thread__counts(struct thread *thread, enum ap_function function)
{
	return function < AP_DEFINED ? &thread->shared->functions[function]
				     : &thread->defined->functions[function - AP_DEFINED];
}

/* Returns the first of all threads of the process that were measured, which are linked by next. */
const struct thread *process__first_thread(void);

/* Functions that process.c, stand_ins.c and figures.c share. */

/* Returns the first of all stand-ins of the process, which are linked by next. */
struct thread *stand_ins__first(void);

/* To be called in a forked child, whose only thread has no stand-ins. */
void stand_ins__forget(void);

/* To be called when a thread takes over the memory of an ended one: the ended thread's claims are
 * dropped. */
void thread__drop_claims(struct thread *thread);

/* The functions below are in process.c. */

/* Makes a thread's memory with counters of its own; NULL if there is no room. */
struct thread *thread__new(__u32 tid, const char *comm);

/* Gives a thread or stand-in a walker before anybody else uses it: @take tries to take one from
 * another thread. Returns false if there is no memory. */
bool thread__have_walker(struct thread *thread, bool (*take)(struct thread *thread));

/* Gives @thread those parts of @from that have nothing to do with counters: its walker, and what
 * it remembers of entries. */
void thread__give(struct thread *thread, struct thread *from);

bool thread__has_comm(const struct thread *thread, const char *comm);

/* Puts the thread in front of a list that only grows. */
void thread__push(struct thread **list, struct thread *thread);

#endif
