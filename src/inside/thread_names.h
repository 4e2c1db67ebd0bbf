/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names that threads of this process are counted by. There is a struct inside_thread for each name at least, so there is a
 * limit: programs name threads by connections and requests, which have no end.
 */
#ifndef ALLOCPROF_INSIDE_THREAD_NAMES_H
#define ALLOCPROF_INSIDE_THREAD_NAMES_H

#include <linux/types.h>

/* Threads of one name, which the caller has pushed. */
struct thread_name {
	__u64 hash; /* of the name; 0: free */
	struct thread *threads, *hand;
};

/*
 * The name that a thread called @comm, of AP_COMM_LEN bytes, is counted by, which is put into @comm: its own, or when there are
 * many names already the same with '*' for digits, or one for all that are left.
 */
struct thread_name *thread_names__choose(char *comm);

/* The one name where threads are not told apart. */
struct thread_name *thread_names__of_all(void);

/* In a forked child: no name has threads. */
void thread_names__forget(void);

#endif
