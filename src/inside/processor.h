/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this library knows of the processor. Each processor has a header that defines the same functions
 * and macros, and entries_<processor>.c. */
#ifndef ALLOCPROF_INSIDE_PROCESSOR_H
#define ALLOCPROF_INSIDE_PROCESSOR_H

#if defined(__x86_64__)
#include "processor_x86.h"
#elif defined(__aarch64__)
#include "processor_arm64.h"
#else
#error "this processor has no src/inside/processor_*.h yet"
#endif

/* No processor has smaller pages. */
#define LEAST_PAGE 4096

#endif
