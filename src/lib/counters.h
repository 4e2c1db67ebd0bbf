/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the kernel side's counters, and keeps count of those that could not be read: the numbers that were made
 * of them are not complete. */
#ifndef ALLOCPROF_COUNTERS_H
#define ALLOCPROF_COUNTERS_H

#include <linux/types.h>
#include <stddef.h>

struct bpf_program;

struct counters {
	int n_cpus;    /* that there may ever be */
	__u64 unread;  /* counters that could not be read */
	__u64 refused; /* for tests: so many readings fail from now on */
};

/* A negative errno where the kernel does not tell its number of CPUs. */
int counters__init(struct counters *counters);

/*
 * Adds up, over all CPUs, the @n numbers of which each value of a per-CPU map consists: those of @key of the map
 * @fd into @sums. Where that fails @sums are zeros, and it counts as unread.
 */
void counters__sum(struct counters *counters, int fd, const void *key, __u64 *sums, size_t n);

/* Runs that the kernel left out because the program was running on the CPU already; 0 of one that is not loaded. */
__u64 counters__recursion_misses(struct counters *counters, const struct bpf_program *program);

#endif
