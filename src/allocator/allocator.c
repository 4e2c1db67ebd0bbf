// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "cleanup.h"
#include "error.h"
#include "profile.h"
#include "region_abi.h"

static int read_texts(struct allocator_reader *reader)
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

static int read_starts(struct allocator_reader *reader)
{
	_cleanup_(free_ptr) __u64 *fdes = NULL;
	size_t n;
	int err = elf_file__fde_starts(reader->elf, &fdes, &n);

	for (size_t i = 0; !err && i < n; i++)
		err = addresses__add(&reader->starts, fdes[i]);
	addresses__sort(&reader->starts);
	return err;
}

static int defines_symbol(const struct elf_symbol *symbol, void *arg)
{
	const char *const *names = arg;

	for (; *names; names++)
		if (strcmp(*names, symbol->name) == 0)
			return 1;
	return 0;
}

static bool imports_any(struct elf_file *elf, const char *const *names)
{
	for (; *names; names++)
		if (elf_file__imports(elf, *names))
			return true;
	return false;
}

/* Callback that notes a return instruction, and ends a path at each call, or indirect jump, which
 * may get memory from other code. */
static enum flow_step visit_own(const struct disasm_insn *insn, void *arg)
{
	struct allocator_reader *reader = arg;

	switch (insn->class) {
	case DISASM_RET:
		reader->gets_by_itself = true;
		return FLOW_PASS;
	case DISASM_CALL:
	case DISASM_CALL_INDIRECT:
	case DISASM_JUMP_INDIRECT:
		return FLOW_STOP;
	case DISASM_JUMP:
	case DISASM_JUMP_CONDITIONAL:
		return FLOW_FOLLOW;
	default:
		return FLOW_PASS;
	}
}

/* Returns whether the allocator's malloc can return without calling anything: then it has memory
 * of its own. */
static bool has_own_memory(struct allocator_reader *reader)
{
	const struct site *site = allocator__find(reader->allocator, AP_MALLOC);

	reader->gets_by_itself = false;
	return !site || reader__walk_flow(reader, site->entry_vaddr, visit_own) ||
	       reader->gets_by_itself;
}

/* Sets whether the allocator only forwards calls to the next allocator in line, which counts them
 * (is_wrapper). */
static void find_forwarding(struct allocator_reader *reader)
{
	/* Functions that memory is got by; "__morecore" was glibc's hook until 2.33. A library
	 * that looks functions up with dlsym and defines an mmap of its own stands in front of
	 * mmap, too, so that mmap does not make it an allocator. */
	static const char *const sources[] = { "mmap", "mmap64",   "__mmap",	 "sbrk", "__sbrk",
					       "brk",  "morecore", "__morecore", NULL };
	static const char *const *const not_mmap = sources + 2;
	static const char *const searches[] = { "dlsym", "dlvsym", NULL };
	static const char *const others[] = { "__libc_malloc", "__libc_calloc", "__libc_realloc",
					      "__libc_memalign", NULL };
	struct allocator *allocator = reader->allocator;
	bool searches_next = imports_any(reader->elf, searches);

	allocator->goes_past = imports_any(reader->elf, others);
	if (imports_any(reader->elf, sources) ||
	    elf_file__for_each_symbol(reader->elf, defines_symbol,
				      (void *)(searches_next ? not_mmap : sources)))
		return;
	allocator->is_wrapper = searches_next || (allocator->goes_past && !has_own_memory(reader));
}

static int check_entries(const struct allocator_reader *reader, struct error *error)
{
	const struct allocator *allocator = reader->allocator;

	for (size_t i = 0; i < allocator->n_sites; i++)
		if (!reader__text_at(reader, allocator->sites[i].entry_vaddr))
			return error__set(error, -ENOEXEC,
					  "%s has its %s outside of its code: it is damaged",
					  allocator->path,
					  profile__function_name(allocator->sites[i].function));
	return 0;
}

static int read_code(struct allocator_reader *reader, enum site_policy policy, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	int err = read_starts(reader);

	if (!err && (allocator->is_described ||
		     (!reader->is_c_library && !elf_file__is_program(reader->elf))))
		err = reader__add_definitions(reader);
	if (!err && allocator->is_described) {
		/* Add the slots of all sites first: they decide which sites are dropped. */
		err = reader__add_slots(reader);
		if (!err)
			err = reader__drop_forwarding_operators(reader);
	}
	if (!err)
		err = reader__add_aliases(reader);
	if (!err)
		err = reader__add_slots(reader);
	if (!err)
		err = reader__walk_flows(reader);
	if (!err)
		err = reader__scan_texts(reader);
	if (err)
		return err;
	for (size_t i = 0; i < allocator->n_sites; i++)
		reader__place_probe(reader, &allocator->sites[i], reader->branched_to[i], policy);
	err = allocator->definition ? reader__find_definition_ends(reader, error)
				    : reader__find_ends(reader);
	if (err)
		return err;
	addresses__sort(&reader->returns);
	err = reader__find_references(reader);
	if (err)
		return err;
	allocator->internal_returns = reader->returns.at;
	allocator->n_internal_returns = reader->returns.n;
	reader->returns = (struct addresses){ 0 };
	return 0;
}

