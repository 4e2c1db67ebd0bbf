/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What preload_attach.c and attach_library.c show each other. */
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
 * Whether one of the threads, which are held and have their own registers, may go on with what the library knows of it: it runs the
 * library's code, a signal's handler that has interrupted that, or a function that the library has called, other than the
 * allocator's; or it is not held.
 */
bool mapped_library__may_be_used(const struct mapped_library *library, const struct hold *hold);

#endif
