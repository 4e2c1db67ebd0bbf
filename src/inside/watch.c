// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Interposes functions that change facts about the process that this library relies on: forks,
 * names of threads, and mappings of code; and those that would unmap this library's memory. A
 * program that makes such system calls itself, other than by syscall(2), is not noticed. The C
 * library does so in its own fork(3) and dlopen(3); these are noticed by the first call in the
 * child, and by code__check_unloaded().
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stdarg.h>

#include "code.h"
#include "confine.h"
#include "domains.h"
#include "entries.h"
#include "exec.h"
#include "live.h"
#include "memory.h"
#include "objects.h"
#include "own.h"
#include "process.h"
#include "stack.h"
#include "sys.h"

#define EXPORT		 __attribute__((visibility("default")))
#define NEXT(name, type) ((type)next__get(NEXT_##name))

static void forked(void)
{
	shown__forked();
	own__forked();
	process__forked();
}

EXPORT int fork(void);
EXPORT int fork(void)
{
	int pid;

	live__share();
	own__begin_fork();
	pid = NEXT(fork, int (*)(void))();
	if (pid)
		own__end_fork();
	else
		forked();
	return pid;
}

EXPORT int _Fork(void);
EXPORT int _Fork(void)
{
	int pid;

	live__share();
	own__begin_fork();
	pid = NEXT(_Fork, int (*)(void))();
	if (pid)
		own__end_fork();
	else
		forked();
	return pid;
}

static struct sys_limits confine(unsigned long mode, unsigned long program)
{
	if (mode == SECCOMP_MODE_STRICT)
		return confine__strictly();
	return mode == SECCOMP_MODE_FILTER ? confine__by_filter(program, process__child())
					   : sys_limits;
}

EXPORT int prctl(int option, ...);
EXPORT int prctl(int option, ...)
{
	unsigned long a, b, c, d;
	struct sys_limits before;
	va_list list;
	int result;

	va_start(list, option);
	a = va_arg(list, unsigned long);
	b = va_arg(list, unsigned long);
	c = va_arg(list, unsigned long);
	d = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		before = confine(a, b);
	result = NEXT(prctl, int (*)(int, ...))(option, a, b, c, d);
	if (option == PR_SET_SECCOMP && result)
		confine__take_back(&before);
	else if (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)
		sys_limits.no_ticks = true;
	else if (option == PR_SET_NAME)
		process__renamed();
	return result;
}

/* If another thread was renamed, this library notices it at that thread's next call of this
 * function or of prctl(2). */
EXPORT int pthread_setname_np(unsigned long thread, const char *name);
EXPORT int pthread_setname_np(unsigned long thread, const char *name)
{
	int result = NEXT(pthread_setname_np, int (*)(unsigned long, const char *))(thread, name);

	process__renamed();
	return result;
}

