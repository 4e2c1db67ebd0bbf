// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator.h"
#include "allocator_internal.h"
#include "array.h"
#include "elf_headers.h"
#include "parser.h"
#include "definitions.h"
#include "usdt_definition.h"
#include "wire.h"

/* Writes allocators as bytes and reads them: a worker finds them in a file, and this process
 * checks what the worker says. */

/* This process has the following by itself, so the worker does not send it. */
struct wire_context {
	const struct definition *definition;
	const struct executable_parts *parts; /* NULL in the worker */
};

static __u32 number_of(const struct interface_function *interface,
		       const struct definition *definition)
{
	for (size_t i = 0; definition && i < definition->n_functions; i++)
		if (interface == &definition->functions[i].interface)
			return i;
	return interface_function__number(interface);
}

/* Writes where a site comes from: the function of a definition or of interface.c, or the probe of
 * a definition of USDT probes. */
static void put_origin(struct wire_writer *to, const void *object, const void *context)
{
	const struct site *site = object;

	wire__put_u32(
		to, number_of(site->interface, ((const struct wire_context *)context)->definition));
	if (site->usdt)
		wire__put_bytes(to, site->usdt, sizeof(*site->usdt));
}

static int get_origin(struct wire_reader *from, void *object, const void *context)
{
	const struct definition *definition = ((const struct wire_context *)context)->definition;
	__u32 number = wire__get_u32(from);
	struct site *site = object;
	const void *usdt;

	if (!definition)
		site->interface = interface__at(number);
	else if (number < definition->n_functions)
		site->interface = &definition->functions[number].interface;
	if (!definition || !definition->is_usdt)
		return 0;
	usdt = wire__get_bytes(from, sizeof(*site->usdt));
	if (!usdt)
		return -EPROTO;
	site->usdt = array__copy(usdt, 1, sizeof(*site->usdt));
	return site->usdt ? 0 : -ENOMEM;
}

static bool operand_is_sound(const struct ap_operand *operand)
{
	return operand->kind <= AP_OPERAND_MEMORY && operand->is_signed <= 1 &&
	       operand->is_second <= 1 && operand->shift < 4 &&
	       (operand->kind == AP_OPERAND_NONE || operand->bytes == 1 || operand->bytes == 2 ||
		operand->bytes == 4 || operand->bytes == 8);
}

static bool usdt_is_sound(const struct usdt_site *usdt, const struct executable_parts *parts)
{
	const struct ap_usdt *arguments = &usdt->arguments;

	return usdt->semaphore_offset < parts->file_bytes && operand_is_sound(&arguments->size) &&
	       operand_is_sound(&arguments->count) && operand_is_sound(&arguments->pointer) &&
	       operand_is_sound(&arguments->result) && operand_is_sound(&arguments->weight);
}

/* Checks what the kernel and the BPF programs take for granted of a site. */
static bool site_is_sound(const void *object, const void *context)
{
	const struct executable_parts *parts = ((const struct wire_context *)context)->parts;
	const struct definition *definition = ((const struct wire_context *)context)->definition;
	const __u64 functions = (1ULL << AP_FUNCTIONS) - 1;
	const struct site *site = object;

	for (size_t i = 0; i < sizeof(site->argument_at); i++)
		if (site->argument_at[i] > SITE_REGISTERS)
			return false;
	return site->function < (definition ? AP_FUNCTIONS : AP_DEFINED) &&
	       site->names >> site->function & 1 && !(site->names & ~functions) &&
	       !(site->tail_calls & ~functions) && site->interface &&
	       site->names >> site->interface->function & 1 && site->returns <= RETURNS_UNKNOWN &&
	       site->probe_vaddr - site->entry_vaddr <= SITE_MAX_DISTANCE &&
	       site->lowered_bytes <= SITE_MAX_LOWERED && site->lowered_bytes % 8 == 0 &&
	       executable_parts__have(parts, site->entry_vaddr, site->entry_offset) &&
	       executable_parts__have(parts, site->probe_vaddr, site->probe_offset) &&
	       (!site->usdt || usdt_is_sound(site->usdt, parts));
}

static const struct wire_struct alias_type = WIRE_STRING_ELEMENT(MAX_SYMBOL_NAME + 1);

