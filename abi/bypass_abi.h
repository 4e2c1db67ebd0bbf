/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel side (bpf/bypass.bpf.c) and allocprof (src/uprobe/bypass.c) share these limits and this state of the check for
 * calls that bypass the library of src/inside. */
#ifndef ALLOCPROF_BYPASS_ABI_H
#define ALLOCPROF_BYPASS_ABI_H

#include <linux/types.h>

/* Most threads whose calls are checked. */
#define BYPASS_THREADS 65536
/* Most return addresses of bypassing calls that are told apart. */
#define BYPASS_CALLERS 1024
/* Most calls of allocators in programs that are told apart. */
#define BYPASS_INTERNAL 65536
/* Most objects whose functions are checked: the C library, and allocators that are preloaded. */
#define BYPASS_RANGES 8

/* A global variable of the programs. */
struct bypass_state {
	__u32 is_on; /* 1: calls are checked; written by allocprof */
	__u32 pad;
	/* Mappings of the code of the libraries that have the functions; written by allocprof. Unused
	 * ones have the size 0. */
	struct {
		__u64 start, size;
	} ranges[BYPASS_RANGES];
	__u64 n_passed;	  /* calls of a function right after a stub was entered */
	__u64 n_bypassed; /* calls of a function by others than allocators, without a stub */
	__u64 n_unread;	  /* calls that could not be checked */
};

#endif
