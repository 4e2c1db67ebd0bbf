// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes a stopped thread of another process run code that this process chooses: sets registers of
 * x86-64, and builds the frame of a signal handler. */
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
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "memory_mappings.h"
#include "proc.h"

/* How much stack, below what the thread uses, a function may use in addition to the frame. */
#define STACK_BYTES (64 << 10)

/* Time between two looks at whether a function is done. */
#define LOOK_US 20

/* The red zone of the ABI below the stack pointer. */
#define RED_ZONE 128

/* Room for the extended state; that of AVX-512 and AMX is smaller. */
#define MAX_XSTATE (16 << 10)

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

struct remote {
	pid_t pid, tid;
	struct user_regs_struct before;
	__u64 mask; /* the thread's blocked signals */
	struct remote_code code;
	__u64 frame, room; /* addresses on the thread's stack */
	bool is_moved;	   /* the thread's registers are not @before */
	bool returns;	   /* the thread restores itself */
	size_t vectors_size;
	unsigned char vectors[MAX_XSTATE]; /* the other registers before, as ptrace(2) has them */
};

struct looking {
	pid_t pid;
	struct remote_code *code;
};

/* Code that is somewhere in any C library. */
static const unsigned char system_call_code[] = { 0x0f, 0x05, 0xc3 };
static const unsigned char restorer_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static void find_code(const struct looking *looking, const struct proc_mapping *mapping)
{
	struct remote_code *out = looking->code;
	size_t size = mapping->end - mapping->start;
	_cleanup_(free_ptr) unsigned char *code = malloc(size);
	const unsigned char *found;

	if (!code || process_memory__read(looking->pid, mapping->start, code, size))
		return;
	found = memmem(code, size, system_call_code, sizeof(system_call_code));
	if (found && !out->system_call)
		out->system_call = mapping->start + (found - code);
	found = memmem(code, size, restorer_code, sizeof(restorer_code));
	if (found && !out->restorer)
		out->restorer = mapping->start + (found - code);
}

/* musl keeps no thread-specific data at the address in FS, where the callers need them. */
static int look_for_code(void *context, const struct proc_mapping *mapping)
{
	const struct looking *looking = context;

	if (mapping->is_executable && memory_mapping__is_c_library(mapping->path))
		find_code(looking, mapping);
	return 0;
}

int remote_code__find(pid_t pid, struct remote_code *out)
{
	struct remote_code code = { 0 };
	struct looking looking = { pid, &code };
	int err = proc_maps__each(pid, look_for_code, &looking);

	if (!err && (!code.system_call || !code.restorer))
		err = -ENOTSUP;
	if (!err)
		*out = code;
	return err;
}

/* Accepts the main thread's stack, or a stack that the C library has made, which ends with the
 * thread's data; not a coroutine's stack, next to which there may be other data. */
static int look_at_stack(void *context, const struct proc_mapping *mapping)
{
	const struct user_regs_struct *regs = context;
	__u64 sp = regs->rsp, data = regs->fs_base;

	if (sp < mapping->start || sp >= mapping->end)
		return 0;
	return !strcmp(mapping->path, "[stack]") ||
	       (data > sp && data < mapping->end && sp - mapping->start > STACK_BYTES + MAX_XSTATE);
}

static int read_vectors(struct remote *remote)
{
	struct iovec part = { remote->vectors, MAX_XSTATE - sizeof(__u64) };

	if (ptrace(PTRACE_GETREGSET, remote->tid, (void *)(long)NT_X86_XSTATE, &part))
		return -ESRCH;
	remote->vectors_size = part.iov_len;
	return part.iov_len < XSTATE_AT + 48 ? -ENOTSUP : 0;
}

/* The library's own code leaves these registers alone, but not the C library's that it calls. */
static void restore_vectors(struct remote *remote)
{
	struct iovec part = { remote->vectors, remote->vectors_size };

	(void)ptrace(PTRACE_SETREGSET, remote->tid, (void *)(long)NT_X86_XSTATE, &part);
}

/* Stores the registers as the kernel saves them for a handler, and returns their size. They are used
 * only if nobody else restores the thread. */
static size_t fill_xstate(const struct remote *remote, unsigned char state[MAX_XSTATE])
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

/* Returns the number of the system call that "mov $number, %eax; syscall" makes at @rip; -1: it is
 * made in another way. */
static long number_of_call(pid_t pid, __u64 rip)
{
	unsigned char code[7];
	int number;

	if (process_memory__read(pid, rip - sizeof(code), code, sizeof(code)) || code[0] != 0xb8 ||
	    memcmp(code + 5, system_call_code, 2) != 0)
		return -1;
	memcpy(&number, code + 1, sizeof(number));
	return number;
}

