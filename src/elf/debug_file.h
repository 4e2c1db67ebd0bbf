/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ELF files with debug information: opened without harm, and found where they lie apart. */
#ifndef ALLOCPROF_DEBUG_FILE_H
#define ALLOCPROF_DEBUG_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

/* Hex digits and the end of a string. Real ids have 8 to 20 bytes. */
#define BUILD_ID_SIZE (2 * 64 + 1)

struct debug_file {
	int fd; /* -1: none */
	Elf *elf;
	char *path; /* owned */
};

#define DEBUG_FILE_NONE                                                                            \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* The file that a symbol table or debug information is wanted for. */
struct debug_search {
	const char *const *dirs; /* asked before /usr/lib/debug */
	size_t n_dirs;
	Elf *elf;
	int fd;
	const char *path;
	const char *build_id; /* lower-case hex, "" where it has none */
};

/* Opens what can only be a file: no FIFO that waits, no terminal that becomes ours. -1: none. */
int debug_file__open_path(const char *path);

/*
 * Opens the ELF file behind @fd, which is taken over, errors included. The file is read; mapped is
 * only what root owns and nobody else may write to, as a file that shrinks while it is mapped would
 * end us. -ENOEXEC: no ELF file, or a core; -EFBIG: it would need too much memory;
 * -ENOMEM.
 */
int debug_file__open(int fd, const char *path, struct debug_file *out, struct error *error);
void debug_file__close(struct debug_file *file);

/* A second, independent handle of the same file. 0, -ENOEXEC or -ENOMEM. */
int debug_file__reopen(const struct debug_file *file, struct debug_file *out);

/* Fills @build_id, which has BUILD_ID_SIZE bytes, with lower-case hex; "" where there is none. */
void debug_file__build_id(Elf *elf, char *build_id);

/* The section called @name and its header, or NULL. */
Elf_Scn *debug_file__section(Elf *elf, const char *name, GElf_Shdr *header);
bool debug_file__has_dwarf(Elf *elf);

/*
 * Looks for the separate debug file by build id, then by .gnu_debuglink, then by name. What is found
 * must have the build id, or, where the file has none, the debuglink's checksum. -ENOENT: none; then,
 * if there was a wrong one, @error tells of it. -ENOMEM.
 */
int debug_file__find(const struct debug_search *search, struct debug_file *out,
		     struct error *error);

/* The name and the build id (lower-case hex, BUILD_ID_SIZE bytes) of the file with common parts (dwz)
 * that @file refers to; @name is borrowed. False where it refers to none. */
bool debug_file__alt_name(const struct debug_file *file, const char **name, char *build_id);

/* As debug_file__find() for the file with the common parts that @debug names as @name with
 * @build_id. */
int debug_file__find_alt(const struct debug_search *search, const struct debug_file *debug,
			 const char *name, const char *build_id, struct debug_file *out,
			 struct error *error);

#endif
