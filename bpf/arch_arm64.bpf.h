/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of arch.bpf.h for arm64. */
#ifndef ALLOCPROF_ARCH_ARM64_BPF_H
#define ALLOCPROF_ARCH_ARM64_BPF_H

#include "kernel.h"
#include "maps.bpf.h"

/* Layout of the kernel's struct pt_regs: struct user_pt_regs, which is fixed by ptrace's ABI, and
 * what the kernel has had behind it since Linux 4.10. */
struct pt_regs {
	unsigned long regs[31], sp, pc, pstate, orig_x0;
	int syscallno;
	unsigned int unused;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct___arm64 {
	struct {
		unsigned long tp_value;
	} uw;
};

struct task_struct___arm64 {
	struct thread_struct___arm64 thread;
};

#pragma clang attribute pop

#define PAGE_SHIFT config.page_shift

/*
 * Works like LOAD(), for a value that user space stores after the data that it announces: the data
 * is read after the value. BPF has an instruction for that only since Linux 6.15. An atomic
 * operation that returns a value is a full barrier, also if it is on memory of its own.
 */
#define ARCH_LOAD_ACQUIRE(value)                                                                   \
	({                                                                                         \
		__typeof__(value) loaded = LOAD(value);                                            \
		__u64 fence = 0, fenced = __sync_fetch_and_add(&fence, 1);                         \
                                                                                                   \
		barrier_var(fenced);                                                               \
		loaded;                                                                            \
	})

/* Returns the registers with which the current task entered the kernel. */
static __always_inline struct pt_regs *task__regs(void)
{
	return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}

static __always_inline __u64 arch__ip(const struct pt_regs *regs)
{
	return regs->pc;
}

static __always_inline __u64 arch__sp(const struct pt_regs *regs)
{
	return regs->sp;
}

static __always_inline __u64 arch__fp(const struct pt_regs *regs)
{
	return regs->regs[29];
}

/* Arguments of AAPCS64, 1 to 6. */
static __always_inline __u64 arch__arg1(const struct pt_regs *regs)
{
	return regs->regs[0];
}

static __always_inline __u64 arch__arg2(const struct pt_regs *regs)
{
	return regs->regs[1];
}

static __always_inline __u64 arch__arg3(const struct pt_regs *regs)
{
	return regs->regs[2];
}

static __always_inline __u64 arch__arg4(const struct pt_regs *regs)
{
	return regs->regs[3];
}

static __always_inline __u64 arch__arg5(const struct pt_regs *regs)
{
	return regs->regs[4];
}

static __always_inline __u64 arch__arg6(const struct pt_regs *regs)
{
	return regs->regs[5];
}

/* Returns the number of the system call with which the thread entered the kernel. */
static __always_inline __u64 arch__syscall(const struct pt_regs *regs)
{
	return regs->syscallno;
}

/* Returns whether the thread entered the kernel by a system call, and not by an exception or an
 * interrupt. */
static __always_inline bool arch__is_system_call(const struct pt_regs *regs)
{
	return regs->syscallno >= 0;
}

/* Returns whether the thread runs 64-bit code (PSR_MODE32_BIT). */
static __always_inline bool arch__is_native_code(const struct pt_regs *regs)
{
	return !(regs->pstate & 0x10);
}

#define ARCH_SYS_BRK	       214
#define ARCH_SYS_MUNMAP	       215
#define ARCH_SYS_MREMAP	       216
#define ARCH_SYS_MMAP	       222
#define ARCH_SYS_MPROTECT      226
#define ARCH_SYS_MADVISE       233
#define ARCH_SYS_PKEY_MPROTECT 288

/* Returns whether the current system call uses the 64-bit numbers; 32-bit programs use others. */
static __always_inline bool arch__is_native_syscall(const struct task_struct *task)
{
	return arch__is_native_code(task__regs());
}

/* Arguments of a system call, which the kernel keeps in @regs. The result replaces x0. */
static __always_inline __u64 arch__syscall_arg1(const struct pt_regs *regs)
{
	return regs->orig_x0;
}

static __always_inline __u64 arch__syscall_arg2(const struct pt_regs *regs)
{
	return regs->regs[1];
}

static __always_inline __u64 arch__syscall_arg3(const struct pt_regs *regs)
{
	return regs->regs[2];
}

static __always_inline __u64 arch__syscall_arg4(const struct pt_regs *regs)
{
	return regs->regs[3];
}

static __always_inline __u64 arch__syscall_arg5(const struct pt_regs *regs)
{
	return regs->regs[4];
}

/* Calls leave the return address in x30, the link register. */
#define ARCH_HAS_LINK 1

/* Returns the bits of an address of code in the current process. Pointer authentication uses those
 * above, so return addresses on the stack may have any value there. */
static __always_inline __u64 arch__code_mask(void)
{
	return bpf_get_current_task_btf()->mm->task_size - 1;
}

static __always_inline __u64 arch__code_address(__u64 address, __u64 mask)
{
	return address & mask;
}

/* Returns the link register with which the current task entered the kernel. */
static __always_inline __u64 arch__link(void)
{
	return arch__code_address(task__regs()->regs[30], arch__code_mask());
}

/* Stack address of which arch__return_distance() takes the distance for a call that has not saved
 * its return address yet; @sp is SP at the function's entry. */
static __always_inline __u64 arch__return_slot(__u64 sp)
{
	return sp - 8;
}

/*
 * The kernel replaces the link register, and notes SP at the function's entry. The function saves
 * the register somewhere in its frame, whose upper end that is: of all noted calls, the next one
 * above @slot has saved it there.
 */
static __always_inline __u64 arch__return_distance(__u64 noted, __u64 slot)
{
	return noted > slot ? noted - slot : ~0ULL;
}

/* Returns SP at a function's entry, if its caller's SP was @sp before the call. */
static __always_inline __u64 arch__called_sp(__u64 sp)
{
	return sp;
}

/* The caller's SP after the return, if @sp is SP at the function's entry or return instruction. */
static __always_inline __u64 arch__caller_sp(__u64 sp)
{
	return sp;
}

/* The function's return value. */
static __always_inline __u64 arch__result(const struct pt_regs *regs)
{
	return regs->regs[0];
}

/* The thread pointer, as it was when the thread last left its processor. Threads set it once. */
static __always_inline __u64 arch__thread_data(const struct task_struct *task)
{
	const struct task_struct___arm64 *task_arm64 = (const void *)task;

	return task_arm64->thread.uw.tp_value;
}

/* Fills the registers of an ap_dump_record in DWARF order. */
static __always_inline void arch__dump_registers(const struct pt_regs *regs, __u64 *registers)
{
	/* The verifier wants a constant offset in each access. */
#pragma unroll
	for (int i = 0; i < 31; i++)
		registers[i] = regs->regs[i];
	registers[31] = regs->sp;
	registers[32] = regs->pc;
}

/* Puts @return_address into the registers at a function's entry, where a return probe may have
 * replaced it. */
static __always_inline void arch__dump_link(__u64 *registers, __u64 return_address)
{
	registers[30] = return_address;
}

#endif
