/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the BPF programs' counters, and counts failed readings: sums with such a reading are
 * incomplete. */
#ifndef ALLOCPROF_COUNTERS_H
#define ALLOCPROF_COUNTERS_H

#include <linux/types.h>
#include <stddef.h>

struct bpf_program;

struct counters {
	int n_cpus;    /* possible CPUs */
	__u64 unread;  /* counters that could not be read */
	__u64 refused; /* for tests: so many further readings fail */
};

/* A negative errno if the number of possible CPUs is unknown. */
int counters__init(struct counters *counters);

/* Sums the @n numbers of a per-CPU map's value over all CPUs: those of @key in map @fd go to @sums.
 * If the reading fails, @sums are zeros and @unread grows. */
void counters__sum(struct counters *counters, int fd, const void *key, __u64 *sums, size_t n);

/* Runs that the kernel skipped because the program was already running on that CPU; 0 if it is not
 * loaded. */
__u64 counters__recursion_misses(struct counters *counters, const struct bpf_program *program);

#endif
