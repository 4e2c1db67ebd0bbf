/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* System calls, and the little of a C library that the library needs: it runs where there may be none. And
 * the library's descriptors and mappings, which programs that close or unmap all are kept from. */
#ifndef ALLOCPROF_INSIDE_SYS_H
#define ALLOCPROF_INSIDE_SYS_H

#include <linux/errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define SYS_LIMITED 8

/* What the target has forbidden itself (confine.h). */
struct sys_limits {
	bool is_limited, no_ticks;
	__u64 permitted; /* bit mask of what this library calls, by confine.c's list */
	__u64 last_ns;	 /* the time where no clock may be read */
	/* Children of vfork(2) that have forbidden themselves something, and not their parent, whose memory they have; the
	 * last of those if @n_children is larger. 0: the process itself has. */
	__u32 children[SYS_LIMITED], n_children;
};

extern struct sys_limits sys_limits __attribute__((visibility("hidden")));

/* Whether the calling process is limited. */
bool sys__is_limited(void);

/* confine.c: whether the filter permits the call with these arguments, its third and fourth. */
bool sys__permits(__u32 number, long c, long d);

/* Returns whether the library may make the system call @number, which it makes with one set of arguments only. */
static inline bool sys__may(__u32 number)
{
	return likely(!sys_limits.is_limited) || sys__permits(number, 0, 0);
}

/* A build for tests (tests/twin/inside_host.h) has no processor's instruction here: the test may answer. */
#ifdef INSIDE_HOST
long host__system_call(long number, long a, long b, long c, long d, long e, long f);
#endif

/* x86-64's, the only processor that this is built for. Six arguments; a negative errno on failure. errno of the C library is not touched. */
static inline long sys(long number, long a, long b, long c, long d, long e, long f)
{
	long result;

	if (unlikely(sys_limits.is_limited) && !sys__permits(number, c, d))
		return -EPERM;
#ifdef INSIDE_HOST
	result = host__system_call(number, a, b, c, d, e, f);
#else
	/* After the call, which does not keep the registers. */
	{
		register long r10 __asm__("r10") = d;
		register long r8 __asm__("r8") = e;
		register long r9 __asm__("r9") = f;

		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
				 : "rcx", "r11", "memory");
	}
#endif
	return result;
}

/* As open(2), with O_CLOEXEC. */
int sys__open(const char *path, int flags);
long sys__read(int fd, void *buffer, size_t size);
/* All of @size bytes at @offset, or -EIO. */
int sys__read_at(int fd, void *buffer, size_t size, __u64 offset);
void sys__close(int fd);
/* Size of the file, or a negative errno. */
long sys__size(int fd);
#define SEEK_TO_END 2

/* NULL on failure. */
void *sys__map(size_t size, int protection, int flags, int fd, __u64 offset);
/* Private memory, zeroed; NULL on failure. */
void *sys__map_private(size_t size);
void sys__unmap(void *address, size_t size);

/* These three: 0 if it is forbidden to ask. */
__u32 sys__pid(void);
__u32 sys__tid(void);
__u32 sys__parent_pid(void);
/* Inode of the process's PID namespace; 0 if it is not known. */
__u64 sys__pid_namespace(void);
/* Whether @tid, a thread of the process @pid, has ended. */
bool sys__thread_has_ended(__u32 pid, __u32 tid);
/* CLOCK_MONOTONIC. */
__u64 sys__now_ns(void);
void sys__comm(char *comm);

/* Adds to a counter whose only writer is this thread: one instruction, so that a signal's handler that
 * counts, too, does so before or after it. */
static inline void counter__add(__u64 *counter, __u64 n)
{
	__asm__("addq %1, %0" : "+m"(*counter) : "re"(n) : "cc");
}

/* Adds to a sum of requested sizes, which saturates at AP_MAX_SUM. If a handler interrupts just then, its own
 * addition may exceed that. */
static inline void counter__add_bytes(__u64 *counter, __u64 n)
{
	bool is_over;

	if (unlikely(n >= AP_IMPOSSIBLE_BYTES))
		return;
	__asm__("addq %2, %0" : "+m"(*counter), "=@ccs"(is_over) : "re"(n));
	if (unlikely(is_over))
		*counter = AP_MAX_SUM;
}

/* Replaces two words, aligned to 16 bytes, by one instruction; false if they are others than @was and @was_next. */
static inline bool pair__replace(__u64 *pair, __u64 was, __u64 was_next, __u64 word, __u64 next)
{
	bool done;

	__asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
			 : "=q"(done), "+m"(*(__u64(*)[2])pair), "+a"(was), "+d"(was_next)
			 : "b"(word), "c"(next)
			 : "memory", "cc");
	return done;
}

/* @n * @size_bytes, at most AP_MAX_SUM. */
static inline __u64 bytes_of(__u64 n, __u64 size_bytes)
{
	__u64 product;

	if (unlikely(__builtin_mul_overflow(n, size_bytes, &product)) || product > AP_MAX_SUM)
		return AP_MAX_SUM;
	return product;
}

/*
 * Sleeps while @word, which the kernel looks at once, is @value: for @ns at the most, less than a second, or until another
 * thread calls sys__wake() or allocprof wakes it. May return early.
 */
void sys__await(const __u32 *word, __u32 value, __u64 ns);
void sys__wake(const __u32 *word);

/* Blocks the thread's signals but those that its own instructions raise. *@before is for sys__restore_signals(). False: the target
 * forbids that; then nothing is restored either. */
bool sys__block_signals(__u64 *before);
void sys__restore_signals(__u64 before);

/* A number that nobody foresees. */
__u64 sys__random(void);

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
size_t text__length(const char *text);
bool text__equal(const char *a, const char *b);
bool text__begins(const char *text, const char *start);
/* Appends at @end of the room up to @stop, with a terminating 0; the new end, or NULL if there is no
 * room. Accepts NULL as @end. */
char *text__append(char *end, const char *stop, const char *text);

/*
 * The mappings that this library has made. A program that gives back or changes whatever it finds mapped (all that is shared, all
 * that was not there when it began) does so around them. No locks.
 */

/* To be called when memory has been mapped, and before it is unmapped. Mappings for which there is no room are not spared. */
void spared__add(__u64 start, __u64 size);
void spared__remove(__u64 start);

/* Unmaps them all. */
void spared__unmap_all(void);

/* No mapping is spared any more. */
void spared__end(void);

bool spared__overlaps(__u64 start, __u64 size);

/* Does to a range of memory what the target asked for; 0, or -1 with errno. */
typedef int (*spared_fn)(void *context, __u64 start, __u64 size);

/* Calls @fn with each part of the range in which there is none of these mappings; 0, or what @fn returns first that is not. */
int spared__around(__u64 start, __u64 size, spared_fn fn, void *context);

/*
 * Number of threads that are in a function of another object and will use this library's memory when it returns, so that nobody may
 * unmap that meanwhile. Calls of the allocator do not count.
 */
extern __u32 allocprof_n_outside __attribute__((visibility("protected")));

static inline void outside__begin(void)
{
	__atomic_fetch_add(&allocprof_n_outside, 1, __ATOMIC_RELAXED);
}

static inline void outside__end(void)
{
	__atomic_fetch_sub(&allocprof_n_outside, 1, __ATOMIC_RELAXED);
}

#endif
