// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Gives each call memory of a thread to itself while it counts: the thread's own, or that of a stand-in, if a signal interrupted
 * another call of the thread. Two calls never have the same:
 *
 * - What a claim of a thread stands for, itself or the stand-in that is lent to that claim, only the call uses whose claim it is.
 * - A claim is taken by one instruction, from 0, and only the call that has it sets it to 0 again, or drop_claim().
 * - That drops claims of calls that will never go on: of threads that have ended, and those for which claim__is_gone() says so. Between
 *   this answer and the drop no handler of the thread runs, and other threads do not touch its claims.
 *
 * A call ends in the thread in which it began, as the C library's allocator has it, too.
 */
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/errno.h>

#include "live.h"
#include "process.h"
#include "stack.h"
#include "sys.h"
#include "walk.h"

/* Returns whether @inner is further in than @outer on the alternate signal stack: nothing but
 * handlers' frames is on it. */
static bool is_further_in(__u64 inner, __u64 outer)
{
	stack_t signals = { 0 };

	if (inner >= outer || sys(__NR_sigaltstack, 0, (long)&signals, 0, 0, 0, 0))
		return false;
	return inner >= (__u64)signals.ss_sp && outer - (__u64)signals.ss_sp < signals.ss_size;
}

/*
 * Returns whether a call will certainly never go on. A call owns its part of the stack, from its
 * claim to its frame, until it returns. So it will not go on if another call that has not
 * ended owns a part of the same memory, or if its claim there has been overwritten. Which of two
 * calls is further out is concluded only on the one stack that the kernel knows: a handler may run
 * on a stack above the one that it interrupts, and a program may switch to other stacks in a
 * handler, and come back. If a jump has left a call and nobody has used that part of the stack
 * since, the call is assumed to go on.
 */
static bool claim__is_gone(__u64 address, const struct claim *now)
{
	__u64 return_address, frame;
	struct claim claim;
	long size = memory__read_some(address, &claim, sizeof(claim));

	if (size < 0 && size != -EFAULT)
		return false;
	if (size != sizeof(claim) || claim.sign != (CLAIM_SIGN ^ address))
		return true;
	frame = (__u64)claim.frame;
	if (address < (__u64)(now->frame + FRAME_WORDS) &&
	    (__u64)now < frame + FRAME_WORDS * sizeof(*claim.frame))
		return true;
	size = memory__read_some(frame + sizeof(*claim.frame), &return_address,
				 sizeof(return_address));
	if (size < 0 && size != -EFAULT)
		return false;
	return size != sizeof(return_address) || return_address != claim.return_address ||
	       is_further_in(address, (__u64)now);
}

static struct thread *stand_ins;

struct thread *stand_ins__first(void)
{
	return __atomic_load_n(&stand_ins, __ATOMIC_ACQUIRE);
}

void stand_ins__forget(void)
{
	stand_ins = NULL;
}

/* The value of @lent while another stand-in takes over the memory of this idle one. */
#define LENT_TO_GIVE 1

