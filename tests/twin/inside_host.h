/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The library of src/inside as a part of a test, under ASan and UBSan: its functions have names of their own (inside_names.h), the
 * objects behind the program are what it finds next, and the kernel or the test answers its system calls.
 */
#ifndef ALLOCPROF_INSIDE_HOST_H
#define ALLOCPROF_INSIDE_HOST_H

#include <stddef.h>

/* What the kernel would return for the system call. NULL, as it is at first: the kernel is asked. */
typedef long (*host_answer_fn)(long number, const long arguments[6]);
void host__answer_by(host_answer_fn answer);

/* The kernel's answer. */
long host__ask_kernel(long number, const long arguments[6]);

/* Begins as the dynamic linker has a process begin that has loaded the library as the file @path, which must stay. */
void host__load(char *path);

void *inside_malloc(size_t size);
void *inside_calloc(size_t n, size_t size);
void *inside_realloc(void *block, size_t size);
void *inside_reallocarray(void *block, size_t n, size_t size);
int inside_posix_memalign(void **out, size_t alignment, size_t size);
void *inside_aligned_alloc(size_t alignment, size_t size);
void *inside_memalign(size_t alignment, size_t size);
void *inside_valloc(size_t size);
void *inside_pvalloc(size_t size);
void inside_free(void *block);
void inside_free_sized(void *block, size_t size);
void inside_free_aligned_sized(void *block, size_t alignment, size_t size);

int inside_execve(const char *path, char *const argv[], char *const environment[]);
int inside_execv(const char *path, char *const argv[]);
int inside_execvp(const char *file, char *const argv[]);
int inside_execl(const char *path, const char *first, ...);
int inside_execlp(const char *file, const char *first, ...);
int inside_execle(const char *path, const char *first, ...);
int inside_fexecve(int fd, char *const argv[], char *const environment[]);
int inside_execveat(int at, const char *path, char *const argv[], char *const environment[],
		    int flags);
int inside_posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
		       char *const argv[], char *const environment[]);
int inside_posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes,
			char *const argv[], char *const environment[]);
int inside_system(const char *command);
void *inside_popen(const char *command, const char *type);
int inside_wordexp(const char *words, void *expanded, int flags);

int inside_fork(void);
int inside__Fork(void);
int inside_prctl(int option, ...);
long inside_syscall(long number, ...);
int inside_pthread_setname_np(unsigned long thread, const char *name);
void *inside_dlopen(const char *file, int flags);
void *inside_dlmopen(long namespace, const char *file, int flags);
void *inside_mmap(void *address, size_t size, int protection, int flags, int fd, long offset);
int inside_munmap(void *address, size_t size);
int inside_mprotect(void *address, size_t size, int protection);
int inside_madvise(void *address, size_t size, int advice);
void *inside_mremap(void *address, size_t old_size, size_t size, int flags, ...);
__attribute__((noreturn)) void inside__exit(int status);

/* include/allocprof.h calls it. */
void allocprof_mark_(int kind, const char *name);

#endif
