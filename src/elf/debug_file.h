/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens ELF files with debug information safely, and finds separate debug files. */
#ifndef ALLOCPROF_DEBUG_FILE_H
#define ALLOCPROF_DEBUG_FILE_H

#include <gelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

/* Room for a build id in hex digits, with a NUL. Real ids have 8 to 20 bytes. */
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

/* Identifies the file whose debug file is searched. */
struct debug_search {
	const char *const *dirs; /* directories that are searched before /usr/lib/debug */
	size_t n_dirs;
	Elf *elf;
	int fd;
	const char *path;
	const char *build_id; /* lower-case hex, "" if unknown */
};

/*
 * Opens the ELF file behind @fd, which is taken over even on failure. The file is mapped only if
 * root owns it and nobody else may write to it, else it is read: a mapped file that shrinks would
 * kill this process by SIGBUS. Fails with -ENOEXEC if it is no ELF file, or a core; -EFBIG if it
 * needs too much memory; or -ENOMEM.
 */
int debug_file__open(int fd, const char *path, struct debug_file *out, struct error *error);
void debug_file__close(struct debug_file *file);

/* Returns the limit of a file's debug sections in memory, in bytes. */
__u64 debug_file__most_memory_bytes(void);

/* Returns how much memory the debug sections take when libdw has them. */
__u64 debug_file__memory_bytes(const struct debug_file *file);

/* Opens a second, independent handle of the same file. Returns 0, -ENOEXEC or -ENOMEM. */
int debug_file__reopen(const struct debug_file *file, struct debug_file *out);

/* Fills @build_id, which has BUILD_ID_SIZE bytes, with lower-case hex; "" if there is none. */
void debug_file__build_id(Elf *elf, char *build_id);

/* Returns whether the whole file behind @fd has this checksum, which is of the kind in
 * .gnu_debuglink; false if the file has more than 4 GiB. */
bool debug_file__has_checksum(int fd, __u32 checksum);

/* Returns the section called @name and stores its header; NULL if there is none. */
Elf_Scn *debug_file__section(Elf *elf, const char *name, GElf_Shdr *header);
bool debug_file__has_dwarf(Elf *elf);

/*
 * Searches the separate debug file by build id, then by .gnu_debuglink, then by name. It must have
 * the same build id or, if the file has none, the debuglink's checksum. Fails with -ENOMEM, or
 * with -ENOENT if there is none; if there was a mismatch, @error describes it.
 */
int debug_file__find(const struct debug_search *search, struct debug_file *out,
		     struct error *error);

/* Stores the name and build id (lower-case hex, BUILD_ID_SIZE bytes) of the dwz file to which
 * @file refers; @name is borrowed. Returns false if there is none. */
bool debug_file__alt_name(const struct debug_file *file, const char **name, char *build_id);

/* Works like debug_file__find(), for the dwz file to which @debug refers by @name and @build_id. */
int debug_file__find_alt(const struct debug_search *search, const struct debug_file *debug,
			 const char *name, const char *build_id, struct debug_file *out,
			 struct error *error);

#endif
