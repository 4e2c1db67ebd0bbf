/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the user's terminal can show. */
#ifndef ALLOCPROF_TERMINAL_OF_H
#define ALLOCPROF_TERMINAL_OF_H

#include <stdio.h>

#include "terminal.h"

/* The terminal that @to, or the pager behind it, writes to; plain if there is none. */
struct terminal terminal__of(FILE *to);

#endif
