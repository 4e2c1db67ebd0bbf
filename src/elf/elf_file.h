/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One ELF file of the host's kind, as far as probing needs it. Nothing in it is trusted. The file is
 * read, never mapped: a file that shrinks while we look must not kill us.
 */
#ifndef ALLOCPROF_ELF_FILE_H
#define ALLOCPROF_ELF_FILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

struct elf_file;

/* A file-backed part of an executable segment. */
struct elf_text {
	__u64 vaddr;
	__u64 offset;		   /* in the file */
	__u64 size;		   /* bytes of @code */
	const unsigned char *code; /* borrowed from the elf_file */
};

struct elf_symbol {
	const char *name; /* borrowed, without version */
	__u64 value;	  /* vaddr */
	__u64 size;	  /* bytes, 0 if unknown */
	unsigned int type;
	bool is_default; /* not local; no version, or the one that new programs link with (@@) */
};

/* A slot that the dynamic linker fills with the address of the symbol. */
struct elf_slot {
	__u64 vaddr;
	const char *name; /* borrowed */
};

/* A function that returns nonzero ends the iteration, which then returns the same. */
typedef int (*elf_symbol_fn)(const struct elf_symbol *symbol, void *arg);
typedef int (*elf_slot_fn)(const struct elf_slot *slot, void *arg);

/*
 * Opens the file behind @fd, which stays the caller's and is not needed afterwards. @path is only
 * for words. -ENOEXEC: not an ELF file, or a damaged one; -ENOTSUP: not for this machine.
 */
int elf_file__open(int fd, const char *path, struct elf_file **out, struct error *error);
void elf_file__free(struct elf_file *file);

/* Lower-case hex digits, "" where the file has none. Valid as long as @file. */
const char *elf_file__build_id(const struct elf_file *file);

/* The dynamic linker that the kernel starts for it, "" where it names none. */
const char *elf_file__interpreter(const struct elf_file *file);

/* The name that a library is linked by, "" where it has none. Valid as long as @file. */
const char *elf_file__soname(const struct elf_file *file);

/* The vaddr where execution begins, 0 in a file that is not for executing. */
__u64 elf_file__entry(const struct elf_file *file);

/* An executable that no dynamic linker touches, at a fixed address or position independent. */
bool elf_file__is_static(const struct elf_file *file);

/* Something to execute, not a library to link with. C libraries can be executed and are none. */
bool elf_file__is_program(const struct elf_file *file);

/* Compiled from Go, whose runtime allocates without malloc. Its C parts, if it has any, may use malloc. */
bool elf_file__is_go(const struct elf_file *file);

/* Translate by the load segments' file-backed parts. -ENOENT: in none of them. */
int elf_file__vaddr_to_offset(const struct elf_file *file, __u64 vaddr, __u64 *offset);
int elf_file__offset_to_vaddr(const struct elf_file *file, __u64 offset, __u64 *vaddr);

/* The lowest and the end of the highest vaddr of executable segments. -ENOENT: there is none. */
int elf_file__text_range(const struct elf_file *file, __u64 *start, __u64 *end);

/* The @index-th executable segment, read at first use. -ENOENT: there are no more; -EFBIG. */
int elf_file__text(struct elf_file *file, size_t index, struct elf_text *out);

/* Defined symbols: global and weak ones of the dynamic symbol table; of a static program all of
 * .symtab. 0 also without a table. */
int elf_file__for_each_symbol(struct elf_file *file, elf_symbol_fn fn, void *arg);

/* What .symtab has of a file that is linked dynamically: local symbols, and the others once more. */
int elf_file__for_each_further_symbol(struct elf_file *file, elf_symbol_fn fn, void *arg);

/* Slots of .got and .got.plt with the symbols that they are for. */
int elf_file__for_each_slot(struct elf_file *file, elf_slot_fn fn, void *arg);

/* Whether the dynamic symbol table has @name undefined. */
bool elf_file__imports(struct elf_file *file, const char *name);

/*
 * Addresses at which functions or parts of functions begin according to .eh_frame_hdr, in the order
 * found there. The caller frees the array. 0 with none where there is no such table.
 */
int elf_file__fde_starts(const struct elf_file *file, __u64 **out, size_t *n);

#endif
