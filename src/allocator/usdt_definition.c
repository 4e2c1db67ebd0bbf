// SPDX-License-Identifier: GPL-3.0-or-later
#include "usdt_definition.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "debug_file.h"
#include "elf_file.h"
#include "error.h"
#include "function_code.h"
#include "definitions.h"
#include "usdt.h"

struct search {
	const struct definition *definition;
	const char *path;
	struct elf_file *elf;
	struct allocator *allocator;
	struct error *error;
	int err;
};

/* Parses argument @number of the probe, counted from 1. With 0 it parses nothing. */
static int read_operand(struct search *search, const struct usdt_probe *probe, __u8 number,
			struct ap_operand *out)
{
	int err = number ? usdt_operand__parse(probe->arguments, number - 1, out) : 0;

	if (err == -ENOENT)
		return error__set(search->error, -ENOTSUP,
				  "its USDT probe %s:%s has no arg%d; its arguments are '%.100s'",
				  probe->provider, probe->name, number - 1, probe->arguments);
	if (err)
		return error__set(search->error, -ENOTSUP,
				  "arg%d of its USDT probe %s:%s cannot be read where it is: "
				  "'%.100s'",
				  number - 1, probe->provider, probe->name, probe->arguments);
	return 0;
}

static int read_arguments(struct search *search, const struct usdt_probe *probe,
			  const struct interface_function *interface, struct ap_usdt *out)
{
	int err = read_operand(search, probe, interface->size, &out->size);

	if (interface->size_bytes)
		out->size = (struct ap_operand){
			.kind = AP_OPERAND_CONSTANT,
			.value = interface->size_bytes,
			.bytes = sizeof(__u64),
		};
	if (!err)
		err = read_operand(search, probe, interface->count, &out->count);
	if (!err)
		err = read_operand(search, probe, interface->pointer, &out->pointer);
	if (!err)
		err = read_operand(search, probe, interface->weight, &out->weight);
	return err ? err : read_operand(search, probe, interface->block, &out->result);
}

static int find_site(struct search *search, const struct usdt_probe *probe, struct site *site)
{
	if (function_code__nop_offset(search->elf, probe->vaddr, &site->probe_offset) ||
	    (probe->semaphore && elf_file__vaddr_to_offset(search->elf, probe->semaphore,
							   &site->usdt->semaphore_offset)))
		return error__set(search->error, -ENOTSUP,
				  "the note of its USDT probe %s:%s is damaged: there is no nop at "
				  "its address",
				  probe->provider, probe->name);
	site->probe_vaddr = site->entry_vaddr = probe->vaddr;
	site->entry_offset = site->probe_offset;
	return 0;
}

static int add_site(struct search *search, const struct usdt_probe *probe,
		    const struct definition_function *function)
{
	struct allocator *allocator = search->allocator;
	struct site *site = &allocator->sites[allocator->n_sites];
	int err;

	if (allocator->n_sites == USDT_MAX_SITES)
		return error__set(search->error, -E2BIG,
				  "it has more than %d locations of USDT probes of %s",
				  USDT_MAX_SITES, search->definition->name);
	*site = (struct site){
		.function = function->interface.function,
		.names = 1ULL << function->interface.function,
		.interface = &function->interface,
		.emulated = true,
		.returns = RETURNS_PROBED,
		.usdt = calloc(1, sizeof(*site->usdt)),
	};
	if (!site->usdt)
		return -ENOMEM;
	allocator->n_sites++;
	err = find_site(search, probe, site);
	return err ? err
		   : read_arguments(search, probe, &function->interface, &site->usdt->arguments);
}

static int consider(const struct usdt_probe *probe, void *arg)
{
	const struct definition_function *function;
	struct search *search = arg;
	char name[256];

	if (snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name) >=
	    (int)sizeof(name))
		return 0;
	function = definition__find(search->definition, name);
	if (function)
		search->err = add_site(search, probe, function);
	return search->err;
}

/* If some probes of the definition exist, the name of a missing one is most likely misspelt. */
static int check_missing(struct search *search)
{
	const struct allocator *allocator = search->allocator;

	if (!allocator->n_sites)
		return error__set(search->error, -ENOENT, "%s has no USDT probe of %s",
				  search->path, search->definition->name);
	for (size_t i = 0; i < search->definition->n_functions; i++) {
		const struct definition_function *function = &search->definition->functions[i];
		bool is_there = false;

		for (size_t j = 0; j < allocator->n_sites; j++)
			is_there |= allocator->sites[j].interface == &function->interface;
		if (!is_there)
			return error__set(search->error, -ENOTSUP, "it has no USDT probe %s",
					  function->name);
	}
	return 0;
}

static int read_notes(struct search *search, int fd)
{
	struct debug_file notes = DEBUG_FILE_NONE;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), err;

	if (own < 0)
		return -errno;
	elf_version(EV_CURRENT);
	err = debug_file__open(own, search->path, &notes, search->error);
	if (!err) {
		usdt__for_each(notes.elf, consider, search);
		err = search->err;
	}
	debug_file__close(&notes);
	return err ? err : check_missing(search);
}

int usdt_definition__read(int fd, const char *path, const struct definition *definition,
			  struct allocator **out, struct error *error)
{
	struct search search = { .definition = definition, .path = path, .error = error };
	int err = elf_file__open(fd, path, &search.elf, error);

	if (err)
		return err;
	if (!definition__is_in(definition, path, elf_file__soname(search.elf))) {
		elf_file__free(search.elf);
		return error__set(error, -ENOENT, "%s is none of the files of %s", path,
				  definition->name);
	}
	search.allocator = calloc(1, sizeof(*search.allocator));
	if (search.allocator) {
		search.allocator->definition = definition;
		search.allocator->path = strdup(path);
		search.allocator->sites = calloc(USDT_MAX_SITES, sizeof(*search.allocator->sites));
		snprintf(search.allocator->build_id, sizeof(search.allocator->build_id), "%s",
			 elf_file__build_id(search.elf));
	}
	err = search.allocator && search.allocator->path && search.allocator->sites
		      ? read_notes(&search, fd)
		      : -ENOMEM;
	elf_file__free(search.elf);
	if (err) {
		allocator__free(search.allocator);
		return err;
	}
	*out = search.allocator;
	return 0;
}
