/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds dynamic symbols by name in files that are not loaded. */
#ifndef ALLOCPROF_INSIDE_ELF_SYMBOLS_H
#define ALLOCPROF_INSIDE_ELF_SYMBOLS_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* How many program headers of a file are read at most. */
#define ELF_MAX_PROGRAM_HEADERS 64

#define FILE_SYMBOLS_LOADS 16

/*
 * An ELF file that is not loaded. This struct and all buffers are on the stack of what may be a
 * child of vfork(2), so they are small, and each word is read from the file when it is needed.
 */
struct file_symbols {
	int fd;
	int n_loads;
	__u64 dynamic, dynamic_bytes; /* offset in the file */
	/* Addresses of these tables when the file is loaded; 0: there is none. */
	Elf64_Addr symbols, strings, gnu_hash, hash;
	struct {
		Elf64_Addr address;
		__u64 bytes, offset; /* in the file */
	} loads[FILE_SYMBOLS_LOADS];
};

/* Opens the ELF file in @fd, which the caller keeps open. Returns false if it has no dynamic
 * section with strings. */
bool file_symbols__open(struct file_symbols *out, int fd, const Elf64_Ehdr *header);

/* Reads entry number @index of the dynamic section. Returns false behind the last one. */
bool file_symbols__entry(const struct file_symbols *in, __u32 index, Elf64_Dyn *out);

/* Copies the first @size - 1 bytes at most of the string at @offset, with a terminating 0. The
 * string is empty if the file ends before @offset. */
void file_symbols__string(const struct file_symbols *in, __u64 offset, char *out, size_t size);

/* Returns whether the file exports the symbol. */
bool file_symbols__define(const struct file_symbols *in, const char *name);

#endif
