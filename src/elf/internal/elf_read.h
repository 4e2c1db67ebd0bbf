/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_ELF_READ_H
#define ALLOCPROF_ELF_READ_H

#include <errno.h>
#include <linux/types.h>
#include <stddef.h>

#include "file.h"

/* Reads what the file's headers say is there: 0, -ENOEXEC: it is not; or what pread(2) says. */
static inline int elf_bytes__read(int fd, void *to, size_t size, __u64 offset)
{
	int err = fd__read_all_at(fd, to, size, offset);

	return err == -ENODATA || err == -EINVAL ? -ENOEXEC : err;
}

#endif
