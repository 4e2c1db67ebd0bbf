/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demanglers that hostile names can crash or keep busy forever; they run in a child process. */
#ifndef ALLOCPROF_DEMANGLE_ISOLATED_H
#define ALLOCPROF_DEMANGLE_ISOLATED_H

#include <stdbool.h>
#include <stddef.h>

struct isolated_name {
	const char *symbol;	/* one line */
	char *name, *full_name; /* NULL if unknown; owned by the caller */
};

/* Whether @symbol has the prefix of D or Swift. */
bool demangle_isolated__knows(const char *symbol);

/*
 * Fills in the names of @n symbols, in a child process. A name that crashes the child, or whose
 * text exceeds @max_size bytes, stays NULL, as do Swift's if its runtime library cannot be loaded.
 * 0 or -ENOMEM.
 */
int demangle_isolated__run(struct isolated_name *names, size_t n, size_t max_size);

#endif
