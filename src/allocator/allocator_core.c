// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * This file finds which direct calls of an allocator's functions are the allocator's own. If the
 * program may replace the functions that a library exports, the library calls them through the
 * PLT, so a direct call in it is from one allocation function to another.
 *
 * In a program that contains its allocator, every call is direct. There the functions around
 * malloc and its kin belong to the allocator if the allocator's functions lead to them and no
 * other code does: linkers put unrelated functions in between, such as musl's strdup, which comes
 * between free and realloc.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "array.h"
#include "profile.h"

/* Maximum number of rounds of the search. Compilers' code takes a handful of rounds; the code in a
 * hostile file may take one round for each function. */
#define MAX_ROUNDS 1000

struct call {
	__u32 from, to; /* indexes of functions of the core */
};

struct core_search {
	struct allocator_reader *reader;
	struct call *calls;
	size_t n_calls, room;
	int err;
};

/* Returns whether @name is a function that frees blocks when a thread or the process ends (glibc,
 * malloc.c), which other code of the C library calls. */
static bool is_called_by_others(const char *name)
{
	static const char *const names[] = { "tcache_thread_shutdown", "tcache_thread_freeres",
					     "__malloc_arena_thread_freeres",
					     "arena_thread_freeres", NULL };

	for (const char *const *known = names; *known; known++)
		if (!strcmp(*known, name))
			return true;
	return false;
}

static int add_function(struct allocator_reader *reader, __u64 vaddr, bool is_root)
{
	if (vaddr < reader->core_start || vaddr >= reader->core_end)
		return 0;
	if (array__reserve(&reader->core, &reader->room_core, reader->n_core + 1,
			   sizeof(*reader->core)))
		return -ENOMEM;
	reader->core[reader->n_core++] =
		(struct core_function){ .vaddr = vaddr, .is_root = is_root };
	return 0;
}

static int add_symbol(const struct elf_symbol *symbol, void *arg)
{
	return symbol->size ? add_function(arg, symbol->value, is_called_by_others(symbol->name))
			    : 0;
}

static int compare(const void *a, const void *b)
{
	const struct core_function *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* Lists the functions of the range by their unwind entries and by their symbols. */
static int list_functions(struct allocator_reader *reader)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < reader->allocator->n_sites && !err; i++)
		err = add_function(reader, reader->allocator->sites[i].entry_vaddr, true);
	for (size_t i = 0; i < reader->starts.n && !err; i++)
		err = add_function(reader, reader->starts.at[i], false);
	if (!err)
		err = elf_file__for_each_symbol(reader->elf, add_symbol, reader);
	if (!err)
		err = elf_file__for_each_further_symbol(reader->elf, add_symbol, reader);
	if (err)
		return err;
	qsort(reader->core, reader->n_core, sizeof(*reader->core), compare);
	for (size_t i = 0; i < reader->n_core; i++) {
		bool is_root = reader->core[i].is_root;

		if (n && reader->core[n - 1].vaddr == reader->core[i].vaddr)
			reader->core[n - 1].is_root |= is_root;
		else
			reader->core[n++] = reader->core[i];
	}
	reader->n_core = n;
	return 0;
}

/* Returns the function whose code has @vaddr, or NULL. */
static struct core_function *function_of(const struct allocator_reader *reader, __u64 vaddr)
{
	size_t low = 0, high = reader->n_core;

