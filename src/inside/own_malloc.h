/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ALLOCPROF_INSIDE_OWN_MALLOC_H
#define ALLOCPROF_INSIDE_OWN_MALLOC_H

#include <elf.h>
#include <stdbool.h>

/* Whether the program in the file @fd defines malloc for all of its libraries, or for itself by the name of an allocator
 * (je_malloc). */
bool program__has_malloc(int fd, const Elf64_Ehdr *header);

#endif
