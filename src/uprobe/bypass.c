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
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "array.h"
#include "attachment.h"
#include "bypass.skel.h"
#include "cleanup.h"
#include "error.h"
#include "inside_abi.h"
#include "parser.h"
#include "proc.h"

/* So many calls are checked. */
#define ENOUGH 20000

/* A mapping of code in the process. The struct owns the path. */
struct code {
	__u64 start, end, offset;
	char *path;
};

struct bypass {
	pid_t pid;
	bool multi; /* each file's probes have one link */
	struct bypass_bpf *skeleton;
	struct code *codes;
	size_t n_codes, codes_room;
	/* The first is that of the stubs. */
	struct attachment *attachments[1 + BYPASS_RANGES];
	size_t n_attachments;
};

static int note_code(void *context, const struct proc_mapping *mapping)
{
	struct bypass *bypass = context;
	char *path;

	if (!mapping->is_executable || !mapping->inode)
		return 0;
	if (array__reserve(&bypass->codes, &bypass->codes_room, bypass->n_codes + 1,
			   sizeof(*bypass->codes)))
		return -ENOMEM;
	path = strdup(mapping->path);
	if (!path)
		return -ENOMEM;
	bypass->codes[bypass->n_codes++] =
		(struct code){ mapping->start, mapping->end, mapping->offset, path };
	return 0;
}

static const struct code *find_code(const struct bypass *bypass, __u64 address)
{
	for (size_t i = 0; i < bypass->n_codes; i++)
		if (address >= bypass->codes[i].start && address < bypass->codes[i].end)
			return &bypass->codes[i];
	return NULL;
}

static int open_code(const struct bypass *bypass, const struct code *code)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", bypass->pid, code->start,
		 code->end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Probes of one file. */
struct probes_of_file {
	__u64 offsets[INSIDE_REDIRECTIONS], cookies[INSIDE_REDIRECTIONS];
	__u32 n;
};

static int attach(struct bypass *bypass, struct bpf_program *program, int fd,
		  const struct code *code, const struct probes_of_file *probes, struct error *error)
{
	const struct attachment_request request = {
		.run = { .program = program, .multi = bypass->multi, .pid = bypass->pid },
		.fd = fd,
		.path = code->path,
		.n = probes->n,
		.offsets = probes->offsets,
		.cookies = probes->cookies,
	};
	int err = attachment__new(&request, &bypass->attachments[bypass->n_attachments], error);

	bypass->n_attachments += !err;
	return err;
}

static int attach_stubs(struct bypass *bypass, const struct inside_redirections *redirections,
			struct error *error)
{
	const struct code *code = find_code(bypass, redirections->list[0].stub);
	struct probes_of_file probes = { .n = 0 };
	_cleanup_(close_fd) int fd = code ? open_code(bypass, code) : -ENOENT;

	if (fd < 0)
		return fd;
	for (__u32 i = 0; i < redirections->n; i++) {
		__u64 stub = redirections->list[i].stub;

		if (stub >= code->start && stub < code->end)
			probes.offsets[probes.n++] = stub - code->start + code->offset;
	}
	return attach(bypass, bypass->skeleton->progs.at_stub, fd, code, &probes, error);
}

/* Returns whether an earlier one goes on to the same function, as aliases do. */
static bool is_repeated(const struct inside_redirections *redirections, __u32 index)
{
	for (__u32 i = 0; i < index; i++)
		if (redirections->list[i].function == redirections->list[index].function)
			return true;
	return false;
}

static const struct site *find_site(const struct allocator *allocator, __u64 offset)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].entry_offset == offset)
			return &allocator->sites[i];
	return NULL;
}

/* Chooses the probes of the functions in the file @code, at the sites that the engine of uprobes
 * takes, too. Sets *@bias to what the process's addresses have more than those in the file. */
