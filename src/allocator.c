// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "disasm.h"
#include "elf_file.h"
#include "flow.h"
#include "interface.h"
#include "pattern.h"
#include "profile.h"

#define MAX_ALIASES	64
#define MAX_SYMBOL_NAME 256
#define MAX_TEXTS	64
/* Return instructions of one allocator at the most that are probed. */
#define MAX_ENDS 256
/* Sites of one allocator at the most. */
#define MAX_SITES 256
/* Other functions of the file that one of them may end in jumps to, at the most. */
#define MAX_CONTINUATIONS 16

/* jemalloc has 528. */
#define MAX_RETURNS (1u << 16)

/* The code of glibc's malloc.o has 12 KiB. */
#define MAX_CORE (64u << 10)

struct addresses {
	__u64 *at;
	size_t n;
	size_t room;
};

/* The symbol chosen for a function. */
struct choice {
	bool found;
	bool is_default;
	bool is_ifunc;
	__u64 vaddr;
	__u64 size;
};

/* A function of the table that is none of a C library's, or has a prefix. */
struct candidate {
	const struct interface_function *interface;
	enum interface_family family;
	__u64 vaddr;
	__u64 size;
};

/* A GOT slot that leads to probed functions, or, where the allocator has an interface of its own, to others of
 * the file. */
struct slot {
	__u64 vaddr;
	__u32 names;
	int site;     /* index, -1: none of this file */
	__u64 target; /* of a function that is no site, or 0 */
};

/* A name and where it is. */
struct definition {
	const char *name;
	__u64 vaddr;
};

/* A return instruction of site @site. */
struct end {
	size_t site;
	__u64 vaddr;
};

/* A site that may end in a jump to another. */
struct edge {
	size_t from, to;
};

struct reader {
	struct allocator *allocator;
	struct elf_file *elf;
	struct disasm *disasm;
	struct elf_text texts[MAX_TEXTS];
	size_t n_texts;
	struct choice choices[AP_C_FUNCTIONS];
	struct candidate *candidates;
	size_t n_candidates, room_candidates;
	bool has_malloc[INTERFACE_FAMILIES], has_free[INTERFACE_FAMILIES];
	struct definition *definitions; /* by name; only where it is described */
	size_t n_definitions, room_definitions;
	struct addresses starts;
	struct addresses returns;
	struct slot *slots;
	size_t n_slots;
	size_t room_slots;
	/* For each site the distances from its entry, less one, that a direct branch leads to. */
	__u64 branched_to[MAX_SITES];
	__u64 lowest_entry;
	__u64 highest_entry;
	/* Direct calls from here are the allocator's own. */
	__u64 core_start;
	__u64 core_end;
	size_t current;			/* the site whose flow is walked */
	struct addresses continuations; /* functions that it ends in a jump to */
	struct end *ends;		/* of the allocating functions */
	size_t n_ends, room_ends;
	struct edge *edges;
	size_t n_edges, room_edges;
	bool leaves_unseen[MAX_SITES]; /* it may return by other means too */
	bool calls_site;	       /* found by visit_called() */
	bool is_c_library;
	bool gets_by_itself; /* visit_forwarding() met a way without a call of another site */
	int err;	     /* of a callback that cannot return one */
};

static int addresses__add(struct addresses *addresses, __u64 vaddr)
{
	if (array__reserve(&addresses->at, &addresses->room, addresses->n + 1,
			   sizeof(*addresses->at)))
		return -ENOMEM;
	addresses->at[addresses->n++] = vaddr;
	return 0;
}

static int compare_addresses(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a;
	__u64 y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

static void addresses__sort(struct addresses *addresses)
{
	size_t n = 0;

	if (addresses->n == 0)
		return;
	qsort(addresses->at, addresses->n, sizeof(*addresses->at), compare_addresses);
	for (size_t i = 0; i < addresses->n; i++)
		if (n == 0 || addresses->at[n - 1] != addresses->at[i])
			addresses->at[n++] = addresses->at[i];
	addresses->n = n;
}

static enum ap_function function_of(const char *name)
{
	int function;

	for (function = 0; function < AP_C_FUNCTIONS; function++)
		if (strcmp(profile__function_name(function), name) == 0)
			break;
	return (enum ap_function)function;
}

static int add_candidate(struct reader *reader, const struct elf_symbol *symbol)
{
	struct candidate candidate = { .vaddr = symbol->value, .size = symbol->size };

	candidate.interface = interface__find(symbol->name, &candidate.family);
	if (!candidate.interface || symbol->type != STT_FUNC || !symbol->value)
		return 0;
	for (size_t i = 0; i < reader->n_candidates; i++)
		if (reader->candidates[i].interface == candidate.interface &&
		    reader->candidates[i].family == candidate.family)
			return 0;
	if (array__reserve(&reader->candidates, &reader->room_candidates, reader->n_candidates + 1,
			   sizeof(*reader->candidates)))
		return -ENOMEM;
	reader->candidates[reader->n_candidates++] = candidate;
	if (interface_function__is_classic(candidate.interface)) {
		reader->has_malloc[candidate.family] |= candidate.interface->function == AP_MALLOC;
		reader->has_free[candidate.family] |= candidate.interface->function == AP_FREE;
	}
	return 0;
}

/* Symbols that cannot be linked with may be anything that has the name: those of a C library are not believed. */
static int choose_further_symbol(const struct elf_symbol *symbol, void *arg)
{
	return function_of(symbol->name) == AP_C_FUNCTIONS ? add_candidate(arg, symbol) : 0;
}

static int choose_symbol(const struct elf_symbol *symbol, void *arg)
{
	struct reader *reader = arg;
	enum ap_function function = function_of(symbol->name);
	struct choice *choice;
	int err = 0;

	if (symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC)
		return 0;
	reader->is_c_library |= !strcmp(symbol->name, "__libc_start_main");
	err = addresses__add(&reader->starts, symbol->value);
	if (err)
		return err;
	if (function == AP_C_FUNCTIONS)
		return add_candidate(reader, symbol);
	choice = &reader->choices[function];
	/* Programs linked today call the default version; an older one at another address is a
	 * function of its own that only old programs call. */
	if (choice->found && (choice->is_default || !symbol->is_default))
		return 0;
	choice->found = true;
	choice->is_default = symbol->is_default;
	choice->is_ifunc = symbol->type == STT_GNU_IFUNC;
	choice->vaddr = symbol->value;
	choice->size = symbol->size;
	return addresses__add(&reader->starts, symbol->value + symbol->size);
}

static struct site *site_at(struct allocator *allocator, __u64 vaddr)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].entry_vaddr == vaddr)
			return &allocator->sites[i];
	return NULL;
}

