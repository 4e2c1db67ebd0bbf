/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What libcounter, libtruth and libevents share: they stand in front of the C library's allocator,
 * call nothing of it and import nothing by which a library would look like an allocator.
 */
#ifndef PRELOAD_COMMON_H
#define PRELOAD_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(index, CONSTANT, name) for each function of the allocator; the index is written out for the
 * assembler. tests/preload/counter.py has the names in the same order. */
#define ALLOCATING_FUNCTIONS(X)                                                                    \
	X(0, MALLOC, malloc)                                                                       \
	X(1, CALLOC, calloc)                                                                       \
	X(2, REALLOC, realloc)                                                                     \
	X(3, REALLOCARRAY, reallocarray)                                                           \
	X(4, POSIX_MEMALIGN, posix_memalign)                                                       \
	X(5, ALIGNED_ALLOC, aligned_alloc)                                                         \
	X(6, MEMALIGN, memalign)                                                                   \
	X(7, VALLOC, valloc)                                                                       \
	X(8, PVALLOC, pvalloc)
#define ALLOCATOR_FUNCTIONS(X) ALLOCATING_FUNCTIONS(X) X(9, FREE, free)

#define ENUMERATE(index, constant, name) constant = index,
enum function {
	ALLOCATOR_FUNCTIONS(ENUMERATE) FUNCTIONS
};
#undef ENUMERATE

extern const char *const function_names[FUNCTIONS];

/* Each library's own, in front of what it says before it ends the process. */
extern const char library_name[];

/* Ends the process with status 99: what is missing must not look like what is right. */
_Noreturn void die(const char *why);

/* A variable of the environment that this program was started with, or NULL. */
const char *first_environment(const char *name);

/* Memory of the process's own, and the file that ALLOCPROF_COUNTER names, shared by all processes. By
 * syscalls, for a library that imports mmap looks like an allocator; end the process on failure. */
void *map_anonymous(size_t size);
void *map_output(const char *path, size_t size);

/* Where the call goes that a stub was entered for. */
void *real_function(enum function f);

/* What a call with these arguments asks for; 0 and @overflow where the product overflows. */
size_t requested_bytes(enum function f, uintptr_t a, uintptr_t b, uintptr_t c, bool *overflow);

/*
 * glibc (2.26 or newer) has one function of the allocator that enters another by name: reallocarray
 * jumps to realloc through the PLT unless the product overflows. That one is nested. Both know it by
 * the stack pointer at the entry of the real reallocarray, which no two threads share.
 */
void nested__expect(uintptr_t pointer, uintptr_t size, uintptr_t sp);

/* Whether this realloc is one that was expected; each is once. */
bool nested__take(uintptr_t pointer, uintptr_t size, uintptr_t sp);

#if defined(__x86_64__)
#include "stubs_x86.h"
#elif defined(__aarch64__)
#include "stubs_arm64.h"
#else
#error "the stubs are not written for this processor"
#endif

/*
 * Calls @handler and jumps to the address that it returns, with the caller's registers, stack
 * pointer and return address: whoever looks at the real function sees the call as if the stub were
 * not there, and nothing has to be undone when the call never returns (longjmp, thread
 * cancellation, exec, death by a signal).
 */
#define JUMPING_STUB(symbol, index, handler)                                                       \
	__asm__(STUB_ENTER(symbol, index, handler) STUB_LEAVE STUB_END(symbol))

#endif
