// SPDX-License-Identifier: GPL-3.0-or-later
/* Attaches the programs to the functions of the probed files. */
#include "probes_internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "attachment.h"
#include "cleanup.h"
#include "error.h"
#include "hash_table.h"
#include "interface_abi.h"
#include "definitions.h"
#include "usdt_definition.h"

/* Returns whether another library's reallocarray tail-calls this realloc: the C library's does if
 * this allocator replaces the C library's malloc and has no reallocarray. */
static bool is_tail_called(const struct allocator *allocator, enum ap_function function)
{
	if (function == AP_REALLOC && !allocator__find(allocator, AP_REALLOCARRAY))
		return true;
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].tail_calls & (1ULL << function))
			return true;
	return false;
}

static bool is_live(const struct probes *probes)
{
	return probes->options.free_program;
}

/* Returns AP_NO_BLOCKS for a USDT probe that does not pass the block as an argument, and is not only counted. */
static __u8 blocks_of(const struct allocator *allocator, const struct site *site)
{
	if (allocator->definition && definition__only_counts(allocator->definition))
		return AP_ONLY_COUNTED;
	if (site->usdt && !(AP_FREEING >> site->function & 1) && !site->interface->block)
		return AP_NO_BLOCKS;
	return allocator->definition ? allocator->definition->blocks : 0;
}

/* Functions that are only counted, and go on through the same variable, count once where one calls another. */
static __u8 nesting_of(const struct allocator *allocator, const struct site *site)
{
	const struct definition *definition = allocator->definition;
	const struct definition_function *function;

	if (!definition || !definition__only_counts(definition))
		return definition ? definition->nesting : AP_NESTING_NONE;
	function = definition__find(definition, site->interface->name);
	return function && function->word ? AP_NESTING_BESIDE : AP_NESTING_NONE;
}

int probes__describe_sites(struct probes *probes, const struct allocator *allocator,
			   __u32 allocator_index)
{
	for (size_t i = 0; i < allocator->n_internal_returns; i++) {
		struct ap_internal_return key = {
			.vaddr = allocator->internal_returns[i],
			.allocator = allocator_index,
		};
		__u8 present = 1;

		if (bpf_map_update_elem(probes->options.internal_returns_fd, &key, &present,
					BPF_ANY))
			return -errno;
	}
	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];
		__u32 index = probes->n_sites + i;
		struct ap_site described = {
			.probe_vaddr = site->probe_vaddr,
			.lowered_words = site->lowered_bytes / sizeof(__u64),
			.text_start = allocator->text_start,
			.text_end = allocator->text_end,
			.allocator = allocator_index,
			.function = site->function,
			.tail_calls = site->tail_calls,
			.tail_called = is_tail_called(allocator, site->function),
			.recorded = !!(site->names & probes->options.functions),
			.returns = site->returns != RETURNS_UNKNOWN,
			.described = allocator->is_described,
			.size_argument = site__argument(site, site->interface->size),
			.size_bytes = site->interface->size_bytes,
			.count_argument = site__argument(site, site->interface->count),
			.pointer_argument = site__argument(site, site->interface->pointer),
			.result = site->interface->result,
			.may_jump = site->may_jump,
			.must_jump = site->must_jump,
			.own = site->is_own,
			.behind = site->interface->behind,
			.nesting = nesting_of(allocator, site),
			.blocks = blocks_of(allocator, site),
		};

		if (bpf_map_update_elem(probes->options.sites_fd, &index, &described, BPF_ANY))
			return -errno;
		if (site->usdt && bpf_map_update_elem(probes->options.usdt_sites_fd, &index,
						      &site->usdt->arguments, BPF_ANY))
			return -errno;
	}
	for (size_t i = 0; i < allocator->n_unknown; i++) {
		const struct unknown_function *unknown = &allocator->unknown[i];
		__u32 index = probes->n_sites + allocator->n_sites + i;
		/* Allocators do not copy strings: what calls this one in the same file is other
		 * code of a program, such as Firefox's moz_xstrdup. */
		bool has_inner_calls = !interface__copies(unknown->name);
		struct ap_site described = {
			.probe_vaddr = unknown->vaddr,
			.text_start = has_inner_calls ? allocator->text_start : 0,
			.text_end = has_inner_calls ? allocator->text_end : 0,
			.allocator = allocator_index,
			.by_name = unknown->is_by_name,
		};

		if (bpf_map_update_elem(probes->options.sites_fd, &index, &described, BPF_ANY))
			return -errno;
	}
	return 0;
}

static __u32 choose_unknown(const struct probed_allocator *entry, __u64 *offsets, __u64 *cookies)
{
	const struct allocator *allocator = entry->allocator;
	__u32 n = 0;

	for (; n < allocator->n_unknown; n++) {
		offsets[n] = allocator->unknown[n].offset;
		cookies[n] = entry->first_site + allocator->n_sites + n;
	}
	return n;
}

