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

/* Arguments of the System V ABI, 1 to 3. */
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

/* Return address of the function whose entry (SP not moved yet) was hit; 0 where unreadable. */
static __always_inline __u64 arch__return_address(const struct pt_regs *regs)
{
	__u64 address = 0;

	bpf_probe_read_user(&address, sizeof(address), (void *)regs->rsp);
	return address;
}

/* SP of the caller right after the function will have returned. */
static __always_inline __u64 arch__caller_sp(const struct pt_regs *regs)
{
	return regs->rsp + 8;
}

#else
#error "this processor has no bpf/arch.bpf.h section yet"
#endif

#endif
