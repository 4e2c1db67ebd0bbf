/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names as folded stacks have them: allocprof-folded(1) tells which characters are replaced. */
#ifndef ALLOCPROF_FOLDED_NAME_H
#define ALLOCPROF_FOLDED_NAME_H

/* A safe copy of @name that ends with @terminator, a character that no safe name holds. To be freed; NULL
 * without memory. */
char *folded_name__new(const char *name, char terminator);

#endif
