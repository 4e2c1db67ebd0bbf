// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Interposes the functions of the C library's allocator. Each counts its call and jumps to the
 * next definition of its name, so that no frame of this library is on the stack while the
 * allocator runs.
 */
#include <linux/errno.h>

#include "call.h"

#define EXPORT __attribute__((visibility("default")))

/* Function numbers in this file follow those of own_functions. */
/* The statement expression ends the struct's lifetime before its value is used: gcc makes no tail
 * call while an object on the stack may still be referred to. */
#define ENTER(which, ...)                                                                          \
	({                                                                                         \
		struct call call_ = { which, __VA_ARGS__ };                                        \
                                                                                                   \
		call__enter(call_, FRAME, OWN_FUNCTIONS + which);                                  \
	})

#define NEXT(name, type) ((type)next__get(NEXT_##name))

static __attribute__((noinline)) void *move(struct live_mark mark, void *pointer, __u64 size,
					    void *(*next)(void *, size_t), const __u64 *frame)
{
	struct thread *current, *thread;
	struct live_move state;
	struct claim claim;
	void *block;

	state.function = AP_REALLOC;
	state.is_outside = mark.record == MARK_OUTSIDE;
	live__move(&state, (__u64)pointer);
	block = next(pointer, size);
	current = thread__current();
	thread = current ? thread__claim(current, &claim, frame) : NULL;
	if (!thread) {
		live__lose(current, mark__counted(mark), state.has_old ? &state.old : NULL);
		return block;
	}
	live__moved(thread, &state, mark__counted(mark), (__u64)block, size, false);
	thread__release(thread, &claim);
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
	struct live_mark mark;

	mark = ENTER(AP_MALLOC, .size = size);
	if (mark__is_followed(mark))
		return call__returned(mark, NEXT(malloc, void *(*)(size_t))(size), size, FRAME);
	return NEXT(malloc, void *(*)(size_t))(size);
}

EXPORT void *calloc(size_t n, size_t size);
EXPORT void *calloc(size_t n, size_t size)
{
	struct live_mark mark;
	__u64 product = 0;
	bool overflows = __builtin_mul_overflow(n, size, &product);

	mark = ENTER(AP_CALLOC, .size = overflows ? 0 : product, .overflows = overflows);
	if (mark__is_followed(mark))
		return call__returned(mark, NEXT(calloc, void *(*)(size_t, size_t))(n, size),
				      overflows ? 0 : product, FRAME);
	return NEXT(calloc, void *(*)(size_t, size_t))(n, size);
}

EXPORT void *realloc(void *pointer, size_t size);
EXPORT void *realloc(void *pointer, size_t size)
{
	struct live_mark mark;

	mark = ENTER(AP_REALLOC, .size = size, .pointer = (__u64)pointer);
	if (mark__is_followed(mark))
		return move(mark, pointer, size, next__get(NEXT_realloc), FRAME);
	return NEXT(realloc, void *(*)(void *, size_t))(pointer, size);
}

/* Calls realloc with the product: glibc's reallocarray would call realloc by its name, which would
 * be counted as a second call. */
EXPORT void *reallocarray(void *pointer, size_t n, size_t size);
EXPORT void *reallocarray(void *pointer, size_t n, size_t size)
{
	struct live_mark mark;
	void *(*next)(void *, size_t, size_t) = next__get(NEXT_reallocarray);
	void *(*next_realloc)(void *, size_t) = next__get(NEXT_realloc);
	__u64 product = 0;
	bool overflows = __builtin_mul_overflow(n, size, &product);

	/* The program's own realloc has these blocks, and its calls do not come to this library. */
	if (next_realloc_is_preceded)
		return next ? next(pointer, n, size) : fail_for_memory();
	mark = ENTER(AP_REALLOCARRAY, .size = overflows ? 0 : product, .overflows = overflows,
		     .pointer = (__u64)pointer);
	if (overflows && mark__is_followed(mark))
		call__returned(mark, NULL, 0, FRAME);
	if (overflows)
		return next ? next(pointer, n, size) : fail_for_memory();
	if (mark__is_followed(mark))
		return move(mark, pointer, product, next_realloc, FRAME);
	return next_realloc(pointer, product);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size);
EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	int (*next)(void **, size_t, size_t) = next__get(NEXT_posix_memalign);
	struct live_mark mark = ENTER(AP_POSIX_MEMALIGN, .size = size);
	int err;

	if (!mark__is_followed(mark))
		return next(out, alignment, size);
	err = next(out, alignment, size);
	call__returned(mark, err ? NULL : *out, size, FRAME);
	return err;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	struct live_mark mark;

	mark = ENTER(AP_ALIGNED_ALLOC, .size = size);
	if (mark__is_followed(mark))
		return call__returned(
			mark, NEXT(aligned_alloc, void *(*)(size_t, size_t))(alignment, size), size,
			FRAME);
	return NEXT(aligned_alloc, void *(*)(size_t, size_t))(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size);
EXPORT void *memalign(size_t alignment, size_t size)
{
	struct live_mark mark;

	mark = ENTER(AP_MEMALIGN, .size = size);
	if (mark__is_followed(mark))
		return call__returned(mark,
				      NEXT(memalign, void *(*)(size_t, size_t))(alignment, size),
				      size, FRAME);
	return NEXT(memalign, void *(*)(size_t, size_t))(alignment, size);
}

/* Serves valloc and pvalloc where the C library, as musl, has neither. */
static void *page_aligned(size_t size)
{
	void *(*next)(size_t, size_t) = next__get(NEXT_memalign);

	return next ? next(page_bytes(), size) : fail_for_memory();
}

EXPORT void *valloc(size_t size);
EXPORT void *valloc(size_t size)
{
	struct live_mark mark;
	void *(*next)(size_t) = next__get(NEXT_valloc);

	mark = ENTER(AP_VALLOC, .size = size);
	if (mark__is_followed(mark))
		return call__returned(mark, next ? next(size) : page_aligned(size), size, FRAME);
	return next ? next(size) : page_aligned(size);
}

EXPORT void *pvalloc(size_t size);
EXPORT void *pvalloc(size_t size)
{
	struct live_mark mark;
	void *(*next)(size_t) = next__get(NEXT_pvalloc);

	mark = ENTER(AP_PVALLOC, .size = size);
	if (next && mark__is_followed(mark))
		return call__returned(mark, next(size), size, FRAME);
	if (next)
		return next(size);
	return size > -page_bytes() ? fail_for_memory()
				    : page_aligned((size + page_bytes() - 1) & -page_bytes());
}

EXPORT void free(void *pointer);
EXPORT void free(void *pointer)
{
	struct live_mark mark = ENTER(AP_FREE, .pointer = (__u64)pointer);

	if (mark__is_followed(mark))
		call__freed(mark, AP_FREE, pointer, FRAME);
	NEXT(free, void (*)(void *))(pointer);
}

/* free_sized and free_aligned_sized are of C23; free does the same in C libraries that lack them. */
EXPORT void free_sized(void *pointer, size_t size);
EXPORT void free_sized(void *pointer, size_t size)
{
	void (*next)(void *, size_t) = next__get(NEXT_free_sized);

	struct live_mark mark = ENTER(AP_FREE_SIZED, .pointer = (__u64)pointer);

	if (mark__is_followed(mark))
		call__freed(mark, AP_FREE, pointer, FRAME);
	if (next)
		next(pointer, size);
	else
		NEXT(free, void (*)(void *))(pointer);
}

EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size);
EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
	void (*next)(void *, size_t, size_t) = next__get(NEXT_free_aligned_sized);

	struct live_mark mark = ENTER(AP_FREE_SIZED, .pointer = (__u64)pointer);

	if (mark__is_followed(mark))
		call__freed(mark, AP_FREE, pointer, FRAME);
	if (next)
		next(pointer, alignment, size);
	else
		NEXT(free, void (*)(void *))(pointer);
}
