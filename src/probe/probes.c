// SPDX-License-Identifier: GPL-3.0-or-later
#include "probes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator.h"
#include "attachment.h"
#include "cleanup.h"
#include "command_path.h"
#include "elf_file.h"
#include "error.h"
#include "hash_table.h"
#include "hidden_allocator.h"
#include "interface.h"
#include "libraries.h"
#include "mapped_file.h"
#include "mapping_events.h"
#include "sources.h"
#include "translator.h"
#include "unprobed.h"
#include "usdt_source.h"

#define GO_HAS_NO_MALLOC                                                                             \
	"which has no malloc: Go's runtime allocates memory itself, and Go's package runtime/pprof " \
	"profiles that"

/* A static program without an allocator that has a name. It may need none. */
struct opaque {
	struct probed_allocator entry; /* as it is listed if it turns out to need one */
	__u32 pid;		       /* that mapped it first */
};

struct probes {
	struct probes_options options;
	struct probed_allocator *list;
	size_t n_list;
	__u32 n_sites;
	struct opaque *opaque;
	size_t n_opaque;
	/* Files of mapping events that were looked at, so that each is opened once. */
	struct file_identity *seen;
	size_t n_seen;
	struct hash_table seen_index;
};

int probes__new(const struct probes_options *options, struct probes **out)
{
	struct probes *probes = calloc(1, sizeof(*probes));

	if (!probes)
		return -ENOMEM;
	probes->options = *options;
	*out = probes;
	return 0;
}

void probes__detach(struct probes *probes)
{
	for (int role = 0; role < PROBE_ROLES; role++)
		for (size_t i = 0; i < probes->n_list; i++) {
			attachment__free(probes->list[i].attachments[role]);
			probes->list[i].attachments[role] = NULL;
		}
}

static bool is_probed(const struct probed_allocator *entry)
{
	for (int role = 0; role < PROBE_ROLES; role++)
		if (entry->attachments[role])
			return true;
	return false;
}

void probes__free(struct probes *probes)
{
	if (!probes)
		return;
	probes__detach(probes);
	for (size_t i = 0; i < probes->n_list; i++) {
		allocator__free(probes->list[i].allocator);
		free(probes->list[i].path);
		free(probes->list[i].build_id);
	}
	for (size_t i = 0; i < probes->n_opaque; i++) {
		free(probes->opaque[i].entry.path);
		free(probes->opaque[i].entry.build_id);
	}
	free(probes->opaque);
	free(probes->list);
	free(probes->seen);
	hash_table__release(&probes->seen_index);
	free(probes);
}

const struct probed_allocator *probes__list(const struct probes *probes, size_t *n)
{
	*n = probes->n_list;
	return probes->list;
}

bool probes__uses(const struct probes *probes, const struct site *site)
{
	return (site->names & probes->options.functions) || site->tail_calls || site->may_jump ||
	       (site->function >= AP_DEFINED && sources__any_outermost(probes->options.sources));
}

/* Where an allocator comes before the C library and has no reallocarray, that of the C library ends in a jump to its
 * realloc. */
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

/* A block that a USDT probe does not tell of cannot be followed. */
static __u8 blocks_of(const struct allocator *allocator, const struct site *site)
{
	if (site->usdt && !(AP_FREEING >> site->function & 1) && !site->interface->block)
		return AP_NO_BLOCKS;
	return allocator->source ? allocator->source->blocks : 0;
}

