/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demanglers that a name made up for the purpose can crash, or keep busy forever. */
#ifndef ALLOCPROF_DEMANGLE_ISOLATED_H
#define ALLOCPROF_DEMANGLE_ISOLATED_H

#include <stdbool.h>
#include <stddef.h>

struct isolated_name {
	const char *symbol;	/* one line */
	char *name, *full_name; /* NULL where they are not known; owned by the caller */
};

/* Whether there is one for @symbol: it begins like those of D or Swift. */
bool demangle_isolated__knows(const char *symbol);

/*
 * Fills in the names of @n symbols, in a child process. What it dies of, and names longer than
 * @max_size bytes, stay NULL, as does Swift where its runtime's library is not installed or cannot
 * be loaded here. 0 or -ENOMEM.
 */
int demangle_isolated__run(struct isolated_name *names, size_t n, size_t max_size);

#endif