/* exit(3) does not come here: it runs this library's destructor. */
EXPORT void _exit(int status);
EXPORT void _exit(int status)
{
	live__leave(INSIDE_EXITED);
	NEXT(_exit, void (*)(int))(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status) __attribute__((alias(NAME_OF(_exit))));

#define LOAD_DEEPBIND 8

typedef void *(*dlopen_t)(const char *, int);
typedef void *(*dlmopen_t)(long, const char *, int);

/* Returns whether the library that dlopen(3) loads depends on its caller (DT_RPATH, DT_RUNPATH,
 * $ORIGIN). */
static bool depends_on_caller(const char *file, __u64 caller)
{
	struct object_span span;
	struct object object = { 0 };
	bool has_slash = false;

	for (; file && *file; file++) {
		if (*file == '$')
			return true;
		has_slash |= *file == '/';
	}
	if (!file || has_slash || !objects__span(caller, &span))
		return false;
	object.dynamic = (void *)span.dynamic;
	return object__has_search_path(&object) || objects__pass_on_search_path();
}

static void *load(dlopen_t next, const char *file, int flags)
{
	void *library;

	own__begin_load();
	library = next(file, flags);
	own__end_load();
	code__loaded();
	if (library && thread__current())
		own__update();
	return library;
}

/*
 * With RTLD_DEEPBIND a library searches its own dependences first, and there finds the C library's
 * allocator. If the result depends on the caller, dlopen(3) is called by a jump, and words of the
 * new objects are looked for when the process ends.
 */
EXPORT void *dlopen(const char *file, int flags);
EXPORT void *dlopen(const char *file, int flags)
{
	dlopen_t next = next__get(NEXT_dlopen);

	if (unlikely(flags & LOAD_DEEPBIND) && thread__current())
		memory__add_gap(INSIDE_GAP_LOADS);
	if (!next)
		return NULL;
	if (!depends_on_caller(file, (__u64)__builtin_return_address(0)))
		return load(next, file, flags);
	own__await_end();
	return next(file, flags);
}

EXPORT int dlclose(void *library);
EXPORT int dlclose(void *library)
{
	int (*next)(void *) = next__get(NEXT_dlclose);
	int err;

	if (!next)
		return -1;
	if (!domains__any())
		return next(library);
	domains__begin_unload();
	err = next(library);
	own__update();
	domains__end_unload();
	return err;
}

/* Another namespace has an allocator of its own. The next function is called by a jump, since the
 * result depends on the caller. */
EXPORT void *dlmopen(long namespace, const char *file, int flags);
EXPORT void *dlmopen(long namespace, const char *file, int flags)
{
	dlmopen_t next = next__get(NEXT_dlmopen);

	if ((namespace || flags & LOAD_DEEPBIND) && thread__current())
		memory__add_gap(INSIDE_GAP_LOADS);
	return next ? next(namespace, file, flags) : NULL;
}

typedef void *(*mmap_t)(void *, size_t, int, int, int, long);

static void unmapped(__u64 address, __u64 size)
{
	code__unmapped(address, size);
	stack__unmapped(address, size);
}

static void *map(mmap_t next, void *address, size_t size, int protection, int flags, int fd,
		 long offset)
{
	void *result;

	if (flags & MAP_FIXED && spared__overlaps((__u64)address, size))
		process__give_up();
	result = next(address, size, protection, flags, fd, offset);
	/* MAP_FIXED unmaps whatever was mapped there. */
	if (flags & MAP_FIXED)
		unmapped((__u64)address, size);
	if (protection & PROT_EXEC)
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

/* The type of mprotect(2) and madvise(2). */
typedef int (*change_t)(void *, size_t, int);

struct change {
	change_t next;
	int argument;
};

static int change_part(void *context, __u64 address, __u64 size)
{
	const struct change *change = context;

	return change->next((void *)address, size, change->argument);
}

static int protect(change_t next, void *address, size_t size, int protection)
{
	struct change change = { next, protection };
	int result = spared__around((__u64)address, size, change_part, &change);

	if (protection & PROT_EXEC)
		code__change();
	if (!(protection & PROT_READ))
		stack__unmapped((__u64)address, size);
	return result;
}

EXPORT int mprotect(void *address, size_t size, int protection);
EXPORT int mprotect(void *address, size_t size, int protection)
{
	return protect(next__get(NEXT_mprotect), address, size, protection);
}

/* MADV_GUARD_INSTALL of Linux 6.13. */
#define ADVICE_GUARD 102

static int advise(change_t next, void *address, size_t size, int advice)
{
	struct change change = { next, advice };

	int result = spared__around((__u64)address, size, change_part, &change);

	if (advice == ADVICE_GUARD)
		stack__unmapped((__u64)address, size);
	return result;
}

EXPORT int madvise(void *address, size_t size, int advice);
EXPORT int madvise(void *address, size_t size, int advice)
{
	return advise(next__get(NEXT_madvise), address, size, advice);
}

typedef int (*munmap_t)(void *, size_t);

static int unmap_part(void *context, __u64 address, __u64 size)
{
	return (*(munmap_t *)context)((void *)address, size);
}

static int unmap(munmap_t next, void *address, size_t size)
{
	int result = spared__around((__u64)address, size, unmap_part, &next);

	unmapped((__u64)address, size);
	return result;
}

EXPORT int munmap(void *address, size_t size);
EXPORT int munmap(void *address, size_t size)
{
	return unmap(next__get(NEXT_munmap), address, size);
}

extern int *__errno_location(void) __attribute__((weak));

/* Lets mremap(2) fail when the target calls it for this library's own memory. */
static void *fail_to_move(void)
{
	if (&__errno_location)
		*__errno_location() = EFAULT;
	return (void *)-1;
}

typedef void *(*mremap_t)(void *, size_t, size_t, int, ...);

static void *move(mremap_t next, void *address, size_t old_size, size_t size, int flags, void *to)
{
	void *result;

	if (old_size && spared__overlaps((__u64)address, old_size))
		return fail_to_move();
	if (flags & MREMAP_FIXED && spared__overlaps((__u64)to, size))
		process__give_up();
	result = next(address, old_size, size, flags, to);
	unmapped((__u64)address, old_size);
	if (flags & MREMAP_FIXED)
		unmapped((__u64)to, size);
	return result;
}

EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...);
EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...)
{
	va_list list;
	void *to;

	va_start(list, flags);
	to = va_arg(list, void *);
	va_end(list);
	return move(next__get(NEXT_mremap), address, old_size, size, flags, to);
}

