/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads and writes all of what is asked for, by as many system calls as it takes. */
#ifndef ALLOCPROF_WHOLE_IO_H
#define ALLOCPROF_WHOLE_IO_H

#include <linux/types.h>
#include <stddef.h>

/* Reads @size bytes by read(2). 0, -ENODATA: the file ends before; or what read(2) says. After an error it is undefined
 * what is in @to. */
int fd__read_all(int fd, void *to, size_t size);

/* Likewise at @offset, by pread(2), which says -EINVAL of an offset that no file has. */
int fd__read_all_at(int fd, void *to, size_t size, __u64 offset);

/* Writes @size bytes by write(2). 0 or a negative errno. */
int fd__write_all(int fd, const void *from, size_t size);

/* Likewise at @offset, by pwrite(2). */
int fd__write_all_at(int fd, const void *from, size_t size, __u64 offset);

#endif
