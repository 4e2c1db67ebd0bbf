/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Has a thread of another process, which hold.h has stopped, make system calls and call functions.
 * Afterwards the thread goes on with what it was doing: its registers, its signal mask and the
 * system call in which it waits are as they were. If this process is killed meanwhile, the thread
 * returns to that state by itself, as from a signal handler (sigreturn(2)).
 */
#ifndef ALLOCPROF_REMOTE_H
#define ALLOCPROF_REMOTE_H

#include <linux/filter.h>
#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

struct remote;

/* Bytes of room on the thread's stack for arguments. */
#define REMOTE_ROOM 1024

/* Addresses of code in the process to which threads are sent. */
struct remote_code {
	__u64 system_call; /* address of a system call that returns to its caller */
	__u64 restorer;	   /* address of the code by which signal handlers return */
};

/* Finds both addresses in the process's glibc and what the kernel has mapped into it. Fails with -ENOTSUP if it has none, like programs
 * that use musl or are linked statically. */
int remote_code__find(pid_t pid, struct remote_code *out);

/* Begins to use the thread @tid, which has stopped. The caller ends that by remote__end(). Fails
 * with -ESTALE if the process has executed another program since @code was found; -ENOTSUP if the
 * thread's stack has no room, or was not made by a C library; -ENOEXEC if it is in a mode in which it can run no other code; -EAGAIN
 * if it is about to take a signal; -ESRCH if it was killed; or -ENOMEM. */
int remote__begin(pid_t pid, pid_t tid, const struct remote_code *code, struct remote **out);

/* Gives the thread its registers back; it stays stopped. Accepts NULL. */
void remote__end(struct remote *remote);

/* Lifts the thread's seccomp filters for the calls that are made here, until the thread goes on.
 * Fails with -EPERM. */
int remote__lift_filters(struct remote *remote);

/* Reads the thread's seccomp filter number @index, from 0. @out must have room for BPF_MAXINSNS
 * instructions; their number is stored in *@n. Fails with -ENOENT if there are fewer filters;
 * -EPERM if this process may not read them, or cannot read this kind. */
int remote__read_filter(const struct remote *remote, unsigned index, struct sock_filter *out,
			size_t *n);

/* Has the thread make the system call @number with six arguments. Returns the call's result or its
 * negative errno. If the call could not be made, returns -ESRCH, -EFAULT or -EAGAIN. */
long remote__system_call(struct remote *remote, long number, long a, long b, long c, long d, long e,
			 long f);

/* Copies @size bytes, at most REMOTE_ROOM, to the room on the stack. Returns their address in the
 * process, or 0. */
__u64 remote__put(struct remote *remote, const void *bytes, size_t size);

/* Reads memory of the process. Returns 0, -EFAULT or -ESRCH. */
int process_memory__read(pid_t pid, __u64 address, void *out, size_t size);
int process_memory__write(pid_t pid, __u64 address, const void *bytes, size_t size);

/*
 * Calls a function that takes and returns nothing, and asks @is_done again and again until the
 * function is done or gives up, or until @until_ns. Returns 0; -ETIMEDOUT: the thread was
 * interrupted in the function; -ECANCELED: the function has stopped waiting for this process: the
 * thread goes on by itself when it is released, and can be made to call nothing else (-EAGAIN);
 * -EFAULT: it has crashed; -ESRCH.
 */
enum remote_state {
	REMOTE_WORKS,
	REMOTE_DONE,
	REMOTE_RETURNS,
	REMOTE_GIVEN_UP
};
int remote__call(struct remote *remote, __u64 function, enum remote_state (*is_done)(void *context),
		 void *context, __u64 until_ns);

/* Stores the thread pointer of a thread that has stopped, at which or before which glibc has its struct pthread.
 * Returns 0 or -ESRCH. */
int remote__thread_data(pid_t tid, __u64 *address);

/* Returns where the thread-local variables end, at the latest, of a thread whose thread pointer is @data. */
__u64 remote__variables_end(__u64 data);

/* Stores the instruction and stack pointers of a thread that has stopped; @code may be NULL. Returns
 * 0 or -ESRCH. */
int remote__position(pid_t tid, __u64 *code, __u64 *stack);

/* Maximum number of words of a thread's registers, vector registers included. */
#define REMOTE_REGISTERS 2304

/* Stores the contents of the registers of a thread that has stopped, as words. Returns 0 or
 * -ESRCH. */
int remote__registers(pid_t tid, __u64 words[REMOTE_REGISTERS], size_t *n);

#endif
