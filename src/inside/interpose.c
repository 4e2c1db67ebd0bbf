// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The functions of the C library's allocator. Each counts its call and jumps to the next definition of
 * its name, so that no frame of this library is on the stack while the allocator runs.
 */
#include <linux/errno.h>

#include "next.h"
#include "process.h"
#include "code.h"
#include "live.h"
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

/* The thread, or a stand-in where a signal interrupted it: the caller has it until release(). NULL if there is no
 * memory. */
static inline struct thread *claim(struct thread *thread)
{
	if (unlikely(thread->busy))
		return thread__stand_in(thread);
	thread->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return thread;
}

static inline void release(struct thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&thread->busy, 0, __ATOMIC_RELEASE);
}

/* With stacks. The number of the record with live, else 0. */
static __attribute__((noinline)) __u32 record(struct thread *current, const struct call *call,
					      const __u64 *frame)
{
	struct thread *thread = claim(current);
	__u32 number = 0;

	if (unlikely(!thread)) {
		counter__add(&current->shared->stats[AP_STAT_EVENTS], 1);
		counter__add(&current->shared->stats[AP_STAT_LOST + AP_LOST_NO_SCRATCH], 1);
		return 0;
	}
	if (process.mode == INSIDE_LIVE)
		number =
			live__call(thread, call->function, call->size, stacks__walk(thread, frame));
	else
		stacks__count(thread, call->function, call->size, frame);
	release(thread);
	return number;
}

/* A call that the allocator itself made. */
#define INTERNAL 0xffffffff

/* Counts the call; the number of its record with live, 0, or INTERNAL. */
static inline __attribute__((always_inline)) __u32 enter(const struct call *call,
							 const __u64 *frame)
{
	struct thread *thread = thread__current();

	if (unlikely(!thread))
		return INTERNAL;
	if (process.mode != INSIDE_COUNT)
		code__check_unloaded(frame[1]);
	if (unlikely(frame[1] - next_bodies.start <= next_bodies.size) && next__is_body(frame[1])) {
		counter__add(&thread->shared->functions[call->function].internal, 1);
		return INTERNAL;
	}
	if (unlikely(!process.header->open))
		return 0;
	count(&thread->shared->functions[call->function], call);
	return process.recorded >> call->function & 1 ? record(thread, call, frame) : 0;
}

#define ENTER(...) enter(&(struct call){ __VA_ARGS__ }, FRAME)

#define NEXT(name, type) ((type)next__get(NEXT_##name))

/* Whether the call's result is to be seen. */
static inline bool is_followed(__u32 number)
{
	return unlikely(process.mode == INSIDE_LIVE) && number != INTERNAL;
}

static __attribute__((noinline)) void *returned(__u32 number, void *block, __u64 size)
{
	struct thread *current = thread__current(), *thread = current ? claim(current) : NULL;

	if (!thread)
		return block;
	live__return(thread, number, (__u64)block, size);
	release(thread);
	return block;
}

static __attribute__((noinline)) void freed(void *block)
{
	struct thread *current = thread__current(), *thread = current ? claim(current) : NULL;

	if (!thread)
		return;
	live__free(thread, (__u64)block);
	release(thread);
}

static __attribute__((noinline)) void *move(__u32 number, void *pointer, __u64 size, bool overflows,
					    void *(*next)(void *, size_t))
{
	struct thread *current, *thread;
	struct live_move state;
	void *block;

	live__move(&state, overflows ? 0 : (__u64)pointer);
	block = next(pointer, size);
	current = thread__current();
	thread = current ? claim(current) : NULL;
	if (!thread)
		return block;
	live__moved(thread, &state, number, (__u64)block, size, overflows);
	release(thread);
	return block;
}

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
	__u32 number;

	number = ENTER(AP_MALLOC, .size = size);
	if (is_followed(number))
		return returned(number, NEXT(malloc, void *(*)(size_t))(size), size);
	return NEXT(malloc, void *(*)(size_t))(size);
}

EXPORT void *calloc(size_t n, size_t size);
EXPORT void *calloc(size_t n, size_t size)
{
	__u32 number;
	__u64 product = 0;
	bool overflows = __builtin_mul_overflow(n, size, &product);

	number = ENTER(AP_CALLOC, .size = overflows ? 0 : product, .overflows = overflows);
	if (is_followed(number))
		return returned(number, NEXT(calloc, void *(*)(size_t, size_t))(n, size),
				overflows ? 0 : product);
	return NEXT(calloc, void *(*)(size_t, size_t))(n, size);
}

