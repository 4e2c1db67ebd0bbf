/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detects well-known allocators in stripped programs. */
#ifndef ALLOCPROF_HIDDEN_ALLOCATOR_H
#define ALLOCPROF_HIDDEN_ALLOCATOR_H

/*
 * Name of the allocator in the dynamically linked program @fd whose symbols were stripped, by the
 * text of its messages; NULL if there is none, or the file has a symbol table.
 */
const char *hidden_allocator__find(int fd, const char *path);

#endif
