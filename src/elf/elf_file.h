/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads an ELF file of the host's class and machine, as far as probing needs it. Nothing in it is
 * trusted. The file is read, never mapped: a mapped file that shrinks would kill this process by
 * SIGBUS.
 */
#ifndef ALLOCPROF_ELF_FILE_H
#define ALLOCPROF_ELF_FILE_H

#include <libelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

struct elf_file;

/*
 * Opens an ELF file as elf_begin(3) does, but checks files that others have written: all sections,
 * and all segments of one kind, together are not much larger than the file, so that reading each
 * once costs no more than that (holes of a sparse file do not count); compressed sections unpack
 * to a limited multiple; tables of strings end with a zero byte. Fails with -ENOEXEC if this is no
 * ELF file, or it fails one of these checks.
 */
int elf_open__begin(int fd, Elf_Cmd command, Elf **out);

/* Returns how many bytes the contents of the file behind @fd may take when they are unpacked. */
__u64 elf_open__most_unpacked_bytes(int fd);

/* How all messages call a program for another word size or processor, which no engine measures. */
#define ELF_OTHER_MACHINE                                                                               \
	"a 32-bit program, or one of another processor; allocprof measures 64-bit " ALLOCPROF_PROCESSOR \
	" ones"
#define ELF_32_BIT "a 32-bit program; allocprof measures 64-bit ones"

/* The file-backed part of an executable segment. */
struct elf_text {
	__u64 vaddr;
	__u64 offset;		   /* of the file */
	__u64 size;		   /* bytes of @code */
	const unsigned char *code; /* borrowed from the elf_file */
};

struct elf_symbol {
	const char *name; /* borrowed, without version */
	__u64 value;	  /* vaddr */
	__u64 size;	  /* bytes, 0 if unknown */
	unsigned int type;
	bool is_default; /* not local; unversioned, or of the default version (@@) */
};

/* A GOT slot, in which the dynamic linker stores the symbol's address. */
struct elf_slot {
	__u64 vaddr;
	const char *name; /* borrowed */
};

/* A nonzero result ends the iteration and is returned. */
typedef int (*elf_symbol_fn)(const struct elf_symbol *symbol, void *arg);
typedef int (*elf_slot_fn)(const struct elf_slot *slot, void *arg);

/* Opens the file behind @fd, which stays the caller's and may be closed. @path is for messages.
 * The caller frees *@out. Fails with -ENOEXEC if this is no ELF file, or a damaged one; -ENOTSUP
 * if it is for another machine. */
int elf_file__open(int fd, const char *path, struct elf_file **out, struct error *error);
void elf_file__free(struct elf_file *file);

/* Returns the build id as lower-case hex digits, "" if the file has none. Valid as long as @file. */
const char *elf_file__build_id(const struct elf_file *file);

/* Returns PT_INTERP, "" if there is none. */
const char *elf_file__interpreter(const struct elf_file *file);

/* Returns DT_SONAME, "" if there is none. Valid as long as @file. */
const char *elf_file__soname(const struct elf_file *file);

/* Calls @fn with each string of the dynamic section's entries of @tag, such as DT_NEEDED, in their order. A
 * nonzero result ends the iteration and is returned. */
int elf_file__for_each_dynamic_string(const struct elf_file *file, __s64 tag,
				      int (*fn)(const char *string, void *arg), void *arg);

/* Returns whether the file is a program without dynamic linker, position-independent or not. */
bool elf_file__is_static(const struct elf_file *file);

/* Returns whether the file is a program that is mapped at the addresses that it states. */
bool elf_file__is_fixed(const struct elf_file *file);

/* Returns whether the file is a program, not a library. C libraries can be executed, but are no
 * programs. */
bool elf_file__is_program(const struct elf_file *file);

/* Returns whether the file was compiled from Go, whose runtime does not allocate by malloc; its C
 * parts may. */
bool elf_file__is_go(const struct elf_file *file);

/* Translates an address by the file-backed parts of PT_LOAD segments. Fails with -ENOENT if it is
 * in none of them. */
int elf_file__vaddr_to_offset(const struct elf_file *file, __u64 vaddr, __u64 *offset);

/* Stores the lowest vaddr of executable segments, and the end of the highest one. Fails with
 * -ENOENT if there is none. */
int elf_file__text_range(const struct elf_file *file, __u64 *start, __u64 *end);

/* Stores the executable segment number @index, which is read on first use. Fails with -ENOENT if
 * there is no such segment; or -EFBIG. */
int elf_file__text(struct elf_file *file, size_t index, struct elf_text *out);

/* Calls @fn with the defined symbols: the global and weak ones of .dynsym; in a static program all
 * of .symtab. Returns 0 even without a table. */
int elf_file__for_each_symbol(struct elf_file *file, elf_symbol_fn fn, void *arg);

/* Calls @fn with all symbols of .symtab of a dynamically linked file, including those that .dynsym
 * has. */
int elf_file__for_each_further_symbol(struct elf_file *file, elf_symbol_fn fn, void *arg);

/* Calls @fn with the slots of .got and .got.plt, with their symbols. */
int elf_file__for_each_slot(struct elf_file *file, elf_slot_fn fn, void *arg);

/* Returns whether a defined symbol of elf_file__for_each_symbol() has the name. */
bool elf_file__defines(struct elf_file *file, const char *name);

/* Returns whether .dynsym has the undefined symbol @name. */
bool elf_file__imports(struct elf_file *file, const char *name);

/* Stores the addresses in .eh_frame_hdr at which functions or their parts begin, in the order of
 * the table. The caller frees the array. Returns 0 with an empty array if there is no such table. */
int elf_file__fde_starts(const struct elf_file *file, __u64 **out, size_t *n);

#endif