EXPORT void *realloc(void *pointer, size_t size);
EXPORT void *realloc(void *pointer, size_t size)
{
	__u32 number;

	number = ENTER(AP_REALLOC, .size = size, .pointer = (__u64)pointer);
	if (is_followed(number))
		return move(number, pointer, size, false, next__get(NEXT_realloc));
	return NEXT(realloc, void *(*)(void *, size_t))(pointer, size);
}

/* glibc's calls realloc by its name, which would be counted as a call of its own. */
EXPORT void *reallocarray(void *pointer, size_t n, size_t size);
EXPORT void *reallocarray(void *pointer, size_t n, size_t size)
{
	__u32 number;
	void *(*next)(void *, size_t, size_t) = next__get(NEXT_reallocarray);
	__u64 product = 0;
	bool overflows = __builtin_mul_overflow(n, size, &product);

	number = ENTER(AP_REALLOCARRAY, .size = overflows ? 0 : product, .overflows = overflows,
		       .pointer = (__u64)pointer);
	if (overflows && is_followed(number))
		returned(number, NULL, 0);
	if (overflows)
		return next ? next(pointer, n, size) : fail_for_memory();
	if (is_followed(number))
		return move(number, pointer, product, false, next__get(NEXT_realloc));
	return NEXT(realloc, void *(*)(void *, size_t))(pointer, product);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size);
EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	int (*next)(void **, size_t, size_t) = next__get(NEXT_posix_memalign);
	__u32 number = ENTER(AP_POSIX_MEMALIGN, .size = size);
	int err;

	if (!is_followed(number))
		return next(out, alignment, size);
	err = next(out, alignment, size);
	returned(number, err ? NULL : *out, size);
	return err;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	__u32 number;

	number = ENTER(AP_ALIGNED_ALLOC, .size = size);
	if (is_followed(number))
		return returned(number,
				NEXT(aligned_alloc, void *(*)(size_t, size_t))(alignment, size),
				size);
	return NEXT(aligned_alloc, void *(*)(size_t, size_t))(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *memalign(size_t alignment, size_t size)
{
	__u32 number;

	number = ENTER(AP_MEMALIGN, .size = size);
	if (is_followed(number))
		return returned(number, NEXT(memalign, void *(*)(size_t, size_t))(alignment, size),
				size);
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
	__u32 number;
	void *(*next)(size_t) = next__get(NEXT_valloc);

	number = ENTER(AP_VALLOC, .size = size);
	if (is_followed(number))
		return returned(number, next ? next(size) : page_aligned(size), size);
	return next ? next(size) : page_aligned(size);
}

EXPORT void *pvalloc(size_t size);
EXPORT void *pvalloc(size_t size)
{
	__u32 number;
	void *(*next)(size_t) = next__get(NEXT_pvalloc);

	number = ENTER(AP_PVALLOC, .size = size);
	if (next && is_followed(number))
		return returned(number, next(size), size);
	if (next)
		return next(size);
	return size > ~(size_t)4095 ? fail_for_memory()
				    : page_aligned((size + 4095) & ~(size_t)4095);
}

EXPORT void free(void *pointer);
EXPORT void free(void *pointer)
{
	if (is_followed(ENTER(AP_FREE, .pointer = (__u64)pointer)))
		freed(pointer);
	NEXT(free, void (*)(void *))(pointer);
}

/* C23; a C library that does not have them yet has the same in free. */
EXPORT void free_sized(void *pointer, size_t size);
EXPORT void free_sized(void *pointer, size_t size)
{
	void (*next)(void *, size_t) = next__get(NEXT_free_sized);

	if (is_followed(ENTER(AP_FREE_SIZED, .pointer = (__u64)pointer)))
		freed(pointer);
	if (next)
		next(pointer, size);
	else
		NEXT(free, void (*)(void *))(pointer);
}

EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size);
EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	void (*next)(void *, size_t, size_t) = next__get(NEXT_free_aligned_sized);

	if (is_followed(ENTER(AP_FREE_SIZED, .pointer = (__u64)pointer)))
		freed(pointer);
	if (next)
		next(pointer, alignment, size);
	else
		NEXT(free, void (*)(void *))(pointer);
}
