/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out why the library cannot be preloaded into the command itself. For programs that the
 * command executes the library finds that out. */
#ifndef ALLOCPROF_PRELOAD_REFUSAL_H
#define ALLOCPROF_PRELOAD_REFUSAL_H

#include <stdbool.h>

struct parser;

/* Returns an enum inside_refusal, or -1 if the library can be preloaded into the command, or the
 * command's file is not found. @parser reads the file. */
int preload_refusal__of(struct parser *parser, char *const argv[], char *const *environment);

#endif
