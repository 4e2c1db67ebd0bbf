/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads /etc/ld.so.cache, in which ldconfig(8) lists the libraries of a system for glibc's dynamic linker. */
#ifndef ALLOCPROF_LINKER_CACHE_H
#define ALLOCPROF_LINKER_CACHE_H

struct linker_cache;

/* Reads the cache at @path, whose content is not trusted. -ENOENT, -EINVAL: none in a known format; -EFBIG. */
int linker_cache__open(const char *path, struct linker_cache **out);
/* Accepts NULL. */
void linker_cache__free(struct linker_cache *cache);

/* The path of the library @name that this processor should use, owned by @cache; NULL if there is none.
 * Accepts NULL. */
const char *linker_cache__find(const struct linker_cache *cache, const char *name);

#endif
