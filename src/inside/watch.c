// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Functions that change what has to be known of the process: forks, names of threads, and mappings of code. A
 * program that makes the system calls itself is not noticed; the C library does so in its own fork(3) and
 * dlopen(3), of which the first call in the child and code__check_unloaded() tell.
 */
#include <linux/mman.h>
#include <linux/prctl.h>
#include <stdarg.h>

#include "code.h"
#include "live.h"
#include "next.h"
#include "process.h"

#define EXPORT		 __attribute__((visibility("default")))
#define NEXT(name, type) ((type)next__get(NEXT_##name))

EXPORT int fork(void);
EXPORT int fork(void)
{
	int pid = NEXT(fork, int (*)(void))();

	if (!pid)
		process__forked();
	return pid;
}

EXPORT int _Fork(void);
EXPORT int _Fork(void)
{
	int pid = NEXT(_Fork, int (*)(void))();

	if (!pid)
		process__forked();
	return pid;
}

EXPORT int prctl(int option, ...);
EXPORT int prctl(int option, ...)
{
	unsigned long a, b, c, d;
	va_list list;
	int result;

	va_start(list, option);
	a = va_arg(list, unsigned long);
	b = va_arg(list, unsigned long);
	c = va_arg(list, unsigned long);
	d = va_arg(list, unsigned long);
	va_end(list);
	result = NEXT(prctl, int (*)(int, ...))(option, a, b, c, d);
	if (option == PR_SET_NAME)
		process__renamed();
	return result;
}

/* For another thread the name changes at its next call of this or of prctl(2). */
EXPORT int pthread_setname_np(unsigned long thread, const char *name);
EXPORT int pthread_setname_np(unsigned long thread, const char *name)
{
	int result = NEXT(pthread_setname_np, int (*)(unsigned long, const char *))(thread, name);

	process__renamed();
	return result;
}

/* exit(3) runs the destructor of this library instead. */
EXPORT void _exit(int status);
EXPORT void _exit(int status)
{
	live__leave();
	NEXT(_exit, void (*)(int))(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status) __attribute__((alias("_exit")));

typedef void *(*mmap_t)(void *, size_t, int, int, int, long);

static void *map(mmap_t next, void *address, size_t size, int protection, int flags, int fd,
		 long offset)
{
	void *result = next(address, size, protection, flags, fd, offset);

	/* What was there before is gone, whatever comes in its place. */
	if (flags & MAP_FIXED || protection & PROT_EXEC)
		code__change();
	return result;
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, long offset);
EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, long offset)
{
	return map(next__get(NEXT_mmap), address, size, protection, flags, fd, offset);
}

EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, long offset);
EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, long offset)
{
	return map(next__get(NEXT_mmap64), address, size, protection, flags, fd, offset);
}

EXPORT int mprotect(void *address, size_t size, int protection);
EXPORT int mprotect(void *address, size_t size, int protection)
{
	int result = NEXT(mprotect, int (*)(void *, size_t, int))(address, size, protection);

	if (protection & PROT_EXEC)
		code__change();
	return result;
}

EXPORT int munmap(void *address, size_t size);
EXPORT int munmap(void *address, size_t size)
{
	int result = NEXT(munmap, int (*)(void *, size_t))(address, size);

	code__unmapped((__u64)address, size);
	return result;
}

EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...);
EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...)
{
	void *to, *result;
	va_list list;

	va_start(list, flags);
	to = va_arg(list, void *);
	va_end(list);
	result = NEXT(mremap, void *(*)(void *, size_t, size_t, int, ...))(address, old_size, size,
									   flags, to);
	code__unmapped((__u64)address, old_size);
	if (flags & MREMAP_FIXED)
		code__unmapped((__u64)to, size);
	return result;
}