/* Returns whether the file is the library that the engine preload loads into processes. It passes
 * each call on to an allocator, where the call counts. */
static bool is_preloaded_library(const struct allocator_reader *reader)
{
	static const char *const marks[] = { AP_REGION_MARK_FUNCTION, NULL };

	return !elf_file__is_program(reader->elf) &&
	       elf_file__for_each_symbol(reader->elf, defines_symbol, (void *)marks);
}

static int find_sites(struct allocator_reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	int err;

	if (allocator->definition)
		return reader__add_definition_sites(reader, error);
	err = reader__choose_symbols(reader);
	if (err)
		return err;
	if (!reader__has_family(reader, INTERFACE_CPLUSPLUS) || is_preloaded_library(reader))
		return error__set(error, -ENOENT,
				  "%s defines no allocator: it has no malloc and free of its own",
				  allocator->path);
	return reader__add_sites(reader, error);
}

static int read_allocator(struct allocator_reader *reader, enum site_policy policy,
			  struct error *error)
{
	struct allocator *allocator = reader->allocator;
	int err = find_sites(reader, error);

	if (err)
		goto failed;
	err = read_texts(reader);
	if (err)
		goto failed;
	err = check_entries(reader, error);
	if (err)
		return err;
	err = read_code(reader, policy, error);
	if (err)
		goto failed;
	elf_file__text_range(reader->elf, &allocator->text_start, &allocator->text_end);
	snprintf(allocator->build_id, sizeof(allocator->build_id), "%s",
		 elf_file__build_id(reader->elf));
	if (allocator->definition)
		return 0;
	find_forwarding(reader);
	err = reader__find_bypass(reader);
	if (!err)
		err = reader__find_unknown(reader);
	if (!err)
		return 0;
failed:
	if (error && error->text[0])
		return err;
	return error__set(error, err, "cannot read the allocator in %s: %s", allocator->path,
			  strerror(-err));
}

static int read_file(int fd, const char *path, const struct definition *definition,
		     enum site_policy policy, struct allocator **out, struct error *error)
{
	struct allocator_reader reader = { .lowest_entry = ~0ULL };
	int err;

	reader.allocator = calloc(1, sizeof(*reader.allocator));
	if (!reader.allocator)
		return error__set(error, -ENOMEM, "no memory to read %s", path);
	reader.allocator->definition = definition;
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
	free(reader.jumps.at);
	free(reader.continuations.at);
	free(reader.ends);
	free(reader.edges);
	free(reader.core);
	free(reader.candidates);
	free(reader.definitions);
	elf_file__free(reader.elf);
	allocator__free(reader.allocator);
	return err;
}

int allocator__read(int fd, const char *path, enum site_policy policy, struct allocator **out,
		    struct error *error)
{
	return read_file(fd, path, NULL, policy, out, error);
}

int allocator__read_definition(int fd, const char *path, const struct definition *definition,
			       enum site_policy policy, struct allocator **out, struct error *error)
{
	return read_file(fd, path, definition, policy, out, error);
}

void allocator__free(struct allocator *allocator)
{
	if (!allocator)
		return;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		for (size_t j = 0; j < allocator->sites[i].n_aliases; j++)
			free(allocator->sites[i].aliases[j]);
		free(allocator->sites[i].aliases);
		free(allocator->sites[i].usdt);
	}
	for (int i = 0; i < AP_FUNCTIONS; i++)
		free(allocator->names[i].list);
	for (size_t i = 0; i < allocator->n_unknown; i++)
		free(allocator->unknown[i].name);
	free(allocator->unknown);
	free(allocator->sites);
	free(allocator->internal_returns);
	free(allocator->references);
	free(allocator->return_offsets);
	free(allocator->nest_offsets);
	free(allocator->path);
	free(allocator);
}

__u8 site__argument(const struct site *site, __u8 number)
{
	__u8 at = number <= SITE_ARGUMENTS ? site->argument_at[number] : 0;

	return at ? at : number;
}

void site__allow_return_probe(struct site *site)
{
	if (!site->lowered_bytes)
		return;
	site->probe_vaddr = site->entry_vaddr;
	site->probe_offset = site->entry_offset;
	site->lowered_bytes = 0;
	memset(site->argument_at, 0, sizeof(site->argument_at));
	site->emulated = false;
	memcpy(site->instruction, site->entry_instruction, sizeof(site->instruction));
	snprintf(site->reason, sizeof(site->reason),
		 "its return is probed, too, which has to be before `%s`", site->entry_instruction);
}

const struct site *allocator__find(const struct allocator *allocator, enum ap_function function)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].names >> function & 1)
			return &allocator->sites[i];
	return NULL;
}
