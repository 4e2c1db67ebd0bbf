/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What compilers put behind the symbol of a function that they have made out of another. */
#ifndef ALLOCPROF_CLONE_SUFFIX_H
#define ALLOCPROF_CLONE_SUFFIX_H

#include <stddef.h>

/* Where the marks begin with which the @len bytes of @symbol end, such as ".isra.0", ".cold" or several of them:
 * @len if there are none. */
size_t clone_suffix__start(const char *symbol, size_t len);

#endif