static const struct wire_struct site_type = {
	.put = put_origin,
	.get = get_origin,
	.is_sound = site_is_sound,
	.fields = {
		{ WIRE_NUMBER(struct site, function) },
		{ WIRE_NUMBER(struct site, names) },
		{ WIRE_STRUCTS(struct site, aliases, n_aliases, MAX_ALIASES, &alias_type) },
		{ WIRE_NUMBER(struct site, entry_vaddr) },
		{ WIRE_NUMBER(struct site, probe_vaddr) },
		{ WIRE_NUMBER(struct site, entry_offset) },
		{ WIRE_NUMBER(struct site, probe_offset) },
		{ WIRE_NUMBER(struct site, size) },
		{ WIRE_FLAG(struct site, emulated) },
		{ WIRE_FLAG(struct site, refused) },
		{ WIRE_FLAG(struct site, is_own) },
		{ WIRE_FLAG(struct site, throws) },
		{ WIRE_FLAG(struct site, may_jump) },
		{ WIRE_FLAG(struct site, must_jump) },
		{ WIRE_TEXT(struct site, instruction) },
		{ WIRE_TEXT(struct site, entry_instruction) },
		{ WIRE_TEXT(struct site, reason) },
		{ WIRE_NUMBER(struct site, tail_calls) },
		{ WIRE_NUMBER(struct site, argument_at) },
		{ WIRE_NUMBER(struct site, lowered_bytes) },
		{ WIRE_NUMBER(struct site, returns) },
	},
};

static bool unknown_is_sound(const void *object, const void *context)
{
	const struct unknown_function *unknown = object;

	return executable_parts__have(((const struct wire_context *)context)->parts, unknown->vaddr,
				      unknown->offset);
}

static const struct wire_struct unknown_type = {
	.is_sound = unknown_is_sound,
	.fields = {
		{ WIRE_STRING(struct unknown_function, name, MAX_SYMBOL_NAME + 1) },
		{ WIRE_NUMBER(struct unknown_function, vaddr) },
		{ WIRE_NUMBER(struct unknown_function, offset) },
		{ WIRE_FLAG(struct unknown_function, ends) },
		{ WIRE_FLAG(struct unknown_function, is_by_name) },
	},
};

static bool offsets_are_code(const struct executable_parts *parts, const __u64 *offsets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!executable_parts__have_offset(parts, offsets[i]))
			return false;
	return true;
}

static const struct wire_struct reference_type = {
	.fields = {
		{ WIRE_NUMBER(struct allocator_reference, next) },
		{ WIRE_NUMBER(struct allocator_reference, entry) },
	},
};

static bool sites_have(const struct allocator *allocator, __u64 entry)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].entry_vaddr == entry)
			return true;
	return false;
}

/* Checks what is taken for granted where code of a process is changed: four bytes of the program's
 * code lead to a site, and no two references have bytes in common. */
static bool references_are_sound(const struct allocator *allocator)
{
	__u64 before = allocator->text_start;

	for (size_t i = 0; i < allocator->n_references; i++) {
		const struct allocator_reference *reference = &allocator->references[i];

		if (reference->next < 4 || reference->next - 4 < before ||
		    reference->next > allocator->text_end ||
		    !sites_have(allocator, reference->entry))
			return false;
		before = reference->next;
	}
	return true;
}

static bool allocator_is_sound(const void *object, const void *context)
{
	const struct executable_parts *parts = ((const struct wire_context *)context)->parts;
	const struct definition *definition = ((const struct wire_context *)context)->definition;
	const struct allocator *allocator = object;

	/* The list is searched by bisection, so it has to be sorted. */
	for (size_t i = 1; i < allocator->n_internal_returns; i++)
		if (allocator->internal_returns[i - 1] >= allocator->internal_returns[i])
			return false;
	return allocator->n_sites <=
		       (definition && definition->is_usdt ? USDT_MAX_SITES : MAX_SITES) &&
	       references_are_sound(allocator) &&
	       !allocator->build_id[strspn(allocator->build_id, "0123456789abcdef")] &&
	       offsets_are_code(parts, allocator->return_offsets, allocator->n_return_offsets) &&
	       offsets_are_code(parts, allocator->nest_offsets, allocator->n_nest_offsets);
}