static int add_site(struct reader *reader, enum ap_function function, const char *name, __u64 vaddr,
		    __u64 size, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	struct site *site;

	if (allocator->n_sites == MAX_SITES)
		return error__set(error, -EFBIG, "%s has more than %d functions of an allocator",
				  allocator->path, MAX_SITES);
	site = &allocator->sites[allocator->n_sites];
	site->function = function;
	site->entry_vaddr = vaddr;
	site->size = size;
	if (elf_file__vaddr_to_offset(reader->elf, vaddr, &site->entry_offset))
		return error__set(error, -ENOEXEC,
				  "%s has its %s outside of the file (0x%llx): it is damaged",
				  allocator->path, name, (unsigned long long)vaddr);
	allocator->n_sites++;
	return 0;
}

static int add_c_sites(struct reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;

	for (int function = 0; function < AP_C_FUNCTIONS; function++) {
		const struct choice *choice = &reader->choices[function];
		struct site *site;

		if (!choice->found)
			continue;
		if (choice->is_ifunc)
			return error__set(
				error, -ENOTSUP,
				"%s chooses its %s when it is loaded (STT_GNU_IFUNC), which "
				"cannot be probed: use a build of it without that",
				allocator->path, profile__function_name(function));
		site = site_at(allocator, choice->vaddr);
		if (!site) {
			enum interface_family family;
			const char *name = profile__function_name(function);
			int err = add_site(reader, (enum ap_function)function, name, choice->vaddr,
					   choice->size, error);

			if (err)
				return err;
			site = &allocator->sites[allocator->n_sites - 1];
			site->interface = interface__find(name, &family);
		}
		site->names |= 1u << function;
	}
	return 0;
}

static bool has_family(const struct reader *reader, enum interface_family family)
{
	if (family != INTERFACE_CPLUSPLUS)
		return reader->has_malloc[family] && reader->has_free[family];
	for (int i = 0; i < INTERFACE_FAMILIES; i++)
		if (reader->has_malloc[i] && reader->has_free[i])
			return true;
	return false;
}

static int add_candidate_site(struct reader *reader, const struct candidate *candidate,
			      struct error *error)
{
	const struct interface_function *interface = candidate->interface;
	struct allocator *allocator = reader->allocator;
	struct site *site = site_at(allocator, candidate->vaddr);
	int err;

	if (!site) {
		err = add_site(reader, interface->function, interface->name, candidate->vaddr,
			       candidate->size, error);
		if (err)
			return err;
		site = &allocator->sites[allocator->n_sites - 1];
		site->interface = interface;
		site->is_own = interface->kind == INTERFACE_OWN;
	} else if (interface->function < site->function) {
		site->function = interface->function;
		site->interface = interface;
	}
	site->names |= 1u << interface->function;
	site->throws |= interface->throws;
	return addresses__add(&reader->starts, candidate->vaddr);
}

/* Keeps the order of those of one function: what a C library has comes first. */
static void sort_sites(struct allocator *allocator)
{
	for (size_t i = 1; i < allocator->n_sites; i++) {
		struct site site = allocator->sites[i];
		size_t at = i;

		for (; at && allocator->sites[at - 1].function > site.function; at--)
			allocator->sites[at] = allocator->sites[at - 1];
		allocator->sites[at] = site;
	}
}

static void settle_sites(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;

	sort_sites(allocator);
	reader->lowest_entry = UINT64_MAX;
	reader->highest_entry = 0;
	allocator->is_described = false;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];

		if (site->entry_vaddr < reader->lowest_entry)
			reader->lowest_entry = site->entry_vaddr;
		if (site->entry_vaddr > reader->highest_entry)
			reader->highest_entry = site->entry_vaddr;
		if (!interface_function__is_classic(site->interface))
			allocator->is_described = true;
	}
}

static int add_sites(struct reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	int err = 0;

	allocator->sites = calloc(MAX_SITES, sizeof(*allocator->sites));
	if (!allocator->sites)
		return -ENOMEM;
	if (has_family(reader, INTERFACE_C))
		err = add_c_sites(reader, error);
	for (size_t i = 0; !err && i < reader->n_candidates; i++) {
		const struct candidate *candidate = &reader->candidates[i];
		enum interface_kind kind = candidate->interface->kind;

		if ((kind == INTERFACE_REQUEST || kind == INTERFACE_OWN) &&
		    has_family(reader, candidate->family))
			err = add_candidate_site(reader, candidate, error);
	}
	settle_sites(reader);
	return err;
}

static bool site__has_alias(const struct site *site, const char *name)
{
	for (size_t i = 0; i < site->n_aliases; i++)
		if (strcmp(site->aliases[i], name) == 0)
			return true;
	return false;
}

