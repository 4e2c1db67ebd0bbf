/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The programs at the tracepoints of fork, exec and exit: one at each, or three where the kernel preempts them. */
#ifndef ALLOCPROF_TRACEPOINTS_H
#define ALLOCPROF_TRACEPOINTS_H

#include <linux/types.h>
#include <stdbool.h>

#include "tracepoint_abi.h"

struct allocprof_bpf;
struct counters;
struct error;

/* Selects the programs to load: the first one at @at and, with @preempts, the others. */
void tracepoints__choose(struct allocprof_bpf *skeleton, enum ap_tracepoint at, bool is_used,
			 bool preempts);

/* Attaches the loaded programs. Those that perf calls are attached only where tracefs can be read. */
int tracepoints__attach(struct allocprof_bpf *skeleton, struct error *error);

/* Returns whether tracefs, which has perf's numbers of tracepoints, can be read. */
bool tracepoints__have_perf(void);

struct bpf_link;
struct bpf_program;

/* Attaches @program, whose section is "tracepoint/CATEGORY/NAME". Returns NULL without tracefs or
 * the right to use it. */
struct bpf_link *tracepoints__attach_by_perf(const struct bpf_program *program);

/* Returns how many events at @at no program has seen. */
__u64 tracepoints__missed(struct allocprof_bpf *skeleton, enum ap_tracepoint at,
			  struct counters *counters);

#endif
