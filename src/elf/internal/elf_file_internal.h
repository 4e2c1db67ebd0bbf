/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Segments, header reading, and the parsed file, for the readers of ELF files. */
#ifndef ALLOCPROF_ELF_FILE_INTERNAL_H
#define ALLOCPROF_ELF_FILE_INTERNAL_H

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "file.h"

/* Largest number of segments; linkers make four or five. */
#define MAX_SEGMENTS 64

struct elf_segment {
	__u64 vaddr;
	__u64 offset; /* of the file */
	__u64 size;   /* bytes that are backed by the file, and inside of it */
	bool executable;
};

struct elf_segments {
	size_t n;
	struct elf_segment list[MAX_SEGMENTS];
};

/* Adds the part of the segment @header that a file of @file_size bytes has, if any. Returns 0;
 * -ENOEXEC if there are MAX_SEGMENTS already. */
int elf_segments__add(struct elf_segments *segments, const Elf64_Phdr *header, __u64 file_size);

/* Translates an address. Returns 0, or -ENOENT if no segment contains it. */
int elf_segments__vaddr_to_offset(const struct elf_segments *segments, __u64 vaddr, __u64 *offset);

/* Reads bytes to which the file's headers refer. Returns 0; -ENOEXEC if the file ends before them;
 * or the error of pread(2). */
static inline int elf_bytes__read(int fd, void *to, size_t size, __u64 offset)
{
	int err = fd__read_all_at(fd, to, size, offset);

	return err == -ENODATA || err == -EINVAL ? -ENOEXEC : err;
}

/* The parsed ELF file, for the files that implement it. */

/* Largest code of a file; the largest browsers have 0.3 GiB. */
#define MAX_TEXT (1ULL << 30)

/* Largest number of FDEs. */
#define MAX_FDES (16ULL << 20)

#define MAX_BUILD_ID 64

struct elf_file {
	int fd;
	char *path;
	Elf *elf;
	GElf_Ehdr ehdr;
	__u64 file_size;
	struct elf_segments segments;
	unsigned char *code[MAX_SEGMENTS]; /* code of each segment, NULL until needed */
	__u64 eh_frame_hdr_vaddr;
	__u64 eh_frame_hdr_size;
	bool has_dynamic;
	char interpreter[256];
	char build_id[2 * MAX_BUILD_ID + 1];
};

#endif
