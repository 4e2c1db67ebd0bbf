/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of a look-up. */
#ifndef ALLOCPROF_SYMBOLS_INTERNAL_H
#define ALLOCPROF_SYMBOLS_INTERNAL_H

#include "hash_table.h"
#include "symbols.h"

struct named_module {
	__u32 id;
	int fd;
	char *path, *build_id;
	char *text;	/* NULL: nothing was looked up */
	bool is_unread; /* the process that read the file failed; @text says how */
};

struct symbols {
	struct symbols_options options;
	struct named_module *modules;
	size_t n_modules;
	struct hash_table index;
	char fetch_problem[512]; /* "": none */
};

/* NULL: there is none. */
struct named_module *symbols__find_module(const struct symbols *symbols, __u32 id);

#endif
