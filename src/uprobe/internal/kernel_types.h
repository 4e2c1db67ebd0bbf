/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads those types of the running kernel that allocprof needs, and lets libbpf load programs by
 * them: sleepable ones, and those of type tracing. */
#ifndef ALLOCPROF_KERNEL_TYPES_H
#define ALLOCPROF_KERNEL_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

struct btf;
struct kernel_types;

/* Finds the types of /sys/kernel/btf/vmlinux. The caller frees *@out. Fails with -ENOENT, -EINVAL,
 * -ENOMEM, an errno of open(2), or of fd__read_all(). */
int kernel_types__open(struct kernel_types **out);
void kernel_types__free(struct kernel_types *types);

/* Returns the id of the function @name; 0: the kernel lacks it. */
__u32 kernel_types__function(const struct kernel_types *types, const char *name);

/* Returns the number of parameters of a tracepoint's programs, or 0 if the kernel lacks the
 * tracepoint. */
int kernel_types__tracepoint_parameters(const struct kernel_types *types, const char *name);

/*
 * Writes types into the file @fd, which libbpf reads in place of the kernel's when it adapts
 * programs to the running kernel: those with the names of the programs' types @local, and the
 * types of which they consist. libbpf goes through all types once for each type that a program
 * uses, which takes 15 ms with the kernel's 126,000. Fails with -EINVAL, -ENOMEM, or an errno of
 * write(2).
 */
int kernel_types__pick(const struct kernel_types *types, const struct btf *local, int fd);

/*
 * Loads the programs at the probes of functions as sleepable ones, which read absent pages in
 * (bpf/fault.bpf.h). They are in the section "sleepable", and get the flag when they are loaded.
 */

/* Ids of the kernel's functions that such programs call. */
struct sleepable {
	__u32 lock, unlock; /* bpf_rcu_read_lock(), bpf_rcu_read_unlock(), Linux 6.2; 0: missing */
};

/* Returns whether the kernel loads such programs; @types are its own. */
bool sleepable__supported(const struct kernel_types *types);

void sleepable__find(struct sleepable *sleepable, const struct kernel_types *types);

/* Makes libbpf accept the section in objects that this process opens from now on. Returns 0 or a
 * negative errno. */
int sleepable__take_over(void);

/* From now on this thread loads the programs as sleepable ones, which call the functions of
 * @sleepable. @sleepable is borrowed until the next call. NULL: the programs are not sleepable. */
void sleepable__use(const struct sleepable *sleepable);

/*
 * Programs of type tracing are loaded with the id of the function to which they are attached.
 * libbpf would look the id up by reading and copying all types of the kernel: 5 MB, 4 KiB at a
 * time. This code asks struct kernel_types instead, which has read them already. Such programs are
 * attached by bpf_program__attach_trace() or bpf_program__attach_iter().
 */

/* Makes libbpf ask this code for ids in objects that the process opens from now on. Returns 0 or a
 * negative errno. */
int tracing__take_over(void);

/* From now on the ids for objects that this thread loads are looked up in @types, which is
 * borrowed until the next call. NULL: tracing programs are not loaded. */
void tracing__use(const struct kernel_types *types);

#endif