/* Tells the programs of the sites. */
static int describe_sites(struct probes *probes, const struct allocator *allocator,
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
			.text_start = allocator->text_start,
			.text_end = allocator->text_end,
			.allocator = allocator_index,
			.function = site->function,
			.tail_calls = site->tail_calls,
			.tail_called = is_tail_called(allocator, site->function),
			.recorded = !!(site->names & probes->options.functions),
			.returns = site->returns != RETURNS_UNKNOWN,
			.described = allocator->is_described,
			.size_argument = site->interface->size,
			.count_argument = site->interface->count,
			.pointer_argument = site->interface->pointer,
			.result = site->interface->result,
			.may_jump = site->may_jump,
			.must_jump = site->must_jump,
			.own = site->is_own,
			.behind = site->interface->behind,
			.nesting = allocator->source ? allocator->source->nesting : 0,
			.blocks = blocks_of(allocator, site),
		};

		if (bpf_map_update_elem(probes->options.sites_fd, &index, &described, BPF_ANY))
			return -errno;
		if (site->usdt && bpf_map_update_elem(probes->options.usdt_sites_fd, &index,
						      &site->usdt->arguments, BPF_ANY))
			return -errno;
	}
	for (size_t i = 0; i < allocator->n_unknown; i++) {
		__u32 index = probes->n_sites + allocator->n_sites + i;
		struct ap_site described = {
			.probe_vaddr = allocator->unknown[i].vaddr,
			.text_start = allocator->text_start,
			.text_end = allocator->text_end,
			.allocator = allocator_index,
			.by_name = allocator->unknown[i].is_by_name,
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

/* The sites that are probed by @role's program; returns how many. */
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
		.program = program,
		.multi = options->multi,
		.fd = fd,
		.path = entry->path,
		.pid = options->pid,
	};

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
	return request.n ? attachment__new(&request, &entry->attachments[role], error) : 0;
}

static bool all_return_probed(const struct allocator *allocator)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].returns != RETURNS_PROBED)
			return false;
	return true;
}

static void tell_unfollowed(struct probed_allocator *entry, const struct site *site)
{
	if (!entry->allocator->is_described)
		snprintf(
			entry->live_gap, sizeof(entry->live_gap),
			"not followed: where its functions return cannot be told from its code, and "
			"return probes might disturb a malloc of the program's own");
	else if (!entry->live_gap[0])
		snprintf(entry->live_gap, sizeof(entry->live_gap),
			 "not followed: where its %s returns cannot be told from its code",
			 site->n_aliases ? site->aliases[0] : site->interface->name);
}

/* Returns before entries and frees before returns, so that what is seen to begin is seen to end. */
static int attach_live(struct probes *probes, struct probed_allocator *entry, int fd,
		       struct error *error)
{
	const struct probes_options *options = &probes->options;
	struct bpf_program *entries = options->session_program, *plain = options->program;
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
		entries = options->program;
	}
	if (!err && options->load_program && !all_return_probed(allocator))
		err = options->load_program(options->context, &plain, error);
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].returns == RETURNS_UNKNOWN &&
		    !(AP_FREEING >> allocator->sites[i].function & 1))
			tell_unfollowed(entry, &allocator->sites[i]);
	if (allocator->is_collected)
		snprintf(entry->live_gap, sizeof(entry->live_gap),
			 "not all followed to their ends: its collector frees what nobody uses any "
			 "more and does not tell which, so that too much counts as live");
	if (!err)
		err = attach_role(probes, entry, fd, PROBE_PLAIN_ENTRIES, plain, error);
	return err ? err : attach_role(probes, entry, fd, PROBE_ENTRIES, entries, error);
}

/* Before the entries, so that what is seen to begin is seen to end. */
static int attach_nest(struct probes *probes, struct probed_allocator *entry, int fd,
		       struct error *error)
{
	const struct probes_options *options = &probes->options;
	const struct source *source = entry->allocator->source;
	int err;

	if (!source || source->nesting != AP_NESTING_OUTERMOST)
		return 0;
	err = attach_role(probes, entry, fd, PROBE_NEST_RETURNS, options->nest_return_program,
			  error);
	return err ? err
		   : attach_role(probes, entry, fd, PROBE_NEST_RETURN_INSTRUCTIONS,
				 options->nest_return_instruction_program, error);
}

/* Whether they count or not is decided by the program: a semaphore may be shared. */
static int attach_usdt(struct probes *probes, struct probed_allocator *entry, int fd,
		       struct error *error)
{
	_cleanup_(free_ptr) __u64 *offsets = NULL, *cookies = NULL, *semaphores = NULL;
	const struct allocator *allocator = entry->allocator;
	const struct probes_options *options = &probes->options;
	struct attachment_request request = {
		.program = options->usdt_program,
		.multi = options->multi,
		.fd = fd,
		.path = entry->path,
		.pid = options->pid,
		.n = allocator->n_sites,
	};

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
	if (entry->source && entry->source->is_usdt)
		return attach_usdt(probes, entry, fd, error);
	if (is_live(probes))
		return attach_live(probes, entry, fd, error);
	return attach_role(probes, entry, fd, PROBE_ENTRIES, probes->options.program, error);
}

