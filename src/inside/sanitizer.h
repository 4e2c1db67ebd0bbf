/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a program has a sanitizer (-fsanitize=address, thread, leak and so on), whose allocator must be the first. */
#ifndef ALLOCPROF_INSIDE_SANITIZER_H
#define ALLOCPROF_INSIDE_SANITIZER_H

#include <elf.h>
#include <stdbool.h>

/* By what the file of a dynamically linked program needs and defines. */
bool sanitizer__is_in(int fd, const Elf64_Ehdr *header);

/* Whether one of the libraries in a value of LD_PRELOAD is a sanitizer's. */
bool sanitizer__is_preloaded(const char *value);

#endif
