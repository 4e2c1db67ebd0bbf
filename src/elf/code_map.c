// SPDX-License-Identifier: GPL-3.0-or-later
#include "code_map.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "disasm.h"
#include "elf_file.h"
#include "flow.h"

#define MAX_TEXTS 16

struct symbol {
	const char *name;
	__u64 value, size;
	bool is_choice;
};

struct code_map {
	struct elf_file *elf;
	struct elf_text texts[MAX_TEXTS];
	size_t n_texts;
	__u64 *starts;	/* starts of functions and of their split-off parts; sorted, unique */
	bool *is_entry; /* by start: it begins a function, since a symbol or a call refers to it */
	size_t n_starts;
	struct symbol *symbols; /* sorted by value */
	size_t n_symbols, symbols_room;
	struct symbol *exports; /* sorted by name */
	size_t n_exports, exports_room;
	struct elf_slot *slots; /* sorted by vaddr */
	size_t n_slots, slots_room;
};

static int compare_u64(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

static int compare_names(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int compare_slots(const void *a, const void *b)
{
	const struct elf_slot *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* Returns the index of the last start at or before @vaddr; n_starts: there is none. */
static size_t find_start(const struct code_map *map, __u64 vaddr)
{
	size_t low = ARRAY_LOWER_BOUND(map->n_starts, i, map->starts[i] <= vaddr);

	return low ? low - 1 : map->n_starts;
}

static bool is_entry(const struct code_map *map, __u64 vaddr)
{
	size_t at = find_start(map, vaddr);

	return at < map->n_starts && map->starts[at] == vaddr && map->is_entry[at];
}

/* Returns whether the name is that of a split-off part: the function's name, followed by one of
 * these. */
static bool is_part(const char *name)
{
	return strstr(name, ".cold") || strstr(name, "_omp_fn");
}

static int add_symbol(const struct elf_symbol *symbol, void *arg)
{
	struct code_map *map = arg;

	if ((symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC) || is_part(symbol->name))
		return 0;
	if (array__reserve(&map->symbols, &map->symbols_room, map->n_symbols + 1,
			   sizeof(*map->symbols)))
		return -ENOMEM;
	map->symbols[map->n_symbols++] = (struct symbol){
		.name = symbol->name,
		.value = symbol->value,
		.size = symbol->size,
		.is_choice = symbol->type == STT_GNU_IFUNC,
	};
	return 0;
}

static int add_export(const struct elf_symbol *symbol, void *arg)
{
	struct code_map *map = arg;

	if (!symbol->is_default || (symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC))
		return 0;
	if (array__reserve(&map->exports, &map->exports_room, map->n_exports + 1,
			   sizeof(*map->exports)))
		return -ENOMEM;
	map->exports[map->n_exports++] = (struct symbol){
		.name = symbol->name,
		.value = symbol->value,
		.is_choice = symbol->type == STT_GNU_IFUNC,
	};
	return 0;
}

static int add_slot(const struct elf_slot *slot, void *arg)
{
	struct code_map *map = arg;

	if (array__reserve(&map->slots, &map->slots_room, map->n_slots + 1, sizeof(*map->slots)))
		return -ENOMEM;
	map->slots[map->n_slots++] = *slot;
	return 0;
}

static void mark_called(const struct disasm_branch *branch, void *arg)
{
	struct code_map *map = arg;
	size_t at;

	if (!branch->is_call)
		return;
	at = find_start(map, branch->target);
	if (at < map->n_starts && map->starts[at] == branch->target)
		map->is_entry[at] = true;
}

/* Adds the starts. Symbols are starts, too, since some code has no unwind table. */
static int add_starts(struct code_map *map)
{
	_cleanup_(free_ptr) __u64 *fdes = NULL;
	size_t n_fdes, n = 0;
	int err = elf_file__fde_starts(map->elf, &fdes, &n_fdes);

	if (err)
		return err;
	map->starts = calloc(n_fdes + map->n_symbols + 1, sizeof(*map->starts));
	map->is_entry = calloc(n_fdes + map->n_symbols + 1, sizeof(*map->is_entry));
	if (!map->starts || !map->is_entry)
		return -ENOMEM;
	if (n_fdes)
		memcpy(map->starts, fdes, n_fdes * sizeof(*fdes));
	for (size_t i = 0; i < map->n_symbols; i++)
		map->starts[n_fdes + i] = map->symbols[i].value;
	map->n_starts = n_fdes + map->n_symbols;
	qsort(map->starts, map->n_starts, sizeof(*map->starts), compare_u64);
	for (size_t i = 0; i < map->n_starts; i++)
		if (!n || map->starts[n - 1] != map->starts[i])
			map->starts[n++] = map->starts[i];
	map->n_starts = n;
	for (size_t i = 0; i < map->n_symbols; i++)
		map->is_entry[find_start(map, map->symbols[i].value)] = true;
	for (size_t i = 0; i < map->n_texts; i++)
		disasm__scan_branches(map->texts[i].code, map->texts[i].size, map->texts[i].vaddr,
				      mark_called, map);
	return 0;
}

int code_map__new(struct elf_file *elf, struct code_map **out)
{
	struct code_map *map = calloc(1, sizeof(*map));
	int err = -ENOMEM;

	if (!map) {
		elf_file__free(elf);
		return -ENOMEM;
	}
	map->elf = elf;
	while (map->n_texts < MAX_TEXTS &&
	       !elf_file__text(elf, map->n_texts, &map->texts[map->n_texts]))
		map->n_texts++;
	err = elf_file__for_each_symbol(elf, add_symbol, map);
	if (!err)
		err = elf_file__for_each_further_symbol(elf, add_symbol, map);
	if (!err)
		err = elf_file__for_each_symbol(elf, add_export, map);
	if (!err)
		err = elf_file__for_each_slot(elf, add_slot, map);
	if (!err) {
		if (map->n_exports)
			qsort(map->exports, map->n_exports, sizeof(*map->exports), compare_names);
		if (map->n_symbols)
			qsort(map->symbols, map->n_symbols, sizeof(*map->symbols), compare_symbols);
		if (map->n_slots)
			qsort(map->slots, map->n_slots, sizeof(*map->slots), compare_slots);
		err = add_starts(map);
	}
	if (err) {
		code_map__free(map);
		return err;
	}
	*out = map;
	return 0;
}

void code_map__free(struct code_map *map)
{
	if (!map)
		return;
	free(map->starts);
	free(map->is_entry);
	free(map->symbols);
	free(map->exports);
	free(map->slots);
	elf_file__free(map->elf);
	free(map);
}

static const struct elf_text *find_text(const struct code_map *map, __u64 vaddr)
{
	for (size_t i = 0; i < map->n_texts; i++)
		if (vaddr - map->texts[i].vaddr < map->texts[i].size)
			return &map->texts[i];
	return NULL;
}

/* Returns the symbol whose address the dynamic linker stores in the slot. */
static const char *slot_name(const struct code_map *map, __u64 vaddr)
{
	const struct elf_slot key = { .vaddr = vaddr };
	const struct elf_slot *found =
		map->n_slots ? bsearch(&key, map->slots, map->n_slots, sizeof(key), compare_slots)
			     : NULL;

	return found ? found->name : NULL;
}

static int decode(struct code_map *map, __u64 vaddr, struct disasm_insn *insn)
{
	const struct elf_text *text = find_text(map, vaddr);

	if (!text)
		return -ENOENT;
	return disasm__decode(text->code + (vaddr - text->vaddr),
			      text->size - (vaddr - text->vaddr), vaddr, insn);
}

/* Returns the symbol of a PLT stub. */
static const char *stub_name(struct code_map *map, __u64 vaddr)
{
	const struct elf_text *text = find_text(map, vaddr);
	__u64 at = text ? vaddr - text->vaddr : 0, slot;

	return text && disasm__stub_slot(text->code + at, text->size - at, vaddr, &slot)
		       ? slot_name(map, slot)
		       : NULL;
}

/* Returns the index of the first symbol at or after @vaddr; n_symbols: there is none. */
static size_t first_symbol(const struct code_map *map, __u64 vaddr)
{
	return ARRAY_LOWER_BOUND(map->n_symbols, i, map->symbols[i].value < vaddr);
}

/*
 * Returns whether a function other than a PLT stub begins at @vaddr: a section's first stub has an
 * FDE, too.
 */
static bool is_function(struct code_map *map, __u64 vaddr)
{
	size_t at = first_symbol(map, vaddr);

	if (!is_entry(map, vaddr))
		return false;
	return (at < map->n_symbols && map->symbols[at].value == vaddr) || !stub_name(map, vaddr);
}

bool code_map__function(struct code_map *map, __u64 vaddr, __u64 *entry)
{
	size_t at = find_start(map, vaddr);

	if (at == map->n_starts || !map->is_entry[at])
		return false;
	*entry = map->starts[at];
	return true;
}

bool code_map__call(struct code_map *map, __u64 vaddr, struct code_target *out)
{
	struct disasm_insn insn;

	/* Lengths of calls with a known target, the most frequent one first. A false match has no
	 * known target. */
	static const unsigned int lengths[] = { 5, 6, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		unsigned int length = lengths[i];

		if (decode(map, vaddr - length, &insn) || insn.length != length)
			continue;
		if (insn.class == DISASM_CALL_INDIRECT && insn.has_slot) {
			*out = (struct code_target){ .name = slot_name(map, insn.slot) };
			return out->name;
		}
		if (insn.class != DISASM_CALL || !insn.has_target)
			continue;
		*out = (struct code_target){ .entry = insn.target };
		if (is_function(map, insn.target))
			return true;
		*out = (struct code_target){ .name = stub_name(map, insn.target) };
		return out->name;
	}
	return false;
}

bool code_map__exported(const struct code_map *map, const char *name, __u64 *entry)
{
	const struct symbol key = { .name = name };
	const struct symbol *found = map->n_exports ? bsearch(&key, map->exports, map->n_exports,
							      sizeof(key), compare_names)
						    : NULL;

	if (!found || found->is_choice)
		return false;
	*entry = found->value;
	return true;
}

bool code_map__is_named(const struct code_map *map, __u64 entry, const char *name)
{
	for (size_t i = first_symbol(map, entry);
	     i < map->n_symbols && map->symbols[i].value == entry; i++)
		if (!strcmp(map->symbols[i].name, name))
			return true;
	return false;
}

struct exits {
	struct code_map *map;
	__u64 lo, hi; /* range of the function without its split-off parts */
	struct code_exit *exits;
	int n, max;
	bool is_uncertain;
	__u32 n_insns;
	__u64 wanted; /* address that is searched */
	bool is_met;
};

static void add_exit(struct exits *exits, const struct disasm_insn *insn, struct code_target target)
{
	if (exits->n == exits->max || (!target.entry && !target.name)) {
		exits->is_uncertain = true;
		return;
	}
	exits->exits[exits->n++] = (struct code_exit){ insn->vaddr + insn->length, target };
}

static enum flow_step see_insn(const struct disasm_insn *insn, void *arg)
{
	struct exits *exits = arg;
	struct code_map *map = exits->map;

	/* flow__walk() stops here, so the rest of the function is not known. */
	if (++exits->n_insns == FLOW_MAX_INSNS)
		exits->is_uncertain = true;
	if (exits->wanted - insn->vaddr < insn->length)
		exits->is_met = true;
	if (insn->class == DISASM_JUMP_INDIRECT) {
		add_exit(exits, insn,
			 (struct code_target){ .name = insn->has_slot ? slot_name(map, insn->slot)
								      : NULL });
		return FLOW_PASS;
	}
	if (insn->class != DISASM_JUMP && insn->class != DISASM_JUMP_CONDITIONAL)
		return FLOW_PASS;
	if (!insn->has_target) {
		exits->is_uncertain = true;
		return FLOW_PASS;
	}
	if (insn->target - exits->lo < exits->hi - exits->lo)
		return FLOW_FOLLOW;
	if (is_function(map, insn->target)) {
		add_exit(exits, insn, (struct code_target){ .entry = insn->target });
		return FLOW_PASS;
	}
	if (find_start(map, insn->target) == map->n_starts || stub_name(map, insn->target)) {
		add_exit(exits, insn, (struct code_target){ .name = stub_name(map, insn->target) });
		return FLOW_PASS;
	}
	return FLOW_FOLLOW; /* it jumps to a split-off part of the function */
}

static int walk(struct exits *exits, __u64 entry)
{
	struct code_map *map = exits->map;
	const struct elf_text *text = find_text(map, entry);
	size_t at = find_start(map, entry);
	int err;

	if (!text || at == map->n_starts || map->starts[at] != entry)
		return -ENOENT;
	exits->lo = entry;
	exits->hi = at + 1 < map->n_starts ? map->starts[at + 1] : text->vaddr + text->size;
	err = flow__walk(text, map->starts, map->n_starts, entry, see_insn, exits);
	return err;
}

int code_map__exits(struct code_map *map, __u64 entry, struct code_exit *found, int max)
{
	struct exits exits = { .map = map, .exits = found, .max = max };
	int err = walk(&exits, entry);

	if (err)
		return err;
	return exits.is_uncertain ? -ENOENT : exits.n;
}

bool code_map__has(struct code_map *map, __u64 entry, __u64 vaddr)
{
	struct exits exits = { .map = map, .wanted = vaddr };

	for (size_t i = first_symbol(map, entry);
	     i < map->n_symbols && map->symbols[i].value == entry; i++)
		if (vaddr - entry < map->symbols[i].size)
			return true;
	return !walk(&exits, entry) && exits.is_met;
}
