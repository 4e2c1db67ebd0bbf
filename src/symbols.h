/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names for places in code, from ELF symbol tables and separate debug files on this machine. */
#ifndef ALLOCPROF_SYMBOLS_H
#define ALLOCPROF_SYMBOLS_H

#include <linux/types.h>

struct profile;
struct symbols;

/* NULL without memory. */
struct symbols *symbols__new(void);
void symbols__free(struct symbols *symbols);

/*
 * Announces the file of module @id (not 0, once each): @fd, which is duplicated, or, where it is -1,
 * @path. @path also tells where to look for the debug file. Nothing is read before the first name is
 * asked for. 0, -EEXIST, -EINVAL, -ENOMEM or what dup() said.
 */
int symbols__add_module(struct symbols *symbols, __u32 id, int fd, const char *path);

/*
 * The symbol, as linked, of the function that covers ELF virtual address @vaddr; @name is the
 * caller's to free. -ENOENT where none covers it or the file cannot be used, -ENOMEM.
 */
int symbols__name(struct symbols *symbols, __u32 module, __u64 vaddr, char **name);

/* Gives every frame that has none yet its function, by the linker's name; profile__demangle() does the
 * rest. 0 or -ENOMEM. */
int profile__symbolize(struct profile *profile, struct symbols *symbols);

#endif
