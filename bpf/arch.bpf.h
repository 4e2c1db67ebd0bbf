/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs know of the processor: registers at a function's entry and the calling
 * convention. Each processor has a file that defines the same functions and macros. */
#ifndef ALLOCPROF_ARCH_BPF_H
#define ALLOCPROF_ARCH_BPF_H

#if defined(__TARGET_ARCH_x86)
#include "arch_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arch_arm64.bpf.h"
#else
#error "this processor has no bpf/arch_*.bpf.h yet"
#endif

#define PAGE_SIZE (1UL << PAGE_SHIFT)

#endif
