/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs at the tracepoints of fork, exec and exit share this (tracepoint_abi.h). */
#ifndef ALLOCPROF_TRACEPOINTS_BPF_H
#define ALLOCPROF_TRACEPOINTS_BPF_H

#include "maps.bpf.h"
#include "tracepoint_abi.h"

/* Number of events at a tracepoint whose marks are kept, a power of two: the leading program leaves a mark for each. */
#define EVENTS_KNOWN 1024

/* The program that is attached first; user space sets it before it attaches the others. */
extern __u32 leading_program;
/* Events that the leading program has not seen, and another has. The kernel counts how often it skipped the leading one, so
 * the difference is what none has seen. */
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
	/* The last program removes the mark: the task may come here again, or another task that gets its id. */
	LOAD(*seen) = program == AP_AGAIN ? 0 : pid;
	return is_seen;
}

#endif
