// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Finds functions in the symbol tables of a file: an allocator's functions and their aliases,
 * those that a definition names, and functions that hand out memory and that no definition names.
 */
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "array.h"
#include "error.h"
#include "pattern.h"
#include "profile.h"
#include "definitions.h"

/* Finds an allocator's functions in the symbol tables of its file: which symbol belongs to which
 * function, and the aliases of each. */

int addresses__add(struct addresses *addresses, __u64 vaddr)
{
	if (array__reserve(&addresses->at, &addresses->room, addresses->n + 1,
			   sizeof(*addresses->at)))
		return -ENOMEM;
	addresses->at[addresses->n++] = vaddr;
	return 0;
}

static int addresses__compare(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a;
	__u64 y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

void addresses__sort(struct addresses *addresses)
{
	size_t n = 0;

	if (addresses->n == 0)
		return;
	qsort(addresses->at, addresses->n, sizeof(*addresses->at), addresses__compare);
	for (size_t i = 0; i < addresses->n; i++)
		if (n == 0 || addresses->at[n - 1] != addresses->at[i])
			addresses->at[n++] = addresses->at[i];
	addresses->n = n;
}

static enum ap_function c_function_of(const char *name)
{
	int function;

	for (function = 0; function < AP_C_FUNCTIONS; function++)
		if (strcmp(profile__function_name(function), name) == 0)
			break;
	return (enum ap_function)function;
}

static int add_candidate(struct allocator_reader *reader, const struct elf_symbol *symbol)
{
	struct site_candidate candidate = { .vaddr = symbol->value, .size = symbol->size };

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

/* Callback for local symbols. A local symbol with the name of a C library function may be any
 * function, so it is ignored. */
static int choose_further_symbol(const struct elf_symbol *symbol, void *arg)
{
	return c_function_of(symbol->name) == AP_C_FUNCTIONS ? add_candidate(arg, symbol) : 0;
}

static int choose_symbol(const struct elf_symbol *symbol, void *arg)
{
	struct allocator_reader *reader = arg;
	enum ap_function function = c_function_of(symbol->name);
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
	 * separate function that only old programs call. */
	if (choice->found && (choice->is_default || !symbol->is_default))
		return 0;
	choice->found = true;
	choice->is_default = symbol->is_default;
	choice->is_ifunc = symbol->type == STT_GNU_IFUNC;
	choice->vaddr = symbol->value;
	choice->size = symbol->size;
	return addresses__add(&reader->starts, symbol->value + symbol->size);
}

struct site *allocator__site_at(struct allocator *allocator, __u64 vaddr)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].entry_vaddr == vaddr)
			return &allocator->sites[i];
	return NULL;
}

/* reader__settle_sites() must follow. */
static int reader__add_site(struct allocator_reader *reader, enum ap_function function,
			    const char *name, __u64 vaddr, __u64 size, struct error *error)
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

static int add_c_sites(struct allocator_reader *reader, struct error *error)
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
		site = allocator__site_at(allocator, choice->vaddr);
		if (!site) {
			enum interface_family family;
			const char *name = profile__function_name(function);
			int err = reader__add_site(reader, (enum ap_function)function, name,
						   choice->vaddr, choice->size, error);

			if (err)
				return err;
			site = &allocator->sites[allocator->n_sites - 1];
			site->interface = interface__find(name, &family);
		}
		site->names |= 1ULL << function;
	}
	return 0;
}

bool reader__has_family(const struct allocator_reader *reader, enum interface_family family)
{
	if (family != INTERFACE_CPLUSPLUS)
		return reader->has_malloc[family] && reader->has_free[family];
	for (int i = 0; i < INTERFACE_FAMILIES; i++)
		if (reader->has_malloc[i] && reader->has_free[i])
			return true;
	return false;
}

static int add_candidate_site(struct allocator_reader *reader,
			      const struct site_candidate *candidate, struct error *error)
{
	const struct interface_function *interface = candidate->interface;
	struct allocator *allocator = reader->allocator;
	struct site *site = allocator__site_at(allocator, candidate->vaddr);
	int err;

	if (!site) {
		err = reader__add_site(reader, interface->function, interface->name,
				       candidate->vaddr, candidate->size, error);
		if (err)
			return err;
		site = &allocator->sites[allocator->n_sites - 1];
		site->interface = interface;
		site->is_own = interface->kind == INTERFACE_OWN;
	} else if (interface->function < site->function) {
		site->function = interface->function;
		site->interface = interface;
	}
	site->names |= 1ULL << interface->function;
	site->throws |= interface->throws;
	return addresses__add(&reader->starts, candidate->vaddr);
}

