// SPDX-License-Identifier: GPL-3.0-or-later
/* Registers of arm64 of a thread that has stopped, and the frame of a signal handler. */
#include "remote.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <ucontext.h>

#include "remote_thread.h"

/* The beginning of NT_ARM_SVE and NT_ARM_SSVE: struct user_sve_header of the kernel's uapi/asm/ptrace.h, whose other
 * definitions are glibc's, too. */
struct vector_header {
	__u32 size, max_size;
	__u16 length, max_length, flags, reserved;
};

/* Linux 6.2 has it first. */
#ifndef NT_ARM_SSVE
#define NT_ARM_SSVE 0x40b
#endif

/* SVE_PT_REGS_SVE: what follows are the registers Z, P and FFR; else those of NT_PRFPREG. */
#define HAS_SCALABLE 1

/* From uapi/asm/sigcontext.h, which glibc's headers include. */
_Static_assert(SVE_SIG_REGS_OFFSET == sizeof(struct vector_header) &&
		       sizeof(struct sve_context) == sizeof(struct vector_header),
	       "ptrace(2) and the frame have the scalable registers in the same layout");

/* The frame that the kernel reads when a handler returns: arch/arm64/kernel/signal.c. What is behind __reserved has to follow the
 * terminator at once, so it lies in both. */
struct signal_frame {
	siginfo_t info;
	ucontext_t context;
	unsigned char more[REMOTE_VECTORS];
};

/* Such a list ends with a record of zeros. */
#define TERMINATOR_BYTES 16

/* The records of a signal frame in context.uc_mcontext.__reserved, and behind it. */
struct vector_frame {
	struct fpsimd_context plain;
	/* Zeros where there are no scalable registers. */
	struct extra_context extra;
	unsigned char end[TERMINATOR_BYTES];
	struct sve_context scalable;
};

/* PSTATE.BTYPE: an indirect branch came before. No instruction that this process chooses is a target of it. */
#define PSTATE_BTYPE (3ULL << 10)

/* svc #0; ret */
const struct remote_instructions remote_system_call_code = {
	.bytes = { 0x01, 0, 0, 0xd4, 0xc0, 0x03, 0x5f, 0xd6 },
	.size = 8,
};
/* mov x8, #139; svc #0 */
const struct remote_instructions remote_restorer_code = {
	.bytes = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 },
	.size = 8,
	.is_of_kernel = true,
};

/* Bytes of the first instruction of the system call, which is all that makes it. */
#define SYSTEM_CALL_BYTES 4

#define REGISTER_NUMBER 8 /* has the number of the system call */
#define REGISTER_LINK	30

__u64 remote_registers__sp(const struct user_regs_struct *registers)
{
	return registers->sp;
}

long remote_registers__result(const struct user_regs_struct *registers)
{
	return (long)registers->regs[0];
}

static void aim(const struct remote *remote, struct user_regs_struct *registers, __u64 code)
{
	registers->pc = code;
	registers->sp = remote->frame;
	registers->regs[REGISTER_LINK] = remote->code.restorer;
	registers->pstate &= ~PSTATE_BTYPE;
}

void remote__aim_at_call(const struct remote *remote, struct user_regs_struct *registers,
			 long number, const long arguments[6])
{
	memcpy(registers->regs, arguments, 6 * sizeof(*arguments));
	registers->regs[REGISTER_NUMBER] = number;
	aim(remote, registers, remote->code.system_call);
}

void remote__aim_at_function(const struct remote *remote, struct user_regs_struct *registers,
			     __u64 function)
{
	aim(remote, registers, function);
}

/* Reads a set of registers (NT_*). Returns the bytes that there are, or -ESRCH. */
static ssize_t read_set(pid_t tid, long set, void *out, size_t size)
{
	struct iovec part = { out, size };

	return ptrace(PTRACE_GETREGSET, tid, (void *)set, &part) ? -ESRCH : (ssize_t)part.iov_len;
}

static int write_set(pid_t tid, long set, const void *from, size_t size)
{
	struct iovec part = { (void *)from, size };

	return ptrace(PTRACE_SETREGSET, tid, (void *)set, &part) ? -ESRCH : 0;
}

/* Where the thread goes on from the end of a system call, the kernel makes it no call any more. */
static int forget_call(pid_t tid)
{
	return write_set(tid, NT_ARM_SYSTEM_CALL, &(int){ -1 }, sizeof(int));
}

int remote__set_registers(const struct remote *remote, const struct user_regs_struct *registers)
{
	int err = write_set(remote->tid, NT_PRSTATUS, registers, sizeof(*registers));

	return err ? err : forget_call(remote->tid);
}

/* Returns whether the thread is in streaming mode (SME), in which it can run no other code. */
static bool is_streaming(pid_t tid)
{
	struct vector_header header;

	return read_set(tid, NT_ARM_SSVE, &header, sizeof(header)) == sizeof(header) &&
	       header.flags & HAS_SCALABLE;
}

static const struct vector_header *header_of(const struct remote *remote)
{
	return (const struct vector_header *)remote->vectors;
}

