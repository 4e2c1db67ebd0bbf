// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The functions of the C library's allocator. Each counts its call and jumps to the next definition of
 * its name, so that no frame of this library is on the stack while the allocator runs.
 */
#include <linux/errno.h>

#include "next.h"
#include "process.h"
#include "code.h"
#include "stacks.h"

#define EXPORT __attribute__((visibility("default")))

/* The frame pointer and the return address of the caller of the exported function. */
#define FRAME ((const __u64 *)__builtin_frame_address(0))

struct call {
	enum ap_function function;
	bool overflows; /* the product of count and size; @size is 0 then */
	__u64 size, pointer;
};

static inline __attribute__((always_inline)) void count(struct ap_site_counts *counts,
							const struct call *call)
{
	counter__add(&counts->calls, 1);
	if (AP_FREEING >> call->function & 1) {
		if (!call->pointer)
			counter__add(&counts->null, 1);
		return;
	}
	counter__add(&counts->size_bytes, call->size);
	if (AP_REALLOCATING >> call->function & 1) {
		if (!call->pointer) {
			counter__add(&counts->fresh, 1);
			counter__add(&counts->fresh_size_bytes, call->size);
		} else if (!call->size && !call->overflows) {
			counter__add(&counts->released, 1);
		}
	}
}

/* With stacks. A signal's handler may call while the thread is at this. */
static __attribute__((noinline)) void record(struct thread *thread, const struct call *call,
					     const __u64 *frame)
{
	struct inside_thread *shared = thread->shared;

	if (unlikely(thread->busy)) {
		thread = thread__stand_in(thread);
		if (!thread) {
			counter__add(&shared->stats[AP_STAT_EVENTS], 1);
			counter__add(&shared->stats[AP_STAT_LOST + AP_LOST_NO_SCRATCH], 1);
			return;
		}
	}
	thread->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	stacks__count(thread, call->function, call->size, frame);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&thread->busy, 0, __ATOMIC_RELEASE);
}

static inline __attribute__((always_inline)) void enter(const struct call *call, const __u64 *frame)
{
	struct thread *thread = thread__current();

	if (unlikely(!thread))
		return;
	if (process.mode != INSIDE_COUNT)
		code__check_unloaded(frame[1]);
	if (unlikely(!process.header->open))
		return;
	if (unlikely(frame[1] - next_bodies.start <= next_bodies.size) && next__is_body(frame[1])) {
		counter__add(&thread->shared->functions[call->function].internal, 1);
		return;
	}
	count(&thread->shared->functions[call->function], call);
	if (process.recorded >> call->function & 1)
		record(thread, call, frame);
}

#define ENTER(...) enter(&(struct call){ __VA_ARGS__ }, FRAME)

#define NEXT(name, type) ((type)next__get(NEXT_##name))

extern int *__errno_location(void) __attribute__((weak));

static void *fail_for_memory(void)
{
	if (&__errno_location)
		*__errno_location() = ENOMEM;
	return NULL;
}

EXPORT void *malloc(size_t size);
EXPORT void *malloc(size_t size)
{
	ENTER(AP_MALLOC, .size = size);
	return NEXT(malloc, void *(*)(size_t))(size);
}

EXPORT void *calloc(size_t n, size_t size);
EXPORT void *calloc(size_t n, size_t size)
{
	__u64 product = 0;
	bool overflows = __builtin_mul_overflow(n, size, &product);

	ENTER(AP_CALLOC, .size = overflows ? 0 : product, .overflows = overflows);
	return NEXT(calloc, void *(*)(size_t, size_t))(n, size);
}

EXPORT void *realloc(void *pointer, size_t size);
EXPORT void *realloc(void *pointer, size_t size)
{
	ENTER(AP_REALLOC, .size = size, .pointer = (__u64)pointer);
	return NEXT(realloc, void *(*)(void *, size_t))(pointer, size);
}

/* glibc's calls realloc by its name, which would be counted as a call of its own. */
EXPORT void *reallocarray(void *pointer, size_t n, size_t size);
EXPORT void *reallocarray(void *pointer, size_t n, size_t size)
{
	void *(*next)(void *, size_t, size_t) = next__get(NEXT_reallocarray);
	__u64 product = 0;
	bool overflows = __builtin_mul_overflow(n, size, &product);

	ENTER(AP_REALLOCARRAY, .size = overflows ? 0 : product, .overflows = overflows,
	      .pointer = (__u64)pointer);
	if (overflows)
		return next ? next(pointer, n, size) : fail_for_memory();
	return NEXT(realloc, void *(*)(void *, size_t))(pointer, product);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size);
EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	ENTER(AP_POSIX_MEMALIGN, .size = size);
	return NEXT(posix_memalign, int (*)(void **, size_t, size_t))(out, alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	ENTER(AP_ALIGNED_ALLOC, .size = size);
	return NEXT(aligned_alloc, void *(*)(size_t, size_t))(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *memalign(size_t alignment, size_t size)
{
	ENTER(AP_MEMALIGN, .size = size);
	return NEXT(memalign, void *(*)(size_t, size_t))(alignment, size);
}

/* musl has neither. */
static void *page_aligned(size_t size)
{
	void *(*next)(size_t, size_t) = next__get(NEXT_memalign);

	return next ? next(4096, size) : fail_for_memory();
}

EXPORT void *valloc(size_t size);
EXPORT void *valloc(size_t size)
{
	void *(*next)(size_t) = next__get(NEXT_valloc);

	ENTER(AP_VALLOC, .size = size);
	return next ? next(size) : page_aligned(size);
}

EXPORT void *pvalloc(size_t size);
EXPORT void *pvalloc(size_t size)
{
	void *(*next)(size_t) = next__get(NEXT_pvalloc);

	ENTER(AP_PVALLOC, .size = size);
	if (next)
		return next(size);
	return size > ~(size_t)4095 ? fail_for_memory()
				    : page_aligned((size + 4095) & ~(size_t)4095);
}

EXPORT void free(void *pointer);
EXPORT void free(void *pointer)
{
	ENTER(AP_FREE, .pointer = (__u64)pointer);
	NEXT(free, void (*)(void *))(pointer);
}

/* C23; a C library that does not have them yet has the same in free. */
EXPORT void free_sized(void *pointer, size_t size);
EXPORT void free_sized(void *pointer, size_t size)
{
	void (*next)(void *, size_t) = next__get(NEXT_free_sized);

	ENTER(AP_FREE_SIZED, .pointer = (__u64)pointer);
	if (next)
		next(pointer, size);
	else
		NEXT(free, void (*)(void *))(pointer);
}

EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size);
EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	void (*next)(void *, size_t, size_t) = next__get(NEXT_free_aligned_sized);

	ENTER(AP_FREE_SIZED, .pointer = (__u64)pointer);
	if (next)
		next(pointer, alignment, size);
	else
		NEXT(free, void (*)(void *))(pointer);
}
