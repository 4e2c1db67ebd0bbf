/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parsed ELF file, for the files that implement it. */
#ifndef ALLOCPROF_ELF_FILE_INTERNAL_H
#define ALLOCPROF_ELF_FILE_INTERNAL_H

#include <gelf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "elf_segments.h"

/* The largest browsers have 0.3 GiB. */
#define MAX_TEXT (1ULL << 30)

/* Limit of FDEs. */
#define MAX_FDES (16ULL << 20)

#define MAX_BUILD_ID 64

struct elf_file {
	int fd;
	char *path;
	Elf *elf;
	GElf_Ehdr ehdr;
	__u64 file_size;
	struct elf_segments segments;
	unsigned char *code[MAX_SEGMENTS]; /* of each segment, NULL until needed */
	__u64 eh_frame_hdr_vaddr;
	__u64 eh_frame_hdr_size;
	bool has_dynamic;
	char interpreter[256];
	char build_id[2 * MAX_BUILD_ID + 1];
};

/* The value of dynamic entry @tag, or @missing. */
__u64 elf_file__dynamic_value(const struct elf_file *file, GElf_Sxword tag, __u64 missing);

#endif