static int attach(struct probes *probes, struct probed_allocator *entry, int fd,
		  struct error *error)
{
	__u32 n_sites;
	int err;

	if (!probes->options.program)
		return 0;
	n_sites = entry->allocator->n_sites + entry->allocator->n_unknown;
	if (probes->n_sites + n_sites > AP_MAX_SITES)
		return error__set(error, -E2BIG, "%s is one allocator more than can be probed",
				  entry->path);
	err = describe_sites(probes, entry->allocator, entry - probes->list);
	if (err)
		return error__set(error, err, "cannot tell the kernel of the probes in %s: %s",
				  entry->path, strerror(-err));
	entry->first_site = probes->n_sites;
	err = attach_role(probes, entry, fd, PROBE_UNKNOWN, probes->options.unknown_program, error);
	if (!err)
		err = attach_nest(probes, entry, fd, error);
	if (!err)
		err = attach_sites(probes, entry, fd, error);
	if (!err) {
		probes->n_sites += n_sites;
		return 0;
	}
	for (int role = 0; role < PROBE_ROLES; role++) {
		attachment__free(entry->attachments[role]);
		entry->attachments[role] = NULL;
	}
	return err;
}

/* What is known of the file: its allocator, or what @source has in it. */
static const struct probed_allocator *find_file(const struct probes *probes, const struct stat *st,
						const struct source *source)
{
	for (size_t i = 0; i < probes->n_list; i++)
		if (probes->list[i].device == st->st_dev && probes->list[i].inode == st->st_ino &&
		    probes->list[i].source == source)
			return &probes->list[i];
	return NULL;
}

/* Allocators that are files. */
static size_t n_files(const struct probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->n_list; i++)
		n += probes->list[i].inode != 0;
	return n;
}

/* A file whose allocator is not probed, and why; false without memory. */
static bool make_unprobed(int fd, const char *path, const struct source *source, const char *gap,
			  struct probed_allocator *entry)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*entry = (struct probed_allocator){
		.path = strdup(path),
		.build_id = strdup(""),
		.device = st.st_dev,
		.inode = st.st_ino,
		.source = source,
	};
	snprintf(entry->gap, sizeof(entry->gap), "%s", gap);
	if (entry->path && entry->build_id)
		return true;
	free(entry->path);
	free(entry->build_id);
	return false;
}

/* Lists it. */
static void add_unprobed(struct probes *probes, int fd, const char *path,
			 const struct source *source, const char *gap)
{
	struct probed_allocator *list = realloc(probes->list, (probes->n_list + 1) * sizeof(*list));

	if (!list)
		return;
	probes->list = list;
	if (make_unprobed(fd, path, source, gap, &list[probes->n_list]))
		probes->n_list++;
}

static void note_hidden(struct probes *probes, int fd, const char *path)
{
	const char *name = hidden_allocator__find(fd, path);
	char gap[200];

	if (!name)
		return;
	snprintf(
		gap, sizeof(gap),
		"not probed: %s is linked into it, and its functions have no names there; leave the "
		"program's symbols in (no strip)",
		name);
	add_unprobed(probes, fd, path, NULL, gap);
}

/* Lists @allocator, which is the list's then, and probes it. */
static int add_allocator(struct probes *probes, int fd, const char *path, const struct stat *st,
			 struct allocator *allocator, struct error *error)
{
	struct probed_allocator *list, *entry;
	int err;

	list = realloc(probes->list, (probes->n_list + 1) * sizeof(*list));
	if (!list) {
		allocator__free(allocator);
		return -ENOMEM;
	}
	probes->list = list;
	entry = &list[probes->n_list++];
	*entry = (struct probed_allocator){
		.path = strdup(path),
		.build_id = strdup(allocator->build_id),
		.allocator = allocator,
		.device = st->st_dev,
		.inode = st->st_ino,
		.source = allocator->source,
	};
	if (!entry->path || !entry->build_id)
		err = -ENOMEM;
	else
		err = attach(probes, entry, fd, error);
	if (err)
		snprintf(entry->gap, sizeof(entry->gap), "not probed: %.200s",
			 error && error->text[0] ? error->text : strerror(-err));
	return err;
}

