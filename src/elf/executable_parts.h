/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the executable parts of a file, to check a worker's answer against. It reads the two headers that the kernel
 * reads when it maps the file, and does not use libelf.
 */
#ifndef ALLOCPROF_EXECUTABLE_PARTS_H
#define ALLOCPROF_EXECUTABLE_PARTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define MAX_EXECUTABLE_PARTS 64

struct executable_parts {
	struct executable_part {
		__u64 vaddr, offset, size;
	} list[MAX_EXECUTABLE_PARTS];
	size_t n;
	__u64 file_bytes;
};

/* 0, or -ENOEXEC: it is no ELF file of 64 bits; -ENOMEM or the error of reading. */
int executable_parts__read(int fd, struct executable_parts *out);

/* Whether code is at @vaddr, and is at @offset of the file. */
bool executable_parts__have(const struct executable_parts *parts, __u64 vaddr, __u64 offset);
/* Whether code is at @offset of the file. */
bool executable_parts__have_offset(const struct executable_parts *parts, __u64 offset);

#endif
