/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Holds all threads of processes for a moment, as a debugger does (ptrace(2)): their parents see
 * nothing, and if this process ends the threads go on. The kernel restarts system calls in which
 * they wait, except for those that a debugger interrupts, too, such as epoll_wait(2): these fail
 * with EINTR (signal(7)).
 */
#ifndef ALLOCPROF_HOLD_H
#define ALLOCPROF_HOLD_H

#include <linux/types.h>
#include <sys/types.h>

struct hold;

/* Returns NULL if there is no memory. */
struct hold *hold__new(void);

/*
 * Holds the threads of @pid, a process that may have been added before, and returns how many of
 * them are new. Waits for each until @until_ns (CLOCK_MONOTONIC); a thread that the kernel keeps
 * in a system call for longer is left to stop by itself. Threads that have ended do not count.
 * Fails with -EPERM if another process traces it, or this one may not; or -ENOMEM.
 */
int hold__add(struct hold *hold, pid_t pid, __u64 until_ns);

/* Holds one thread. Returns 1, or 0 if it has not stopped until @until_ns, or has ended. Fails
 * with the errors of hold__add(). */
int hold__add_thread(struct hold *hold, pid_t tid, __u64 until_ns);

/*
 * Holds a thread that this process traces already (PTRACE_SEIZE), until hold__give_back(), which
 * leaves it stopped and returns si_status of its stop; 0: it has not stopped. Returns 0 or -ENOMEM.
 */
int hold__borrow(struct hold *hold, pid_t tid, __u64 until_ns);
int hold__give_back(struct hold *hold, pid_t tid);

/* Returns when the first thread was interrupted (CLOCK_MONOTONIC); 0: none was. */
__u64 hold__begin_ns(const struct hold *hold);

/* Calls @fn with each thread that has stopped, until it returns something other than 0, which is
 * returned. */
int hold__each_stopped(const struct hold *hold, int (*fn)(void *context, pid_t tid), void *context);

/* Returns how many threads have not stopped, or may go on: those that the kernel keeps in a system
 * call are not held. */
size_t hold__count_running(const struct hold *hold);

/* Lets all threads go on. @child is a child for whose end somebody else waits, or 0. */
void hold__release(struct hold *hold, pid_t child);

#endif