static bool has_scalable(const struct remote *remote)
{
	return remote->vectors_set == NT_ARM_SVE && header_of(remote)->flags & HAS_SCALABLE;
}

/* Returns how many bytes of @vectors the scalable registers are. */
static size_t scalable_bytes(const struct remote *remote)
{
	return SVE_SIG_REGS_SIZE(sve_vq_from_vl(header_of(remote)->length));
}

int remote__read_vectors(struct remote *remote)
{
	ssize_t size;

	if (is_streaming(remote->tid))
		return -ENOEXEC;
	/* Kernels and processors without SVE do not have the set. */
	remote->vectors_set = NT_ARM_SVE;
	size = read_set(remote->tid, NT_ARM_SVE, remote->vectors, REMOTE_VECTORS);
	if (size < 0) {
		remote->vectors_set = NT_PRFPREG;
		size = read_set(remote->tid, NT_PRFPREG, remote->vectors, REMOTE_VECTORS);
	}
	if (size < 0)
		return -ESRCH;
	remote->vectors_size = size;
	return has_scalable(remote) &&
			       (size_t)size < sizeof(struct vector_header) + scalable_bytes(remote)
		       ? -ENOTSUP
		       : 0;
}

/* Returns how long the record of the scalable registers is in a frame. */
static size_t record_bytes(const struct remote *remote)
{
	return (sizeof(struct sve_context) + scalable_bytes(remote) + 15) & ~15ULL;
}

/* Returns how much of @more a frame needs. */
static size_t more_bytes(const struct remote *remote)
{
	size_t room = sizeof(((mcontext_t *)NULL)->__reserved), end;

	if (!has_scalable(remote))
		return 0;
	end = offsetof(struct vector_frame, scalable) + record_bytes(remote) + TERMINATOR_BYTES;
	return end > room ? end - room : 0;
}

/* Stores the registers as the kernel saves them for a handler. They are used only if nobody else restores the thread. */
static void fill_vectors(const struct remote *remote, struct signal_frame *frame)
{
	const size_t at = offsetof(struct signal_frame, context.uc_mcontext.__reserved);
	struct vector_frame *out = (struct vector_frame *)((unsigned char *)frame + at);
	const unsigned char *registers = remote->vectors + sizeof(struct vector_header);
	const struct user_fpsimd_struct *plain = (const struct user_fpsimd_struct *)registers;
	unsigned int quads;

	out->plain.head = (struct _aarch64_ctx){ FPSIMD_MAGIC, sizeof(out->plain) };
	if (!has_scalable(remote)) {
		if (remote->vectors_set == NT_PRFPREG)
			plain = (const struct user_fpsimd_struct *)remote->vectors;
		memcpy(out->plain.vregs, plain->vregs, sizeof(out->plain.vregs));
		out->plain.fpsr = plain->fpsr;
		out->plain.fpcr = plain->fpcr;
		return;
	}
	quads = sve_vq_from_vl(header_of(remote)->length);
	for (size_t i = 0; i < 32; i++)
		memcpy(&out->plain.vregs[i], remote->vectors + SVE_SIG_ZREG_OFFSET(quads, i),
		       sizeof(out->plain.vregs[i]));
	out->extra = (struct extra_context){
		.head = { EXTRA_MAGIC, sizeof(out->extra) },
		.datap = remote->frame + at + offsetof(struct vector_frame, scalable),
		.size = record_bytes(remote) + TERMINATOR_BYTES,
	};
	out->scalable = (struct sve_context){ .head = { SVE_MAGIC, record_bytes(remote) },
					      .vl = header_of(remote)->length };
	memcpy((unsigned char *)out + sizeof(*out), registers, scalable_bytes(remote));
	/* Both follow the others, at a multiple of 16 bytes. */
	registers = remote->vectors + record_bytes(remote);
	memcpy(&out->plain.fpsr, registers, sizeof(out->plain.fpsr));
	memcpy(&out->plain.fpcr, registers + sizeof(out->plain.fpsr), sizeof(out->plain.fpcr));
}

/* Returns whether the thread is about to make a system call, such as that in which it was interrupted: ptrace(2) has its registers
 * so already. */
static bool is_at_call(const struct remote *remote)
{
	unsigned char code[SYSTEM_CALL_BYTES];

	return !process_memory__read(remote->pid, remote->before.pc, code, sizeof(code)) &&
	       !memcmp(code, remote_system_call_code.bytes, sizeof(code));
}

/* The system calls that the kernel continues by restart_syscall: set_restart_fn(). poll(2) is another on other processors. */
static bool is_continued(__u64 number)
{
	return number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_futex;
}

/* How many instructions before a system call its number may be put into its register. */
#define MOST_BEFORE_CALL 12
/* mov x8, #number; mov w8, #number */
#define MOVE_NUMBER		  0x52800008
#define MOVE_MASK		  0x7fe0001f
#define MOVED_NUMBER(instruction) ((instruction) >> 5 & 0xffff)

