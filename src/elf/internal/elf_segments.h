/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file-backed parts of a file's PT_LOAD segments, for both readers of program headers. */
#ifndef ALLOCPROF_ELF_SEGMENTS_H
#define ALLOCPROF_ELF_SEGMENTS_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Linkers write four or five. */
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

/* Adds what a file of @file_size bytes has of the segment @header, if anything. 0; -ENOEXEC: there are MAX_SEGMENTS already. */
int elf_segments__add(struct elf_segments *segments, const Elf64_Phdr *header, __u64 file_size);

/* 0 or -ENOENT: no segment has it. */
int elf_segments__vaddr_to_offset(const struct elf_segments *segments, __u64 vaddr, __u64 *offset);
int elf_segments__offset_to_vaddr(const struct elf_segments *segments, __u64 offset, __u64 *vaddr);

#endif