typedef long (*syscall_t)(long, ...);

static long set_seccomp(long number, long a, long b, long c)
{
	struct sys_limits before = number == __NR_prctl		  ? confine(b, c)
				   : a == SECCOMP_SET_MODE_STRICT ? confine(SECCOMP_MODE_STRICT, 0)
								  : confine(SECCOMP_MODE_FILTER, c);
	long result = NEXT(syscall, syscall_t)(number, a, b, c);

	if (result)
		confine__take_back(&before);
	return result;
}

/*
 * Makes the system call itself for a program that calls syscall(2) with one of these numbers, and
 * does not call the next definition of the function: a library that defines the function, as
 * tcmalloc does mmap, may make the call by syscall(2), and would call itself without end.
 */
static void *mmap_of_kernel(void *address, size_t size, int protection, int flags, int fd,
			    long offset)
{
	return (void *)NEXT(syscall, syscall_t)(__NR_mmap, address, size, (long)protection,
						(long)flags, (long)fd, offset);
}

static void *mmap_by_number(long number, void *address, size_t size, int protection, int flags,
			    int fd, long offset)
{
	return map(mmap_of_kernel, address, size, protection, flags, fd, offset);
}

static int mprotect_of_kernel(void *address, size_t size, int protection)
{
	return NEXT(syscall, syscall_t)(__NR_mprotect, address, size, (long)protection);
}

static long mprotect_by_number(long number, void *address, size_t size, int protection)
{
	return protect(mprotect_of_kernel, address, size, protection);
}

static int madvise_of_kernel(void *address, size_t size, int advice)
{
	return NEXT(syscall, syscall_t)(__NR_madvise, address, size, (long)advice);
}

static long madvise_by_number(long number, void *address, size_t size, int advice)
{
	return advise(madvise_of_kernel, address, size, advice);
}

static int munmap_of_kernel(void *address, size_t size)
{
	return NEXT(syscall, syscall_t)(__NR_munmap, address, size);
}

static long munmap_by_number(long number, void *address, size_t size)
{
	return unmap(munmap_of_kernel, address, size);
}

static void *mremap_of_kernel(void *address, size_t old_size, size_t size, int flags, ...)
{
	va_list list;
	void *to;

	va_start(list, flags);
	to = va_arg(list, void *);
	va_end(list);
	return (void *)NEXT(syscall, syscall_t)(__NR_mremap, address, old_size, size, (long)flags,
						to);
}

static void *mremap_by_number(long number, void *address, size_t old_size, size_t size, int flags,
			      void *to)
{
	return move(mremap_of_kernel, address, old_size, size, flags, to);
}

static const struct {
	long number;
	void *function;
} by_number[] = {
	{ __NR_mmap, mmap_by_number },	     { __NR_mprotect, mprotect_by_number },
	{ __NR_madvise, madvise_by_number }, { __NR_munmap, munmap_by_number },
	{ __NR_mremap, mremap_by_number },
};

void *find_syscall(long number, long a)
{
	bool sets = number == __NR_seccomp
			    ? a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER
			    : number == __NR_prctl && a == PR_SET_SECCOMP;

	/* Some C libraries lack a function for execveat(2), which is then made by number,
	 * unchanged: the executed program is not measured. */
	if (number == __NR_execve || (number == __NR_execveat && next__get(NEXT_execveat)))
		return (void *)exec__by_number;
	for (__u32 i = 0; i < sizeof(by_number) / sizeof(by_number[0]); i++)
		if (by_number[i].number == number)
			return by_number[i].function;
	return sets ? (void *)set_seccomp : next__get(NEXT_syscall);
}
