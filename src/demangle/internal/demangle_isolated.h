/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Demanglers in a worker: hostile names can crash them or keep them busy forever. */
#ifndef ALLOCPROF_DEMANGLE_ISOLATED_H
#define ALLOCPROF_DEMANGLE_ISOLATED_H

#include <stdbool.h>
#include <stddef.h>

struct isolated_name {
	const char *symbol;	/* without clone suffix */
	char *name, *full_name; /* NULL if unknown; owned by the caller */
};

/* Whether @symbol has the prefix of D or Swift. */
bool demangle_isolated__knows(const char *symbol);

/*
 * Fills in the names of @n symbols of any language. One that crashes the worker, or whose text is too long, stays NULL,
 * as do Swift's if its runtime library cannot be loaded. 0 or -ENOMEM.
 */
int demangle_isolated__run(struct isolated_name *names, size_t n);

#endif