/* Returns the registers with which the thread goes on if the kernel does not restart its system
 * call. A call that the kernel would continue begins anew, and so sleeps for longer. */
static struct user_regs_struct resumed(const struct remote *remote)
{
	struct user_regs_struct regs = remote->before;

	long number = regs.orig_rax;

	if (number < 0)
		return regs;
	switch (-(long)regs.rax) {
	case ERESTART_RESTARTBLOCK:
		if (number == SYS_restart_syscall)
			number = number_of_call(remote->pid, regs.rip);
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
		regs.rip -= sizeof(system_call_code) - 1;
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

static int write_frame(struct remote *remote)
{
	unsigned char xstate[MAX_XSTATE];
	size_t size = fill_xstate(remote, xstate);
	struct signal_frame frame = { .restorer = remote->code.restorer };
	__u64 at = (remote->before.rsp - RED_ZONE - size) & ~63ULL;
	int err = process_memory__write(remote->pid, at, xstate, size);

	fill_frame(remote, &frame, at);
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

/* Returns whether the code still is there: the process may have executed another program since it
 * was found. */
static bool has_code(pid_t pid, __u64 address, const unsigned char *code, size_t size)
{
	unsigned char found[16];

	return !process_memory__read(pid, address, found, size) && !memcmp(found, code, size);
}

int remote__begin(pid_t pid, pid_t tid, const struct remote_code *code, struct remote **out)
{
	struct remote *remote = calloc(1, sizeof(*remote));
	const __u64 all = ~0ULL;
	int err = -ESRCH;

	if (!remote)
		return -ENOMEM;
	remote->pid = pid;
	remote->tid = tid;
	remote->code = *code;
	if (ptrace(PTRACE_GETREGS, tid, NULL, &remote->before) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(remote->mask), &remote->mask))
		goto fail;
	err = -ESTALE;
	if (!has_code(pid, code->system_call, system_call_code, sizeof(system_call_code)) ||
	    !has_code(pid, code->restorer, restorer_code, sizeof(restorer_code)))
		goto fail;
	err = proc_maps__each(pid, look_at_stack, &remote->before);
	err = err == 1 ? read_vectors(remote) : err ? err : -ENOTSUP;
	if (!err)
		err = write_frame(remote);
	if (!err && (ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) ||
		     ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(all), &all)))
		err = -ESRCH;
	if (err)
		goto fail;
	*out = remote;
	return 0;
fail:
	free(remote);
	return err;
}

int remote__lift_filters(struct remote *remote)
{
	return ptrace(PTRACE_SETOPTIONS, remote->tid, NULL,
		      (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP))
		       ? -EPERM
		       : 0;
}

int remote__read_filter(const struct remote *remote, unsigned index, struct sock_filter *out,
			size_t *n)
{
	long result = ptrace(PTRACE_SECCOMP_GET_FILTER, remote->tid, (void *)(long)index, NULL);

	if (result > 0 && result <= BPF_MAXINSNS)
		result = ptrace(PTRACE_SECCOMP_GET_FILTER, remote->tid, (void *)(long)index, out);
	if (result < 0)
		return errno == ENOENT ? -ENOENT : -EPERM;
	*n = result;
	return 0;
}

__u64 remote__put(struct remote *remote, const void *bytes, size_t size)
{
	return size <= REMOTE_ROOM && !process_memory__write(remote->pid, remote->room, bytes, size)
		       ? remote->room
		       : 0;
}

static int set_registers(struct remote *remote, const struct user_regs_struct *regs)
{
	remote->is_moved = true;
	return ptrace(PTRACE_SETREGS, remote->tid, NULL, regs) ? -ESRCH : 0;
}

/* Waits for a stop. Returns 0 with the status, or -ESRCH. */
static int await_stop(const struct remote *remote, int *status)
{
	while (waitpid(remote->tid, status, __WALL) < 0)
		if (errno != EINTR)
			return -ESRCH;
	return WIFSTOPPED(*status) ? 0 : -ESRCH;
}

/* Returns whether the thread cannot go on from its present instruction. Signals that others send
 * are blocked. */
static bool is_fault(int status)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!(status >> 16) && WSTOPSIG(status) == faults[i])
			return true;
	return false;
}

/* Lets the thread run until its next system call begins or ends. If the whole process is stopped
 * meanwhile (SIGSTOP), that stop is skipped: the thread stops when it is released. */
