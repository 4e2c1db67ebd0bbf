/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The types of the running kernel, of which allocprof needs a few, and programs that libbpf loads by them: sleepable ones, and
 * those of type tracing. */
#ifndef ALLOCPROF_KERNEL_TYPES_H
#define ALLOCPROF_KERNEL_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

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

/*
 * Loads the programs at the probes of functions as sleepable ones, which read absent pages in (bpf/fault.bpf.h). They are in
 * the section "sleepable", and become so when they are loaded.
 */

/* Ids of the kernel's functions that such programs call. */
struct sleepable {
	__u32 lock, unlock; /* bpf_rcu_read_lock(), bpf_rcu_read_unlock(), Linux 6.2; 0: missing */
};

/* Returns whether the kernel loads such programs; @types are its own. */
bool sleepable__supported(const struct kernel_types *types);

void sleepable__find(struct sleepable *sleepable, const struct kernel_types *types);

/* Makes libbpf know the section in objects that this process opens from now on. 0 or a negative errno. */
int sleepable__take_over(void);

/* The programs that this thread loads from now on are sleepable and call the functions of @sleepable, which is borrowed until
 * the next call; with NULL they are not. */
void sleepable__use(const struct sleepable *sleepable);

/*
 * Programs of type tracing are loaded with the id of what they are attached to, which libbpf looks up by reading and
 * copying all types of the kernel: 5 MB, 4 KiB at a time. Here struct kernel_types, which has them already, is asked.
 * Such programs are attached by bpf_program__attach_trace() or bpf_program__attach_iter().
 */

/* Makes libbpf ask for ids in objects that this process opens from now on. 0 or a negative errno. */
int tracing__take_over(void);

/* The ids of objects that this thread loads from now on are looked up in @types, which is borrowed until the next call;
 * with NULL tracing programs are not loaded. */
void tracing__use(const struct kernel_types *types);

#endif