/* Sorts stably, so that among several sites of one function the C library's stays first. */
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

void reader__settle_sites(struct allocator_reader *reader)
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

int reader__add_sites(struct allocator_reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	int err = 0;

	allocator->sites = calloc(MAX_SITES, sizeof(*allocator->sites));
	if (!allocator->sites)
		return -ENOMEM;
	if (reader__has_family(reader, INTERFACE_C))
		err = add_c_sites(reader, error);
	for (size_t i = 0; !err && i < reader->n_candidates; i++) {
		const struct site_candidate *candidate = &reader->candidates[i];
		enum interface_kind kind = candidate->interface->kind;

		if ((kind == INTERFACE_REQUEST || kind == INTERFACE_OWN) &&
		    reader__has_family(reader, candidate->family))
			err = add_candidate_site(reader, candidate, error);
	}
	reader__settle_sites(reader);
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
	struct allocator_reader *reader = arg;
	struct site *site = allocator__site_at(reader->allocator, symbol->value);
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

int allocator__collect_names(struct allocator *allocator)
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

int reader__add_aliases(struct allocator_reader *reader)
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
	return allocator__collect_names(allocator);
}

/* Returns the mask of the functions that a call of @name reaches according to this file's symbols. */
static __u64 names_of(const struct allocator *allocator, const char *name)
{
	enum ap_function function = c_function_of(name);
	const struct site *site;

	if (function < AP_C_FUNCTIONS) {
		site = allocator__find(allocator, function);
		return site ? site->names : 1ULL << function;
	}
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (site__has_alias(&allocator->sites[i], name))
			return allocator->sites[i].names;
	return 0;
}