static int add_alias(const struct elf_symbol *symbol, void *arg)
{
	struct reader *reader = arg;
	struct site *site = site_at(reader->allocator, symbol->value);
	char *name;

	if (!site || symbol->type != STT_FUNC || site->n_aliases == MAX_ALIASES ||
	    strlen(symbol->name) > MAX_SYMBOL_NAME ||
	    strcmp(symbol->name, profile__function_name(site->function)) == 0 ||
	    site__has_alias(site, symbol->name))
		return 0;
	name = strdup(symbol->name);
	if (!name)
		return -ENOMEM;
	site->aliases[site->n_aliases++] = name;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What a function is called by in all of its sites. */
static int collect_names(struct allocator *allocator)
{
	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];
		struct allocator_names *names = &allocator->names[site->function];
		size_t room = names->n;

		if (site->n_aliases &&
		    array__reserve(&names->list, &room, names->n + site->n_aliases,
				   sizeof(*names->list)))
			return -ENOMEM;
		for (size_t j = 0; j < site->n_aliases; j++)
			names->list[names->n++] = site->aliases[j];
	}
	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (allocator->names[i].n)
			qsort(allocator->names[i].list, allocator->names[i].n, sizeof(char *),
			      compare_names);
	return 0;
}

static int add_aliases(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;
	int err;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		allocator->sites[i].aliases = calloc(MAX_ALIASES, sizeof(char *));
		if (!allocator->sites[i].aliases)
			return -ENOMEM;
	}
	err = elf_file__for_each_symbol(reader->elf, add_alias, reader);
	if (!err && allocator->is_described)
		err = elf_file__for_each_further_symbol(reader->elf, add_alias, reader);
	if (err)
		return err;
	for (size_t i = 0; i < allocator->n_sites; i++)
		qsort(allocator->sites[i].aliases, allocator->sites[i].n_aliases, sizeof(char *),
		      compare_names);
	return collect_names(allocator);
}

/* The functions that a call by @name reaches, as far as this file tells. */
static __u32 names_of(const struct allocator *allocator, const char *name)
{
	enum ap_function function = function_of(name);
	const struct site *site;

	if (function < AP_C_FUNCTIONS) {
		site = allocator__find(allocator, function);
		return site ? site->names : 1u << function;
	}
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (site__has_alias(&allocator->sites[i], name))
			return allocator->sites[i].names;
	return 0;
}

static int compare_definitions(const void *a, const void *b)
{
	const struct definition *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int add_definition(const struct elf_symbol *symbol, void *arg)
{
	struct reader *reader = arg;

	if (symbol->type != STT_FUNC || !symbol->is_default)
		return 0;
	if (array__reserve(&reader->definitions, &reader->room_definitions,
			   reader->n_definitions + 1, sizeof(*reader->definitions)))
		return -ENOMEM;
	reader->definitions[reader->n_definitions++] =
		(struct definition){ symbol->name, symbol->value };
	return 0;
}

/* Where the slot leads to by the file's own symbols. */
static void resolve_slot(struct reader *reader, const char *name, struct slot *slot)
{
	struct definition key = { .name = name }, *found;
	struct allocator *allocator = reader->allocator;
	struct site *site;

	found = reader->n_definitions ? bsearch(&key, reader->definitions, reader->n_definitions,
						sizeof(key), compare_definitions)
				      : NULL;
	if (!found)
		return;
	site = site_at(allocator, found->vaddr);
	if (site)
		slot->site = site - allocator->sites;
	else
		slot->target = found->vaddr;
}

static int add_slot(const struct elf_slot *elf_slot, void *arg)
{
	struct reader *reader = arg;
	struct slot slot = {
		.vaddr = elf_slot->vaddr,
		.names = names_of(reader->allocator, elf_slot->name),
		.site = -1,
	};

	resolve_slot(reader, elf_slot->name, &slot);
	if (!slot.names && slot.site < 0 && !slot.target)
		return 0;
	if (array__reserve(&reader->slots, &reader->room_slots, reader->n_slots + 1,
			   sizeof(*reader->slots)))
		return -ENOMEM;
	reader->slots[reader->n_slots++] = slot;
	return 0;
}

static const struct slot *slot_at(const struct reader *reader, __u64 vaddr)
{
	for (size_t i = 0; i < reader->n_slots; i++)
		if (reader->slots[i].vaddr == vaddr)
			return &reader->slots[i];
	return NULL;
}

static const struct elf_text *text_at(const struct reader *reader, __u64 vaddr)
{
	for (size_t i = 0; i < reader->n_texts; i++)
		if (vaddr - reader->texts[i].vaddr < reader->texts[i].size)
			return &reader->texts[i];
	return NULL;
}

static int decode_at(const struct reader *reader, __u64 vaddr, struct disasm_insn *out)
{
	const struct elf_text *text = text_at(reader, vaddr);
	__u64 at;

	if (!text)
		return -ENOENT;
	at = vaddr - text->vaddr;
	return disasm__decode(reader->disasm, text->code + at, text->size - at, vaddr, out);
}

/* The slot that a PLT stub at @vaddr jumps by, NULL if there is no such stub, or it leads nowhere. */
static const struct slot *slot_of_stub(const struct reader *reader, __u64 vaddr)
{
	struct disasm_insn insn;

	if (reader->n_slots == 0 || decode_at(reader, vaddr, &insn))
		return NULL;
	/* endbr64, with branch protection */
	if (insn.class == DISASM_OTHER && insn.effects == 0 &&
	    decode_at(reader, vaddr + insn.length, &insn))
		return NULL;
	if (insn.class != DISASM_JUMP_INDIRECT || !insn.has_slot)
		return NULL;
	return slot_at(reader, insn.slot);
}

/* Where a jump or a call leads. */
struct way {
	const struct site *site; /* NULL: to none of this file */
	__u32 names;		 /* mask of the functions that are reached */
	__u64 target;		 /* another function of the file that a slot names, or 0 */
};

static struct way way_of(const struct reader *reader, const struct disasm_insn *insn)
{
	const struct slot *slot = NULL;
	struct way way = { 0 };

	if (insn->has_target) {
		way.site = site_at(reader->allocator, insn->target);
		if (!way.site)
			slot = slot_of_stub(reader, insn->target);
	} else if (insn->has_slot) {
		slot = slot_at(reader, insn->slot);
	}
	if (slot) {
		if (slot->site >= 0)
			way.site = &reader->allocator->sites[slot->site];
		way.names = slot->names;
		way.target = slot->target;
	}
	if (way.site)
		way.names |= way.site->names;
	return way;
}

static void note_branch(struct reader *reader, __u64 target)
{
	const struct allocator *allocator = reader->allocator;

	if (target <= reader->lowest_entry || target > reader->highest_entry + SITE_MAX_DISTANCE)
		return;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		__u64 distance = target - allocator->sites[i].entry_vaddr;

		if (distance - 1 < SITE_MAX_DISTANCE)
			reader->branched_to[i] |= 1ULL << (distance - 1);
	}
}

