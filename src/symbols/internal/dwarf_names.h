/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of functions in DWARF. */
#ifndef ALLOCPROF_DWARF_NAMES_H
#define ALLOCPROF_DWARF_NAMES_H

#include <elfutils/libdw.h>

#include "hash_table.h"

struct arena;

/* Number of DIEs that may still be read, which bounds the work for hostile files. */
struct dwarf_budget {
	__u64 dies;
};

/* Cached names; valid as long as the Dwarf is open. */
struct dwarf_names {
	struct arena *arena;
	struct dwarf_budget *budget;
	struct hash_table index;
	struct known_name *known;
	size_t n_known, room;
};

void dwarf_names__release(struct dwarf_names *names);

/* The name of a function's DIE, concrete, inlined or abstract: its linkage name, else its name
 * qualified by scopes if the language has them. "" if it has none, NULL on ENOMEM. In the arena. */
const char *dwarf_names__symbol(struct dwarf_names *names, Dwarf_Die *die);

/* Step to a DIE's first child and to its sibling; never backwards, whatever the file says. False at
 * the end, on errors, and when the budget is used up. */
bool dwarf_die__child(Dwarf_Die *die, Dwarf_Die *child, struct dwarf_budget *budget);
bool dwarf_die__next(Dwarf_Die *die, struct dwarf_budget *budget);

#endif
