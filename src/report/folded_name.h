/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Escapes names for folded stacks; allocprof-folded(1) lists the replaced characters. */
#ifndef ALLOCPROF_FOLDED_NAME_H
#define ALLOCPROF_FOLDED_NAME_H

/* A safe copy of @name followed by @terminator, a character that no safe name contains. To be
 * freed; NULL on ENOMEM. */
char *folded_name__new(const char *name, char terminator);

#endif