	if (vaddr < reader->core_start || vaddr >= reader->core_end)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (reader->core[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &reader->core[low - 1] : NULL;
}

static void note_call(const struct disasm_branch *branch, void *arg)
{
	struct core_search *search = arg;
	struct core_function *core = search->reader->core;
	struct core_function *to = function_of(search->reader, branch->target), *from;

	/* Bytes that look like a branch are no branch if no function begins at their target. */
	if (!to || to->vaddr != branch->target || to->is_root)
		return;
	from = function_of(search->reader, branch->next - 1);
	if (!from) {
		to->is_core = false;
		return;
	}
	if (from == to || search->err)
		return;
	search->err = array__reserve(&search->calls, &search->room, search->n_calls + 1,
				     sizeof(*search->calls));
	if (!search->err)
		search->calls[search->n_calls++] = (struct call){ from - core, to - core };
}

/* Marks the functions that the allocator's functions lead to. Returns false if that takes too many
 * rounds. */
static bool reach(const struct core_search *search, unsigned int *rounds)
{
	struct core_function *core = search->reader->core;
	bool is_new = true;

	for (size_t i = 0; i < search->reader->n_core; i++)
		core[i].is_reached = core[i].is_root;
	while (is_new) {
		if (!(*rounds)--)
			return false;
		is_new = false;
		for (size_t i = 0; i < search->n_calls; i++) {
			const struct core_function *from = &core[search->calls[i].from];
			struct core_function *to = &core[search->calls[i].to];

			if (from->is_reached && to->is_core && !to->is_reached)
				to->is_reached = is_new = true;
		}
	}
	return true;
}

/* Removes functions from the core that other code calls, too, and functions that no function of
 * the allocator calls. */
static void settle(const struct core_search *search)
{
	struct core_function *core = search->reader->core;
	unsigned int rounds = MAX_ROUNDS;
	bool is_less = true;

	while (is_less && reach(search, &rounds)) {
		is_less = false;
		for (size_t i = 0; i < search->reader->n_core; i++)
			if (core[i].is_core && !core[i].is_reached) {
				core[i].is_core = false;
				is_less = true;
			}
		for (size_t i = 0; i < search->n_calls; i++) {
			struct core_function *to = &core[search->calls[i].to];

			if (!core[search->calls[i].from].is_core && to->is_core) {
				to->is_core = false;
				is_less = true;
			}
		}
	}
	if (is_less)
		for (size_t i = 0; i < search->reader->n_core; i++)
			core[i].is_core = core[i].is_root;
}

static int find_functions(struct allocator_reader *reader)
{
	struct core_search search = { .reader = reader };
	int err = list_functions(reader);

	if (err)
		return err;
	for (size_t i = 0; i < reader->n_core; i++)
		reader->core[i].is_core = true;
	for (size_t i = 0; i < reader->n_texts; i++) {
		const struct elf_text *text = &reader->texts[i];

		disasm__scan_branches(text->code, text->size, text->vaddr, note_call, &search);
	}
	if (!search.err)
		settle(&search);
	free(search.calls);
	return search.err;
}

int reader__find_core(struct allocator_reader *reader)
{
	const __u32 basic = 1U << AP_MALLOC | 1U << AP_CALLOC | 1U << AP_REALLOC | 1U << AP_FREE;
	const struct allocator *allocator = reader->allocator;
	__u64 start = UINT64_MAX, end = 0;

	reader->core_start = 0;
	/* For a definition no direct call is internal: the rest of the file makes the direct calls
	 * of its functions. */
	reader->core_end = reader->allocator->definition ? 0 : UINT64_MAX;
	if (!elf_file__is_program(reader->elf) || reader->allocator->definition)
		return 0;
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
	if (start > end || end - start > MAX_CORE)
		end = start = 0;
	reader->core_start = start;
	reader->core_end = end;
	return end ? find_functions(reader) : 0;
}

bool reader__is_core(const struct allocator_reader *reader, __u64 return_address)
{
	const struct core_function *function;

	if (return_address <= reader->core_start || return_address > reader->core_end)
		return false;
	if (!reader->n_core)
		return true;
	function = function_of(reader, return_address - 1);
	return function && function->is_core;
}

/*
 * Finds out whether a program's own code avoids the functions of the allocator that the program
 * contains: a compiler that sees both, as with LTO, inlines these functions into their callers, or
 * calls clones of them.
 */

/* Maximum number of functions that the allocator's functions lead to; a program with more is not
 * searched. */
#define MAX_INNER 4096

struct bypass {
	struct allocator_reader *reader;
	struct addresses inner;	 /* the sites, and the functions that they lead to */
	struct addresses called; /* functions that the sites call themselves */
	struct addresses clones;
	__u64 from;	 /* the function whose branches are visited */
	bool is_reached; /* code outside of the allocator calls a site */
	bool is_passed;	 /* code outside of the allocator calls functions that the sites call */
	int err;
};

static bool has(const struct addresses *addresses, __u64 vaddr)
{
	for (size_t i = 0; i < addresses->n; i++)
		if (addresses->at[i] == vaddr)
			return true;
	return false;
}

__u64 reader__function_at(const struct allocator_reader *reader, __u64 vaddr)
{
	const struct addresses *starts = &reader->starts;
	size_t at = ARRAY_LOWER_BOUND(starts->n, i, starts->at[i] <= vaddr);

	return at ? starts->at[at - 1] : 0;
}

/* Returns whether a function of the file, and no stub of the PLT, begins at @vaddr. */
static bool begins_function(const struct allocator_reader *reader, __u64 vaddr)
{
	__u64 slot;

	return reader__function_at(reader, vaddr) == vaddr && reader__text_at(reader, vaddr) &&
	       !reader__stub_slot(reader, vaddr, &slot);
}

static void note_inner(const struct disasm_branch *branch, void *arg)
{
	struct bypass *bypass = arg;
	const struct allocator_reader *reader = bypass->reader;

	if (bypass->err || reader__function_at(reader, branch->target) == bypass->from ||
	    !begins_function(reader, branch->target))
		return;
	if (allocator__site_at(reader->allocator, bypass->from) &&
	    !allocator__site_at(reader->allocator, branch->target) &&
	    !has(&bypass->called, branch->target))
		bypass->err = addresses__add(&bypass->called, branch->target);
	if (!bypass->err && !has(&bypass->inner, branch->target))
		bypass->err = bypass->inner.n < MAX_INNER
				      ? addresses__add(&bypass->inner, branch->target)
				      : -EFBIG;
}

/* Adds the functions that the function at @vaddr leads to. */
static void follow(struct bypass *bypass, __u64 vaddr)
{
	const struct allocator_reader *reader = bypass->reader;
	const struct elf_text *text = reader__text_at(reader, vaddr);
	const struct addresses *starts = &reader->starts;
	size_t next = ARRAY_LOWER_BOUND(starts->n, i, starts->at[i] <= vaddr);
	__u64 at, size;

	if (!text)
		return;
	at = vaddr - text->vaddr;
	size = text->size - at;
	if (next < starts->n && starts->at[next] - vaddr < size)
		size = starts->at[next] - vaddr;
	bypass->from = vaddr;
	disasm__scan_branches(text->code + at, size, vaddr, note_inner, bypass);
}

/* Returns whether @name is the name of a copy of a C library function that the compiler made for
 * some of its callers. */
static bool is_clone(const char *name)
{
	static const char *const kinds[] = { ".constprop.", ".isra.", ".part.", ".specialized." };
	const char *dot = strchr(name, '.');
	bool is_of_function = false;

	for (int i = 0; dot && i < AP_C_FUNCTIONS; i++) {
		const char *function = profile__function_name(i);

		is_of_function |= strlen(function) == (size_t)(dot - name) &&
				  !strncmp(function, name, dot - name);
	}
	if (!is_of_function)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strstr(dot, kinds[i]))
			return true;
	return false;
}

static int add_clone(const struct elf_symbol *symbol, void *arg)
{
	return is_clone(symbol->name)
		       ? addresses__add(&((struct bypass *)arg)->clones, symbol->value)
		       : 0;
}

/* Callback that adds functions which the program exports and which hand out memory by other names:
 * they call the same functions as malloc does. */
static int add_alike(const struct elf_symbol *symbol, void *arg)
{
	enum interface_family family;

	if (!interface__looks_alike(symbol->name) && !interface__find(symbol->name, &family))
		return 0;
	return addresses__add(&((struct bypass *)arg)->inner, symbol->value);
}

static void look_at(const struct disasm_branch *branch, void *arg)
{
	struct bypass *bypass = arg;
	const struct allocator_reader *reader = bypass->reader;
	bool is_site = allocator__site_at(reader->allocator, branch->target),
	     is_called = !is_site && has(&bypass->called, branch->target),
	     is_clone = !is_site && has(&bypass->clones, branch->target);

	if (!(is_site || is_called || is_clone) ||
	    has(&bypass->inner, reader__function_at(reader, branch->next - 1)))
		return;
	bypass->is_reached |= is_site;
	bypass->is_passed |= is_called;
	/* Callers of the function call the clone instead. */
	if (is_clone)
		bypass->reader->allocator->is_bypassed = true;
}

static int look(struct bypass *bypass)
{
	struct allocator_reader *reader = bypass->reader;
	const struct allocator *allocator = reader->allocator;
	int err = elf_file__for_each_further_symbol(reader->elf, add_clone, bypass);

	if (!err)
		err = elf_file__for_each_symbol(reader->elf, add_alike, bypass);
	for (size_t i = 0; i < allocator->n_sites && !err; i++)
		err = addresses__add(&bypass->inner, allocator->sites[i].entry_vaddr);
	for (size_t i = 0; i < bypass->inner.n && !err; i++) {
		follow(bypass, bypass->inner.at[i]);
		err = bypass->err;
	}
	if (err)
		return err;
	for (size_t i = 0; i < reader->n_texts; i++)
		disasm__scan_branches(reader->texts[i].code, reader->texts[i].size,
				      reader->texts[i].vaddr, look_at, bypass);
	for (size_t i = 0; i < reader->n_slots; i++)
		bypass->is_reached |= reader->slots[i].site >= 0;
	reader->allocator->is_bypassed |= bypass->is_passed && !bypass->is_reached;
	return 0;
}

int reader__find_bypass(struct allocator_reader *reader)
{
	struct bypass bypass = { .reader = reader };
	int err;

	if (!elf_file__is_program(reader->elf) || !reader__has_family(reader, INTERFACE_C))
		return 0;
	addresses__sort(&reader->starts);
	err = look(&bypass);
	free(bypass.inner.at);
	free(bypass.called.at);
	free(bypass.clones.at);
	/* After a search that became too large it stays unknown whether the allocator is bypassed. */
	return err == -EFBIG ? 0 : err;
}
