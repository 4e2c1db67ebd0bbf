/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_WRITE_ALL_H
#define ALLOCPROF_WRITE_ALL_H

#include <linux/types.h>
#include <stddef.h>

/* Writes @size bytes to @fd by as many calls of write(2) as it takes. 0 or a negative errno. */
int fd__write_all(int fd, const void *from, size_t size);

/* Likewise at @offset, by pwrite(2). */
int fd__write_all_at(int fd, const void *from, size_t size, __u64 offset);

#endif
