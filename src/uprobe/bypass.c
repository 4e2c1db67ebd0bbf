// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Checks by probes whether calls of a process's allocator come to the engine that has redirected
 * them: at the engine's stubs, and at the functions that these go on to.
 */
#include "bypass.h"

/* The skeleton has a variable of this type. */
#include "bypass_abi.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "attachment.h"
#include "bypass.skel.h"
#include "cleanup.h"
#include "error.h"
#include "inside_abi.h"
#include "parser.h"
#include "process_maps.h"

/* The check ends after so many calls. */
#define ENOUGH 20000

struct bypass {
	pid_t pid;
	bool multi; /* the probes of a file have one link, else one each */
	struct bypass_bpf *skeleton;
	struct process_maps *maps; /* of the process when the probes were set */
	/* The first one is that of the stubs. */
	struct attachment *attachments[1 + BYPASS_RANGES];
	size_t n_attachments;
};

/* A file of the process and the probes that it is to have. */
struct probed_code {
	const struct code_mapping *mapping;
	int fd;
	struct allocator *allocator; /* NULL: the file has none, or could not be read */
	__u64 offsets[INSIDE_REDIRECTIONS], cookies[INSIDE_REDIRECTIONS];
	__u32 n;
};

struct choosing {
	struct bypass *bypass;
	const struct inside_redirections *redirections;
	struct parser *parser;
	struct probed_code *stubs, *functions[BYPASS_RANGES];
	size_t n_files;
};

static const struct code_mapping *find_mapping(const struct bypass *bypass, __u64 address)
{
	return process_maps__find_lasting(bypass->maps, bypass->pid, address);
}

static struct probed_code *open_code(const struct bypass *bypass,
				     const struct code_mapping *mapping)
{
	const struct mapped_file file = {
		.pid = bypass->pid,
		.start = mapping->start,
		.end = mapping->end,
		.identity = mapping->identity,
		.path = mapping->path,
	};
	struct probed_code *code = calloc(1, sizeof(*code));
	struct file_identities identities;

	if (!code)
		return NULL;
	code->mapping = mapping;
	code->fd = mapped_file__open(&file, &(struct file_identifier){ 0 }, &identities);
	return code;
}

static void close_code(struct probed_code *code)
{
	if (!code)
		return;
	close_fd(&code->fd);
	allocator__free(code->allocator);
	free(code);
}

/* Returns the file in which the function is. Reads its allocator if the file is new. Returns NULL
 * if there is no such file, or there are too many. */
static struct probed_code *get_file(struct choosing *choosing, __u64 function)
{
	const struct code_mapping *mapping = find_mapping(choosing->bypass, function);
	struct probed_code *code;

	for (size_t i = 0; i < choosing->n_files; i++)
		if (choosing->functions[i]->mapping == mapping)
			return choosing->functions[i];
	if (!mapping || choosing->n_files == BYPASS_RANGES)
		return NULL;
	code = open_code(choosing->bypass, mapping);
	if (!code)
		return NULL;
	choosing->functions[choosing->n_files++] = code;
	if (code->fd >= 0 && allocator__parse(choosing->parser, code->fd, mapping->path,
					      &code->allocator, &(struct error){ 0 }))
		code->allocator = NULL;
	return code;
}

/* Returns the function's site if the kernel emulates the instruction there. Single-stepping would
 * leave a mapping in the process. */
static const struct site *find_site(const struct probed_code *code, __u64 function)
{
	const struct code_mapping *mapping = code->mapping;
	__u64 offset = function - mapping->start + mapping->offset;

	for (size_t i = 0; code->allocator && i < code->allocator->n_sites; i++)
		if (code->allocator->sites[i].entry_offset == offset)
			return code->allocator->sites[i].emulated ? &code->allocator->sites[i]
								  : NULL;
	return NULL;
}

