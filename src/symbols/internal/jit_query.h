/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A question to the files by which processes say what code they made, perf maps and jitdumps, and the answer. */
#ifndef ALLOCPROF_JIT_QUERY_H
#define ALLOCPROF_JIT_QUERY_H

#include <linux/types.h>

/* Longest name, and longest path of a source file; longer ones are truncated. */
#define JIT_NAME_BYTES 1024
#define JIT_FILE_BYTES 4096

struct jit_query {
	__u64 address;
	__u64 time_ns; /* CLOCK_MONOTONIC; when the address was first seen in a stack */
	/* Results, which are valid as long as what was read is; NULL: unknown. */
	const char *name, *file;
	__u32 line; /* 0: unknown */
};

#endif
