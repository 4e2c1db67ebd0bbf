/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Well-known allocators that are linked into a program whose symbols were stripped. */
#ifndef ALLOCPROF_HIDDEN_ALLOCATOR_H
#define ALLOCPROF_HIDDEN_ALLOCATOR_H

/*
 * The name of the allocator that the dynamically linked program behind @fd contains and whose functions have no
 * names in it; NULL where there is none, or the file has a symbol table. Told by the messages that it would print.
 */
const char *hidden_allocator__find(int fd, const char *path);

#endif
