// SPDX-License-Identifier: GPL-3.0-or-later
/* Passes the job of one module to a worker, and its results back. */
#include "symbols_module.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "debug_file.h"
#include "worker.h"

/* Longest text, a name or a path, with its NUL. */
#define MAX_TEXT_SIZE 8193
/* The index that stands for a text that is NULL. */
#define NO_STRING UINT32_MAX

_Static_assert(MAX_TEXT_SIZE > PATH_MAX, "paths are among the texts");

void module_wire__put_job(struct wire_writer *writer, const struct module_job *job)
{
	wire__put_string(writer, job->path);
	wire__put_string(writer, job->build_id);
	wire__put_u32(writer, job->with_servers);
	wire__put_u64(writer, job->n_debug_dirs);
	for (size_t i = 0; i < job->n_debug_dirs; i++)
		wire__put_string(writer, job->debug_dirs[i]);
	wire__put_u64(writer, job->n_addresses);
	for (size_t i = 0; i < job->n_addresses; i++)
		wire__put_u64(writer, job->addresses[i].vaddr);
}

/* Runs in the worker: asks the parent for a debug file. */
static int ask_parent(const char *build_id)
{
	struct wire_writer question = { 0 };
	int fd;

	wire__put_string(&question, build_id);
	fd = worker_call__ask(&question);
	wire__release(&question);
	return fd;
}

static void note_progress(size_t n_done)
{
	worker_call__note(n_done);
}

struct numbered {
	const char *text;
	__u32 index;
};

static int compare_numbered(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;

	return (a->text > b->text) - (a->text < b->text);
}

static __u32 index_of(const struct numbered *strings, size_t n, const char *text)
{
	const struct numbered *found = text ? bsearch(&(struct numbered){ .text = text }, strings,
						      n, sizeof(*strings), compare_numbered)
					    : NULL;

	return found ? found->index : NO_STRING;
}

/* Writes the results, each text once: texts of the arena are unique, so their addresses are, too. */
static int put_result(struct wire_writer *writer, const struct module_job *job)
{
	size_t n = job->arena.n_strings;
	_cleanup_(free_ptr) struct numbered *strings = calloc(n + 1, sizeof(*strings));

	if (!strings)
		return -ENOMEM;
	wire__put_string(writer, job->text);
	wire__put_u32(writer, job->wants_file);
	wire__put_u64(writer, n);
	for (size_t i = 0; i < n; i++) {
		strings[i] = (struct numbered){ job->arena.strings[i], i };
		wire__put_string(writer, job->arena.strings[i]);
	}
	qsort(strings, n, sizeof(*strings), compare_numbered);
	for (size_t i = 0; i < job->n_addresses; i++) {
		const struct address *address = &job->addresses[i];

		wire__put_u32(writer, address->n_lines);
		for (__u32 j = 0; j < address->n_lines; j++) {
			wire__put_u32(writer, index_of(strings, n, address->lines[j].symbol));
			wire__put_u32(writer, index_of(strings, n, address->lines[j].file));
			wire__put_u32(writer, address->lines[j].line);
		}
	}
	return 0;
}

static int get_addresses(struct wire_reader *reader, struct module_job *job)
{
	job->n_addresses = wire__get_count(reader, sizeof(__u64));
	job->addresses = calloc(job->n_addresses + 1, sizeof(*job->addresses));
	if (!job->addresses)
		return -ENOMEM;
	for (size_t i = 0; i < job->n_addresses; i++)
		job->addresses[i].vaddr = wire__get_u64(reader);
	return 0;
}

int module_wire__serve(struct worker_call *call)
{
	struct wire_reader *request = &call->request;
	_cleanup_(free_ptr) const char **dirs = NULL;
	struct module_job job = {
		.fd = call->n_fds ? call->fds[0] : -1,
		.fetch = ask_parent,
		.progress = note_progress,
	};
	int err;

	job.path = wire__get_string(request, PATH_MAX);
	job.build_id = wire__get_string(request, BUILD_ID_SIZE);
	job.with_servers = wire__get_u32(request);
	job.n_debug_dirs = wire__get_count(request, sizeof(__u32));
	dirs = calloc(job.n_debug_dirs + 1, sizeof(*dirs));
	if (!dirs)
		return -ENOMEM;
	for (size_t i = 0; i < job.n_debug_dirs; i++)
		dirs[i] = wire__get_string(request, PATH_MAX);
	job.debug_dirs = dirs;
	err = get_addresses(request, &job);
	if (!err && (!wire__is_read(request) || !job.path || !job.build_id))
		err = -EINVAL;
	if (!err)
		err = module_job__run(&job);
	if (!err)
		err = put_result(&call->reply, &job);
	module_job__release(&job);
	return err;
}

static int get_strings(struct wire_reader *reader, struct arena *arena, const char ***out,
		       size_t *n)
{
	size_t count = wire__get_count(reader, sizeof(__u32));
	const char **strings = calloc(count + 1, sizeof(*strings));

	if (!strings)
		return -ENOMEM;
	*out = strings;
	*n = count;
	for (size_t i = 0; i < count; i++) {
		const char *text = wire__get_string(reader, MAX_TEXT_SIZE);

		if (!text) {
			wire__refuse(reader);
			return -EPROTO;
		}
		strings[i] = arena__string(arena, text, MAX_TEXT_SIZE);
		if (!strings[i])
			return -ENOMEM;
	}
	return 0;
}

static const char *get_indexed(struct wire_reader *reader, const char *const *strings, size_t n)
{
	__u32 index = wire__get_u32(reader);

	if (index == NO_STRING)
		return NULL;
	if (index < n)
		return strings[index];
	wire__refuse(reader);
	return NULL;
}

static int get_lines(struct wire_reader *reader, struct arena *arena, const char *const *strings,
		     size_t n_strings, struct address *address)
{
	__u32 n = wire__get_u32(reader);

	if (n > MAX_ADDRESS_LINES) {
		wire__refuse(reader);
		return -EPROTO;
	}
	if (!n)
		return 0;
	address->lines = arena__alloc(arena, n * sizeof(*address->lines));
	if (!address->lines)
		return -ENOMEM;
	address->n_lines = n;
	for (__u32 i = 0; i < n; i++) {
		address->lines[i].symbol = get_indexed(reader, strings, n_strings);
		address->lines[i].file = get_indexed(reader, strings, n_strings);
		address->lines[i].line = wire__get_u32(reader);
		address->lines[i].inlined = i + 1 < n;
	}
	return 0;
}

int module_wire__get_result(struct wire_reader *reader, struct module_job *job)
{
	_cleanup_(free_ptr) const char **strings = NULL;
	const char *text = wire__get_string(reader, MODULE_TEXT_SIZE);
	size_t n = 0;
	int err;

	if (!text)
		return -EPROTO;
	snprintf(job->text, sizeof(job->text), "%s", text);
	job->wants_file = wire__get_u32(reader);
	err = get_strings(reader, &job->arena, &strings, &n);
	for (size_t i = 0; i < job->n_addresses && !err; i++)
		err = get_lines(reader, &job->arena, strings, n, &job->addresses[i]);
	if (!err && !wire__is_read(reader))
		err = -EPROTO;
	return err;
}
