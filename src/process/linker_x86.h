/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the dynamic linkers for x86-64 have built in. */
#ifndef ALLOCPROF_LINKER_X86_H
#define ALLOCPROF_LINKER_X86_H

#include <linux/types.h>

/* Flags in ld.so.cache of a library for this processor and glibc: FLAG_ELF_LIBC6 |
 * FLAG_X8664_LIB64. */
#define LINKER_CACHE_FLAGS 0x0303

/* $PLATFORM */
#define LINKER_PLATFORM "x86_64"

/* Values of $LIB, as Debian and as others build glibc; ends with NULL. */
extern const char *const linker_lib_names[];

/* glibc's directories that are searched last, Debian's first; ends with NULL. */
extern const char *const linker_directories[];

#define MUSL_LINKER    "/lib/ld-musl-x86_64.so.1"
#define MUSL_PATH_FILE "/etc/ld-musl-x86_64.path"

/* Returns the subdirectories of glibc-hwcaps whose libraries this processor runs, the best first;
 * ends with NULL. */
const char *const *linker__processor_levels(void);

#endif
