/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Page faults as a source of allocations (docs/faults.md): the programs at the kernel's events,
 * and a pseudo allocator with their sites. */
#ifndef ALLOCPROF_FAULTS_H
#define ALLOCPROF_FAULTS_H

#include <stdbool.h>

struct allocator;
struct allocprof_bpf;
struct error;
struct faults;

/* To be called before the load: selects the programs of faults if they are @wanted, with @stacks
 * those that count by stack, and with @fexit also those for faults that the kernel takes itself. */
void faults__choose(struct allocprof_bpf *skeleton, bool wanted, bool stacks, bool fexit);

/* Attaches the loaded programs on all processors. Returns 0 and the attachment, which the caller
 * frees, or a negative errno with *@error set. */
int faults__attach(struct allocprof_bpf *skeleton, struct faults **out, struct error *error);
/* Detaches the programs. @faults may be NULL. */
void faults__free(struct faults *faults);

/* Returns an allocator whose sites are the kinds of faults, in the order of enum ap_function. NULL
 * if there is no memory. */
struct allocator *faults__allocator(void);

#endif