/* Probes what the source has in the file; a file that it is in and cannot be probed is listed with the reason. */
static void add_source(struct probes *probes, int fd, const char *path, const struct stat *st,
		       const struct source *source)
{
	struct allocator *allocator;
	struct error error = { 0 };
	char gap[256];
	int err;

	if (find_file(probes, st, source))
		return;
	err = source->is_usdt
		      ? usdt_source__read(fd, path, source, &allocator, &error)
		      : allocator__read_source(fd, path, source, SITE_BEST, &allocator, &error);
	if (!err)
		add_allocator(probes, fd, path, st, allocator, &error);
	if (!err || err == -ENOENT || err == -ENOEXEC)
		return;
	snprintf(gap, sizeof(gap), "not probed for %s: %.200s", source->name,
		 error.text[0] ? error.text : strerror(-err));
	add_unprobed(probes, fd, path, source, gap);
}

static void add_sources(struct probes *probes, int fd, const char *path, const struct stat *st)
{
	const struct sources *sources = probes->options.sources;

	for (size_t i = 0; sources && i < sources->n; i++)
		add_source(probes, fd, path, st, &sources->list[i]);
}

static void forget_defined(const struct probes *probes, struct allocator *allocator)
{
	const struct sources *sources = probes->options.sources;

	for (size_t i = 0; sources && i < sources->n; i++)
		if (source__is_in(&sources->list[i], allocator->path, ""))
			allocator__forget_defined(allocator, &sources->list[i]);
}

/*
 * Probes the file if it is an allocator. -ENOENT where it is none, or only hands on to another;
 * -EEXIST where it is probed already. Other errors leave an entry that is not probed.
 */
static int add_file(struct probes *probes, int fd, const char *path, struct error *error)
{
	struct allocator *allocator;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	if (find_file(probes, &st, NULL))
		return -EEXIST;
	if (probes->options.use_file)
		probes->options.use_file(fd, path, probes->options.context);
	add_sources(probes, fd, path, &st);
	err = allocator__read(fd, path, SITE_BEST, &allocator, error);
	if (err == -ENOENT)
		note_hidden(probes, fd, path);
	if (err)
		return err;
	if (allocator->is_wrapper) {
		allocator__free(allocator);
		return -ENOENT;
	}
	allocator__ignore(allocator, probes->options.ignored);
	forget_defined(probes, allocator);
	return add_allocator(probes, fd, path, &st, allocator, error);
}

int probes__add_source(struct probes *probes, struct allocator *allocator, __u32 *first_site)
{
	struct probed_allocator *list = realloc(probes->list, (probes->n_list + 1) * sizeof(*list));
	struct probed_allocator *entry;
	int err = -ENOMEM;

	if (list)
		probes->list = list;
	if (!list || probes->n_sites + allocator->n_sites > AP_MAX_SITES)
		goto fail;
	entry = &list[probes->n_list];
	*entry = (struct probed_allocator){
		.path = strdup(allocator->path),
		.build_id = strdup(allocator->build_id),
		.allocator = allocator,
		.first_site = probes->n_sites,
	};
	if (entry->path && entry->build_id)
		err = describe_sites(probes, allocator, probes->n_list);
	if (err) {
		free(entry->path);
		free(entry->build_id);
		goto fail;
	}
	*first_site = entry->first_site;
	probes->n_sites += allocator->n_sites;
	probes->n_list++;
	return 0;
fail:
	allocator__free(allocator);
	return err;
}

/* A static program whose allocator, if it has one, has no name: nothing in it can be probed. */
static bool is_opaque_program(int fd, const char *path, bool *is_go)
{
	struct elf_file *elf;
	bool is_opaque;

	if (elf_file__open(fd, path, &elf, NULL))
		return false;
	is_opaque = elf_file__is_program(elf) && elf_file__is_static(elf);
	*is_go = elf_file__is_go(elf);
	elf_file__free(elf);
	return is_opaque;
}

#define HAS_NO_NAMED_MALLOC                                                                        \
	"not probed: a static executable without a malloc that can be found by name"