static int go_to_system_call(const struct remote *remote)
{
	int status, err;

	do {
		if (ptrace(PTRACE_SYSCALL, remote->tid, NULL, NULL))
			return -ESRCH;
		err = await_stop(remote, &status);
		if (!err && is_fault(status))
			return -EFAULT;
	} while (!err && WSTOPSIG(status) != (SIGTRAP | 0x80));
	return err;
}

long remote__system_call(struct remote *remote, long number, long a, long b, long c, long d, long e,
			 long f)
{
	struct user_regs_struct regs = remote->before;
	int err;

	if (remote->returns)
		return -EAGAIN;
	regs.rax = number;
	regs.orig_rax = -1;
	regs.rdi = a;
	regs.rsi = b;
	regs.rdx = c;
	regs.r10 = d;
	regs.r8 = e;
	regs.r9 = f;
	regs.rip = remote->code.system_call;
	regs.rsp = remote->frame;
	err = set_registers(remote, &regs);
	if (!err)
		err = go_to_system_call(remote);
	if (!err)
		err = go_to_system_call(remote);
	if (!err && ptrace(PTRACE_GETREGS, remote->tid, NULL, &regs))
		err = -ESRCH;
	return err ? err : (long)regs.rax;
}

static int interrupt(struct remote *remote)
{
	int status, err;

	do {
		(void)ptrace(PTRACE_INTERRUPT, remote->tid, NULL, NULL);
		err = await_stop(remote, &status);
		if (err || status >> 16 == PTRACE_EVENT_STOP)
			return err;
		if (is_fault(status))
			return -EFAULT;
	} while (!ptrace(PTRACE_CONT, remote->tid, NULL, NULL));
	return -ESRCH;
}

/* A thread that was about to take a signal when it was held stops once more before it runs. */
static int pass_stops(const struct remote *remote)
{
	int status;

	while (waitpid(remote->tid, &status, __WALL | WNOHANG) == remote->tid) {
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (is_fault(status))
			return -EFAULT;
		if (ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
			return -ESRCH;
	}
	return 0;
}

int remote__call(struct remote *remote, __u64 function, enum remote_state (*is_done)(void *context),
		 void *context, __u64 until_ns)
{
	struct user_regs_struct regs = remote->before;
	enum remote_state state;
	int err;

	regs.rax = 0;
	regs.orig_rax = -1;
	regs.rip = function;
	regs.rsp = remote->frame;
	if (remote->returns)
		return -EAGAIN;
	err = set_registers(remote, &regs);
	if (!err && ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
		err = -ESRCH;
	if (err)
		return err;
	for (;;) {
		/* Sleeps in between, since the thread may share this processor. */
		while (!err && is_done(context) == REMOTE_WORKS && clock__now_ns() < until_ns) {
			usleep(LOOK_US);
			err = pass_stops(remote);
		}
		if (!err)
			err = interrupt(remote);
		if (err)
			return err;
		/* Just now the function may have stopped waiting, have finished, or have got what
		 * it waited for. */
		state = is_done(context);
		if (state != REMOTE_WORKS || clock__now_ns() >= until_ns)
			break;
		if (ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
			return -ESRCH;
	}
	remote->returns = state == REMOTE_RETURNS;
	return state == REMOTE_DONE ? 0 : remote->returns ? -ECANCELED : -ETIMEDOUT;
}

/* How much stack is cleared: functions that were called leave addresses below what the thread
 * uses, and later frames of the thread would have them in their gaps. */
#define USED_BYTES (16 << 10)

static void clear_stack(const struct remote *remote)
{
	static const unsigned char zeros[4096];
	__u64 end = (remote->before.rsp - RED_ZONE) & ~7ULL, at = remote->frame - USED_BYTES;

	for (; at < end; at += sizeof(zeros))
		(void)process_memory__write(remote->pid, at, zeros,
					    end - at < sizeof(zeros) ? end - at : sizeof(zeros));
}

/* The kernel restarts an interrupted system call when the thread is about to handle signals, which
 * an interruption makes it do. */
void remote__end(struct remote *remote)
{
	int status;

	if (!remote)
		return;
	if (!remote->returns) {
		if (remote->is_moved) {
			(void)ptrace(PTRACE_SETREGS, remote->tid, NULL, &remote->before);
			restore_vectors(remote);
			clear_stack(remote);
			(void)ptrace(PTRACE_INTERRUPT, remote->tid, NULL, NULL);
			if (!ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
				(void)await_stop(remote, &status);
		}
		(void)ptrace(PTRACE_SETSIGMASK, remote->tid, (void *)sizeof(remote->mask),
			     &remote->mask);
	}
	free(remote);
}
