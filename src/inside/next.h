/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The functions that this library stands in front of: where their next definitions are. */
#ifndef ALLOCPROF_INSIDE_NEXT_H
#define ALLOCPROF_INSIDE_NEXT_H

#include "sys.h"

/* X(name, the function as which its calls count). */
#define NEXT_ALLOCATOR(X)                                                                          \
	X(malloc, AP_MALLOC)                                                                       \
	X(calloc, AP_CALLOC)                                                                       \
	X(realloc, AP_REALLOC)                                                                     \
	X(reallocarray, AP_REALLOCARRAY)                                                           \
	X(posix_memalign, AP_POSIX_MEMALIGN)                                                       \
	X(aligned_alloc, AP_ALIGNED_ALLOC)                                                         \
	X(memalign, AP_MEMALIGN)                                                                   \
	X(valloc, AP_VALLOC)                                                                       \
	X(pvalloc, AP_PVALLOC)                                                                     \
	X(free, AP_FREE)                                                                           \
	X(free_sized, AP_FREE_SIZED)                                                               \
	X(free_aligned_sized, AP_FREE_SIZED)

#define NEXT_OTHERS(X)                                                                             \
	X(execve)                                                                                  \
	X(execvpe)                                                                                 \
	X(execveat)                                                                                \
	X(fexecve)                                                                                 \
	X(posix_spawn)                                                                             \
	X(posix_spawnp)                                                                            \
	X(system)                                                                                  \
	X(popen)                                                                                   \
	X(wordexp)                                                                                 \
	X(fork)                                                                                    \
	X(_Fork)                                                                                   \
	X(_exit)                                                                                   \
	X(prctl)                                                                                   \
	X(syscall)                                                                                 \
	X(dlopen)                                                                                  \
	X(dlmopen)                                                                                 \
	X(pthread_setname_np)                                                                      \
	X(mmap)                                                                                    \
	X(mmap64)                                                                                  \
	X(munmap)                                                                                  \
	X(mremap)                                                                                  \
	X(mprotect)                                                                                \
	X(madvise)

#define NEXT_NUMBER(name, ...) NEXT_##name,
enum next {
	NEXT_ALLOCATOR(NEXT_NUMBER) NEXT_ALLOCATORS,
	NEXT_BEFORE_OTHERS = NEXT_ALLOCATORS - 1,
	NEXT_OTHERS(NEXT_NUMBER) NEXT_FUNCTIONS,
};
#undef NEXT_NUMBER

/* NULL: not looked up, or there is none. */
extern void *next_functions[NEXT_FUNCTIONS] __attribute__((visibility("hidden")));

/* Since realloc was looked up: whether the program has one of its own, which the C library calls. */
extern bool next_realloc_is_preceded __attribute__((visibility("hidden")));

/* Looks the function up; NULL if there is none. */
void *next__find(enum next which);

static inline void *next__get(enum next which)
{
	void *function = next_functions[which];

	return likely(function) ? function : next__find(which);
}

/* Code of the allocator's functions lies in here. */
struct next_bodies {
	__u64 start, size;
};

extern struct next_bodies next_bodies __attribute__((visibility("hidden")));

/* Whether the return address lies in one of the allocator's functions. */
bool next__is_body(__u64 return_address);

/* Looks all functions of the allocator up. */
void next__prepare(void);

#endif
