/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Anonymous mappings as a source of allocations (docs/mappings.md): the programs at the system
 * calls, and a pseudo allocator with their sites. */
#ifndef ALLOCPROF_MAPPINGS_H
#define ALLOCPROF_MAPPINGS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "function_abi.h"

/* Path of pseudo allocators whose sites are the kernel's own. */
#define KERNEL_PATH "[kernel]"

struct allocator;
struct allocprof_bpf;
struct error;
struct interface_function;

/* To be called before the load, when the programs' settings are complete: selects the programs of
 * mappings if they are @wanted, and with @preempts also those that perf calls (tracepoint_abi.h). */
void mappings__choose(struct allocprof_bpf *skeleton, bool wanted, bool preempts);

/* Attach the loaded programs, and detach them. */
int mappings__attach(struct allocprof_bpf *skeleton, struct error *error);
void mappings__detach(struct allocprof_bpf *skeleton);

/* Returns an allocator with @n sites for the functions from @first on, which @interfaces
 * describes. NULL if there is no memory. */
struct allocator *kernel_allocator__new(enum ap_function first,
					const struct interface_function *interfaces, size_t n);

/* Returns an allocator whose sites are the system calls, in the order of enum ap_function. NULL if
 * there is no memory. */
struct allocator *mappings__allocator(void);

/* Returns how often the kernel skipped the programs. */
struct counters;
__u64 mappings__recursion_misses(struct allocprof_bpf *skeleton, struct counters *counters);

#endif
