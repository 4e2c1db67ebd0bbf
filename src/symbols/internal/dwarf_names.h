/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the functions of a DWARF file are called. */
#ifndef ALLOCPROF_DWARF_NAMES_H
#define ALLOCPROF_DWARF_NAMES_H

#include <elfutils/libdw.h>

#include "hash_table.h"

struct arena;

/* DIEs that hostile debug information makes us look at, counted down; none is left at 0. */
struct dwarf_budget {
	__u64 dies;
};

/* Names that were asked for before; valid as long as the Dwarf is open. */
struct dwarf_names {
	struct arena *arena;
	struct dwarf_budget *budget;
	struct hash_table index;
	struct known_name *known;
	size_t n_known, room;
};

void dwarf_names__release(struct dwarf_names *names);

/*
 * The name of a function's, an inlined or an abstract function's DIE: as the linker knows it, or,
 * where nobody tells and the language has scopes, with their names in front. "" where it has none,
 * NULL without memory. In the arena.
 */
const char *dwarf_names__symbol(struct dwarf_names *names, Dwarf_Die *die);

/*
 * Steps from a DIE to its first child and from one to the next, forward only, whatever the file
 * says. False at the end, when something is wrong, and when the budget is used up.
 */
bool dwarf_die__child(Dwarf_Die *die, Dwarf_Die *child, struct dwarf_budget *budget);
bool dwarf_die__next(Dwarf_Die *die, struct dwarf_budget *budget);

#endif
