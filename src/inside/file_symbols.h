/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dynamic symbols of a file that is not loaded. All memory is on the stack, of a child of vfork(2), which may be small. Each word
 * is read when it is needed, and what a damaged file can have us read is bounded.
 */
#ifndef ALLOCPROF_INSIDE_FILE_SYMBOLS_H
#define ALLOCPROF_INSIDE_FILE_SYMBOLS_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define FILE_SYMBOLS_LOADS 16

struct file_symbols {
	int fd;
	int n_loads;
	__u64 dynamic, dynamic_bytes; /* offset in the file */
	/* Addresses; 0: there is none. */
	Elf64_Addr symbols, strings, gnu_hash, hash;
	struct {
		Elf64_Addr address;
		__u64 bytes, offset; /* in the file */
	} loads[FILE_SYMBOLS_LOADS];
};

/* False if the file has no dynamic section with strings. */
bool file_symbols__open(struct file_symbols *out, int fd, const Elf64_Ehdr *header);

/* The @index-th entry of the dynamic section; false behind the last. */
bool file_symbols__entry(const struct file_symbols *in, __u32 index, Elf64_Dyn *out);

/* Copies the first @size - 1 bytes at most of the string at @offset. Empty where the file ends before it. */
void file_symbols__string(const struct file_symbols *in, __u64 offset, char *out, size_t size);

/* Whether the file exports the symbol. */
bool file_symbols__define(const struct file_symbols *in, const char *name);

#endif
