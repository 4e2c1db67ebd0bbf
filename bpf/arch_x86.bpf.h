/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of arch.bpf.h for x86-64. */
#ifndef ALLOCPROF_ARCH_X86_BPF_H
#define ALLOCPROF_ARCH_X86_BPF_H

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct___x86 {
	unsigned long fsbase;
};

struct thread_info___x86 {
	unsigned int status;
};

struct task_struct___x86 {
	struct thread_info___x86 thread_info;
	struct thread_struct___x86 thread;
};

#pragma clang attribute pop

/* Layout of the kernel's struct pt_regs, which is fixed by ptrace's ABI. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	unsigned long rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp, ss;
};

/* Works like LOAD(), for a value that user space stores after the data that it announces: the data
 * is read after the value. BPF has an instruction for that only since Linux 6.15; this processor
 * keeps loads in order, so only the compiler has to be told. */
#define ARCH_LOAD_ACQUIRE(value)                                                                   \
	({                                                                                         \
		__typeof__(value) loaded = LOAD(value);                                            \
                                                                                                   \
		barrier();                                                                         \
		loaded;                                                                            \
	})

/* Returns the registers with which the current task entered the kernel. */
static __always_inline struct pt_regs *task__regs(void)
{
	return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

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

/* Returns the number of the system call with which the thread entered the kernel. */
static __always_inline __u64 arch__syscall(const struct pt_regs *regs)
{
	return regs->orig_rax;
}

/* Returns whether the thread entered the kernel by a system call, and not by an exception or an
 * interrupt. */
static __always_inline bool arch__is_system_call(const struct pt_regs *regs)
{
	return (__s64)regs->orig_rax >= 0;
}

/* Returns whether the thread runs 64-bit code (__USER32_CS is 0x23). */
static __always_inline bool arch__is_native_code(const struct pt_regs *regs)
{
	return regs->cs != 0x23;
}

static __always_inline __u64 arch__syscall_arg5(const struct pt_regs *regs)
{
	return regs->r8;
}

#define PAGE_SHIFT 12

#define ARCH_SYS_MMAP	       9
#define ARCH_SYS_MPROTECT      10
#define ARCH_SYS_MUNMAP	       11
#define ARCH_SYS_BRK	       12
#define ARCH_SYS_MREMAP	       25
#define ARCH_SYS_MADVISE       28
#define ARCH_SYS_PKEY_MPROTECT 329

/* Returns whether the current system call uses the 64-bit numbers; 32-bit programs use others. */
static __always_inline bool arch__is_native_syscall(const struct task_struct *task)
{
	const struct task_struct___x86 *task_x86 = (const void *)task;

	return !(task_x86->thread_info.status & 2 /* TS_COMPAT */);
}

/* Arguments of a system call, which the kernel keeps in @regs. */
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

/* Calls push the return address. */
#define ARCH_HAS_LINK 0

static __always_inline __u64 arch__link(void)
{
	return 0;
}

static __always_inline __u64 arch__code_mask(void)
{
	return ~0ULL;
}

static __always_inline __u64 arch__code_address(__u64 address, __u64 mask)
{
	return address;
}

/* Stack address of the return address; @sp is SP at the function's entry. */
static __always_inline __u64 arch__return_slot(__u64 sp)
{
	return sp;
}

/* The kernel notes the address at which it has replaced a return address. */
static __always_inline __u64 arch__return_distance(__u64 noted, __u64 slot)
{
	return noted == slot ? 0 : ~0ULL;
}

/* Returns SP at a function's entry, if its caller's SP was @sp before the call. */
static __always_inline __u64 arch__called_sp(__u64 sp)
{
	return sp - 8;
}

/* The caller's SP after the return, if @sp is SP at the function's entry or return instruction. */
static __always_inline __u64 arch__caller_sp(__u64 sp)
{
	return sp + 8;
}

/* The function's return value. */
static __always_inline __u64 arch__result(const struct pt_regs *regs)
{
	return regs->rax;
}

/* The thread pointer. */
static __always_inline __u64 arch__thread_data(const struct task_struct *task)
{
	const struct task_struct___x86 *task_x86 = (const void *)task;

	return task_x86->thread.fsbase;
}

/* Fills the registers of an ap_dump_record in DWARF order. */
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

/* Puts @return_address, which is in none of them, into the registers at a function's entry. */
static __always_inline void arch__dump_link(__u64 *registers, __u64 return_address)
{
}

#endif