static void note_return(struct reader *reader, __u64 vaddr)
{
	if (reader->err)
		return;
	/* A hostile file can have one at each byte. */
	if (reader->returns.n >= MAX_RETURNS)
		reader->err = -EFBIG;
	else
		reader->err = addresses__add(&reader->returns, vaddr);
}

static bool frees(const struct site *site)
{
	return AP_FREEING >> site->function & 1;
}

static void note_return_instruction(struct reader *reader, __u64 vaddr)
{
	if (array__reserve(&reader->ends, &reader->room_ends, reader->n_ends + 1,
			   sizeof(*reader->ends)))
		reader->err = -ENOMEM;
	else
		reader->ends[reader->n_ends++] = (struct end){ reader->current, vaddr };
}

/* How the function may be left. A jump to another function is followed if that is in the same text; what
 * it jumps to through a table or a stub is not known, unless it is a function that is probed too, or another
 * of the file. */
static void note_end(struct reader *reader, const struct disasm_insn *insn, const struct way *way)
{
	bool *leaves_unseen = &reader->leaves_unseen[reader->current];

	if (reader->err)
		return;
	if (insn->class == DISASM_RET) {
		if (reader->n_ends >= MAX_RETURNS)
			reader->err = -EFBIG;
		else
			note_return_instruction(reader, insn->vaddr);
	} else if (insn->class == DISASM_JUMP_INDIRECT) {
		*leaves_unseen |= !way->names && !way->target;
	} else if (insn->class == DISASM_JUMP || insn->class == DISASM_JUMP_CONDITIONAL) {
		if (!insn->has_target ||
		    text_at(reader, insn->target) != text_at(reader, insn->vaddr))
			*leaves_unseen |= !way->names && !way->target;
	}
}

static void note_jump(struct reader *reader, const struct site *to)
{
	size_t at = to - reader->allocator->sites;

	if (at == reader->current || reader->err)
		return;
	reader->allocator->sites[reader->current].may_jump = true;
	for (size_t i = 0; i < reader->n_edges; i++)
		if (reader->edges[i].from == reader->current && reader->edges[i].to == at)
			return;
	if (array__reserve(&reader->edges, &reader->room_edges, reader->n_edges + 1,
			   sizeof(*reader->edges)))
		reader->err = -ENOMEM;
	else
		reader->edges[reader->n_edges++] = (struct edge){ reader->current, at };
}

static void note_continuation(struct reader *reader, __u64 vaddr)
{
	for (size_t i = 0; i < reader->continuations.n; i++)
		if (reader->continuations.at[i] == vaddr)
			return;
	if (reader->continuations.n >= MAX_CONTINUATIONS)
		reader->leaves_unseen[reader->current] = true;
	else if (!reader->err)
		reader->err = addresses__add(&reader->continuations, vaddr);
}

static enum flow_step visit(const struct disasm_insn *insn, void *arg)
{
	struct reader *reader = arg;
	struct site *site = &reader->allocator->sites[reader->current];
	struct way way = { 0 };

	switch (insn->class) {
	case DISASM_CALL:
	case DISASM_CALL_INDIRECT:
		note_return(reader, insn->vaddr + insn->length);
		if (insn->has_target)
			note_branch(reader, insn->target);
		return FLOW_PASS;
	case DISASM_JUMP:
	case DISASM_JUMP_CONDITIONAL:
		if (insn->has_target)
			note_branch(reader, insn->target);
		break;
	case DISASM_JUMP_INDIRECT:
	case DISASM_RET:
		break;
	default:
		return FLOW_PASS;
	}
	way = way_of(reader, insn);
	note_end(reader, insn, &way);
	if (way.site)
		note_jump(reader, way.site);
	else if (way.target)
		note_continuation(reader, way.target);
	/* Not to itself. */
	site->tail_calls |= way.names & ~site->names;
	return way.names || way.target ? FLOW_PASS : FLOW_FOLLOW;
}

static int walk_flow(struct reader *reader, __u64 entry, flow_fn fn)
{
	const struct elf_text *text = text_at(reader, entry);
	int err;

	if (!text)
		return -ENOENT;
	err = flow__walk(reader->disasm, text, reader->starts.at, reader->starts.n, entry, fn,
			 reader);
	return err ? err : reader->err;
}

/* Whether the site that was walked does nothing in the end but jump to others. */
static bool always_jumps(const struct reader *reader, size_t first_end)
{
	return reader->allocator->sites[reader->current].may_jump && first_end == reader->n_ends &&
	       !reader->leaves_unseen[reader->current];
}

static int walk_flows(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		size_t first_end = reader->n_ends;
		int err;

		reader->current = i;
		reader->continuations.n = 0;
		err = walk_flow(reader, allocator->sites[i].entry_vaddr, visit);
		for (size_t j = 0; !err && j < reader->continuations.n; j++)
			err = walk_flow(reader, reader->continuations.at[j], visit);
		if (err)
			return err;
		allocator->sites[i].must_jump = always_jumps(reader, first_end);
	}
	return 0;
}