static void keep_opaque_program(struct probes *probes, int fd, const char *path, __u32 pid)
{
	struct opaque *opaque = realloc(probes->opaque, (probes->n_opaque + 1) * sizeof(*opaque));

	if (!opaque)
		return;
	probes->opaque = opaque;
	opaque[probes->n_opaque].pid = pid;
	if (make_unprobed(fd, path, NULL, HAS_NO_NAMED_MALLOC, &opaque[probes->n_opaque].entry))
		probes->n_opaque++;
}

/* Go's runtime allocates in each of its programs; others may need no memory. */
static void add_opaque_program(struct probes *probes, int fd, const struct mapping_event *event,
			       bool is_go)
{
	if (is_go)
		add_unprobed(probes, fd, event->path, NULL,
			     "not probed: a Go program, " GO_HAS_NO_MALLOC);
	else if (probes->options.finds_unprobed)
		keep_opaque_program(probes, fd, event->path, event->pid);
	else
		add_unprobed(probes, fd, event->path, NULL, HAS_NO_NAMED_MALLOC);
}

/* The kernel's name of a program is what its file is called, cut, unless it has called itself something else. */
static bool is_of(const struct unprobed_program *program, const struct opaque *opaque)
{
	const char *slash = strrchr(opaque->entry.path, '/');
	const char *name = slash ? slash + 1 : opaque->entry.path;

	return program->pid == opaque->pid || !strncmp(program->name, name, AP_COMM_LEN - 1);
}

void probes__blame(struct probes *probes, const struct unprobed_program *program)
{
	for (size_t i = 0; i < probes->n_opaque;) {
		struct opaque *opaque = &probes->opaque[i];
		struct probed_allocator *list;

		if (!is_of(program, opaque)) {
			i++;
			continue;
		}
		list = realloc(probes->list, (probes->n_list + 1) * sizeof(*list));
		if (!list)
			return;
		probes->list = list;
		list[probes->n_list++] = opaque->entry;
		*opaque = probes->opaque[--probes->n_opaque];
	}
}

static int add_path(struct probes *probes, const char *path, struct error *error)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return add_file(probes, fd, path, error);
}

/* An address inside the libc that this program itself runs on, which is the system's. */
static int find_own_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	ElfW(Addr) address = (ElfW(Addr))(uintptr_t)gnu_get_libc_version;
	const char **path = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD &&
		    address - info->dlpi_addr - header->p_vaddr < header->p_memsz) {
			*path = info->dlpi_name;
			return 1;
		}
	}
	return 0;
}

static int add_system_libc(struct probes *probes, struct error *error)
{
	const char *path = NULL;

	if (!dl_iterate_phdr(find_own_libc, &path) || !path || !path[0])
		return error__set(
			error, -ENOTSUP,
			"this allocprof is linked statically and cannot tell which libc the "
			"system uses; use the dynamic build");
	return add_path(probes, path, error);
}

static bool is_failure(int err)
{
	return err && err != -ENOENT && err != -EEXIST;
}

static int open_command(const char *argv0, char **path, struct error *error)
{
	_cleanup_(free_ptr) char *found = NULL;
	int err = command_path__find(argv0, getenv("PATH"), &found);
	struct stat st;

	if (err == -EACCES && strchr(argv0, '/') && !stat(argv0, &st) && S_ISDIR(st.st_mode))
		return error__set(error, err,
				  "cannot run '%s': it is a directory; name a program in it",
				  argv0);
	if (err == -EACCES)
		return error__set(
			error, err,
			"cannot run '%s': it is not an executable file; chmod +x it, or name "
			"the program that runs it",
			argv0);
	if (err)
		return error__set(error, err,
				  "cannot run '%s': %s; check the spelling, or give its "
				  "path",
				  argv0,
				  strchr(argv0, '/') ? "there is no such file"
						     : "it is in no directory of PATH");
	/* What cannot be read as ELF or script is for exec to judge. */
	if (command_path__elf(found, getenv("PATH"), path))
		return -ENOEXEC;
	return 0;
}

struct listing {
	struct probes *probes;
	struct error *error;
	int err;
};

static void add_listed(const char *path, void *context)
{
	struct listing *listing = context;
	int err = add_path(listing->probes, path, listing->error);

	if (is_failure(err) && err != -ENOEXEC && !listing->err)
		listing->err = err;
}

