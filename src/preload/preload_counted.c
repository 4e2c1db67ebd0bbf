// SPDX-License-Identifier: GPL-3.0-or-later
/* Has processes count the calls of functions that definitions only count (src/inside/counted.h), and those that come by
 * tables of functions (src/inside/domains.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "definitions.h"
#include "error.h"
#include "preload_engine_internal.h"

#define OTHERWISE "use --engine=uprobe, as root"

static int refuse(const struct definition *definition, const char *what, const char *why,
		  struct error *error)
{
	return error__set(error, -EOPNOTSUPP,
			  "%s of '%s' cannot be counted with the engine preload, %s; " OTHERWISE,
			  what, definition->name, why);
}

/* Returns whether functions of another definition go on through the variable. */
static bool is_shared(const struct inside_all_counted *all, const struct inside_counted *counted)
{
	for (__u32 i = 0; i < all->n; i++)
		if (*counted->word && all->list[i].function != counted->function &&
		    !strcmp(all->list[i].word, counted->word))
			return true;
	return false;
}

/* Returns false if the name is too long. */
static bool set_name(char to[INSIDE_NAME_BYTES], const char *name)
{
	if (name && strlen(name) >= INSIDE_NAME_BYTES)
		return false;
	strcpy(to, name ?: "");
	return true;
}

static bool is_counted(const struct inside_all_counted *all, const char *name)
{
	for (__u32 i = 0; i < all->n; i++)
		if (!strcmp(all->list[i].name, name))
			return true;
	return false;
}

static int add_function(const struct definition *definition,
			const struct definition_function *function, struct inside_all_counted *all,
			struct error *error)
{
	struct inside_counted *to = &all->list[all->n];

	if (is_counted(all, function->name))
		return refuse(definition, function->name,
			      "where each call counts once, and which another definition counts",
			      error);
	if (all->n == INSIDE_COUNTED)
		return refuse(definition, function->name, "which counts 64 functions at the most",
			      error);
	to->function = function->interface.function;
	if (!set_name(to->name, function->name) || !set_name(to->word, function->word) ||
	    !set_name(to->flag, definition->switch_name))
		return refuse(definition, function->name, "which takes names of up to 159 bytes",
			      error);
	if (is_shared(all, to))
		return refuse(definition, function->name,
			      "where another definition counts by the same variable", error);
	all->n++;
	return 0;
}

static int add_domain(const struct definition *definition, struct inside_all_counted *all,
		      struct error *error)
{
	struct inside_domain *to = &all->domains[all->n_domains];

	if (definition->domain && definition->nesting != AP_NESTING_OUTERMOST)
		return refuse(definition, definition->domain,
			      "beneath which nothing else counts: leave out :beside", error);
	if (!definition->domain)
		return refuse(
			definition, definition->functions[0].name,
			"which sets no probes, and takes an allocator's definition only if it has "
			"a `domain`",
			error);
	if (all->n_domains == INSIDE_DOMAINS)
		return refuse(definition, definition->domain, "which takes 8 domains at the most",
			      error);
	to->definition = definition->index;
	to->number = definition->domain_number;
	if (!set_name(to->getter, definition->domain))
		return refuse(definition, definition->domain,
			      "which takes names of up to 159 bytes", error);
	all->n_domains++;
	return 0;
}

static int add_files(const struct definition *definition, char *to, struct error *error)
{
	size_t used = 0;

	for (size_t i = 0; i < definition->n_modules; i++) {
		const char *file = definition->modules[i];
		_cleanup_(free_ptr) char *path = strchr(file, '/') ? realpath(file, NULL) : NULL;
		size_t len = strlen(path ?: file) + 1;

		if (!path && (strchr(file, '[') || strchr(file, '/')))
			return refuse(
				definition, file,
				"which takes names of files with '*' and '?', and paths of files",
				error);
		if (used + len >= INSIDE_FILES_BYTES)
			return refuse(definition, file, "which takes up to 511 bytes of names",
				      error);
		memcpy(to + used, path ?: file, len);
		used += len;
	}
	return 0;
}

int preload_counted__make(const struct definitions *definitions, struct inside_all_counted **out,
			  struct error *error)
{
	_cleanup_(free_ptr) struct inside_all_counted *all = calloc(1, sizeof(*all));
	int err = all ? 0 : -ENOMEM;

	for (size_t i = 0; i < definitions->n && !err; i++) {
		const struct definition *definition = &definitions->list[i];

		if (definition->is_usdt)
			return refuse(definition, definition->functions[0].name,
				      "which sets no probes", error);
		if (!definition__only_counts(definition)) {
			err = add_domain(definition, all, error);
			continue;
		}
		for (size_t j = 0; j < definition->n_functions && !err; j++)
			err = add_function(definition, &definition->functions[j], all, error);
		if (!err)
			err = add_files(definition, all->files[definition->index], error);
	}
	if (err)
		return err;
	*out = all;
	all = NULL;
	return 0;
}
