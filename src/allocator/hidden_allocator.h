/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detects well-known allocators in stripped programs. */
#ifndef ALLOCPROF_HIDDEN_ALLOCATOR_H
#define ALLOCPROF_HIDDEN_ALLOCATOR_H

#include <stddef.h>

/*
 * Name of the allocator in the dynamically linked program @fd whose symbols were stripped, by the
 * text of its messages; NULL if there is none, or the file has a symbol table.
 */
const char *hidden_allocator__find(int fd, const char *path);

/* The number of a name from above; and back, NULL if there is none. */
size_t hidden_allocator__number(const char *name);
const char *hidden_allocator__at(size_t number);

#endif
