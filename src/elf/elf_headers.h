/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads headers and segments of ELF files without libelf: for the process with privileges, which parses no more of them. */
#ifndef ALLOCPROF_ELF_HEADERS_H
#define ALLOCPROF_ELF_HEADERS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct elf_headers;

/*
 * The process with privileges has to know where the segments of a file in stacks are, and its build id.
 * Without libelf: it reads the ELF header, the headers of segments and sections, and notes, each with a bound, and
 * nothing that these point to, but for the names of sections where a checksum is looked for. It says the same as
 * elf_file.h.
 */

/* 0, with *@out the caller's; -ENOEXEC: no program or library of 64 bits for this processor; -ENOMEM, or the error of
 * reading. @fd stays the caller's. */
int elf_headers__read(int fd, struct elf_headers **out);
/* The same also for ELF files that are not linked, such as the common files into which dwz puts debug information. */
int elf_headers__read_any(int fd, struct elf_headers **out);
/* Accepts NULL. */
void elf_headers__free(struct elf_headers *headers);

/* Lower-case hex, "" if there is none. */
const char *elf_headers__build_id(const struct elf_headers *headers);
/* Virtual address of the entry, 0 if there is none. */
__u64 elf_headers__entry(const struct elf_headers *headers);
/* 0 or -ENOENT: no segment has it. */
int elf_headers__vaddr_to_offset(const struct elf_headers *headers, __u64 vaddr, __u64 *offset);
int elf_headers__offset_to_vaddr(const struct elf_headers *headers, __u64 offset, __u64 *vaddr);

/* The checksum that the file has of its debug file, in .gnu_debuglink. 0, -ENOENT: it has none; -ENOEXEC,
 * -ENOMEM, or the error of reading. */
int elf_headers__debuglink_checksum(int fd, __u32 *checksum);

/*
 * Finds the executable parts of a file, to check a worker's answer against. It reads the two headers that the kernel
 * reads when it maps the file, and does not use libelf.
 */

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
