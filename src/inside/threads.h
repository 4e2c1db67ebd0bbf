/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What process.c and stand_ins.c show each other of threads. */
#ifndef ALLOCPROF_INSIDE_THREADS_H
#define ALLOCPROF_INSIDE_THREADS_H

#include <linux/types.h>
#include <stdbool.h>

struct thread;

/* All stand-ins of the process, linked by next. */
struct thread *stand_ins__first(void);

/* In a forked child, whose only thread has none. */
void stand_ins__forget(void);

/* A thread begins with the memory of one that has ended: so have its calls. */
void thread__drop_claims(struct thread *thread);

/* What follows is of process.c. */

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