int probes__add_command(struct probes *probes, char *const argv[], struct error *error)
{
	_cleanup_(free_ptr) char *path = NULL;
	_cleanup_(close_fd) int fd = -1;
	struct listing listing = { .probes = probes, .error = error };
	struct elf_file *elf = NULL;
	bool is_static = false, is_go = false;
	int err;

	err = open_command(argv[0], &path, error);
	if (err == -ENOEXEC)
		return add_system_libc(probes, error);
	if (!err)
		err = translator__refuse(argv[0], error);
	if (!err)
		err = translator__refuse(path, error);
	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !elf_file__open(fd, path, &elf, NULL)) {
		is_static = elf_file__is_static(elf);
		is_go = elf_file__is_go(elf);
		err = add_file(probes, fd, path, error);
		if (!is_failure(err) && elf_file__interpreter(elf)[0])
			err = add_path(probes, elf_file__interpreter(elf), error);
		if (!is_failure(err)) {
			if (elf_file__interpreter(elf)[0])
				libraries__list(elf_file__interpreter(elf), path, add_listed,
						&listing);
			else
				libraries__list_started(path, argv, add_listed, &listing);
			err = listing.err;
		}
		elf_file__free(elf);
		if (is_failure(err))
			return err;
	}
	if (is_static && !n_files(probes) && is_go)
		return error__set(error, -ENOTSUP, "%s is a Go program, " GO_HAS_NO_MALLOC, path);
	if (is_static && !n_files(probes))
		return error__set(error, -ENOTSUP,
				  "%s is a static executable without a malloc that can be found by "
				  "name; link it dynamically, or leave its symbols in (no strip)",
				  path);
	/* Also for a static program: it may run others. */
	err = add_system_libc(probes, error);
	return err == -EEXIST || is_static ? 0 : err;
}

int probes__add_expected(struct probes *probes, const char *name, struct error *error)
{
	char *argv[] = { (char *)name, NULL };
	int err = probes__add_command(probes, argv, error);

	/* A library need not be executable, nor a static program have an allocator with a name. */
	if (err == -EACCES && strchr(name, '/')) {
		err = add_path(probes, name, error);
		return is_failure(err) ? err : 0;
	}
	return err == -ENOTSUP ? 0 : err;
}

int probes__add_named_files(struct probes *probes, struct error *error)
{
	const struct sources *sources = probes->options.sources;

	for (size_t i = 0; sources && i < sources->n; i++)
		for (size_t j = 0; j < sources->list[i].n_modules; j++) {
			const char *path = sources->list[i].modules[j];
			int err;

			if (!strchr(path, '/'))
				continue;
			err = add_path(probes, path, error);
			if (err == -ENOENT || err == -EACCES) {
				if (access(path, R_OK))
					return error__set(error, err,
							  "cannot open %s, where %s is looked for: "
							  "%s",
							  path, sources->list[i].name,
							  strerror(errno));
			}
			if (is_failure(err) && err != -ENOEXEC)
				return err;
		}
	return 0;
}

int probes__add_library(struct probes *probes, const char *path, struct error *error)
{
	int err = add_path(probes, path, error);

	if (err == -ENOENT)
		return error__set(
			error, -ENOTSUP,
			"%s defines no malloc and free; name a program, or the library that "
			"holds its allocator",
			path);
	return err;
}

/* A process gives its memory up before it is seen to have ended; a zombie has none either. */
static bool is_ending(pid_t pid)
{
	_cleanup_(close_file) FILE *maps = NULL;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	return !maps || fgetc(maps) == EOF;
}

static bool is_go_process(pid_t pid)
{
	_cleanup_(close_fd) int fd = -1;
	struct elf_file *elf;
	char name[64];
	bool is_go;

	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || elf_file__open(fd, name, &elf, NULL))
		return false;
	is_go = elf_file__is_go(elf);
	elf_file__free(elf);
	return is_go;
}