static bool has_role(const struct probes *probes, const struct site *site, enum probe_role role)
{
	if (role == PROBE_NEST_RETURNS)
		return site->returns == RETURNS_PROBED;
	if (!is_live(probes))
		return probes__uses(probes, site);
	if (AP_FREEING >> site->function & 1)
		return role == PROBE_FREES;
	if (role == PROBE_RETURNS || role == PROBE_ENTRIES)
		return site->returns == RETURNS_PROBED;
	return role == PROBE_PLAIN_ENTRIES && site->returns != RETURNS_PROBED;
}

/* Selects the sites of @role; returns their number. */
static __u32 choose_sites(const struct probes *probes, const struct probed_allocator *entry,
			  enum probe_role role, __u64 *offsets, __u64 *cookies)
{
	const struct allocator *allocator = entry->allocator;
	__u32 n = 0;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];

		if (!has_role(probes, site, role))
			continue;
		offsets[n] = site->probe_offset;
		cookies[n++] = entry->first_site + i;
	}
	return n;
}

static int attach_role(struct probes *probes, struct probed_allocator *entry, int fd,
		       enum probe_role role, struct bpf_program *program, struct error *error)
{
	_cleanup_(free_ptr) __u64 *offsets = NULL, *cookies = NULL;
	const struct probes_options *options = &probes->options;
	size_t room = entry->allocator->n_sites + entry->allocator->n_return_offsets +
		      entry->allocator->n_nest_offsets + entry->allocator->n_unknown;
	struct attachment_request request = {
		.run = options->run,
		.fd = fd,
		.path = entry->path,
	};
	int err;

	request.run.program = program;
	offsets = calloc(room + 1, sizeof(*offsets));
	cookies = calloc(room + 1, sizeof(*cookies));
	if (!offsets || !cookies)
		return -ENOMEM;
	request.offsets = offsets;
	request.cookies = cookies;
	if (role == PROBE_RETURN_INSTRUCTIONS) {
		request.n = entry->allocator->n_return_offsets;
		request.offsets = entry->allocator->return_offsets;
	} else if (role == PROBE_NEST_RETURN_INSTRUCTIONS) {
		request.n = entry->allocator->n_nest_offsets;
		request.offsets = entry->allocator->nest_offsets;
	} else if (role == PROBE_UNKNOWN) {
		request.n = choose_unknown(entry, offsets, cookies);
	} else {
		request.n = choose_sites(probes, entry, role, offsets, cookies);
	}
	if (role == PROBE_RETURNS || role == PROBE_NEST_RETURNS)
		request.kind = UPROBE_RETURN;
	else if (program == options->session_program)
		request.kind = UPROBE_SESSION;
	if (!request.n)
		return 0;
	err = options->load_program(options->context, &request.run.program, error);
	return err ? err : attachment__new(&request, &entry->attachments[role], error);
}

static void tell_unfollowed(struct probed_allocator *entry, const struct site *site)
{
	if (!entry->allocator->is_described)
		snprintf(entry->live_gap, sizeof(entry->live_gap),
			 "not followed: its code does not show where its functions return, and "
			 "return probes might disturb a malloc of the program's own");
	else if (!entry->live_gap[0])
		snprintf(entry->live_gap, sizeof(entry->live_gap),
			 "not followed: its code does not show where its %s returns",
			 site->n_aliases ? site->aliases[0] : site->interface->name);
}

/* Attaches returns before entries, and frees before returns, so that the end of everything that
 * begins is seen. */
static int attach_live(struct probes *probes, struct probed_allocator *entry, int fd,
		       struct error *error)
{
	const struct probes_options *options = &probes->options;
	struct bpf_program *entries = options->session_program;
	const struct allocator *allocator = entry->allocator;
	int err;

	err = attach_role(probes, entry, fd, PROBE_FREES,
			  allocator->is_described ? options->described_free_program
						  : options->free_program,
			  error);
	if (!err)
		err = attach_role(probes, entry, fd, PROBE_RETURN_INSTRUCTIONS,
				  options->return_instruction_program, error);
	if (!err && !entries) {
		err = attach_role(probes, entry, fd, PROBE_RETURNS, options->return_program, error);
		entries = options->run.program;
	}
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].returns == RETURNS_UNKNOWN &&
		    !(AP_FREEING >> allocator->sites[i].function & 1) &&
		    blocks_of(allocator, &allocator->sites[i]) != AP_ONLY_COUNTED)
			tell_unfollowed(entry, &allocator->sites[i]);
	if (allocator->is_collected)
		snprintf(entry->live_gap, sizeof(entry->live_gap),
			 "not all followed to their ends: its collector frees unreachable blocks "
			 "without a call, so that too much counts as live");
	if (!err)
		err = attach_role(probes, entry, fd, PROBE_PLAIN_ENTRIES, options->run.program,
				  error);
	return err ? err : attach_role(probes, entry, fd, PROBE_ENTRIES, entries, error);
}

/* Attaches these before the entries, so that the return of every entered function is seen. */
static int attach_nest(struct probes *probes, struct probed_allocator *entry, int fd,
		       struct error *error)
{
	const struct probes_options *options = &probes->options;
	const struct definition *definition = entry->allocator->definition;
	int err;

