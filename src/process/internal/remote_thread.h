/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A stopped thread of another process, and the functions of remote_<processor>.c that remote_thread.c calls for it. */
#ifndef ALLOCPROF_REMOTE_THREAD_H
#define ALLOCPROF_REMOTE_THREAD_H

#include <stdbool.h>
#include <sys/user.h>

#include "remote.h"

/* Room for the vector registers, as ptrace(2) has them. */
#define REMOTE_VECTORS (16 << 10)

struct remote {
	pid_t pid, tid;
	struct user_regs_struct before;
	__u64 mask; /* the thread's blocked signals */
	struct remote_code code;
	/* Addresses on the thread's stack: of the frame, of room above it, and the end of what the thread does not use. */
	__u64 frame, room, unused_end;
	bool is_moved;	  /* the thread's registers are not @before */
	bool returns;	  /* the thread restores itself */
	long vectors_set; /* NT_*: the set of registers that @vectors has */
	size_t vectors_size;
	_Alignas(16) unsigned char vectors[REMOTE_VECTORS]; /* these registers before */
};

/* An instruction sequence that is somewhere in a process. */
struct remote_instructions {
	unsigned char bytes[16];
	size_t size;
	bool is_of_kernel; /* in what the kernel maps into each process, [vdso]; else in the C library */
};

/* A system call that returns to its caller, and what signal handlers return to. */
extern const struct remote_instructions remote_system_call_code, remote_restorer_code;

__u64 remote_registers__sp(const struct user_regs_struct *registers);
/* Returns the result of a system call. */
long remote_registers__result(const struct user_regs_struct *registers);
/* Have the thread go on with a system call, and with a function. Either returns to the frame. */
void remote__aim_at_call(const struct remote *remote, struct user_regs_struct *registers,
			 long number, const long arguments[6]);
void remote__aim_at_function(const struct remote *remote, struct user_regs_struct *registers,
			     __u64 function);

/* Stores the vector registers in @remote. Returns 0; -ESRCH; -ENOTSUP if there are more than it has room for; or -ENOEXEC if the
 * thread is in a mode in which it can call no function. */
int remote__read_vectors(struct remote *remote);

/* Writes the frame of a signal handler below what the thread uses of its stack, and stores where it is: @frame, @room and @unused_end. Returns 0, -EFAULT or
 * -ESRCH. */
int remote__write_frame(struct remote *remote);

/* To be called before the thread's registers are changed for the first time: what the kernel would do to them when the thread goes
 * on has to be done. @before, and what depends on it, may be others afterwards. Returns 0, -ESRCH, -EFAULT, or an error of
 * remote__read_vectors(). */
int remote__settle(struct remote *remote);

/* Sets the general registers, as those of a thread that is in no system call. Returns 0 or -ESRCH. */
int remote__set_registers(const struct remote *remote, const struct user_regs_struct *registers);

/* Returns the number of the one system call that the kernel continues by restart_syscall and that has such arguments; -1: there is
 * none, or several. Since 2.41 the GNU C library makes all calls that are points of cancellation by one instruction, which does not
 * say which. @poll: the number of poll(2), -1: the processor has none. */
long remote__number_by_arguments(pid_t pid, const __u64 arguments[4], long poll);

/* Sets which signals the thread blocks. Returns 0 or -ESRCH. */
#define REMOTE_ALL_SIGNALS (~0ULL)
int remote__set_mask(const struct remote *remote, __u64 mask);

/* Lets the thread run until its next system call begins or ends. Returns 0, -ESRCH or -EFAULT. */
int remote__go_to_system_call(const struct remote *remote);

/* Lets the thread run until it would handle signals: to the end of the system call that it is in, which is interrupted. Returns 0, -ESRCH or
 * -EFAULT. */
int remote__go_to_stop(const struct remote *remote);

#endif