static void add_probe(struct probed_code *code, __u64 offset, __u64 cookie)
{
	/* Several names may have one function. */
	for (__u32 i = 0; i < code->n; i++)
		if (code->offsets[i] == offset)
			return;
	code->offsets[code->n] = offset;
	code->cookies[code->n++] = cookie;
}

/* Chooses the probe at the function. Returns false if it can have none. */
static bool choose_function(struct choosing *choosing, __u64 function)
{
	struct probed_code *code = get_file(choosing, function);
	const struct site *site = code ? find_site(code, function) : NULL;

	if (!site)
		return false;
	add_probe(code, site->probe_offset, site->lowered_bytes);
	return true;
}

/* Chooses the probes of all functions that can have one, and of their stubs. A stub whose function
 * has no probe must have none either: it would hide each call that bypasses another one. */
static int choose_probes(struct choosing *choosing)
{
	const struct inside_redirections *redirections = choosing->redirections;
	const struct code_mapping *mapping;

	mapping =
		redirections->n ? find_mapping(choosing->bypass, redirections->list[0].stub) : NULL;
	if (!mapping)
		return -ENOENT;
	choosing->stubs = open_code(choosing->bypass, mapping);
	if (!choosing->stubs)
		return -ENOMEM;
	if (choosing->stubs->fd < 0)
		return choosing->stubs->fd;
	for (__u32 i = 0; i < redirections->n; i++) {
		const struct inside_redirection *redirection = &redirections->list[i];

		if (redirection->stub >= mapping->start && redirection->stub < mapping->end &&
		    choose_function(choosing, redirection->function))
			add_probe(choosing->stubs,
				  redirection->stub - mapping->start + mapping->offset, 0);
	}
	return 0;
}

static int set_probes_of(struct bypass *bypass, struct bpf_program *program,
			 const struct probed_code *code, struct error *error)
{
	const struct attachment_request request = {
		.run = { .program = program, .multi = bypass->multi, .pid = bypass->pid },
		.fd = code->fd,
		.path = code->mapping->path,
		.n = code->n,
		.offsets = code->offsets,
		.cookies = code->cookies,
	};
	int err;

	if (!code->n)
		return 0;
	err = attachment__new(&request, &bypass->attachments[bypass->n_attachments], error);
	bypass->n_attachments += !err;
	return err;
}

/* Names the allocator's own calls in a program; the program's other code is not the allocator's. */
static int note_internal(const struct bypass *bypass, const struct probed_code *code)
{
	int fd = bpf_map__fd(bypass->skeleton->maps.internal);
	const struct allocator *allocator = code->allocator;
	/* The kernel and the dynamic linker map all segments of a file at one distance from the addresses in it. */
	const struct site *site = &allocator->sites[0];
	__u64 bias = code->mapping->start - code->mapping->offset + site->entry_offset -
		     site->entry_vaddr;
	const __u8 is = 1;

	for (size_t i = 0; i < allocator->n_internal_returns; i++) {
		__u64 address = bias + allocator->internal_returns[i];

		if (bpf_map_update_elem(fd, &address, &is, BPF_ANY))
			return -errno;
	}
	return 0;
}

/* The stubs' probes come first: a call that meets only the second one of its two probes would be
 * taken for one that bypasses the stub. */
static int set_probes(const struct choosing *choosing, struct error *error)
{
	struct bypass *bypass = choosing->bypass;
	struct bypass_state *state = &bypass->skeleton->bss->bypass;
	int err = set_probes_of(bypass, bypass->skeleton->progs.at_stub, choosing->stubs, error);

	for (size_t i = 0; i < choosing->n_files && !err; i++) {
		const struct probed_code *code = choosing->functions[i];
		const struct allocator *allocator = code->allocator;

		if (allocator && allocator->is_in_program && allocator->n_sites) {
			err = note_internal(bypass, code);
			if (err)
				break;
		} else {
			state->ranges[i].start = code->mapping->start;
			state->ranges[i].size = code->mapping->end - code->mapping->start;
		}
		err = set_probes_of(bypass, bypass->skeleton->progs.at_function, code, error);
	}
	return err;
}