int probes__add_process(struct probes *probes, pid_t pid, struct error *error)
{
	_cleanup_(close_file) FILE *maps = NULL;
	_cleanup_(free_ptr) char *line = NULL;
	char name[64], permissions[5];
	struct error last = { 0 };
	size_t capacity = 0;
	int err, last_err = 0;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	if (!maps && (errno == ENOENT || errno == ESRCH))
		return error__set(error, -ESRCH, "process %d ended while its probes were set", pid);
	if (!maps)
		return error__set(error, -errno,
				  "cannot read %s: %s; it takes root, or the same user", name,
				  strerror(errno));
	while (getline(&line, &capacity, maps) > 0) {
		struct mapped_file file = { .pid = pid };
		struct file_identities identities;
		unsigned int major, minor;
		int path_at = 0, fd;

		if (sscanf(line, "%llx-%llx %4s %*x %x:%x %llu %n", &file.start, &file.end,
			   permissions, &major, &minor, &file.identity.inode, &path_at) < 6 ||
		    permissions[2] != 'x' || !file.identity.inode || !path_at)
			continue;
		line[strcspn(line, "\n")] = '\0';
		file.identity.device = major << 20 | minor;
		file.path = line + path_at;
		fd = mapped_file__open(&file, &probes->options.asker, &identities);
		if (fd < 0)
			continue;
		err = add_file(probes, fd, line + path_at, &last);
		close(fd);
		if (is_failure(err) && err != -ENOEXEC) {
			last_err = err;
			if (error)
				*error = last;
		}
	}
	for (size_t i = 0; i < probes->n_list; i++)
		if (is_probed(&probes->list[i]) || !probes->options.program)
			return 0;
	if (last_err)
		return last_err;
	if (is_ending(pid))
		return error__set(error, -ESRCH, "process %d ended while its probes were set", pid);
	if (is_go_process(pid))
		return error__set(error, -ENOTSUP, "process %d is a Go program, " GO_HAS_NO_MALLOC,
				  pid);
	return error__set(
		error, -ENOTSUP,
		"process %d has no allocator that can be found by name (a static executable "
		"without symbols?); link it dynamically, or leave its symbols in",
		pid);
}

static bool is_same_file(const void *owner, __u32 id, const void *key)
{
	const struct probes *probes = owner;

	return file_identity__is_same(&probes->seen[id - 1], key);
}

static __u64 identity_hash(const struct file_identity *file)
{
	return hash_mix(hash_mix(0, file->inode), file->device);
}

static void note_seen(struct probes *probes, const struct file_identity *file)
{
	struct file_identity *seen;

	seen = realloc(probes->seen, (probes->n_seen + 1) * sizeof(*seen));
	if (!seen)
		return;
	probes->seen = seen;
	seen[probes->n_seen++] = *file;
	hash_table__insert(&probes->seen_index, identity_hash(file), probes->n_seen);
}

void probes__notice_mapping(struct probes *probes, const struct mapping_event *event)
{
	struct mapped_file mapped = mapping_event__file(event);
	struct file_identities identities;
	_cleanup_(close_fd) int fd = -1;
	struct error error = { 0 };
	size_t n_before = probes->n_list;
	bool is_go = false;
	int err;

	if (!event->inode || event->path[0] != '/' ||
	    hash_table__find(&probes->seen_index, identity_hash(&mapped.identity), is_same_file,
			     probes, &mapped.identity))
		return;
	fd = mapped_file__open(&mapped, &probes->options.asker, &identities);
	if (fd < 0)
		return; /* perhaps at another time */
	note_seen(probes, &mapped.identity);
	err = add_file(probes, fd, event->path, &error);
	if (err == -ENOENT && is_opaque_program(fd, event->path, &is_go))
		add_opaque_program(probes, fd, event, is_go);
	for (size_t i = n_before; i < probes->n_list; i++)
		if (!probes->list[i].gap[0])
			snprintf(
				probes->list[i].gap, sizeof(probes->list[i].gap),
				"met only when process %u had mapped it already: calls before that are "
				"missing (--expect names such files beforehand)",
				event->pid);
}

bool probes__lacks(const struct probes *probes, const struct source *source, size_t function)
{
	const struct interface_function *wanted = &source->functions[function].interface;

	for (size_t i = 0; i < probes->n_list; i++) {
		const struct allocator *allocator = probes->list[i].allocator;

		for (size_t j = 0; allocator && j < allocator->n_sites; j++)
			if (allocator->sites[j].interface == wanted)
				return false;
	}
	return true;
}
