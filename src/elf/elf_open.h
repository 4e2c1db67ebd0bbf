/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens ELF files whose tables say no more than the file can have. */
#ifndef ALLOCPROF_ELF_OPEN_H
#define ALLOCPROF_ELF_OPEN_H

#include <libelf.h>
#include <linux/types.h>

/*
 * As elf_begin(3), for files that others have written: what all sections and segments of one kind have together is not
 * much more than the file, so that reading each of them once costs no more than that; holes of a sparse file do not
 * count. Compressed sections unpack to a limited multiple, and tables of strings end with one. -ENOEXEC: no ELF file, or one of these does not hold.
 */
int elf_open__begin(int fd, Elf_Cmd command, Elf **out);

/* How much memory the contents of the file behind @fd may take when they are unpacked. */
__u64 elf_open__most_unpacked_bytes(int fd);

#endif