static int choose_and_set_probes(struct bypass *bypass,
				 const struct inside_redirections *redirections,
				 struct error *error)
{
	struct choosing choosing = { .bypass = bypass, .redirections = redirections };
	int err = parser__new(&choosing.parser, error);

	if (err)
		return err;
	err = choose_probes(&choosing);
	if (!err)
		err = set_probes(&choosing, error);
	close_code(choosing.stubs);
	for (size_t i = 0; i < choosing.n_files; i++)
		close_code(choosing.functions[i]);
	parser__free(choosing.parser);
	return err;
}

static int load(struct bypass *bypass, bool no_multi)
{
	struct bypass_bpf *skeleton;
	bool pid_works;

	bypass->multi = !no_multi && uprobe_multi__supported(&pid_works) && pid_works;
	/* Else libbpf prints to the standard error. */
	libbpf_set_print(NULL);
	skeleton = bypass->skeleton = bypass_bpf__open();
	if (!skeleton)
		return -errno;
	if (bypass->multi) {
		bpf_program__set_expected_attach_type(skeleton->progs.at_stub,
						      ATTACH_TYPE_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(skeleton->progs.at_function,
						      ATTACH_TYPE_UPROBE_MULTI);
	}
	return bypass_bpf__load(skeleton);
}

int bypass__new(pid_t pid, const struct inside_redirections *redirections, bool no_multi,
		struct bypass **out, struct error *error)
{
	struct bypass *bypass = calloc(1, sizeof(*bypass));
	int err;

	if (!bypass)
		return -ENOMEM;
	bypass->pid = pid;
	err = load(bypass, no_multi);
	if (!err) {
		bypass->maps = process_maps__new();
		err = bypass->maps ? process_maps__scan(bypass->maps, pid) : -ENOMEM;
	}
	if (!err)
		err = choose_and_set_probes(bypass, redirections, error);
	if (err) {
		bypass__free(bypass);
		return err;
	}
	bypass->skeleton->bss->bypass.is_on = 1;
	*out = bypass;
	return 0;
}

bool bypass__has_enough(const struct bypass *bypass)
{
	const struct bypass_state *state = &bypass->skeleton->bss->bypass;

	return state->n_passed + state->n_bypassed + state->n_unread >= ENOUGH;
}

/* Sets *@path to the file that has made the most calls that bypassed a stub. */
static int find_caller(const struct bypass *bypass, char **path)
{
	int fd = bpf_map__fd(bypass->skeleton->maps.callers);
	__u64 address, *before = NULL, n, most = 0, caller = 0;
	const struct code_mapping *mapping;

	for (; !bpf_map_get_next_key(fd, before, &address); before = &address)
		if (!bpf_map_lookup_elem(fd, &address, &n) && n > most) {
			most = n;
			caller = address;
		}
	mapping = find_mapping(bypass, caller);
	*path = strdup(mapping && mapping->path ? mapping->path : "[unknown]");
	return *path ? 0 : -ENOMEM;
}

int bypass__finish(struct bypass *bypass, struct bypass_result *out)
{
	struct bypass_state *state = &bypass->skeleton->bss->bypass;

	state->is_on = 0;
	out->n_calls = state->n_passed + state->n_bypassed;
	out->n_bypassed = state->n_bypassed;
	return find_caller(bypass, &out->caller);
}

void bypass__free(struct bypass *bypass)
{
	if (!bypass)
		return;
	/* The functions' probes go first, as set_probes() has set them last. */
	while (bypass->n_attachments)
		attachment__leave(bypass->attachments[--bypass->n_attachments]);
	bypass_bpf__destroy(bypass->skeleton);
	process_maps__free(bypass->maps);
	free(bypass);
}
