/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The functions by which calls are counted, their numbers, families and masks. */
#ifndef ALLOCPROF_FUNCTION_ABI_H
#define ALLOCPROF_FUNCTION_ABI_H

#include <linux/types.h>

/* Functions by which calls are counted; equivalent functions of different allocators share one
 * number. Where several functions share an address, the first in this order names the probe.
 * src/definitions/interface.c lists their arguments. */
enum ap_function {
	AP_MALLOC,
	AP_CALLOC,
	AP_REALLOC,
	AP_REALLOCARRAY,
	AP_POSIX_MEMALIGN,
	AP_ALIGNED_ALLOC,
	AP_MEMALIGN,
	AP_VALLOC,
	AP_PVALLOC,
	AP_FREE,
	AP_C_FUNCTIONS, /* a C library may define the functions above */
	AP_NEW = AP_C_FUNCTIONS,
	AP_DELETE,
	AP_FREE_SIZED,
	AP_MALLOCX,
	AP_RALLOCX,
	AP_XALLOCX,
	AP_DALLOCX,
	AP_SDALLOCX,
	/* System calls that map and unmap memory; their sites have the same order. */
	AP_MMAP,
	AP_MREMAP,
	AP_BRK,
	AP_MUNMAP,
	/* Page faults, as the kernel counts them for a thread; their sites have the same order. */
	AP_MINOR_FAULT,
	AP_MAJOR_FAULT,
	/* First number of the allocators that are defined at run time; each has AP_DEFINED_KINDS numbers. */
	AP_DEFINED,
};

#define AP_MAPPING_FUNCTIONS (AP_MUNMAP - AP_MMAP + 1)
#define AP_FAULT_FUNCTIONS   (AP_MAJOR_FAULT - AP_MINOR_FAULT + 1)

/* Mask of the functions that are no functions of a program: the kernel's own. */
#define AP_KERNEL_FUNCTIONS ((1ULL << (AP_MAJOR_FAULT + 1)) - (1ULL << AP_MMAP))

/* Families of functions that free. Frees of unknown blocks are counted by family. */
enum ap_family {
	/* Free, realloc, and the functions that other allocators have in place of them. */
	AP_FAMILY_C,
	AP_FAMILY_CXX,	    /* operator delete */
	AP_FAMILY_JEMALLOC, /* dallocx, sdallocx, rallocx */
	AP_FAMILY_DEFINED,  /* functions of the allocators that are defined at run time */
	AP_FAMILIES,
};

/* Returns the family of @function, which is an enum ap_function. */
static inline __u32 ap_function__family(__u32 function)
{
	if (function >= AP_DEFINED)
		return AP_FAMILY_DEFINED;
	if (function >= AP_MALLOCX)
		return AP_FAMILY_JEMALLOC;
	return function == AP_DELETE ? AP_FAMILY_CXX : AP_FAMILY_C;
}

/* The kinds of functions of a defined allocator. A function's number is AP_DEFINED + definition *
 * AP_DEFINED_KINDS + kind. */
enum ap_defined_kind {
	AP_DEFINED_ALLOC,
	AP_DEFINED_REALLOC,
	AP_DEFINED_FREE,
	AP_DEFINED_KINDS,
};

/* Maximum number of defined allocators per run, so that a mask of all functions fits in 64 bits. */
#define AP_MAX_DEFINITIONS 13

/* Returns the definition of the function, whose number is AP_DEFINED or greater. */
static inline __u32 ap_function__definition(__u32 function)
{
	return (function - AP_DEFINED) / AP_DEFINED_KINDS;
}

#define AP_FUNCTIONS (AP_DEFINED + AP_MAX_DEFINITIONS * AP_DEFINED_KINDS)

/* Masks of all functions, and of the first of every defined allocator (each AP_DEFINED_KINDS-th bit). */
#define AP_ALL_FUNCTIONS ((1ULL << AP_FUNCTIONS) - 1)
#define AP_EACH_DEFINITION                                                                         \
	(((1ULL << AP_MAX_DEFINITIONS * AP_DEFINED_KINDS) - 1) / ((1 << AP_DEFINED_KINDS) - 1)     \
	 << AP_DEFINED)

/* Masks of the functions that free memory, and of those that free and may allocate. */
#define AP_FREEING                                                                                 \
	(1ULL << AP_FREE | 1ULL << AP_DELETE | 1ULL << AP_FREE_SIZED | 1ULL << AP_DALLOCX |        \
	 1ULL << AP_SDALLOCX | 1ULL << AP_MUNMAP | AP_EACH_DEFINITION << AP_DEFINED_FREE)
#define AP_REALLOCATING                                                                            \
	(1ULL << AP_REALLOC | 1ULL << AP_REALLOCARRAY | 1ULL << AP_RALLOCX | 1ULL << AP_XALLOCX |  \
	 1ULL << AP_MREMAP | 1ULL << AP_BRK | AP_EACH_DEFINITION << AP_DEFINED_REALLOC)

#endif
