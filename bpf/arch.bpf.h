/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What depends on the processor: registers at a function's entry and the calling convention. */
#ifndef ALLOCPROF_ARCH_BPF_H
#define ALLOCPROF_ARCH_BPF_H

#include "kernel.h"

#if defined(__TARGET_ARCH_x86)

/* Layout of the kernel's struct pt_regs, which is fixed by ptrace's ABI. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	unsigned long rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp, ss;
};

static __always_inline __u64 arch__ip(const struct pt_regs *regs)
{
	return regs->rip;
}

static __always_inline __u64 arch__sp(const struct pt_regs *regs)
{
	return regs->rsp;
}

static __always_inline __u64 arch__fp(const struct pt_regs *regs)
{
	return regs->rbp;
}

/* Arguments of the System V ABI, 1 to 6. */
static __always_inline __u64 arch__arg1(const struct pt_regs *regs)
{
	return regs->rdi;
}

static __always_inline __u64 arch__arg2(const struct pt_regs *regs)
{
	return regs->rsi;
}

static __always_inline __u64 arch__arg3(const struct pt_regs *regs)
{
	return regs->rdx;
}

static __always_inline __u64 arch__arg4(const struct pt_regs *regs)
{
	return regs->rcx;
}

static __always_inline __u64 arch__arg5(const struct pt_regs *regs)
{
	return regs->r8;
}

static __always_inline __u64 arch__arg6(const struct pt_regs *regs)
{
	return regs->r9;
}

/* The system call that a thread makes which entered the kernel with @regs. */
static __always_inline __u64 arch__syscall(const struct pt_regs *regs)
{
	return regs->orig_rax;
}

#define ARCH_SYS_MMAP	9
#define ARCH_SYS_MUNMAP 11
#define ARCH_SYS_BRK	12
#define ARCH_SYS_MREMAP 25

/* Whether these numbers are those of the system call that is under way: of 32-bit programs they are others. */
static __always_inline bool arch__is_native_syscall(const struct task_struct *task)
{
	return !(task->thread_info.status & 2 /* TS_COMPAT */);
}

/* Arguments of a system call, which the kernel keeps in the registers that user space made it with. */
static __always_inline __u64 arch__syscall_arg1(const struct pt_regs *regs)
{
	return regs->rdi;
}

static __always_inline __u64 arch__syscall_arg2(const struct pt_regs *regs)
{
	return regs->rsi;
}

static __always_inline __u64 arch__syscall_arg3(const struct pt_regs *regs)
{
	return regs->rdx;
}

static __always_inline __u64 arch__syscall_arg4(const struct pt_regs *regs)
{
	return regs->r10;
}

/* Where the return address is at a function's entry, whose SP is @sp. */
static __always_inline __u64 arch__return_slot(__u64 sp)
{
	return sp;
}

/* SP at a function's entry whose caller's was @sp before the call. */
static __always_inline __u64 arch__called_sp(__u64 sp)
{
	return sp - 8;
}

/* SP of the caller right after the function will have returned. */
static __always_inline __u64 arch__caller_sp(__u64 sp)
{
	return sp + 8;
}

/* What a function returned. */
static __always_inline __u64 arch__result(const struct pt_regs *regs)
{
	return regs->rax;
}

/* Where the thread's own data is, which code finds by a register. */
static __always_inline __u64 arch__thread_data(const struct task_struct *task)
{
	return task->thread.fsbase;
}

/* In arch__epilogue()'s result: the saved frame pointer lies below the return address. */
#define ARCH_EPILOGUE_FP 0x100

/*
 * How far up the stack the words are that a function leaves by, where @code, its next 8 bytes, does nothing else:
 * [add $n, %rsp;] [pop %rbp;] ret. Bytes, with ARCH_EPILOGUE_FP, or -1 where it is other code.
 */
static __always_inline int arch__epilogue(__u64 code)
{
	int bytes = 0;

	if ((code & 0xffffff) == 0xc48348) {
		bytes = code >> 24 & 0xff;
		if (bytes & 0x87) /* downwards, or no word */
			return -1;
		code >>= 32;
	}
	if ((code & 0xff) == 0x5d) {
		bytes |= ARCH_EPILOGUE_FP;
		code >>= 8;
	}
	return (code & 0xff) == 0xc3 ? bytes : -1;
}

/* How far before the return address the code begins that arch__is_context_end() looks at. */
#define ARCH_CONTEXT_END_BYTES 3

/*
 * Whether a context that Boost's make_fcontext() made begins behind @code's first bytes, which also PHP and others have:
 * push %rbp; jmp *%rbx, which begins the context's function, and there, where that returns to, [endbr64;]
 * xor %rdi, %rdi; call _exit. It has no call frame information.
 */
static __always_inline bool arch__is_context_end(__u64 code)
{
	__u64 behind = code >> 24 & 0xffffffff;

	return (code & 0xffffff) == 0xe3ff55 && (behind == 0xe8ff3148 || behind == 0xfa1e0ff3);
}

/* PLT entries push 8 bytes at this alignment of the pc; the low bits that a rule compares. */
#define ARCH_PLT_MASK 15

/* Fills the registers of an ap_dump_record by their DWARF numbers. */
static __always_inline void arch__dump_registers(const struct pt_regs *regs, __u64 *registers)
{
	registers[0] = regs->rax;
	registers[1] = regs->rdx;
	registers[2] = regs->rcx;
	registers[3] = regs->rbx;
	registers[4] = regs->rsi;
	registers[5] = regs->rdi;
	registers[6] = regs->rbp;
	registers[7] = regs->rsp;
	registers[8] = regs->r8;
	registers[9] = regs->r9;
	registers[10] = regs->r10;
	registers[11] = regs->r11;
	registers[12] = regs->r12;
	registers[13] = regs->r13;
	registers[14] = regs->r14;
	registers[15] = regs->r15;
	registers[16] = regs->rip;
}

#else
#error "this processor has no bpf/arch.bpf.h section yet"
#endif

#endif
