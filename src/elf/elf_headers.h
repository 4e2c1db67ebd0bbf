/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads headers and segments of ELF files without libelf: for the process with privileges, which parses no more of them. */
#ifndef ALLOCPROF_ELF_HEADERS_H
#define ALLOCPROF_ELF_HEADERS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct elf_headers;

/*
 * The process with privileges has to know where the segments of a file in stacks are, and the
 * file's build id. It uses no libelf, but reads the ELF header, the headers of segments and
 * sections, and notes, each with a bound, and none of the data to which they point, except the
 * names of sections when it searches a checksum. The results are the same as those of elf_file.h.
 */

/* Reads the headers of the file in @fd, which stays the caller's. Returns 0, with *@out, which the
 * caller frees; -ENOEXEC if it is no 64-bit program or library for this processor; -ENOMEM, or the
 * error of reading. */
int elf_headers__read(int fd, struct elf_headers **out);
/* Does the same for any ELF file, also one that is not linked, such as the common files into which
 * dwz puts debug information. */
int elf_headers__read_any(int fd, struct elf_headers **out);
/* Accepts NULL. */
void elf_headers__free(struct elf_headers *headers);

/* Returns the build id in lower-case hex, "" if there is none. */
const char *elf_headers__build_id(const struct elf_headers *headers);
/* Returns the virtual address of the entry point, 0 if there is none. */
__u64 elf_headers__entry(const struct elf_headers *headers);
/* Translates an address. Returns 0, or -ENOENT if no segment contains it. */
int elf_headers__vaddr_to_offset(const struct elf_headers *headers, __u64 vaddr, __u64 *offset);
int elf_headers__offset_to_vaddr(const struct elf_headers *headers, __u64 offset, __u64 *vaddr);

/* Stores the checksum of the file's debug file, from .gnu_debuglink. Returns 0; -ENOENT if it has
 * none; -ENOEXEC, -ENOMEM, or the error of reading. */
int elf_headers__debuglink_checksum(int fd, __u32 *checksum);

/*
 * Finds the executable parts of a file, against which a worker's answer is checked. Reads the two
 * headers that the kernel reads when it maps the file, without libelf.
 */

#define MAX_EXECUTABLE_PARTS 64

struct executable_parts {
	struct executable_part {
		__u64 vaddr, offset, size;
	} list[MAX_EXECUTABLE_PARTS];
	size_t n;
	__u64 file_bytes;
};

/* Reads the parts. Returns 0; -ENOEXEC if it is no 64-bit ELF file; -ENOMEM or the error of
 * reading. */
int executable_parts__read(int fd, struct executable_parts *out);

/* Returns whether code is at @vaddr, and at @offset in the file. */
bool executable_parts__have(const struct executable_parts *parts, __u64 vaddr, __u64 offset);
/* Returns whether code is at @offset in the file. */
bool executable_parts__have_offset(const struct executable_parts *parts, __u64 offset);

#endif
