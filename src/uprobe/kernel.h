/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detects features of this kernel and rights of this user by trying them, or by the kernel's
 * version where trying shows nothing. */
#ifndef ALLOCPROF_KERNEL_H
#define ALLOCPROF_KERNEL_H

#include "kernel_features.h"

struct error;
struct kernel_types;

/* Detects the kernel's features. Never fails: a feature that cannot be detected is false. Unless
 * @types is NULL, *@types is set to the kernel's types, which the caller frees, or to NULL if they
 * cannot be read. */
void kernel__probe(struct kernel *kernel, struct kernel_types **types);

/*
 * Returns 0 if recording can work, else -EPERM (capabilities), -ENOSYS (no BPF) or -EOPNOTSUPP (no
 * BTF, no uprobes), with *@error set.
 */
int kernel__require(const struct kernel *kernel, struct error *error);

#endif