/* What comes behind a call of a site, or a jump to one, is no way of its own to return. */
static enum flow_step visit_forwarding(const struct disasm_insn *insn, void *arg)
{
	struct reader *reader = arg;
	struct way way;

	switch (insn->class) {
	case DISASM_RET:
		reader->gets_by_itself = true;
		return FLOW_PASS;
	case DISASM_CALL:
	case DISASM_CALL_INDIRECT:
	case DISASM_JUMP:
	case DISASM_JUMP_CONDITIONAL:
	case DISASM_JUMP_INDIRECT:
		way = way_of(reader, insn);
		if (way.names)
			return insn->class == DISASM_JUMP_CONDITIONAL ? FLOW_PASS : FLOW_STOP;
		return insn->class == DISASM_CALL ? FLOW_PASS : FLOW_FOLLOW;
	default:
		return FLOW_PASS;
	}
}

static bool is_operator(const struct site *site)
{
	return site->names & (1U << AP_NEW | 1U << AP_DELETE) && site->interface->name[0] == '_';
}

/*
 * The operators of a C++ library call malloc and free, whose calls are what counts: by these a program with that
 * library inside is counted as one that is linked to it. Only who gets memory by other means has operators that are
 * requests. Removes the others.
 */
static int drop_forwarding_operators(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;
	size_t n = 0;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		int err;

		if (allocator->sites[i].function != AP_NEW)
			continue;
		reader->gets_by_itself = false;
		err = walk_flow(reader, allocator->sites[i].entry_vaddr, visit_forwarding);
		if (err || reader->gets_by_itself)
			return err;
	}
	for (size_t i = 0; i < allocator->n_sites; i++) {
		struct site *site = &allocator->sites[i];

		if (!is_operator(site))
			allocator->sites[n++] = *site;
	}
	if (n == allocator->n_sites)
		return 0;
	memset(allocator->sites + n, 0, (allocator->n_sites - n) * sizeof(*allocator->sites));
	allocator->n_sites = n;
	settle_sites(reader);
	return 0;
}

static void visit_anywhere(const struct disasm_branch *branch, void *arg)
{
	struct reader *reader = arg;

	if (branch->target < reader->lowest_entry ||
	    branch->target > reader->highest_entry + SITE_MAX_DISTANCE)
		return;
	note_branch(reader, branch->target);
	if (branch->is_call && branch->next > reader->core_start &&
	    branch->next <= reader->core_end && site_at(reader->allocator, branch->target))
		note_return(reader, branch->next);
}

/*
 * A library calls its own exported functions through the PLT, where it means what the program may
 * replace; a direct call is one allocator's function to another. In a program that contains its
 * allocator every call is direct, so there only the code around the basic functions is believed to
 * be the allocator.
 */
static void find_core(struct reader *reader)
{
	const __u32 basic = 1U << AP_MALLOC | 1U << AP_CALLOC | 1U << AP_REALLOC | 1U << AP_FREE;
	const struct allocator *allocator = reader->allocator;
	__u64 start = UINT64_MAX;
	__u64 end = 0;

	reader->core_start = 0;
	reader->core_end = UINT64_MAX;
	if (!elf_file__is_program(reader->elf))
		return;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];

		if (!(basic >> site->interface->function & 1) ||
		    !interface_function__is_classic(site->interface))
			continue;
		if (site->entry_vaddr < start)
			start = site->entry_vaddr;
		if (site->entry_vaddr + site->size > end)
			end = site->entry_vaddr + site->size;
	}
	if (end - start > MAX_CORE)
		end = start;
	reader->core_start = start;
	reader->core_end = end;
}

static int scan_texts(struct reader *reader)
{
	find_core(reader);
	for (size_t i = 0; i < reader->n_texts; i++) {
		const struct elf_text *text = &reader->texts[i];

		disasm_arch__scan_branches(text->code, text->size, text->vaddr, visit_anywhere,
					   reader);
	}
	return reader->err;
}

/* What of the caller's state an instruction may have changed, for people; NULL: nothing. */
static const char *harm(const struct disasm_insn *insn)
{
	switch (insn->class) {
	case DISASM_JUMP_CONDITIONAL:
	case DISASM_JUMP:
	case DISASM_JUMP_INDIRECT:
	case DISASM_RET:
	case DISASM_TRAP:
		return "leaves the straight line";
	default:
		break;
	}
	if (insn->effects & DISASM_WRITES_ARGUMENT)
		return "writes an argument register";
	if (insn->effects & DISASM_WRITES_SP)
		return "writes the stack pointer";
	if (insn->effects & DISASM_WRITES_MEMORY)
		return "writes memory";
	return insn->effects ? "is not known to be harmless" : NULL;
}

/* The first emulated instruction that sees what the entry saw, 0; or why there is none, -ENOENT. */
static int find_emulated(const struct reader *reader, const struct site *site,
			 struct disasm_insn *out, char *reason, size_t size)
{
	__u64 vaddr = site->entry_vaddr;

	while (vaddr - site->entry_vaddr <= SITE_MAX_DISTANCE) {
		struct disasm_insn insn;
		const char *what;

		if (decode_at(reader, vaddr, &insn)) {
			snprintf(reason, size,
				 "no instruction can be decoded at 0x%llx, before any emulated one",
				 (unsigned long long)vaddr);
			return -ENOENT;
		}
		if (insn.emulated) {
			*out = insn;
			return 0;
		}
		what = harm(&insn);
		if (what) {
			snprintf(reason, size, "`%s` %s before any emulated instruction", insn.text,
				 what);
			return -ENOENT;
		}
		vaddr += insn.length;
	}
	snprintf(reason, size, "no emulated instruction in the first %d bytes", SITE_MAX_DISTANCE);
	return -ENOENT;
}