	if (!definition || definition->nesting != AP_NESTING_OUTERMOST)
		return 0;
	err = attach_role(probes, entry, fd, PROBE_NEST_RETURNS, options->nest_return_program,
			  error);
	return err ? err
		   : attach_role(probes, entry, fd, PROBE_NEST_RETURN_INSTRUCTIONS,
				 options->nest_return_instruction_program, error);
}

/* Several probes may share the semaphore, so the program decides which hits count. */
static int attach_usdt(struct probes *probes, struct probed_allocator *entry, int fd,
		       struct error *error)
{
	_cleanup_(free_ptr) __u64 *offsets = NULL, *cookies = NULL, *semaphores = NULL;
	const struct allocator *allocator = entry->allocator;
	const struct probes_options *options = &probes->options;
	struct attachment_request request = {
		.run = options->run,
		.fd = fd,
		.path = entry->path,
		.n = allocator->n_sites,
	};

	request.run.program = options->usdt_program;
	offsets = calloc(allocator->n_sites, sizeof(*offsets));
	cookies = calloc(allocator->n_sites, sizeof(*cookies));
	semaphores = calloc(allocator->n_sites, sizeof(*semaphores));
	if (!offsets || !cookies || !semaphores)
		return -ENOMEM;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		offsets[i] = allocator->sites[i].probe_offset;
		cookies[i] = entry->first_site + i;
		semaphores[i] = allocator->sites[i].usdt->semaphore_offset;
	}
	request.offsets = offsets;
	request.cookies = cookies;
	request.semaphores = semaphores;
	return attachment__new(&request, &entry->attachments[PROBE_ENTRIES], error);
}

static int attach_sites(struct probes *probes, struct probed_allocator *entry, int fd,
			struct error *error)
{
	if (entry->definition && entry->definition->is_usdt)
		return attach_usdt(probes, entry, fd, error);
	if (is_live(probes))
		return attach_live(probes, entry, fd, error);
	return attach_role(probes, entry, fd, PROBE_ENTRIES, probes->options.run.program, error);
}

/* Returns whether attach_live() or attach_nest() sets a return probe at the site. */
static bool has_return_probe(const struct probes *probes, const struct allocator *allocator,
			     const struct site *site)
{
	bool is_nested =
		allocator->definition && allocator->definition->nesting == AP_NESTING_OUTERMOST;

	return (is_nested && has_role(probes, site, PROBE_NEST_RETURNS)) ||
	       (is_live(probes) && has_role(probes, site, PROBE_RETURNS));
}

static void allow_return_probes(const struct probes *probes, struct allocator *allocator)
{
	for (size_t i = 0; i < allocator->n_sites; i++) {
		struct site *site = &allocator->sites[i];

		if (has_return_probe(probes, allocator, site))
			site__allow_return_probe(site);
	}
}

/* A probe that the kernel refuses when a process maps the file is missing, and nobody is told. */
static int check_allowed(const struct probes *probes, const struct allocator *allocator,
			 struct error *error)
{
	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];

		if (site->refused && probes__uses(probes, site))
			return error__set(error, -EINVAL,
					  "%s: the kernel sets no probe at `%s`, with which %s "
					  "begins; -e with the other functions leaves it out",
					  allocator->path, site->instruction,
					  site->interface->name);
	}
	return 0;
}

int probes__attach(struct probes *probes, struct probed_allocator *entry, int fd,
		   struct error *error)
{
	__u32 n_sites;
	int err;

	if (!probes->options.run.program)
		return 0;
	n_sites = entry->allocator->n_sites + entry->allocator->n_unknown;
	if (probes->n_sites + n_sites > probes->options.max_sites)
		return error__set(
			error, -E2BIG,
			"all %u slots for probed functions are in use; name fewer with -e or "
			"--allocator",
			probes->options.max_sites);
	allow_return_probes(probes, entry->allocator);
	err = check_allowed(probes, entry->allocator, error);
	if (err)
		return err;
	err = probes__describe_sites(probes, entry->allocator, entry - probes->list);
	if (err)
		return error__set(error, err, "cannot write the probes of %s to the BPF maps: %s",
				  entry->path, strerror(-err));
	entry->first_site = probes->n_sites;
	/* The sites keep their numbers even if the rest fails, since some may have been hit. */
	probes->n_sites += n_sites;
	err = attach_nest(probes, entry, fd, error);
	if (!err)
		err = attach_sites(probes, entry, fd, error);
	/* This role comes last, since its program may have to be loaded first. */
	if (!err)
		err = attach_role(probes, entry, fd, PROBE_UNKNOWN, probes->options.unknown_program,
				  error);
	if (!err) {
		entry->has_sites = true;
		return 0;
	}
	for (int role = 0; role < PROBE_ROLES; role++) {
		attachment__free(entry->attachments[role]);
		entry->attachments[role] = NULL;
	}
	return err;
}