static void choose_sites(const struct code *code, const struct allocator *allocator,
			 const struct inside_redirections *redirections, struct probes_of_file *out,
			 __u64 *bias)
{
	for (__u32 i = 0; i < redirections->n; i++) {
		__u64 function = redirections->list[i].function;
		const struct site *site;

		if (function < code->start || function >= code->end || is_repeated(redirections, i))
			continue;
		site = find_site(allocator, function - code->start + code->offset);
		if (!site)
			continue;
		*bias = function - site->entry_vaddr;
		out->offsets[out->n] = site->probe_offset;
		out->cookies[out->n++] = site->lowered_bytes;
	}
}

static int attach_functions(struct bypass *bypass, const struct code *code, struct parser *parser,
			    const struct inside_redirections *redirections, struct error *error)
{
	size_t range = bypass->n_attachments - 1;
	_cleanup_(close_fd) int fd = open_code(bypass, code);
	struct probes_of_file probes = { .n = 0 };
	struct allocator *allocator;
	__u64 bias = 0;
	int err = fd < 0 ? fd : allocator__parse(parser, fd, code->path, &allocator, error);

	if (err)
		return err;
	choose_sites(code, allocator, redirections, &probes, &bias);
	bypass->skeleton->bss->bypass.ranges[range].start = allocator->text_start + bias;
	bypass->skeleton->bss->bypass.ranges[range].size =
		allocator->text_end - allocator->text_start;
	if (probes.n)
		err = attach(bypass, bypass->skeleton->progs.at_function, fd, code, &probes, error);
	allocator__free(allocator);
	return err;
}

static bool has_function(const struct code *code, const struct inside_redirections *redirections)
{
	for (__u32 i = 0; i < redirections->n; i++)
		if (redirections->list[i].function >= code->start &&
		    redirections->list[i].function < code->end)
			return true;
	return false;
}

/* The stubs' probes come first: a call that meets only the second one of its two probes would be
 * taken for one that bypasses the stub. */
static int set_probes(struct bypass *bypass, const struct inside_redirections *redirections,
		      struct error *error)
{
	struct parser *parser;
	int err = parser__new(&parser, error);

	if (err)
		return err;
	err = attach_stubs(bypass, redirections, error);
	for (size_t i = 0; i < bypass->n_codes && !err; i++)
		if (bypass->n_attachments < ARRAY_SIZE(bypass->attachments) &&
		    has_function(&bypass->codes[i], redirections))
			err = attach_functions(bypass, &bypass->codes[i], parser, redirections,
					       error);
	parser__free(parser);
	return err;
}

static int load(struct bypass *bypass, bool no_multi)
{
	bool pid_works;

	bypass->multi = !no_multi && uprobe_multi__supported(&pid_works) && pid_works;
	/* Without it libbpf prints to the standard error. */
	libbpf_set_print(NULL);
	bypass->skeleton = bypass_bpf__open();
	if (!bypass->skeleton)
		return -errno;
	if (bypass->multi) {
		bpf_program__set_expected_attach_type(bypass->skeleton->progs.at_stub,
						      ATTACH_TYPE_UPROBE_MULTI);
		bpf_program__set_expected_attach_type(bypass->skeleton->progs.at_function,
						      ATTACH_TYPE_UPROBE_MULTI);
	}
	return bypass_bpf__load(bypass->skeleton);
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
	if (!err)
		err = proc_maps__each(pid, note_code, bypass);
	if (!err)
		err = redirections->n ? set_probes(bypass, redirections, error) : -ENOENT;
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
	const struct code *code;

	for (; !bpf_map_get_next_key(fd, before, &address); before = &address)
		if (!bpf_map_lookup_elem(fd, &address, &n) && n > most) {
			most = n;
			caller = address;
		}
	code = find_code(bypass, caller);
	*path = strdup(code ? code->path : "[unknown]");
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
	for (size_t i = 0; i < bypass->n_codes; i++)
		free(bypass->codes[i].path);
	free(bypass->codes);
	free(bypass);
}