/* Whether a branch leads into (entry, @distance]: such a pass would be a hit without a call. */
static bool is_branched_into(__u64 branched_to, __u64 distance, __u64 *where)
{
	for (__u64 i = 1; i <= distance; i++) {
		if (!(branched_to >> (i - 1) & 1))
			continue;
		*where = i;
		return true;
	}
	return false;
}

static void place(const struct reader *reader, struct site *site, __u64 branched_to,
		  enum site_policy policy)
{
	char reason[sizeof(site->reason)] = "";
	struct disasm_insn insn = { 0 };
	__u64 where;

	if (policy == SITE_ENTRY) {
		snprintf(reason, sizeof(reason), "the entry was asked for");
	} else if (!find_emulated(reader, site, &insn, reason, sizeof(reason))) {
		if (!is_branched_into(branched_to, insn.vaddr - site->entry_vaddr, &where))
			goto found;
		snprintf(reason, sizeof(reason),
			 "a branch leads to entry+%llu, at or before the emulated `%s`",
			 (unsigned long long)where, insn.text);
	}
	if (decode_at(reader, site->entry_vaddr, &insn)) {
		insn.vaddr = site->entry_vaddr;
		insn.emulated = false;
		snprintf(insn.text, sizeof(insn.text), "(bad)");
	}
found:
	site->probe_vaddr = insn.vaddr;
	site->probe_offset = site->entry_offset + (insn.vaddr - site->entry_vaddr);
	site->emulated = insn.emulated;
	snprintf(site->instruction, sizeof(site->instruction), "%.*s",
		 (int)sizeof(site->instruction) - 1, insn.text);
	if (!insn.emulated)
		memcpy(site->reason, reason, sizeof(site->reason));
}

static int read_texts(struct reader *reader)
{
	while (reader->n_texts < MAX_TEXTS) {
		int err = elf_file__text(reader->elf, reader->n_texts,
					 &reader->texts[reader->n_texts]);

		if (err)
			return err == -ENOENT ? 0 : err;
		reader->n_texts++;
	}
	return 0;
}

static int read_starts(struct reader *reader)
{
	_cleanup_(free_ptr) __u64 *fdes = NULL;
	size_t n;
	int err = elf_file__fde_starts(reader->elf, &fdes, &n);

	for (size_t i = 0; !err && i < n; i++)
		err = addresses__add(&reader->starts, fdes[i]);
	addresses__sort(&reader->starts);
	return err;
}

/* What only C libraries and well-known allocators define. A program that brings a malloc of its own
 * defines none of these but __libc_start_main, where it is static. */
static int find_known(const struct elf_symbol *symbol, void *arg)
{
	static const char *const names[] = {
		"mallctl",    "je_mallctl",	    "_rjem_mallctl",	       "mi_version",
		"tc_version", "__libc_malloc_impl", "scalable_allocation_mode"
	};
	struct reader *reader = arg;
	__u64 malloc_vaddr = reader->choices[AP_MALLOC].vaddr;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(symbol->name, names[i]))
			return 1;
	if (!strcmp(symbol->name, "__libc_start_main"))
		return !elf_file__is_program(reader->elf);
	return symbol->value == malloc_vaddr &&
	       (!strcmp(symbol->name, "__libc_malloc") || !strcmp(symbol->name, "default_malloc"));
}

static bool is_known(struct reader *reader)
{
	return elf_file__for_each_symbol(reader->elf, find_known, reader) > 0 ||
	       (reader->allocator->is_described &&
		elf_file__for_each_further_symbol(reader->elf, find_known, reader) > 0);
}

/* Which sites' return instructions are probed: of a well-known allocator those that an exception may leave,
 * and what these end in a jump to. */
static void choose_ends(struct reader *reader, bool known, bool at_instructions[MAX_SITES])
{
	const struct allocator *allocator = reader->allocator;
	bool more = true;

	for (size_t i = 0; i < allocator->n_sites; i++)
		at_instructions[i] =
			!frees(&allocator->sites[i]) && (!known || allocator->sites[i].throws);
	while (more) {
		more = false;
		for (size_t i = 0; i < reader->n_edges; i++) {
			const struct edge *edge = &reader->edges[i];

			if (!at_instructions[edge->from] || at_instructions[edge->to])
				continue;
			at_instructions[edge->to] = more = true;
		}
	}
}

static int take_ends(struct reader *reader, const bool at_instructions[MAX_SITES])
{
	struct allocator *allocator = reader->allocator;
	struct addresses offsets = { 0 };
	int err = 0;

	for (size_t i = 0; !err && i < reader->n_ends; i++) {
		__u64 offset;

		if (!at_instructions[reader->ends[i].site])
			continue;
		err = elf_file__vaddr_to_offset(reader->elf, reader->ends[i].vaddr, &offset)
			      ? -ENOEXEC
			      : addresses__add(&offsets, offset);
	}
	addresses__sort(&offsets);
	if (!err && offsets.n > MAX_ENDS)
		err = -E2BIG;
	if (err) {
		free(offsets.at);
		return err;
	}
	allocator->return_offsets = offsets.at;
	allocator->n_return_offsets = offsets.n;
	return 0;
}

static bool has_end(const struct reader *reader, size_t site)
{
	for (size_t i = 0; i < reader->n_ends; i++)
		if (reader->ends[i].site == site)
			return true;
	return false;
}

/* How the returns of a site are to be seen. A well-known allocator's operator new may leave by unseen ways where it
 * has no memory: that call is among those that did not return. */
static enum allocator_returns returns_of(const struct reader *reader, size_t i, bool known,
					 bool at_instructions)
{
	const struct site *site = &reader->allocator->sites[i];

	if (known && !site->throws)
		return RETURNS_PROBED;
	if (!at_instructions || (!known && reader->leaves_unseen[i]))
		return RETURNS_UNKNOWN;
	return has_end(reader, i) || site->must_jump ? RETURNS_AT_INSTRUCTIONS : RETURNS_UNKNOWN;
}

