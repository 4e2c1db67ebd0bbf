// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the functions of a defined source in a file. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "error.h"
#include "sources.h"

/* State of the symbol search; @choices are indexed like the source's functions. */
struct finding {
	const struct source *source;
	struct allocator_reader *reader;
	struct choice *choices;
	bool only_new;	   /* second pass: keep the choices of the first one */
	const char *twice; /* name of several functions */
};

static bool is_function(const struct elf_symbol *symbol)
{
	return symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC;
}

static int choose(const struct elf_symbol *symbol, void *arg)
{
	struct finding *finding = arg;
	const struct source_function *function;
	struct choice *choice;
	int err;

	if (!is_function(symbol) || !symbol->value)
		return 0;
	if (!finding->only_new) {
		err = addresses__add(&finding->reader->starts, symbol->value);
		if (err)
			return err;
	}
	function = source__find(finding->source, symbol->name);
	if (!function)
		return 0;
	choice = &finding->choices[function - finding->source->functions];
	if (choice->found && choice->vaddr == symbol->value)
		return 0;
	/* Another symbol of the dynamic symbol table is an older version; a local one with the same
	 * name is another function. */
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
			     const struct source_function *function, const struct choice *choice,
			     struct error *error)
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
	/* Aliases of one function: the first definition decides. */
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

int reader__add_source_sites(struct allocator_reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	const struct source *source = allocator->source;
	struct finding finding = { .source = source, .reader = reader };
	int err;

	if (!source__is_in(source, allocator->path, elf_file__soname(reader->elf)))
		return error__set(error, -ENOENT, "%s is none of the files of %s", allocator->path,
				  source->name);
	allocator->sites = calloc(MAX_SITES, sizeof(*allocator->sites));
	finding.choices = calloc(source->n_functions, sizeof(*finding.choices));
	err = allocator->sites && finding.choices ? find(&finding) : -ENOMEM;
	if (!err && finding.twice)
		err = error__set(error, -ENOTSUP,
				 "it has several functions named %s, and the definition cannot say "
				 "which of them it means",
				 finding.twice);
	for (size_t i = 0; !err && i < source->n_functions; i++)
		if (finding.choices[i].found)
			err = add_function_site(reader, &source->functions[i], &finding.choices[i],
						error);
	free(finding.choices);
	if (err)
		return err;
	if (!allocator->n_sites)
		return error__set(error, -ENOENT, "%s has no function of %s", allocator->path,
				  source->name);
	reader__settle_sites(reader);
	return 0;
}
