/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads what an ELF file says of itself from memory, where the process has it mapped: neither the dynamic linker's
 * list, which may be changing, nor the file, which may be out of reach, is needed. */
#ifndef ALLOCPROF_INSIDE_IMAGE_H
#define ALLOCPROF_INSIDE_IMAGE_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>

#include "maps.h"

struct image {
	__u64 load; /* address minus virtual address in the file */
	__u64 entry;
	__u64 start, end; /* the mapping of the file's beginning */
	const Elf64_Phdr *segments;
	__u32 n_segments;
};

/* Finds the image of the file whose code is mapped at @code. @buffer is working memory of @size bytes. Returns
 * false if it is not mapped as a dynamic linker maps it. */
bool image__find(const struct mapping *code, struct image *out, void *buffer, __u32 size);

/* Returns the first segment of the type, or NULL. */
const Elf64_Phdr *image__segment(const struct image *image, __u32 type);

/* Copies the build id, if it has at most @size bytes. Returns how many; 0: there is none. */
__u32 image__build_id(const struct image *image, __u8 *out, __u32 size);

#endif
