// SPDX-License-Identifier: GPL-3.0-or-later
/* Registers of x86-64 of a thread that has stopped, and the frame of a signal handler. */
#include "remote.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>

#include "remote_thread.h"

/* The red zone of the ABI below the stack pointer. */
#define RED_ZONE 128

/* The frame that the kernel reads when a handler returns: linux/arch/x86/include/asm/sigframe.h.
 * ucontext_t has its layout up to the mask. */
struct signal_frame {
	__u64 restorer;
	ucontext_t context;
};

/* From arch/x86/include/uapi/asm/ucontext.h and sigcontext.h. */
#define UC_FP_XSTATE	     1
#define UC_SIGCONTEXT_SS     2
#define UC_STRICT_RESTORE_SS 4
#define XSTATE_AT	     464 /* offset of struct _fpx_sw_bytes */
#define XSTATE_MAGIC1	     0x46505853U
#define XSTATE_MAGIC2	     0x46505845U

const struct remote_instructions remote_system_call_code = {
	.bytes = { 0x0f, 0x05, 0xc3 },
	.size = 3,
};
const struct remote_instructions remote_restorer_code = {
	.bytes = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 },
	.size = 9,
};

/* Bytes of the first of these instructions. */
#define SYSTEM_CALL_BYTES 2

__u64 remote_registers__sp(const struct user_regs_struct *registers)
{
	return registers->rsp;
}

long remote_registers__result(const struct user_regs_struct *registers)
{
	return (long)registers->rax;
}

void remote__aim_at_call(const struct remote *remote, struct user_regs_struct *registers,
			 long number, const long arguments[6])
{
	registers->rax = number;
	registers->orig_rax = -1;
	registers->rdi = arguments[0];
	registers->rsi = arguments[1];
	registers->rdx = arguments[2];
	registers->r10 = arguments[3];
	registers->r8 = arguments[4];
	registers->r9 = arguments[5];
	registers->rip = remote->code.system_call;
	registers->rsp = remote->frame;
}

void remote__aim_at_function(const struct remote *remote, struct user_regs_struct *registers,
			     __u64 function)
{
	registers->rax = 0;
	registers->orig_rax = -1;
	registers->rip = function;
	registers->rsp = remote->frame;
}

int remote__set_registers(const struct remote *remote, const struct user_regs_struct *registers)
{
	return ptrace(PTRACE_SETREGS, remote->tid, NULL, registers) ? -ESRCH : 0;
}

/* orig_rax keeps what the kernel would do. */
int remote__settle(struct remote *remote)
{
	return 0;
}

int remote__read_vectors(struct remote *remote)
{
	struct iovec part = { remote->vectors, REMOTE_VECTORS - sizeof(__u64) };

	remote->vectors_set = NT_X86_XSTATE;
	if (ptrace(PTRACE_GETREGSET, remote->tid, (void *)remote->vectors_set, &part))
		return -ESRCH;
	remote->vectors_size = part.iov_len;
	return part.iov_len < XSTATE_AT + 48 ? -ENOTSUP : 0;
}

/* Stores the registers as the kernel saves them for a handler, and returns their size. They are used
 * only if nobody else restores the thread. */
static size_t fill_xstate(const struct remote *remote, unsigned char state[REMOTE_VECTORS])
{
	__u32 software[4] = { XSTATE_MAGIC1 }, size = remote->vectors_size;
	__u64 features;

	memcpy(state, remote->vectors, size);
	/* PTRACE_GETREGSET puts XCR0 where the handler's frame has the features. */
	memcpy(&features, state + XSTATE_AT, sizeof(features));
	memset(state + XSTATE_AT, 0, 48);
	software[1] = size + sizeof(__u32);
	memcpy(&software[2], &features, sizeof(features));
	memcpy(state + XSTATE_AT, software, sizeof(software));
	memcpy(state + XSTATE_AT + sizeof(software), &size, sizeof(size));
	memcpy(state + size, &(__u32){ XSTATE_MAGIC2 }, sizeof(__u32));
	return size + sizeof(__u32);
}

/* From the kernel's include/linux/errno.h. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/* The system calls that the kernel continues by restart_syscall: set_restart_fn(). */
static bool is_continued(__u32 number)
{
	return number == SYS_poll || number == SYS_nanosleep || number == SYS_clock_nanosleep ||
	       number == SYS_futex;
}

/* How far before a system call its number may be put into its register. */
#define MOST_BEFORE_CALL 32

/* Returns the number of the call that ends at @rip and that the kernel would continue; -1: it is made in another way. */
static long number_of_call(pid_t pid, const struct user_regs_struct *regs, __u64 rip)
{
	unsigned char code[MOST_BEFORE_CALL + SYSTEM_CALL_BYTES];
	__u32 number;

	if (process_memory__read(pid, rip - sizeof(code), code, sizeof(code)) ||
	    memcmp(code + MOST_BEFORE_CALL, remote_system_call_code.bytes, SYSTEM_CALL_BYTES) != 0)
		return -1;
	/* mov $number, %eax */
	for (size_t i = MOST_BEFORE_CALL - sizeof(number); i-- > 0;) {
		memcpy(&number, code + i + 1, sizeof(number));
		if (code[i] == 0xb8 && is_continued(number))
			return number;
	}
	return remote__number_by_arguments(
		pid, (const __u64[]){ regs->rdi, regs->rsi, regs->rdx, regs->r10 }, SYS_poll);
}