static int compare_definitions(const void *a, const void *b)
{
	const struct symbol_definition *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int add_definition(const struct elf_symbol *symbol, void *arg)
{
	struct allocator_reader *reader = arg;

	if (symbol->type != STT_FUNC || !symbol->is_default)
		return 0;
	if (array__reserve(&reader->definitions, &reader->room_definitions,
			   reader->n_definitions + 1, sizeof(*reader->definitions)))
		return -ENOMEM;
	reader->definitions[reader->n_definitions++] =
		(struct symbol_definition){ symbol->name, symbol->value };
	return 0;
}

/* Resolves the slot by the symbols that the file itself defines. */
static void resolve_slot(struct allocator_reader *reader, const char *name, struct slot *slot)
{
	struct symbol_definition key = { .name = name }, *found;
	struct allocator *allocator = reader->allocator;
	struct site *site;

	found = reader->n_definitions ? bsearch(&key, reader->definitions, reader->n_definitions,
						sizeof(key), compare_definitions)
				      : NULL;
	if (!found)
		return;
	site = allocator__site_at(allocator, found->vaddr);
	if (site)
		slot->site = site - allocator->sites;
	else
		slot->target = found->vaddr;
}

static int add_slot(const struct elf_slot *elf_slot, void *arg)
{
	struct allocator_reader *reader = arg;
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

int reader__choose_symbols(struct allocator_reader *reader)
{
	int err = elf_file__for_each_symbol(reader->elf, choose_symbol, reader);

	if (err)
		return err;
	reader->has_malloc[INTERFACE_C] = reader->choices[AP_MALLOC].found;
	reader->has_free[INTERFACE_C] = reader->choices[AP_FREE].found;
	if (!reader__has_family(reader, INTERFACE_CPLUSPLUS) && !elf_file__is_program(reader->elf))
		return 0;
	return elf_file__for_each_further_symbol(reader->elf, choose_further_symbol, reader);
}

int reader__add_definitions(struct allocator_reader *reader)
{
	int err = elf_file__for_each_symbol(reader->elf, add_definition, reader);

	if (!err && reader->n_definitions)
		qsort(reader->definitions, reader->n_definitions, sizeof(*reader->definitions),
		      compare_definitions);
	return err;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

int reader__add_slots(struct allocator_reader *reader)
{
	int err;

	reader->n_slots = 0;
	err = elf_file__for_each_slot(reader->elf, add_slot, reader);
	if (!err && reader->n_slots)
		qsort(reader->slots, reader->n_slots, sizeof(*reader->slots), compare_slots);
	return err;
}

/* Finds the functions of a defined allocator in a file. */

/* State of the symbol search; @choices has the same indexes as the definition's functions. */
struct finding {
	const struct definition *definition;
	struct allocator_reader *reader;
	struct choice *choices;
	bool only_new;	   /* this is the second pass, which keeps the choices of the first one */
	const char *twice; /* a name that several functions have */
};

static bool is_function(const struct elf_symbol *symbol)
{
	return symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC;
}

static int choose(const struct elf_symbol *symbol, void *arg)
{
	struct finding *finding = arg;
	const struct definition_function *function;
	struct choice *choice;
	int err;

	if (!is_function(symbol) || !symbol->value)
		return 0;
	if (!finding->only_new) {
		err = addresses__add(&finding->reader->starts, symbol->value);
		if (err)
			return err;
	}
	function = definition__find(finding->definition, symbol->name);
	if (!function)
		return 0;
	choice = &finding->choices[function - finding->definition->functions];
	if (choice->found && choice->vaddr == symbol->value)
		return 0;
	/* Another symbol of this name is an older version if it is in the dynamic symbol table; a
	 * local symbol is another function. */
	if (choice->found && finding->only_new) {
		if (!choice->is_default)
			finding->twice = function->name;
		return 0;
	}
	if (choice->found && (choice->is_default || !symbol->is_default))
		return 0;
	*choice = (struct choice){
		.found = true,
		.is_default = symbol->is_default,
		.is_ifunc = symbol->type == STT_GNU_IFUNC,
		.vaddr = symbol->value,
		.size = symbol->size,
	};
	return 0;
}

static int add_function_site(struct allocator_reader *reader,
			     const struct definition_function *function,
			     const struct choice *choice, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	struct site *site = allocator__site_at(allocator, choice->vaddr);
	int err;

	if (choice->is_ifunc)
		return error__set(
			error, -ENOTSUP,
			"its %s is chosen when it is loaded (STT_GNU_IFUNC), which cannot "
			"be probed",
			function->name);
	/* If the definition names aliases of one function, the first name counts. */
	if (site)
		return 0;
	err = reader__add_site(reader, function->interface.function, function->name, choice->vaddr,
			       choice->size, error);
	if (err)
		return err;
	site = &allocator->sites[allocator->n_sites - 1];
	site->interface = &function->interface;
	site->names = 1ULL << function->interface.function;
	return addresses__add(&reader->starts, choice->vaddr);
}

static int find(struct finding *finding)
{
	int err = elf_file__for_each_symbol(finding->reader->elf, choose, finding);

	if (err)
		return err;
	finding->only_new = true;
	return elf_file__for_each_further_symbol(finding->reader->elf, choose, finding);
}

int reader__add_definition_sites(struct allocator_reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	const struct definition *definition = allocator->definition;
	struct finding finding = { .definition = definition, .reader = reader };
	int err;

	if (!definition__is_in(definition, allocator->path, elf_file__soname(reader->elf)))
		return error__set(error, -ENOENT, "%s is none of the files of %s", allocator->path,
				  definition->name);
	allocator->sites = calloc(MAX_SITES, sizeof(*allocator->sites));
	finding.choices = calloc(definition->n_functions, sizeof(*finding.choices));
	err = allocator->sites && finding.choices ? find(&finding) : -ENOMEM;
	if (!err && finding.twice)
		err = error__set(error, -ENOTSUP,
				 "it has several functions named %s, and the definition cannot say "
				 "which of them it means",
				 finding.twice);
	for (size_t i = 0; !err && i < definition->n_functions; i++)
		if (finding.choices[i].found)
			err = add_function_site(reader, &definition->functions[i],
						&finding.choices[i], error);
	free(finding.choices);
	if (err)
		return err;
	if (!allocator->n_sites)
		return error__set(error, -ENOENT, "%s has no function of %s", allocator->path,
				  definition->name);
	reader__settle_sites(reader);
	return 0;
}

/* Finds exported functions of an allocator that hand out memory and that no definition names. */

/* Maximum number of functions that are searched for a call of a site. */
#define MAX_CALLED 64
/* Number of levels of calls within which functions that copy are searched for malloc; deeper calls
 * are made for other purposes. */
#define COPY_DEPTH 2

static enum flow_step visit_called(const struct disasm_insn *insn, void *arg)
{
	struct allocator_reader *reader = arg;
	struct way way;
	__u64 target;

	if (insn->class == DISASM_OTHER || insn->class == DISASM_RET)
		return FLOW_PASS;
	way = reader__way_of(reader, insn);
	if (way.names) {
		reader->calls_site = true;
		return FLOW_STOP;
	}
	target = way.target;
	if (!target && insn->class == DISASM_CALL && insn->has_target)
		target = insn->target;
	if (target && reader->continuations.n < MAX_CALLED)
		reader__note_continuation(reader, target);
	return way.target ? FLOW_PASS : FLOW_FOLLOW;
}

/* Returns whether the function calls a site, or the malloc of any file, within @depth levels of
 * calls, so that its allocations are counted there. */
static bool calls_site(struct allocator_reader *reader, __u64 vaddr, size_t depth)
{
	size_t level_end = 1;

	reader->calls_site = false;
	reader->current = 0;
	reader->continuations.n = 0;
	if (addresses__add(&reader->continuations, vaddr))
		return true;
	for (size_t i = 0; i < reader->continuations.n && !reader->calls_site; i++) {
		if (i == level_end) {
			if (!--depth)
				break;
			level_end = reader->continuations.n;
		}
		if (reader__text_at(reader, reader->continuations.at[i]) &&
		    reader__walk_flow(reader, reader->continuations.at[i], visit_called))
			return true;
	}
	return reader->calls_site;
}

static int add_unknown(const struct elf_symbol *symbol, void *arg)
{
	struct allocator_reader *reader = arg;
	struct allocator *allocator = reader->allocator;
	struct unknown_function unknown = { .vaddr = symbol->value };
	enum interface_family family;

	if (symbol->type != STT_FUNC || !symbol->is_default ||
	    strlen(symbol->name) > MAX_SYMBOL_NAME ||
	    allocator->n_unknown == ALLOCATOR_MAX_UNKNOWN ||
	    c_function_of(symbol->name) != AP_C_FUNCTIONS ||
	    interface__find(symbol->name, &family) ||
	    allocator__site_at(allocator, symbol->value) || !interface__looks_alike(symbol->name) ||
	    calls_site(reader, symbol->value,
		       interface__copies(symbol->name) ? COPY_DEPTH : MAX_CALLED) ||
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

/* Adds a function of interface.c whose calls may end unknown blocks. */
static int add_end(struct allocator_reader *reader, const struct site_candidate *candidate)
{
	struct allocator *allocator = reader->allocator;
	struct unknown_function *end = &allocator->unknown[allocator->n_unknown];

	*end = (struct unknown_function){
		.vaddr = candidate->vaddr,
		.ends = true,
		.is_by_name = candidate->interface->kind == INTERFACE_IGNORED,
	};
	if (allocator->n_unknown == ALLOCATOR_MAX_UNKNOWN ||
	    elf_file__vaddr_to_offset(reader->elf, end->vaddr, &end->offset))
		return 0;
	end->name = strdup(candidate->interface->name);
	if (!end->name)
		return -ENOMEM;
	allocator->n_unknown++;
	return 0;
}

static int find_ends(struct allocator_reader *reader)
{
	int err = 0;

	for (size_t i = 0; !err && i < reader->n_candidates; i++)
		if (reader->candidates[i].interface->ends)
			err = add_end(reader, &reader->candidates[i]);
	return err;
}

static int compare_unknown(const void *a, const void *b)
{
	return strcmp(((const struct unknown_function *)a)->name,
		      ((const struct unknown_function *)b)->name);
}

/*
 * Finds functions that hand out memory and that are not known. The file of an allocator exports
 * functions for others to call; a program exports the functions that libraries refer to. A C
 * library also exports many other functions, and what they allocate comes from its malloc. Where
 * no other file refers to functions by name, as in a static program, the names say nothing.
 */
int reader__find_unknown(struct allocator_reader *reader)
{
	struct allocator *allocator = reader->allocator;
	bool leaves_unseen = reader->leaves_unseen[0];
	int err;

	allocator->unknown = calloc(ALLOCATOR_MAX_UNKNOWN + 1, sizeof(*allocator->unknown));
	if (!allocator->unknown)
		return -ENOMEM;
	allocator->is_collected = reader__has_family(reader, INTERFACE_GC);
	err = find_ends(reader);
	if (err || elf_file__is_static(reader->elf) || allocator->is_wrapper ||
	    reader->is_c_library)
		return err;
	err = elf_file__for_each_symbol(reader->elf, add_unknown, reader);
	reader->leaves_unseen[0] = leaves_unseen;
	if (allocator->n_unknown)
		qsort(allocator->unknown, allocator->n_unknown, sizeof(*allocator->unknown),
		      compare_unknown);
	return err;
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

static void forget(struct allocator *allocator, const char *const *patterns,
		   const struct definition *definition)
{
	size_t n = 0;

	for (size_t i = 0; i < allocator->n_unknown; i++) {
		char *name = allocator->unknown[i].name;

		if (matches_any(patterns, name) ||
		    (definition && definition__find(definition, name)))
			free(name);
		else
			allocator->unknown[n++] = allocator->unknown[i];
	}
	allocator->n_unknown = n;
}

void allocator__ignore(struct allocator *allocator, const char *const *patterns)
{
	forget(allocator, patterns, NULL);
}

void allocator__forget_defined(struct allocator *allocator, const struct definition *definition)
{
	forget(allocator, NULL, definition);
}
