/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recognises suffixes that compilers append to the symbols of cloned or split functions. */
#ifndef ALLOCPROF_CLONE_SUFFIX_H
#define ALLOCPROF_CLONE_SUFFIX_H

#include <stddef.h>

/* Returns the offset of the suffixes, such as ".isra.0" or ".cold", at the end of the @len bytes
 * of @symbol; @len if there are none. */
size_t clone_suffix__start(const char *symbol, size_t len);

#endif