/* Takes the walker of an idle stand-in for the stand-in @thread. */
static bool take_from_idle(struct thread *thread)
{
	struct thread *from = __atomic_load_n(&stand_ins, __ATOMIC_ACQUIRE);

	for (; from && !thread->walker; from = from->next) {
		__u64 none = 0;

		if (!from->walker ||
		    !__atomic_compare_exchange_n(&from->lent, &none, LENT_TO_GIVE, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		thread__give(thread, from);
		__atomic_store_n(&from->lent, 0, __ATOMIC_RELEASE);
	}
	return thread->walker;
}

/* Forgets what the walker remembers, since a jump may have left it half written. */
static void forget(struct thread *thread)
{
	thread->last_count = NULL;
	thread->last_lifetime = NULL;
	if (thread->walker)
		walker__forget(thread->walker);
	if (thread->live)
		live_memory__forget(thread->live);
}

static __u64 lent_to(const struct thread *thread, __u32 index)
{
	return (__u64)thread + index;
}

static struct thread *find_lent(__u64 lent)
{
	struct thread *other = __atomic_load_n(&stand_ins, __ATOMIC_ACQUIRE);

	while (other && __atomic_load_n(&other->lent, __ATOMIC_RELAXED) != lent)
		other = other->next;
	return other;
}

/* Drops a claim whose call will never go on. */
static void drop_claim(struct thread *thread, __u32 index)
{
	struct thread *other = index ? find_lent(lent_to(thread, index)) : thread;

	if (other)
		forget(other);
	if (other && index)
		__atomic_store_n(&other->lent, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&thread->claims[index], 0, __ATOMIC_RELAXED);
}

void thread__drop_claims(struct thread *thread)
{
	for (__u32 i = 0; i < THREAD_CLAIMS; i++)
		if (thread->claims[i])
			drop_claim(thread, i);
}

/*
 * Gives up the claims of calls that will never go on, and returns whether there were any. Signals
 * are blocked, since a handler could take such a claim between the answer and the drop; if the
 * target forbids that, nothing is done.
 */
static bool give_up_left(struct thread *thread, const struct claim *now)
{
	bool found = false;
	__u64 signals;

	if (!sys__block_signals(&signals))
		return false;
	for (__u32 i = 0; i < THREAD_CLAIMS; i++) {
		if (!thread->claims[i] || !claim__is_gone(thread->claims[i], now))
			continue;
		drop_claim(thread, i);
		found = true;
	}
	sys__restore_signals(signals);
	return found;
}

/* How many interrupted calls a thread may have before this library does no more slow work for it.
 * Slow work may take longer than the time between two signals: without a limit handlers would
 * interrupt each other until the stack is full. */
#define MOST_INTERRUPTED 2

/* Largest number of calls between two searches. A search takes system calls, and a signal that
 * comes meanwhile is delivered when the search has ended. So the interval grows with each search
 * that has found nothing. */
#define MOST_PASS 64

static void look_for_left(struct thread *thread, const struct claim *claim)
{
	if (thread->n_passed < thread->n_to_pass) {
		thread->n_passed++;
		return;
	}
	thread->n_passed = 0;
	if (thread->n_to_pass < MOST_PASS)
		thread->n_to_pass = thread->n_to_pass * 2 + 1;
	if (give_up_left(thread, claim))
		thread->n_to_pass = 0;
}

/* Counts the claims that @claim interrupts. Claims with frames further in than this one were left by a jump, as far
 * as addresses tell; on stacks that lie in another order the number may be off by a few. */
static __u32 count_interrupted(const struct thread *thread, const struct claim *claim)
{
	__u32 n = 0;

	for (__u32 i = 0; i < THREAD_CLAIMS; i++)
		n += thread->claims[i] > (__u64)claim;
	return n;
}

/* Returns the index of the claim that now belongs to @claim, or THREAD_CLAIMS if there is none. */
static __u32 take_claim(struct thread *thread, const struct claim *claim)
{
	__u32 n_interrupted = count_interrupted(thread, claim);

	if (!n_interrupted || n_interrupted > MOST_INTERRUPTED) {
		look_for_left(thread, claim);
		n_interrupted = count_interrupted(thread, claim);
	}
	for (__u32 i = 0; i < THREAD_CLAIMS && n_interrupted <= MOST_INTERRUPTED; i++) {
		__u64 none = 0;

		if (__atomic_compare_exchange_n(&thread->claims[i], &none, (__u64)claim, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return i;
	}
	return THREAD_CLAIMS;
}

static struct thread *new_stand_in(struct thread *thread, __u64 lent)
{
	struct thread *other = thread__new(thread->tid, thread->shared->comm);

	if (!other)
		return NULL;
	if (process.mode == INSIDE_LIVE)
		live__join(thread);
	other->lent = lent;
	thread__push(&stand_ins, other);
	return other;
}

static struct thread *find_idle(const struct thread *thread, __u64 lent)
{
	struct thread *other = __atomic_load_n(&stand_ins, __ATOMIC_ACQUIRE);

	for (; other; other = other->next) {
		__u64 none = 0;

		if (thread__has_comm(other, thread->shared->comm) &&
		    __atomic_compare_exchange_n(&other->lent, &none, lent, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			break;
	}
	return other;
}

/* Returns a stand-in for the call whose claim has the index @index. Since it is lent to the claim,
 * only the call that has the claim uses it. */
static struct thread *borrow(struct thread *thread, __u32 index)
{
	struct thread *other = find_idle(thread, lent_to(thread, index));
	__u64 signals;

	if (unlikely(!other || (process.walks && !other->walker))) {
		sys__block_signals(&signals);
		if (!other)
			other = new_stand_in(thread, lent_to(thread, index));
		if (other && !thread__have_walker(other, take_from_idle)) {
			__atomic_store_n(&other->lent, 0, __ATOMIC_RELEASE);
			other = NULL;
		}
		sys__restore_signals(signals);
	}
	/* The walker remembers the stack of the last owner, which may be unmapped by now. */
	if (other && other->walker && other->owner != thread)
		walker__leave_stack(other->walker);
	if (other)
		other->owner = thread;
	return other;
}

struct thread *thread__stand_in(struct thread *thread, const struct claim *claim)
{
	__u32 index = take_claim(thread, claim);
	struct thread *other;

	if (!index)
		return thread;
	other = index < THREAD_CLAIMS ? borrow(thread, index) : NULL;
	if (!other && index < THREAD_CLAIMS)
		__atomic_store_n(&thread->claims[index], 0, __ATOMIC_RELEASE);
	return other;
}

void thread__give_back(struct thread *stand_in)
{
	__u64 *claim = &stand_in->owner->claims[stand_in->lent - (__u64)stand_in->owner];

	__atomic_store_n(&stand_in->lent, 0, __ATOMIC_RELEASE);
	__atomic_store_n(claim, 0, __ATOMIC_RELEASE);
}

static bool has_claims(const struct thread *thread)
{
	__u64 any = 0;

	for (__u32 i = 0; i < THREAD_CLAIMS; i++)
		any |= thread->claims[i];
	return any;
}

bool thread__is_claimed(struct thread *thread, const struct claim *claim)
{
	return has_claims(thread) && (!give_up_left(thread, claim) || has_claims(thread));
}