/* Returns the registers with which the thread goes on if the kernel does not restart its system
 * call. A call that the kernel would continue begins anew, and so sleeps for longer. */
static struct user_regs_struct resumed(const struct remote *remote)
{
	struct user_regs_struct regs = remote->before;
	long number = regs.orig_rax;

	/* Either the kernel has yet to restart the call, or it has, and the thread is about to make it. Where the thread has stopped
	 * before it left the kernel, orig_rax still is the number of the call that was interrupted. */
	if (regs.rax == SYS_restart_syscall) {
		number = number_of_call(remote->pid, &regs, regs.rip + SYSTEM_CALL_BYTES);
		if (number >= 0)
			regs.rax = number;
		return regs;
	}
	if (number < 0)
		return regs;
	switch (-(long)regs.rax) {
	case ERESTART_RESTARTBLOCK:
		if (number == SYS_restart_syscall)
			number = number_of_call(remote->pid, &regs, regs.rip);
		break;
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		break;
	default:
		return regs;
	}
	regs.rax = number < 0 ? -EINTR : number;
	if (number >= 0)
		regs.rip -= SYSTEM_CALL_BYTES;
	return regs;
}

static void fill_frame(const struct remote *remote, struct signal_frame *frame, __u64 xstate)
{
	struct user_regs_struct regs = resumed(remote);
	greg_t *to = frame->context.uc_mcontext.gregs;

	frame->context.uc_flags =
		UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS | (xstate ? UC_FP_XSTATE : 0);
	/* This value makes the kernel refuse the alternate stack, so the thread keeps the one that
	 * it has. */
	frame->context.uc_stack.ss_flags = 0xff;
	to[REG_R8] = regs.r8;
	to[REG_R9] = regs.r9;
	to[REG_R10] = regs.r10;
	to[REG_R11] = regs.r11;
	to[REG_R12] = regs.r12;
	to[REG_R13] = regs.r13;
	to[REG_R14] = regs.r14;
	to[REG_R15] = regs.r15;
	to[REG_RDI] = regs.rdi;
	to[REG_RSI] = regs.rsi;
	to[REG_RBP] = regs.rbp;
	to[REG_RBX] = regs.rbx;
	to[REG_RDX] = regs.rdx;
	to[REG_RAX] = regs.rax;
	to[REG_RCX] = regs.rcx;
	to[REG_RSP] = regs.rsp;
	to[REG_RIP] = regs.rip;
	to[REG_EFL] = regs.eflags;
	to[REG_CSGSFS] = (regs.cs & 0xffff) | (regs.ss & 0xffff) << 48;
	frame->context.uc_mcontext.fpregs = (fpregset_t)xstate;
	memcpy(&frame->context.uc_sigmask, &remote->mask, sizeof(remote->mask));
}

int remote__write_frame(struct remote *remote)
{
	unsigned char xstate[REMOTE_VECTORS];
	size_t size = fill_xstate(remote, xstate);
	struct signal_frame frame = { .restorer = remote->code.restorer };
	__u64 at = (remote->before.rsp - RED_ZONE - size) & ~63ULL;
	int err = process_memory__write(remote->pid, at, xstate, size);

	fill_frame(remote, &frame, at);
	remote->unused_end = (remote->before.rsp - RED_ZONE) & ~7ULL;
	remote->room = (at - REMOTE_ROOM) & ~15ULL;
	/* At its entry a function finds its return address here. */
	remote->frame = ((remote->room - sizeof(frame)) & ~15ULL) - 8;
	return err ? err : process_memory__write(remote->pid, remote->frame, &frame, sizeof(frame));
}

int remote__thread_data(pid_t tid, __u64 *address)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
		return -ESRCH;
	*address = regs.fs_base;
	return 0;
}

__u64 remote__variables_end(__u64 data)
{
	return data;
}

int remote__position(pid_t tid, __u64 *code, __u64 *stack)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
		return -ESRCH;
	if (code)
		*code = regs.rip;
	*stack = regs.rsp;
	return 0;
}

int remote__registers(pid_t tid, __u64 words[REMOTE_REGISTERS], size_t *n)
{
	size_t used = sizeof(struct user_regs_struct);
	struct iovec vectors = { (char *)words + used, REMOTE_REGISTERS * sizeof(*words) - used };

	if (ptrace(PTRACE_GETREGS, tid, NULL, words))
		return -ESRCH;
	if (!ptrace(PTRACE_GETREGSET, tid, (void *)(long)NT_X86_XSTATE, &vectors))
		used += vectors.iov_len;
	*n = used / sizeof(*words);
	return 0;
}
