// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_parse.h"

#include <errno.h>
#include <string.h>

#include "allocator.h"
#include "allocator_wire.h"
#include "executable_parts.h"
#include "function_code.h"
#include "hidden_allocator.h"
#include "parser.h"
#include "sources.h"
#include "usdt_source.h"

static int put_allocator(struct parser_task *task, int err, struct allocator *allocator)
{
	if (err)
		return err;
	allocator__write(allocator, task->result);
	allocator__free(allocator);
	return 0;
}

static int read_allocator(struct parser_task *task)
{
	struct allocator *allocator = NULL;
	int err = allocator__read(task->fd, task->path, SITE_BEST, &allocator, task->error);

	return put_allocator(task, err, allocator);
}

static int read_source_allocator(struct parser_task *task)
{
	const void *address = wire__get_bytes(&task->parameters, sizeof(struct source *));
	struct allocator *allocator = NULL;
	const struct source *source;
	int err;

	if (!address)
		return -EINVAL;
	memcpy(&source, address, sizeof(source));
	err = source->is_usdt
		      ? usdt_source__read(task->fd, task->path, source, &allocator, task->error)
		      : allocator__read_source(task->fd, task->path, source, SITE_BEST, &allocator,
					       task->error);
	return put_allocator(task, err, allocator);
}

static int parse_allocator(struct parser *parser, const struct parser_call *call,
			   const struct source *source, struct allocator **out, struct error *error)
{
	struct executable_parts parts;
	struct wire_reader result;
	int err = parser__call(parser, call, &result, error);

	if (err)
		return err;
	err = executable_parts__read(call->fd, &parts);
	if (!err)
		err = allocator__take(&result, call->path, source, &parts, out);
	return err && err != -ENOMEM ? parser__refuse(parser, call->path, error) : err;
}

int allocator__parse(struct parser *parser, int fd, const char *path, struct allocator **out,
		     struct error *error)
{
	const struct parser_call call = { .run = read_allocator, .fd = fd, .path = path };

	return parse_allocator(parser, &call, NULL, out, error);
}

int allocator__parse_source(struct parser *parser, int fd, const char *path,
			    const struct source *source, struct allocator **out,
			    struct error *error)
{
	struct wire_writer parameters = { 0 };
	const struct parser_call call = {
		.run = read_source_allocator,
		.fd = fd,
		.path = path,
		.parameters = &parameters,
	};
	int err;

	/* The worker was forked from this process, so this pointer is valid there. */
	wire__put_bytes(&parameters, &source, sizeof(source));
	err = parameters.has_failed ? -ENOMEM : parse_allocator(parser, &call, source, out, error);
	wire__release(&parameters);
	return err;
}

static int find_hidden(struct parser_task *task)
{
	const char *name = hidden_allocator__find(task->fd, task->path);

	if (!name)
		return -ENOENT;
	wire__put_u32(task->result, hidden_allocator__number(name));
	return 0;
}

int hidden_allocator__parse(struct parser *parser, int fd, const char *path, const char **out,
			    struct error *error)
{
	const struct parser_call call = { .run = find_hidden, .fd = fd, .path = path };
	struct wire_reader result;
	int err = parser__call(parser, &call, &result, error);

	if (err)
		return err;
	*out = hidden_allocator__at(wire__get_u32(&result));
	return *out && wire__is_read(&result) ? 0 : parser__refuse(parser, path, error);
}

/* Longer than any name that can be given. */
#define MAX_NAME (1 << 20)

/* Ranges that the programs search, and places for probes. */
static bool code_is_sound(const void *object, const void *context)
{
	const struct executable_parts *parts = context;
	const struct function_code *code = object;

	if (code->within.n > AP_MAX_WITHIN_RANGES || code->within.pad ||
	    code->n_entries > AP_MAX_WITHIN_RANGES)
		return false;
	for (__u32 i = 0; i < code->within.n; i++) {
		const struct ap_within_range *range = &code->within.ranges[i];

		if (!executable_parts__have_offset(parts, range->start) ||
		    range->size > parts->file_bytes - range->start)
			return false;
	}
	for (size_t i = 0; i < code->n_entries; i++)
		if (!executable_parts__have_offset(parts, code->entries[i]) ||
		    code->semaphores[i] >= parts->file_bytes)
			return false;
	return true;
}

static const struct wire_struct code_type = {
	.is_sound = code_is_sound,
	.fields = {
		{ WIRE_NUMBER(struct function_code, within) },
		{ WIRE_NUMBER(struct function_code, entries) },
		{ WIRE_NUMBER(struct function_code, n_entries) },
		{ WIRE_NUMBER(struct function_code, semaphores) },
	},
};

static int find_function(struct parser_task *task)
{
	const char *name = wire__get_string(&task->parameters, MAX_NAME);
	bool is_usdt = wire__get_u32(&task->parameters);
	struct function_code code = { 0 };
	int err;

	if (!name)
		return -EINVAL;
	err = is_usdt ? function_code__find_usdt(task->fd, task->path, name, &code, task->error)
		      : function_code__find(task->fd, task->path, name, &code, task->error);
	if (!err)
		wire__put_struct(task->result, &code_type, &code, NULL);
	return err;
}

int function_code__parse(struct parser *parser, int fd, const char *path, const char *name,
			 bool is_usdt, struct function_code *out, struct error *error)
{
	struct wire_writer parameters = { 0 };
	struct parser_call call = {
		.run = find_function,
		.fd = fd,
		.path = path,
		.parameters = &parameters,
	};
	struct executable_parts parts;
	struct function_code code;
	int err;

	wire__put_string(&parameters, name);
	wire__put_u32(&parameters, is_usdt);
	/* Code of a function is in none then. */
	if (executable_parts__read(fd, &parts))
		parts.n = 0;
	err = parameters.has_failed
		      ? -ENOMEM
		      : parser__call_struct(parser, &call, &code_type, &code, &parts, error);
	if (err == -ENOENT) {
		call.needs_debug_file = true;
		err = parser__call_struct(parser, &call, &code_type, &code, &parts, error);
	}
	wire__release(&parameters);
	if (!err)
		*out = code;
	return err;
}
