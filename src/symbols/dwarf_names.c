// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds names of functions in DWARF. */
#include "dwarf_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "array.h"

/* A concrete function leads to its declaration in two steps, over the abstract instance. */
#define MAX_ORIGINS 16

#define MAX_SCOPES 64

/* How many bytes libdw reads in the time that it takes for one DIE. */
#define BYTES_PER_DIE 32

/* Longest name that is used. */
#define MAX_NAME_SIZE 8192

struct known_name {
	const void *die;
	const char *symbol;
};

void dwarf_names__release(struct dwarf_names *names)
{
	hash_table__release(&names->index);
	free(names->known);
	names->known = NULL;
	names->n_known = names->room = 0;
}

static bool spend(struct dwarf_budget *budget)
{
	if (!budget->dies)
		return false;
	budget->dies--;
	return true;
}

bool dwarf_die__child(Dwarf_Die *die, Dwarf_Die *child, struct dwarf_budget *budget)
{
	return spend(budget) && !dwarf_child(die, child) &&
	       (const char *)child->addr > (const char *)die->addr;
}

bool dwarf_die__next(Dwarf_Die *die, struct dwarf_budget *budget)
{
	const char *was = die->addr;
	size_t skipped;

	if (!spend(budget) || dwarf_siblingof(die, die) || (const char *)die->addr <= was)
		return false;
	/* Without DW_AT_sibling libdw reads everything in between, which is charged to the budget. */
	skipped = ((const char *)die->addr - was) / BYTES_PER_DIE;
	budget->dies -= skipped < budget->dies ? skipped : budget->dies;
	return true;
}

/* Follows DW_AT_specification or DW_AT_abstract_origin of @die. */
static bool step_to_origin(Dwarf_Die *die)
{
	static const unsigned int links[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Attribute attribute;

	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (dwarf_attr(die, links[i], &attribute))
			return dwarf_formref_die(&attribute, die);
	return false;
}

static const char *linkage_name(Dwarf_Die die)
{
	for (int i = 0; i < MAX_ORIGINS; i++) {
		const char *name = dwarf_sound__string(&die, DW_AT_linkage_name);

		if (!name)
			name = dwarf_sound__string(&die, DW_AT_MIPS_linkage_name);
		if (name && *name)
			return name;
		if (!step_to_origin(&die))
			break;
	}
	return NULL;
}

/* Replaces @die by its declaration, whose enclosing scopes qualify the name. */
static const char *plain_name(Dwarf_Die *die)
{
	const char *name = NULL;

	for (int i = 0; i < MAX_ORIGINS; i++) {
		Dwarf_Die origin = *die;

		if (!name)
			name = dwarf_sound__string(die, DW_AT_name);
		if (!step_to_origin(&origin))
			break;
		*die = origin;
	}
	return name;
}

static bool has_scopes(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_Rust:
	case DW_LANG_D:
	case DW_LANG_Swift:
	case DW_LANG_ObjC_plus_plus:
	/* Codes of C++17, C++20 and Zig, as DWARF 6 numbers them. */
	case 0x2a:
	case 0x2b:
	case 0x27:
		return true;
	}
	return false;
}

static const char *scope_name(Dwarf_Die *die, const char *of)
{
	const char *name;

	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		name = dwarf_sound__string(die, DW_AT_name);
		return name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		name = dwarf_sound__string(die, DW_AT_name);
		if (name)
			return name;
		return strcmp(of, "operator()") ? "{unnamed}" : "{lambda}";
	case DW_TAG_module:
		return dwarf_sound__string(die, DW_AT_name);
	case DW_TAG_subprogram: {
		Dwarf_Die declaration = *die;

		return plain_name(&declaration);
	}
	}
	return NULL;
}

/* Writes "scope::scope::" for the scopes around @die, whose own name is @of; searches them from the
 * unit down, because DIEs have no parent links. */
static size_t write_scopes(struct dwarf_names *names, Dwarf_Die *unit, const Dwarf_Die *die,
			   const char *of, char *text, size_t room)
{
	Dwarf_Die outer = *unit, at;
	size_t size = 0;

	for (int i = 0; i < MAX_SCOPES && dwarf_die__child(&outer, &at, names->budget); i++) {
		bool found = false;
		const char *name;
		size_t len;

		do {
			if ((const char *)at.addr > (const char *)die->addr)
				break;
			outer = at;
			found = true;
		} while (dwarf_die__next(&at, names->budget));
		if (!found || outer.addr == die->addr)
			break;
		name = scope_name(&outer, of);
		len = name ? strnlen(name, room) : 0;
		if (!len || len + 3 > room - size)
			continue;
		memcpy(text + size, name, len);
		memcpy(text + size + len, "::", 2);
		size += len + 2;
	}
	return size;
}

/* Returns whether the unit is C, where a linkage name is an alias from the source, such as
 * __GI_strlen for strlen. */
static bool is_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x2c: /* C17, as DWARF 6 numbers it */
		return true;
	}
	return false;
}

static const char *make_symbol(struct dwarf_names *names, Dwarf_Die die)
{
	char text[MAX_NAME_SIZE];
	const char *name = NULL;
	bool has_unit;
	Dwarf_Die unit;
	size_t size, len;

	has_unit = dwarf_diecu(&die, &unit, NULL, NULL);
	if (!has_unit || !is_c(&unit))
		name = linkage_name(die);
	if (name)
		return arena__string(names->arena, name, MAX_NAME_SIZE);
	name = plain_name(&die);
	if (!name || !*name)
		return "";
	/* The declaration may be in another unit. */
	if (!has_unit || !dwarf_diecu(&die, &unit, NULL, NULL) || !has_scopes(&unit))
		return arena__string(names->arena, name, MAX_NAME_SIZE);
	size = write_scopes(names, &unit, &die, name, text, sizeof(text) / 2);
	len = strnlen(name, sizeof(text) - size);
	memcpy(text + size, name, len);
	return arena__string(names->arena, text, size + len);
}

static bool match_die(const void *owner, __u32 id, const void *key)
{
	return ((const struct dwarf_names *)owner)->known[id - 1].die == key;
}

const char *dwarf_names__symbol(struct dwarf_names *names, Dwarf_Die *die)
{
	__u64 hash = hash_mix(names->arena->seed, (__u64)(uintptr_t)die->addr);
	__u32 id = hash_table__find(&names->index, hash, match_die, names, die->addr);
	const char *symbol;

	if (id)
		return names->known[id - 1].symbol;
	symbol = make_symbol(names, *die);
	if (!symbol)
		return NULL;
	if (array__reserve(&names->known, &names->room, names->n_known + 1, sizeof(*names->known)))
		return NULL;
	names->known[names->n_known] = (struct known_name){ die->addr, symbol };
	if (hash_table__insert(&names->index, hash, names->n_known + 1))
		return NULL;
	names->n_known++;
	return symbol;
}
