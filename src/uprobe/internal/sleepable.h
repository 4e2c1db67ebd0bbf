/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Loads the programs at the probes of functions as sleepable ones, which read absent pages in (bpf/fault.bpf.h). They are in
 * the section "sleepable", and become so when they are loaded.
 */
#ifndef ALLOCPROF_SLEEPABLE_H
#define ALLOCPROF_SLEEPABLE_H

#include <linux/types.h>
#include <stdbool.h>

struct kernel_types;

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

#endif
