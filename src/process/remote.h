/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Has a thread of another process, which hold.h has stopped, make system calls and call functions. Afterwards the thread goes on
 * with what it was doing: it finds its registers, its signal mask and the system call that it waits in as they were. Should this
 * process be killed meanwhile, the thread returns to that by itself, as from a signal's handler (sigreturn(2)).
 */
#ifndef ALLOCPROF_REMOTE_H
#define ALLOCPROF_REMOTE_H

#include <linux/filter.h>
#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

struct remote;

/* Room on the thread's stack for an argument. */
#define REMOTE_ROOM 1024

/* Code of the process that threads are sent to. */
struct remote_code {
	__u64 system_call; /* "syscall; ret" */
	__u64 restorer;	   /* by which handlers of signals return */
};

/* Looks for both in the process's glibc. -ENOTSUP: it has none, as programs that use musl or are linked statically. */
int remote_code__find(pid_t pid, struct remote_code *out);

/* @tid has stopped. -ESTALE: the process has executed another program since @code was found; -ENOTSUP: its stack has no room, or is none that a C library has made; -ESRCH: it was killed; -ENOMEM. */
int remote__begin(pid_t pid, pid_t tid, const struct remote_code *code, struct remote **out);

/* The thread has its registers back, and stays stopped. Accepts NULL. */
void remote__end(struct remote *remote);

/* Lifts the process's filters of system calls for what is called here, until the thread is let go on. -EPERM. */
int remote__lift_filters(struct remote *remote);

/* Reads the filter of system calls number @index, from 0, of the thread; @out has room for BPF_MAXINSNS instructions, and *@n says
 * how many there are. -ENOENT: there are fewer; -EPERM: this process may not read them, or it is of a kind that it cannot. */
int remote__read_filter(const struct remote *remote, unsigned index, struct sock_filter *out,
			size_t *n);

/* *@result is a negative errno where the call has failed. -ESRCH; -EFAULT: the thread could not make it. */
int remote__system_call(struct remote *remote, long number, const long arguments[6], long *result);

/* Puts @size bytes into the room, at most REMOTE_ROOM; returns their address in the process, or 0. */
__u64 remote__put(struct remote *remote, const void *bytes, size_t size);

/* Memory of the process. 0, -EFAULT, -ESRCH. */
int process_memory__read(pid_t pid, __u64 address, void *out, size_t size);
int process_memory__write(pid_t pid, __u64 address, const void *bytes, size_t size);

/*
 * Calls a function that takes and returns nothing, and asks @is_done again and again until it is done or gives up, or until
 * @until_ns. 0; -ETIMEDOUT: the thread was interrupted in the function; -ECANCELED: the function has stopped waiting for this process,
 * the thread goes on by itself when it is let go, and can be made to call nothing else (-EAGAIN); -EFAULT: it has crashed; -ESRCH.
 */
enum remote_state {
	REMOTE_WORKS,
	REMOTE_DONE,
	REMOTE_RETURNS,
	REMOTE_GIVEN_UP
};
int remote__call(struct remote *remote, __u64 function, enum remote_state (*is_done)(void *context),
		 void *context, __u64 until_ns);

/* Where FS points to in a thread that has stopped: glibc's struct pthread. 0 or -ESRCH. */
int remote__thread_data(pid_t tid, __u64 *address);

/* The registers of a thread that has stopped. 0 or -ESRCH. */
int remote__position(pid_t tid, __u64 *code, __u64 *stack);

#endif