/* Decides how returns are to be seen, and where. */
static int find_ends(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;
	bool at_instructions[MAX_SITES], known = is_known(reader), all = true, any = false;
	int err;

	choose_ends(reader, known, at_instructions);
	err = take_ends(reader, at_instructions);
	if (err && err != -E2BIG)
		return err;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		struct site *site = &allocator->sites[i];

		site->returns = returns_of(reader, i, known, at_instructions[i] && !err);
		if (frees(site) || site->is_own)
			continue;
		all &= site->returns != RETURNS_UNKNOWN;
		any |= has_end(reader, i);
	}
	if (known || (all && any))
		return 0;
	/* One that cannot be seen spoils what is known of the others' blocks. */
	for (size_t i = 0; i < allocator->n_sites; i++)
		allocator->sites[i].returns = RETURNS_UNKNOWN;
	allocator->n_return_offsets = 0;
	return 0;
}

static int defines_source(const struct elf_symbol *symbol, void *arg)
{
	const char *const *names = arg;

	for (; *names; names++)
		if (strcmp(*names, symbol->name) == 0)
			return 1;
	return 0;
}

static bool is_wrapper(struct elf_file *elf)
{
	/* Ways to get memory; "__morecore" was glibc's hook until 2.33. */
	const char *const sources[] = { "mmap", "mmap64",   "__mmap",	  "sbrk", "__sbrk",
					"brk",	"morecore", "__morecore", NULL };

	if (!elf_file__imports(elf, "dlsym") && !elf_file__imports(elf, "dlvsym"))
		return false;
	for (const char *const *name = sources; *name; name++)
		if (elf_file__imports(elf, *name))
			return false;
	return elf_file__for_each_symbol(elf, defines_source, (void *)(unsigned long)sources) == 0;
}

/* Functions that are looked through, of those that one calls, to see whether it calls a site. */
#define MAX_CALLED  64
#define MAX_UNKNOWN 64

static enum flow_step visit_called(const struct disasm_insn *insn, void *arg)
{
	struct reader *reader = arg;
	struct way way;
	__u64 target;

	if (insn->class == DISASM_OTHER || insn->class == DISASM_RET)
		return FLOW_PASS;
	way = way_of(reader, insn);
	if (way.names) {
		reader->calls_site = true;
		return FLOW_STOP;
	}
	target = way.target;
	if (!target && insn->class == DISASM_CALL && insn->has_target)
		target = insn->target;
	if (target && reader->continuations.n < MAX_CALLED)
		note_continuation(reader, target);
	return way.target ? FLOW_PASS : FLOW_FOLLOW;
}

/* Whether the function leads to a probed one, or to malloc of whoever has it, so that it counts through that. */
static bool calls_site(struct reader *reader, __u64 vaddr)
{
	reader->calls_site = false;
	reader->current = 0;
	reader->continuations.n = 0;
	if (addresses__add(&reader->continuations, vaddr))
		return true;
	for (size_t i = 0; i < reader->continuations.n && !reader->calls_site; i++)
		if (text_at(reader, reader->continuations.at[i]) &&
		    walk_flow(reader, reader->continuations.at[i], visit_called))
			return true;
	return reader->calls_site;
}

static int add_unknown(const struct elf_symbol *symbol, void *arg)
{
	struct reader *reader = arg;
	struct allocator *allocator = reader->allocator;
	struct unknown_function unknown = { .vaddr = symbol->value };
	enum interface_family family;

	if (symbol->type != STT_FUNC || !symbol->is_default ||
	    strlen(symbol->name) > MAX_SYMBOL_NAME || allocator->n_unknown == MAX_UNKNOWN ||
	    function_of(symbol->name) != AP_C_FUNCTIONS || interface__find(symbol->name, &family) ||
	    site_at(allocator, symbol->value) || !interface__looks_alike(symbol->name) ||
	    calls_site(reader, symbol->value) ||
	    elf_file__vaddr_to_offset(reader->elf, symbol->value, &unknown.offset))
		return 0;
	for (size_t i = 0; i < allocator->n_unknown; i++)
		if (allocator->unknown[i].vaddr == unknown.vaddr)
			return 0;
	unknown.name = strdup(symbol->name);
	if (!unknown.name)
		return -ENOMEM;
	allocator->unknown[allocator->n_unknown++] = unknown;
	return 0;
}

static int compare_unknown(const void *a, const void *b)
{
	return strcmp(((const struct unknown_function *)a)->name,
		      ((const struct unknown_function *)b)->name);
}

/*
 * What a library that is an allocator exports is for others to call. A C library exports much else, and what it
 * allocates for others it gets by its malloc; in a program names tell nothing.
 */
static int find_unknown(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;
	bool leaves_unseen = reader->leaves_unseen[0];
	int err;

	if (elf_file__is_program(reader->elf) || allocator->is_wrapper || reader->is_c_library)
		return 0;
	allocator->unknown = calloc(MAX_UNKNOWN, sizeof(*allocator->unknown));
	if (!allocator->unknown)
		return -ENOMEM;
	err = elf_file__for_each_symbol(reader->elf, add_unknown, reader);
	reader->leaves_unseen[0] = leaves_unseen;
	if (allocator->n_unknown)
		qsort(allocator->unknown, allocator->n_unknown, sizeof(*allocator->unknown),
		      compare_unknown);
	return err;
}

static int check_entries(const struct reader *reader, struct error *error)
{
	const struct allocator *allocator = reader->allocator;

	for (size_t i = 0; i < allocator->n_sites; i++)
		if (!text_at(reader, allocator->sites[i].entry_vaddr))
			return error__set(error, -ENOEXEC,
					  "%s has its %s outside of its code: it is damaged",
					  allocator->path,
					  profile__function_name(allocator->sites[i].function));
	return 0;
}

