/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detects well-known allocators in stripped programs, and in libraries that do not export them. */
#ifndef ALLOCPROF_HIDDEN_ALLOCATOR_H
#define ALLOCPROF_HIDDEN_ALLOCATOR_H

#include <stddef.h>

/*
 * Name of the allocator in the file @fd, by the text of its messages, where its functions have no names: of a dynamically
 * linked program whose symbols were stripped, or of a library that defines no malloc. NULL if there is none.
 */
const char *hidden_allocator__find(int fd, const char *path);

/* The number of a name from above; and back, NULL if there is none. */
size_t hidden_allocator__number(const char *name);
const char *hidden_allocator__at(size_t number);

#endif
