/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Features of this kernel and rights of this user, detected by trying, and by version where that shows nothing. */
#ifndef ALLOCPROF_KERNEL_H
#define ALLOCPROF_KERNEL_H

#include "kernel_features.h"

struct error;
struct kernel_types;

/* Never fails: undetectable features are false. Unless @types is NULL, sets it to the kernel's types, or
 * to NULL where they cannot be read; to be freed. */
void kernel__probe(struct kernel *kernel, struct kernel_types **types);

/*
 * 0 if recording can work, else -EPERM (capabilities), -ENOSYS (no BPF) or -EOPNOTSUPP (no BTF, no
 * uprobes), with *@error set.
 */
int kernel__require(const struct kernel *kernel, struct error *error);

#endif
