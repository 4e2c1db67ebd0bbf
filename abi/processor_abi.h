/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side, the engine inside and the library know of the processor. Each processor has
 * a file that defines the same functions and macros. */
#ifndef ALLOCPROF_PROCESSOR_ABI_H
#define ALLOCPROF_PROCESSOR_ABI_H

/* For programs of bpf/ the compiler's own target is another. */
#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#include "processor_x86_abi.h"
#elif defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#include "processor_arm64_abi.h"
#else
#error "this processor has no abi/processor_*_abi.h yet"
#endif

#endif
