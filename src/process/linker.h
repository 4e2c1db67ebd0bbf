/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Constants that the dynamic linkers for this processor have built in; linker_<processor>.c defines them. */
#ifndef ALLOCPROF_LINKER_H
#define ALLOCPROF_LINKER_H

#include <linux/types.h>

/* Flags in ld.so.cache of a library for this processor and glibc. */
extern const __s32 linker_cache_flags;

/* $PLATFORM */
extern const char linker_platform[];

/* Values of $LIB, as Debian and as others build glibc; ends with NULL. */
extern const char *const linker_lib_names[];

/* glibc's directories that are searched last, Debian's first; ends with NULL. */
extern const char *const linker_directories[];

/* musl's linker, and the file that says where it searches. */
extern const char linker_musl[];
extern const char linker_musl_path_file[];

/* Returns the subdirectories of glibc-hwcaps whose libraries this processor runs, the best first;
 * ends with NULL. */
const char *const *linker__processor_levels(void);

#endif
