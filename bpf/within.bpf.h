/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decides from the frames of a call's stack whether a function of --within made it. The
 * function's entries and returns are not traced, so recursion, exceptions and longjmp need no
 * special care.
 */
#ifndef ALLOCPROF_WITHIN_BPF_H
#define ALLOCPROF_WITHIN_BPF_H

#include "gate.bpf.h"
#include "hit.bpf.h"
#include "process.bpf.h"
#include "stack.bpf.h"

static __always_inline void lose(enum ap_lost reason)
{
	stat__add(AP_STAT_LOST + reason);
}

enum verdict {
	VERDICT_OUTSIDE,
	VERDICT_INSIDE,
	VERDICT_UNKNOWN, /* the stack is incomplete and has no such frame */
};

/* Returns the verdict for the stack that the scratch holds. */
static __always_inline enum verdict scratch__verdict(const struct scratch *scratch)
{
	if (!config.within || scratch->within)
		return VERDICT_INSIDE;
	return scratch->record.end == AP_END_COMPLETE ? VERDICT_OUTSIDE : VERDICT_UNKNOWN;
}

/* For programs that need no stack otherwise: walks the stack. @faults: as in word__read(). */
static __always_inline bool hit__is_within(const struct hit *hit, struct process *process,
					   bool faults)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct scratch *scratch = scratch__claim(thread);
	enum verdict verdict;

	if (!scratch) {
		if (hit->recorded && !hit->internal)
			lose(AP_LOST_NO_SCRATCH);
		return false;
	}
	scratch__enter(scratch, thread, process);
	stack__read(scratch, hit, faults);
	stack__walk(scratch, process, hit, faults);
	verdict = scratch__verdict(scratch);
	scratch__release(scratch);
	if (verdict == VERDICT_UNKNOWN && hit->recorded && !hit->internal)
		stat__add(AP_STAT_UNDECIDED);
	return verdict == VERDICT_INSIDE;
}

/* Returns whether the hit is in the measured window, for programs that count by function. @faults:
 * as in word__read(). */
static __always_inline bool hit__is_measured(const struct hit *hit, struct process *process,
					     bool faults)
{
	if (config.within)
		process__refresh(process);
	if (!gate__is_open(process))
		return false;
	/* The walk may have slept, so the gate is read again. */
	return !config.within || (hit__is_within(hit, process, faults) && gate__is_open(process));
}

#endif