/* Returns the number of the call that the thread is about to continue; -1: it is made in another way. */
static long number_of_call(const struct remote *remote)
{
	__u32 code[MOST_BEFORE_CALL];

	if (process_memory__read(remote->pid, remote->before.pc - sizeof(code), code, sizeof(code)))
		return -1;
	for (size_t i = MOST_BEFORE_CALL; i-- > 0;)
		if ((code[i] & MOVE_MASK) == MOVE_NUMBER)
			return is_continued(MOVED_NUMBER(code[i])) ? (long)MOVED_NUMBER(code[i])
								   : -1;
	return remote__number_by_arguments(remote->pid, remote->before.regs, -1);
}

/* The registers with which the thread goes on from the frame, from which the kernel continues no system call: it begins anew, and so
 * sleeps for longer. */
static void fill_registers(const struct remote *remote, mcontext_t *to)
{
	const struct user_regs_struct *before = &remote->before;
	long number;

	memcpy(to->regs, before->regs, sizeof(to->regs));
	to->sp = before->sp;
	to->pc = before->pc;
	to->pstate = before->pstate;
	if (before->regs[REGISTER_NUMBER] != SYS_restart_syscall || !is_at_call(remote))
		return;
	number = number_of_call(remote);
	if (number >= 0)
		to->regs[REGISTER_NUMBER] = number;
}

int remote__write_frame(struct remote *remote)
{
	size_t size = offsetof(struct signal_frame, more) + more_bytes(remote);
	struct signal_frame frame = { 0 };

	remote->unused_end = remote->before.sp & ~15ULL;
	remote->room = remote->unused_end - REMOTE_ROOM;
	remote->frame = (remote->room - size) & ~15ULL;
	/* This value makes the kernel refuse the alternate stack, so the thread keeps the one that
	 * it has. */
	frame.context.uc_stack.ss_flags = 0xff;
	memcpy(&frame.context.uc_sigmask, &remote->mask, sizeof(remote->mask));
	fill_registers(remote, &frame.context.uc_mcontext);
	fill_vectors(remote, &frame);
	return process_memory__write(remote->pid, remote->frame, &frame, size);
}

/* From the kernel's include/linux/errno.h: what the call would return that restart_syscall continues. */
#define ERESTART_RESTARTBLOCK 516

/* Lets the thread make its call, in which it is interrupted at once. */
static int make_call(struct remote *remote, bool *is_interrupted)
{
	struct user_regs_struct *before = &remote->before, ended;
	int err = remote__go_to_system_call(remote);

	if (!err)
		err = remote__set_mask(remote, remote->mask);
	(void)ptrace(PTRACE_INTERRUPT, remote->tid, NULL, NULL);
	if (!err)
		err = remote__go_to_system_call(remote);
	if (!err && read_set(remote->tid, NT_PRSTATUS, &ended, sizeof(ended)) < 0)
		err = -ESRCH;
	if (!err)
		err = remote__go_to_stop(remote);
	if (!err && read_set(remote->tid, NT_PRSTATUS, before, sizeof(*before)) < 0)
		err = -ESRCH;
	if (!err)
		*is_interrupted = remote_registers__result(&ended) == -ERESTART_RESTARTBLOCK;
	return err;
}

/*
 * Only when a thread goes on does the kernel make restart_syscall of a call that it continues; ptrace(2) does not say whether it
 * will. So the thread goes on, until its registers have it. Another call would have begun anew anyway.
 */
int remote__settle(struct remote *remote)
{
	bool is_interrupted = true;
	int err = 0;

	if (!is_continued(remote->before.regs[REGISTER_NUMBER]) || !is_at_call(remote))
		return 0;
	while (!err && is_interrupted && is_continued(remote->before.regs[REGISTER_NUMBER]))
		err = make_call(remote, &is_interrupted);
	if (!err)
		err = remote__read_vectors(remote);
	return err ? err : remote__write_frame(remote);
}

int remote__thread_data(pid_t tid, __u64 *address)
{
	return read_set(tid, NT_ARM_TLS, address, sizeof(*address)) < 0 ? -ESRCH : 0;
}

/* Thread-local variables of the C library and others begin behind the thread pointer, and seldom need more. */
#define MOST_VARIABLES 4096

__u64 remote__variables_end(__u64 data)
{
	return data + MOST_VARIABLES;
}

int remote__position(pid_t tid, __u64 *code, __u64 *stack)
{
	struct user_regs_struct registers = { 0 };

	if (read_set(tid, NT_PRSTATUS, &registers, sizeof(registers)) < 0)
		return -ESRCH;
	if (code)
		*code = registers.pc;
	*stack = registers.sp;
	return 0;
}

int remote__registers(pid_t tid, __u64 words[REMOTE_REGISTERS], size_t *n)
{
	ssize_t used = read_set(tid, NT_PRSTATUS, words, sizeof(struct user_regs_struct)), more;

	if (used < 0)
		return -ESRCH;
	more = read_set(tid, NT_PRFPREG, (char *)words + used,
			REMOTE_REGISTERS * sizeof(*words) - (size_t)used);
	*n = (size_t)(used + (more < 0 ? 0 : more)) / sizeof(*words);
	return 0;
}
