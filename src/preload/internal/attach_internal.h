/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For preload_attach.c: what it has to know of a process, the file of the library, and threads that are within it. */
#ifndef ALLOCPROF_ATTACH_INTERNAL_H
#define ALLOCPROF_ATTACH_INTERNAL_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hold;

/* The library's file, as read from the installation. */
struct library_file {
	unsigned char *bytes;
	size_t size;
	__u64 memory_bytes; /* of all segments */
	/* Addresses of allocprof_attach(), allocprof_request and allocprof_n_outside. */
	__u64 attach, request, n_outside;
	__u64 code_start, code_end;
};

/* Reads allocprof's own library. 0 or a negative errno. */
int library_file__read(const char *path, struct library_file *out);

/* Has the words of the file that need no symbol as they are where the library is mapped at @base. */
void library_file__relocate(struct library_file *file, __u64 base);

/* The @index-th program header; NULL if there are fewer. */
const Elf64_Phdr *library_file__segment(const struct library_file *file, size_t index);

/* A library in a process. */
struct mapped_library {
	const struct library_file *file;
	pid_t pid;
	__u64 base;
};

/*
 * Returns whether one of the threads may still use memory that the library has mapped: it runs the library's code, a signal's handler
 * that has interrupted that, or a function that the library has called, other than the allocator's; or it is not held. The threads
 * have their own registers.
 */
bool mapped_library__may_be_used(const struct mapped_library *library, const struct hold *hold);

/* Finds the address of the dynamic linker's struct r_debug. 0; -ENOTSUP: the program has none; -EPERM: this user may not trace
 * the process; or another error of reading. */
int process__find_linker(pid_t pid, __u64 *linker);

/* Sets *@has_filters to whether the process has filters of system calls (seccomp(2)). -EACCES: its threads have different ones, or may
 * do next to nothing. */
int process__find_filters(pid_t pid, bool *has_filters);

#endif