static int read_code(struct reader *reader, enum site_policy policy)
{
	struct allocator *allocator = reader->allocator;
	int err = disasm__new(&reader->disasm);

	if (!err)
		err = read_starts(reader);
	if (!err && (allocator->is_described ||
		     (!reader->is_c_library && !elf_file__is_program(reader->elf))))
		err = elf_file__for_each_symbol(reader->elf, add_definition, reader);
	if (!err && reader->n_definitions)
		qsort(reader->definitions, reader->n_definitions, sizeof(*reader->definitions),
		      compare_definitions);
	if (!err && allocator->is_described) {
		/* Slots are of sites, of which then there are fewer. */
		err = elf_file__for_each_slot(reader->elf, add_slot, reader);
		if (!err)
			err = drop_forwarding_operators(reader);
		reader->n_slots = 0;
	}
	if (!err)
		err = add_aliases(reader);
	if (!err)
		err = elf_file__for_each_slot(reader->elf, add_slot, reader);
	if (!err)
		err = walk_flows(reader);
	if (!err)
		err = scan_texts(reader);
	if (err)
		return err;
	for (size_t i = 0; i < allocator->n_sites; i++)
		place(reader, &allocator->sites[i], reader->branched_to[i], policy);
	err = find_ends(reader);
	if (err)
		return err;
	addresses__sort(&reader->returns);
	allocator->internal_returns = reader->returns.at;
	allocator->n_internal_returns = reader->returns.n;
	reader->returns = (struct addresses){ 0 };
	return 0;
}

static int read_allocator(struct reader *reader, enum site_policy policy, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	int err = elf_file__for_each_symbol(reader->elf, choose_symbol, reader);

	reader->has_malloc[INTERFACE_C] = reader->choices[AP_MALLOC].found;
	reader->has_free[INTERFACE_C] = reader->choices[AP_FREE].found;
	if (!err && (has_family(reader, INTERFACE_CPLUSPLUS) || elf_file__is_program(reader->elf)))
		err = elf_file__for_each_further_symbol(reader->elf, choose_further_symbol, reader);
	if (err)
		goto failed;
	if (!has_family(reader, INTERFACE_CPLUSPLUS))
		return error__set(error, -ENOENT,
				  "%s defines no allocator: it has no malloc and free of its own",
				  allocator->path);
	err = add_sites(reader, error);
	if (err)
		return err;
	err = read_texts(reader);
	if (err)
		goto failed;
	err = check_entries(reader, error);
	if (err)
		return err;
	err = read_code(reader, policy);
	if (err)
		goto failed;
	elf_file__text_range(reader->elf, &allocator->text_start, &allocator->text_end);
	snprintf(allocator->build_id, sizeof(allocator->build_id), "%s",
		 elf_file__build_id(reader->elf));
	allocator->is_wrapper = is_wrapper(reader->elf);
	err = find_unknown(reader);
	if (!err)
		return 0;
failed:
	return error__set(error, err, "cannot read the allocator in %s: %s", allocator->path,
			  strerror(-err));
}

int allocator__read(int fd, const char *path, enum site_policy policy, struct allocator **out,
		    struct error *error)
{
	struct reader reader = { .lowest_entry = ~0ULL };
	int err;

	reader.allocator = calloc(1, sizeof(*reader.allocator));
	if (!reader.allocator)
		return error__set(error, -ENOMEM, "no memory to read %s", path);
	reader.allocator->path = strdup(path);
	if (!reader.allocator->path) {
		err = error__set(error, -ENOMEM, "no memory to read %s", path);
		goto out;
	}
	err = elf_file__open(fd, path, &reader.elf, error);
	if (!err)
		err = read_allocator(&reader, policy, error);
	if (!err) {
		*out = reader.allocator;
		reader.allocator = NULL;
	}
out:
	free(reader.slots);
	free(reader.starts.at);
	free(reader.returns.at);
	free(reader.continuations.at);
	free(reader.ends);
	free(reader.edges);
	free(reader.candidates);
	free(reader.definitions);
	disasm__free(reader.disasm);
	elf_file__free(reader.elf);
	allocator__free(reader.allocator);
	return err;
}

void allocator__free(struct allocator *allocator)
{
	if (!allocator)
		return;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		for (size_t j = 0; j < allocator->sites[i].n_aliases; j++)
			free(allocator->sites[i].aliases[j]);
		free(allocator->sites[i].aliases);
	}
	for (int i = 0; i < AP_FUNCTIONS; i++)
		free(allocator->names[i].list);
	for (size_t i = 0; i < allocator->n_unknown; i++)
		free(allocator->unknown[i].name);
	free(allocator->unknown);
	free(allocator->sites);
	free(allocator->internal_returns);
	free(allocator->return_offsets);
	free(allocator->path);
	free(allocator);
}

static bool matches_any(const char *const *patterns, const char *name)
{
	for (; patterns && *patterns; patterns++) {
		struct pattern pattern;
		bool matches;

		if (pattern__parse(&pattern, *patterns, NULL))
			continue;
		matches = pattern__match(&pattern, name);
		pattern__release(&pattern);
		if (matches)
			return true;
	}
	return false;
}

void allocator__ignore(struct allocator *allocator, const char *const *patterns)
{
	size_t n = 0;

	for (size_t i = 0; i < allocator->n_unknown; i++) {
		if (matches_any(patterns, allocator->unknown[i].name))
			free(allocator->unknown[i].name);
		else
			allocator->unknown[n++] = allocator->unknown[i];
	}
	allocator->n_unknown = n;
}

const struct site *allocator__find(const struct allocator *allocator, enum ap_function function)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].names >> function & 1)
			return &allocator->sites[i];
	return NULL;
}

bool allocator__is_internal_return(const struct allocator *allocator, __u64 vaddr)
{
	if (allocator->n_internal_returns == 0)
		return false;
	return bsearch(&vaddr, allocator->internal_returns, allocator->n_internal_returns,
		       sizeof(vaddr), compare_addresses) != NULL;
}
