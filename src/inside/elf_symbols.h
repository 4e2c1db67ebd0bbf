/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Dynamic symbols by their names: in the hash tables of loaded objects, and of files that are not loaded. */
#ifndef ALLOCPROF_INSIDE_ELF_SYMBOLS_H
#define ALLOCPROF_INSIDE_ELF_SYMBOLS_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* At most so many program headers of a file are read. */
#define ELF_MAX_PROGRAM_HEADERS 64

/* Memory that has hash tables. */
struct symbol_hash {
	/* Addresses; 0: there is none. */
	Elf64_Addr gnu_hash, hash;
	int max_chain; /* symbols with one hash that are looked at */
	/* Copies @size bytes at @address; false if they are not there. */
	bool (*read)(const void *memory, Elf64_Addr address, void *out, size_t size);
	/* Returns whether the symbol @index is the wanted one by the name @name. */
	bool (*is)(const void *memory, __u32 index, const char *name);
};

/* Returns the index of the symbol @name, or 0 if there is none. @memory: for the functions of @in. */
__u32 symbol_hash__find(const struct symbol_hash *in, const void *memory, const char *name);

#define FILE_SYMBOLS_LOADS 16

/*
 * A file that is not loaded. All memory is on the stack, of a child of vfork(2), which may be small. Each word is read when it
 * is needed.
 */
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
