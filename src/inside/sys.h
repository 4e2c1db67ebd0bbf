/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes system calls, and has the few functions of a C library that this library needs, since it
 * may run before or without one. Also notes the library's own mappings and descriptors, so that
 * programs that close or unmap everything spare them. */
#ifndef ALLOCPROF_INSIDE_SYS_H
#define ALLOCPROF_INSIDE_SYS_H

#include <linux/errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "processor.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define SYS_LIMITED 8

/* The system calls that the target has forbidden itself by seccomp(2) (confine.h). */
struct sys_limits {
	bool is_limited, no_ticks;
	__u64 permitted; /* bit mask of the rows of confine.c's list that are permitted */
	__u64 last_ns;	 /* the time that is returned where no clock may be read */
	/* Children of vfork(2) that have limited themselves while using their parent's memory; the
	 * parent is not limited. If @n_children is larger than the array, the last ones. 0: the
	 * process has limited itself. */
	__u32 children[SYS_LIMITED], n_children;
};

extern struct sys_limits sys_limits __attribute__((visibility("hidden")));

/* Returns whether the calling process is limited. */
bool sys__is_limited(void);

/* Defined in confine.c: returns whether the filters permit the call with @c and @d as its third
 * and fourth argument. */
bool sys__permits(__u32 number, long c, long d);

/* Returns whether the filters permit the system call @number, which this library makes with one
 * set of arguments only. */
static inline bool sys__may(__u32 number)
{
	return likely(!sys_limits.is_limited) || sys__permits(number, 0, 0);
}

/* The host build for tests (tests/twin/inside_host.h) executes no such instruction: a test may
 * answer the call. */
#ifdef INSIDE_HOST
long host__system_call(long number, long a, long b, long c, long d, long e, long f);
#endif

/* Makes a system call with up to six arguments. Returns a negative errno on failure, and does not touch errno of the C library. */
static inline long sys(long number, long a, long b, long c, long d, long e, long f)
{
	if (unlikely(sys_limits.is_limited) && !sys__permits(number, c, d))
		return -EPERM;
#ifdef INSIDE_HOST
	return host__system_call(number, a, b, c, d, e, f);
#else
	return processor__call(number, a, b, c, d, e, f);
#endif
}

/* Works like open(2), with O_CLOEXEC. Returns a descriptor that the caller closes, or a negative
 * errno. */
int sys__open(const char *path, int flags);
long sys__read(int fd, void *buffer, size_t size);
/* Reads all @size bytes at @offset. Returns 0 or -EIO. */
int sys__read_at(int fd, void *buffer, size_t size, __u64 offset);
void sys__close(int fd);
/* Reads a text of at most @size - 1 bytes, behind which a 0 is put. Returns its length; 0 if the file cannot be opened. */
__u32 sys__read_text(const char *path, char *text, size_t size);
/* Returns the size of the file in bytes, or a negative errno. */
long sys__size(int fd);
#define SEEK_TO_END 2

/* Maps @size bytes as mmap(2) does. Returns NULL on failure. */
void *sys__map(size_t size, int protection, int flags, int fd, __u64 offset);
/* Maps private, zeroed memory. Returns NULL on failure. */
void *sys__map_private(size_t size);
void sys__unmap(void *address, size_t size);

/* Returns the process's number; 0 if the target forbids to ask for it. */
__u32 sys__pid(void);
/* Returns the thread's number; 0 if the target forbids to ask for it. */
__u32 sys__tid(void);
__u32 sys__parent_pid(void);
/* Returns the inode of the process's PID namespace; 0 if it is not known. */
__u64 sys__pid_namespace(void);
/* Returns whether @tid, a thread of the process @pid, has ended. */
bool sys__thread_has_ended(__u32 pid, __u32 tid);
/* CLOCK_MONOTONIC. */
__u64 sys__now_ns(void);
/* Reads that clock and the processor's counter at the same moment. Returns false if something comes
 * in between each time, or the clock cannot be read. */
bool sys__read_clocks(__u64 *now_ns, __u64 *ticks);
void sys__comm(char *comm);

/* Adds to a counter that only this thread writes, at once: a signal handler that counts, too, does
 * so before or after it. */
static inline void counter__add(__u64 *counter, __u64 n)
{
	processor__add(counter, n);
}

/* Adds to a sum of requested sizes, which saturates at AP_MAX_SUM. If a handler interrupts the
 * addition, the handler's own addition may exceed that. */
static inline void counter__add_bytes(__u64 *counter, __u64 n)
{
	if (unlikely(n >= AP_IMPOSSIBLE_BYTES))
		return;
	if (unlikely(processor__add_and_test(counter, n)))
		*counter = AP_MAX_SUM;
}

/* Returns @n * @size_bytes, at most AP_MAX_SUM. */
static inline __u64 bytes_of(__u64 n, __u64 size_bytes)
{
	__u64 product;

	if (unlikely(__builtin_mul_overflow(n, size_bytes, &product)) || product > AP_MAX_SUM)
		return AP_MAX_SUM;
	return product;
}

/*
 * Sleeps while @word is @value, which the kernel checks first: for @ns, less than a second, at
 * most, or until another thread calls sys__wake() or allocprof wakes it. May return early.
 */
void sys__await(const __u32 *word, __u32 value, __u64 ns);
void sys__wake(const __u32 *word);

/* Blocks the thread's signals, except those that its own instructions raise, and stores the former
 * mask in *@before for sys__restore_signals(). Returns false if the target forbids that; then
 * nothing must be restored. */
bool sys__block_signals(__u64 *before);
void sys__restore_signals(__u64 before);

/* Returns an unpredictable number. */
__u64 sys__random(void);

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
size_t text__length(const char *text);
bool text__equal(const char *a, const char *b);
bool text__begins(const char *text, const char *start);
bool text__contains(const char *text, const char *part);
/* Appends @text and a terminating 0 at @end, in front of @stop. Returns the new end, or NULL if
 * there is no room or @end is NULL. */
char *text__append(char *end, const char *stop, const char *text);

/*
 * The mappings that this library has made. A program that unmaps or changes whatever it finds
 * mapped (all shared memory, or all that was not there when it began) leaves out these mappings.
 * No locks are taken.
 */

/* To be called after memory was mapped, and before it is unmapped. A mapping for which there is no
 * slot is not spared. */
void spared__add(__u64 start, __u64 size);
void spared__remove(__u64 start);

/* Unmaps all noted mappings. */
void spared__unmap_all(void);

/* Returns the address of their list, a struct inside_mappings. */
__u64 spared__address(void);

/* Forgets all mappings, so that none is spared any more. */
void spared__end(void);

bool spared__overlaps(__u64 start, __u64 size);

/* Does to a range of memory what the target has asked for. Returns 0, or -1 with errno set. */
typedef int (*spared_fn)(void *context, __u64 start, __u64 size);

/* Calls @fn with each part of the range that is outside of these mappings. Returns the first
 * result of @fn that is not 0, else 0. */
int spared__around(__u64 start, __u64 size, spared_fn fn, void *context);

/*
 * Number of threads that are in a function of another object and will use this library's memory
 * when it returns, so that the memory must not be unmapped meanwhile. Calls of the allocator are
 * not included.
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
