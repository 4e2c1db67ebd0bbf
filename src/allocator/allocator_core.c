// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * This file finds which direct calls of an allocator's functions are its own.
 *
 * A library calls its exported functions through the PLT if the program may replace them; a direct call is from one of
 * its functions to another. In a program that contains its allocator every call is direct. There the functions around the
 * basic ones are the allocator's if these lead to them, and nothing else does: linkers put others in between, such as
 * musl's strdup, which comes between free and realloc.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "array.h"

/* The code of compilers takes a handful of rounds; a hostile file's may take one for each function. */
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

/* Returns whether the function is one that frees blocks when a thread or the process ends (glibc, malloc.c); other code of the
 * C library calls it. */
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

/* The function that has @vaddr, or NULL. */
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

	/* Bytes that look like a branch are none if no function begins where they lead. */
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

/* Marks what the allocator's functions lead to. False if that takes too many rounds. */
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

/* Takes out functions that others call, too, and functions that no function of the allocator calls. */
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
	/* Direct calls of a source's functions are made by the rest of the file. */
	reader->core_end = reader->allocator->source ? 0 : UINT64_MAX;
	if (!elf_file__is_program(reader->elf) || reader->allocator->source)
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
