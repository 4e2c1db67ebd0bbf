/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Table of the allocators' functions, with their arguments and results. */
#ifndef ALLOCPROF_INTERFACE_H
#define ALLOCPROF_INTERFACE_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

/* Families of allocators by prefix; a file may define several. */
enum interface_family {
	INTERFACE_C,	     /* malloc */
	INTERFACE_CPLUSPLUS, /* operator new, which belongs to the file's other family */
	INTERFACE_JE,	     /* je_malloc */
	INTERFACE_RJEM,	     /* _rjem_malloc: Rust's tikv-jemallocator */
	INTERFACE_TC,	     /* tc_malloc */
	INTERFACE_MI,	     /* mi_malloc */
	INTERFACE_TBB,	     /* scalable_malloc */
	INTERFACE_GC,	     /* GC_malloc of the Boehm collector, which also frees blocks itself */
	INTERFACE_FAMILIES,
};

enum interface_kind {
	INTERFACE_REQUEST, /* its calls count */
	/* Returns a block that it gets from a function of the table; that call counts as if the
	 * application had made it: strdup. */
	INTERFACE_THROUGH,
	INTERFACE_OWN,	   /* calls functions of the table for the allocator's own purposes */
	INTERFACE_IGNORED, /* neither allocates nor frees */
};

struct interface_function {
	const char *name; /* without the family's prefix, if it may have one */
	enum ap_function function;
	enum interface_kind kind;
	/* Argument numbers, from 1; 0: there is none. The requested size is size * count. */
	__u8 size, count, pointer;
	__u32 size_bytes; /* requested size if no argument has it */
	__u8 block;	  /* USDT probes, which return nothing: argument with the allocated block */
	__u8 behind;	  /* AP_BEHIND_ */
	__u8 result;	  /* enum ap_result */
	bool prefixed;	  /* also exists with the families' prefixes */
	/* An exception may leave it, so that it must not have a return probe. */
	bool throws;
	/* Its calls may end blocks that are unknown; mallctl's only for some names. */
	bool ends;
};

/* The function @name and its family; NULL if the table has none. */
const struct interface_function *interface__find(const char *name, enum interface_family *family);

/* Whether @name, which is not in the table, resembles its names: foo_mallocx2, pool_free; not
 * foo_alloc_stats. */
bool interface__looks_alike(const char *name);

/* Whether it is a C library function that returns a copy in memory from malloc. */
bool interface__copies(const char *name);

/* Whether the programs have its arguments built in, as for a C library. */
bool interface_function__is_classic(const struct interface_function *function);

#endif
