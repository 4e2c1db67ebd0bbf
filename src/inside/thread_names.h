/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Has the names under which threads of this process are counted. Each name costs a struct
 * inside_thread at least, so their number is limited: some programs name threads after connections
 * or requests, and never run out of names.
 */
#ifndef ALLOCPROF_INSIDE_THREAD_NAMES_H
#define ALLOCPROF_INSIDE_THREAD_NAMES_H

#include <linux/types.h>

/* A list of threads that are counted under one name, which the caller fills. */
struct thread_name {
	__u64 hash; /* hash of the name; 0: the slot is free */
	struct thread *threads, *hand;
};

/*
 * Chooses the name under which a thread called @comm, of AP_COMM_LEN bytes, is counted, and stores
 * it in @comm: its own or, when there are many names already, the same with '*' in place of
 * digits, or one common name for all others.
 */
struct thread_name *thread_names__choose(char *comm);

/* Returns the one name that is used where threads are not told apart. */
struct thread_name *thread_names__of_all(void);

/* To be called in a forked child: the lists of all names become empty. */
void thread_names__forget(void);

#endif
