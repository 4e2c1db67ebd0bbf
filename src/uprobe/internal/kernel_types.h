/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The types of the running kernel, of which allocprof needs a few. */
#ifndef ALLOCPROF_KERNEL_TYPES_H
#define ALLOCPROF_KERNEL_TYPES_H

#include <linux/types.h>

struct btf;
struct kernel_types;

/* Finds the types of /sys/kernel/btf/vmlinux. -ENOENT, -EINVAL, -ENOMEM, an errno of open(2), or of
 * fd__read_all(). */
int kernel_types__open(struct kernel_types **out);
void kernel_types__free(struct kernel_types *types);

/* Id of the function @name, 0: the kernel lacks it. */
__u32 kernel_types__function(const struct kernel_types *types, const char *name);

/* Id of the type that programs of the tracepoint @name are loaded with, 0: the kernel lacks it. */
__u32 kernel_types__tracepoint(const struct kernel_types *types, const char *name);

/* Number of parameters of a tracepoint's programs, 0 if the kernel lacks the tracepoint. */
int kernel_types__tracepoint_parameters(const struct kernel_types *types, const char *name);

/*
 * Writes types into the file @fd, which libbpf reads in place of the kernel's to adapt programs that use
 * the types @local: those with names of @local's, and what they consist of. libbpf goes through all types once for
 * each that a program uses, which takes 15 ms with the kernel's 126,000. -EINVAL, -ENOMEM, or an errno of write(2).
 */
int kernel_types__pick(const struct kernel_types *types, const struct btf *local, int fd);

#endif
