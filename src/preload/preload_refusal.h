/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Why the library cannot be preloaded into the command itself. What that executes, the library looks at. */
#ifndef ALLOCPROF_PRELOAD_REFUSAL_H
#define ALLOCPROF_PRELOAD_REFUSAL_H

#include <stdbool.h>

struct parser;

/* enum inside_refusal; -1 if the library can be preloaded into the command, or its file is not found. @parser reads it. */
int preload_refusal__of(struct parser *parser, char *const argv[], char *const *environment);

#endif
