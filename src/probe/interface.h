/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What allocators call their functions, and what these take and return: a table. */
#ifndef ALLOCPROF_INTERFACE_H
#define ALLOCPROF_INTERFACE_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

/* Allocators whose names tell them apart; a file may define several. */
enum interface_family {
	INTERFACE_C,	     /* malloc */
	INTERFACE_CPLUSPLUS, /* operator new: of whatever else there is in the file */
	INTERFACE_JE,	     /* je_malloc */
	INTERFACE_RJEM,	     /* _rjem_malloc: Rust's tikv-jemallocator */
	INTERFACE_TC,	     /* tc_malloc */
	INTERFACE_MI,	     /* mi_malloc */
	INTERFACE_TBB,	     /* scalable_malloc */
	INTERFACE_GC, /* GC_malloc, the Boehm collector's, which also ends blocks by itself */
	INTERFACE_FAMILIES,
};

enum interface_kind {
	INTERFACE_REQUEST, /* its calls count */
	/* Hands out what it gets by a function of the table, whose calls from it count as those that an
	 * application makes: strdup. */
	INTERFACE_THROUGH,
	INTERFACE_OWN,	   /* calls functions of the table for the allocator's own ends */
	INTERFACE_IGNORED, /* neither hands out memory nor takes it back */
};

struct interface_function {
	const char *name; /* behind the family's prefix where it may have one */
	enum ap_function function;
	enum interface_kind kind;
	/* Numbers of arguments, from 1; 0: it has none. Size times count is what is asked for. */
	__u8 size, count, pointer;
	__u32 size_bytes; /* of each request, where no argument says it */
	__u8 block;	  /* of a USDT probe, which returns nothing: the block that it hands out */
	__u8 behind;	  /* AP_BEHIND_ */
	__u8 result;	  /* enum ap_result */
	bool prefixed;	  /* with the prefixes of all families, too */
	/* It may be left by an exception, which a return probe must not be in the way of. */
	bool throws;
	/* Its calls may end blocks without naming them, mallctl's where their name says so. */
	bool ends;
};

/* The function that is called @name, and whose it is; NULL where none is. */
const struct interface_function *interface__find(const char *name, enum interface_family *family);

/* Whether the name, which is not in the table, is like those that are: foo_mallocx2, pool_free; not foo_alloc_stats. */
bool interface__looks_alike(const char *name);

/* Whether it is a C library's function that hands out a copy, which it gets memory for by malloc. */
bool interface__copies(const char *name);

/* Whether it is as in a C library, where the programs know the arguments by themselves. */
bool interface_function__is_classic(const struct interface_function *function);

#endif
