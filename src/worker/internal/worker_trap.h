/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A system call that raised SIGSYS, in the registers of this processor: worker_trap_<processor>.c. */
#ifndef ALLOCPROF_WORKER_TRAP_H
#define ALLOCPROF_WORKER_TRAP_H

#include <linux/types.h>
#include <ucontext.h>

struct trapped_call {
	int number; /* SYS_*; a call of which the processor has an older form, too, has the number of the newer one */
	__u64 arguments[4];
};

/* Async-signal-safe, both of them. */
struct trapped_call trapped_call__read(const ucontext_t *at, int number);
void trapped_call__answer(ucontext_t *at, long result);

#endif