static const struct wire_struct allocator_type = {
	.is_sound = allocator_is_sound,
	.fields = {
		{ WIRE_TEXT(struct allocator, build_id) },
		{ WIRE_NUMBER(struct allocator, text_start) },
		{ WIRE_NUMBER(struct allocator, text_end) },
		{ WIRE_STRUCTS(struct allocator, sites, n_sites, USDT_MAX_SITES, &site_type) },
		{ WIRE_STRUCTS(struct allocator, unknown, n_unknown, ALLOCATOR_MAX_UNKNOWN,
			       &unknown_type) },
		{ WIRE_FLAG(struct allocator, is_described) },
		{ WIRE_FLAG(struct allocator, is_wrapper) },
		{ WIRE_FLAG(struct allocator, goes_past) },
		{ WIRE_FLAG(struct allocator, is_bypassed) },
		{ WIRE_FLAG(struct allocator, is_collected) },
		{ WIRE_FLAG(struct allocator, is_in_program) },
		{ WIRE_FLAG(struct allocator, has_unclear_references) },
		{ WIRE_STRUCTS(struct allocator, references, n_references, MAX_REFERENCES,
			       &reference_type) },
		{ WIRE_ARRAY(struct allocator, internal_returns, n_internal_returns, MAX_RETURNS) },
		{ WIRE_ARRAY(struct allocator, return_offsets, n_return_offsets, MAX_ENDS) },
		{ WIRE_ARRAY(struct allocator, nest_offsets, n_nest_offsets, MAX_ENDS) },
	},
};

_Static_assert(USDT_MAX_SITES >= MAX_SITES, "the larger one bounds the array that is read");

void allocator__write(const struct allocator *allocator, struct wire_writer *to)
{
	const struct wire_context context = { .definition = allocator->definition };

	wire__put_struct(to, &allocator_type, allocator, &context);
}

int allocator__take(struct wire_reader *from, const char *path, const struct definition *definition,
		    const struct executable_parts *parts, struct allocator **out)
{
	const struct wire_context context = { .definition = definition, .parts = parts };
	struct allocator *allocator = calloc(1, sizeof(*allocator));
	int err;

	if (!allocator)
		return -ENOMEM;
	allocator->definition = definition;
	allocator->path = strdup(path);
	err = allocator->path ? wire__get_struct(from, &allocator_type, allocator, &context)
			      : -ENOMEM;
	if (!err && !wire__is_read(from))
		err = -EPROTO;
	if (!err)
		err = allocator__collect_names(allocator);
	if (err) {
		allocator__free(allocator);
		return err;
	}
	*out = allocator;
	return 0;
}

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

static int read_defined_allocator(struct parser_task *task)
{
	const void *address = wire__get_bytes(&task->parameters, sizeof(struct definition *));
	struct allocator *allocator = NULL;
	const struct definition *definition;
	int err;

	if (!address)
		return -EINVAL;
	memcpy(&definition, address, sizeof(definition));
	err = definition->is_usdt ? usdt_definition__read(task->fd, task->path, definition,
							  &allocator, task->error)
				  : allocator__read_definition(task->fd, task->path, definition,
							       SITE_BEST, &allocator, task->error);
	return put_allocator(task, err, allocator);
}

static int parse_allocator(struct parser *parser, const struct parser_call *call,
			   const struct definition *definition, struct allocator **out,
			   struct error *error)
{
	struct executable_parts parts;
	struct wire_reader result;
	int err = parser__call(parser, call, &result, error);

	if (err)
		return err;
	err = executable_parts__read(call->fd, &parts);
	if (!err)
		err = allocator__take(&result, call->path, definition, &parts, out);
	return err && err != -ENOMEM ? parser__refuse(parser, call->path, error) : err;
}

int allocator__parse(struct parser *parser, int fd, const char *path, struct allocator **out,
		     struct error *error)
{
	const struct parser_call call = { .run = read_allocator, .fd = fd, .path = path };

	return parse_allocator(parser, &call, NULL, out, error);
}

int allocator__parse_definition(struct parser *parser, int fd, const char *path,
				const struct definition *definition, struct allocator **out,
				struct error *error)
{
	struct wire_writer parameters = { 0 };
	const struct parser_call call = {
		.run = read_defined_allocator,
		.fd = fd,
		.path = path,
		.parameters = &parameters,
	};
	int err;

	/* The worker was forked from this process, so this pointer is valid in it. */
	wire__put_bytes(&parameters, &definition, sizeof(definition));
	err = parameters.has_failed ? -ENOMEM
				    : parse_allocator(parser, &call, definition, out, error);
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
