// SPDX-License-Identifier: GPL-3.0-or-later
#include "pprof_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "export.h"
#include "export_internal.h"
#include "profile.h"
#include "stack_view.h"
#include "text.h"

/* Addresses of programs are below this one; the ranges of larger files end here. */
#define MAX_ADDRESS	(1ULL << 47)
#define RANGE_ALIGNMENT (1ULL << 20)

/* Both formats have these in common. */
enum {
	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
};

const struct pprof_value_type pprof_sample_types[] = {
	{ "alloc_objects", "count" },
	{ "alloc_space", "bytes" },
	{ "inuse_objects", "count" },
	{ "inuse_space", "bytes" },
};
const struct pprof_value_type pprof_period_type = { "space", "bytes" };

/* Returns the file with which the command line of an attached process begins, all of whose threads
 * may have begun in the C library; 0: it is in no stack, or the process was not attached to. */
static __u32 find_attached(const struct profile *profile)
{
	const char *command = profile__meta(profile, "attached_command") ?: "", *name = command;
	size_t len = strcspn(command, " ");

	for (size_t i = 0; i < len; i++)
		if (command[i] == '/')
			name = command + i + 1;
	len -= name - command;
	for (__u32 i = 0; i < profile->n_modules && len; i++) {
		const char *module = profile_module__basename(&profile->modules[i]);

		if (strlen(module) == len && !strncmp(module, name, len))
			return i + 1;
	}
	return 0;
}

/*
 * Returns the main program, which data files do not name: the file in which most stacks of the
 * first process have their outermost frame. In other threads that frame is in the C library, so
 * libraries count only if there is nothing else.
 */
static __u32 find_program(const struct export_input *input, __u64 *votes)
{
	const struct profile *profile = input->profile;
	__u32 best = find_attached(profile);

	if (best)
		return best;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct profile_stack *stack = &profile->stacks[count->stack - 1];
		__u32 module;

		if (count->process != 1 || !stack->n_frames)
			continue;
		module = profile->frames[stack->frames[stack->n_frames - 1] - 1].module;
		if (module)
			votes[module - 1]++;
	}
	for (size_t i = 0; i < profile->n_modules; i++) {
		const char *name = profile_module__basename(&profile->modules[i]);

		if (votes[i] && !strstr(name, ".so"))
			votes[i] += 1ULL << 32;
		if (votes[i] > (best ? votes[best - 1] : 0))
			best = i + 1;
	}
	return best;
}

static void look_at_lines(const struct profile_frame *frame, struct pprof_mapping *mapping)
{
	for (__u32 i = 0; i < frame->n_lines; i++) {
		mapping->has_functions |= frame->lines[i].function != 0;
		mapping->has_files |= frame->lines[i].file != 0;
		mapping->has_lines |= frame->lines[i].line != 0;
		mapping->has_inlined |= frame->lines[i].inlined;
	}
}

/* Gives @module a range behind *@end, which is the end of the last range. */
static void set_mapping_range(struct pprof_tables *tables, __u32 module, __u32 id, __u64 *end)
{
	struct pprof_mapping *mapping = &tables->mappings[module - 1];
	__u64 size = mapping->limit;

	mapping->id = id;
	mapping->start = *end;
	mapping->limit = *end + size;
	*end += (size + RANGE_ALIGNMENT - 1) & ~(RANGE_ALIGNMENT - 1);
	tables->by_mapping[id - 1] = module;
}

static int make_mappings(struct pprof_tables *tables)
{
	const struct profile *profile = tables->input->profile;
	_cleanup_(free_ptr) __u64 *votes = calloc(profile->n_modules + 1, sizeof(*votes));
	__u32 program, id = 1;
	__u64 end = 0;

	tables->mappings = calloc(profile->n_modules + 1, sizeof(*tables->mappings));
	tables->by_mapping = calloc(profile->n_modules + 1, sizeof(*tables->by_mapping));
	if (!votes || !tables->mappings || !tables->by_mapping)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_modules; i++)
		tables->mappings[i].limit = 1;
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		struct pprof_mapping *mapping;

		if (!frame->module)
			continue;
		mapping = &tables->mappings[frame->module - 1];
		if (frame->offset < MAX_ADDRESS && frame->offset >= mapping->limit)
			mapping->limit = frame->offset + 1;
		look_at_lines(frame, mapping);
	}
	/* The program is at 0, so that its addresses are those of its file. */
	program = find_program(tables->input, votes);
	if (program)
		set_mapping_range(tables, program, id++, &end);
	for (__u32 module = 1; module <= profile->n_modules; module++)
		if (module != program)
			set_mapping_range(tables, module, id++, &end);
	return 0;
}

int pprof_tables__init(struct pprof_tables *tables, const struct export_input *input,
		       const struct pprof_fields *fields)
{
	__u64 index;
	int err;

	*tables = (struct pprof_tables){ .input = input, .fields = fields, .seed = hash_seed() };
	err = pprof_tables__string(tables, "", &index);
	return err ? err : make_mappings(tables);
}

int pprof_tables__string(struct pprof_tables *tables, const char *text, __u64 *index)
{
	__u32 id;
	int err = string_ids__add(&tables->strings, text, &id);

	if (!err)
		*index = id - 1;
	return err;
}

int pprof_tables__value_type(struct pprof_tables *tables, const struct pprof_value_type *type,
			     struct protobuf *message, unsigned int field)
{
	_cleanup_(protobuf__release) struct protobuf inner = { 0 };
	__u64 type_string, unit_string;
	int err = pprof_tables__string(tables, type->type, &type_string);

	if (!err)
		err = pprof_tables__string(tables, type->unit, &unit_string);
	if (err)
		return err;
	protobuf__add(&inner, VALUE_TYPE_TYPE, type_string);
	protobuf__add(&inner, VALUE_TYPE_UNIT, unit_string);
	protobuf__add_message(message, field, &inner);
	return 0;
}

static bool match_location(const void *owner, __u32 id, const void *key)
{
	return !memcmp(&((const struct pprof_tables *)owner)->locations[id - 1], key,
		       sizeof(struct pprof_location));
}

static int number_location(struct pprof_tables *tables, __u32 first, __u32 n, __u64 *id)
{
	const struct pprof_location location = { first, n };
	__u64 hash = hash_mix(hash_mix(tables->seed, first), n);

	*id = hash_table__find(&tables->location_index, hash, match_location, tables, &location);
	if (*id)
		return 0;
	if (array__reserve(&tables->locations, &tables->locations_room, tables->n_locations + 1,
			   sizeof(*tables->locations)) ||
	    hash_table__insert(&tables->location_index, hash, tables->n_locations + 1))
		return -ENOMEM;
	tables->locations[tables->n_locations++] = location;
	*id = tables->n_locations;
	return 0;
}

int pprof_tables__each_location(struct pprof_tables *tables, const struct export_sample *sample,
				int (*each)(void *context, __u64 id), void *context)
{
	const struct stack_location *locations = tables->input->view->locations;
	const __u32 *at = sample->locations;
	__u64 id;
	int err = 0;

	for (size_t i = 0, n; i < sample->n_frames && !err; i += n) {
		for (n = 1; i + n < sample->n_frames && at[i + n] == at[i] + n &&
			    locations[at[i + n]].frame == locations[at[i]].frame;
		     n++)
			;
		err = number_location(tables, at[i], n, &id);
		if (!err)
			err = each(context, id);
	}
	if (!sample->n_frames) {
		err = number_location(tables, 0, 0, &id);
		if (!err)
			err = each(context, id);
	}
	return err;
}

static bool match_function(const void *owner, __u32 id, const void *key)
{
	return !memcmp(&((const struct pprof_tables *)owner)->functions[id - 1], key,
		       sizeof(struct pprof_function));
}

static int add_function(struct pprof_tables *tables, const char *name, const char *symbol,
			const char *file, __u64 *id)
{
	struct pprof_function function;
	__u64 hash;
	int err = string_ids__add(&tables->strings, name, &function.name);

	if (!err)
		err = string_ids__add(&tables->strings, symbol, &function.symbol);
	if (!err)
		err = string_ids__add(&tables->strings, file, &function.file);
	if (err)
		return err;
	hash = hash_bytes(tables->seed, &function, sizeof(function));
	*id = hash_table__find(&tables->function_index, hash, match_function, tables, &function);
	if (*id)
		return 0;
	if (array__reserve(&tables->functions, &tables->functions_room, tables->n_functions + 1,
			   sizeof(*tables->functions)) ||
	    hash_table__insert(&tables->function_index, hash, tables->n_functions + 1))
		return -ENOMEM;
	tables->functions[tables->n_functions++] = function;
	*id = tables->n_functions;
	return 0;
}

static int add_line(struct pprof_tables *tables, const char *name, const char *symbol,
		    const struct profile_line *line, struct protobuf *location)
{
	const struct profile *profile = tables->input->profile;
	_cleanup_(protobuf__release) struct protobuf message = { 0 };
	__u64 function;
	int err = add_function(tables, name, symbol,
			       line && line->file ? profile->files[line->file - 1].path : "",
			       &function);

	if (err)
		return err;
	protobuf__add(&message, LINE_FUNCTION_ID, function);
	protobuf__add(&message, LINE_LINE, line ? line->line : 0);
	protobuf__add_message(location, tables->fields->location_lines, &message);
	return 0;
}

static int add_location_line(struct pprof_tables *tables, __u32 at,
			     const struct pprof_mapping *mapping, struct protobuf *location)
{
	const struct export_input *input = tables->input;
	const struct profile_line *line = export__line(input, at);
	const char *name = input->view->labels[input->view->locations[at].label].text;

	/*
	 * pprof looks for debug files by build id, but only for locations without lines: so a
	 * location of a file without any names gets none. In other files pprof would merge all
	 * unnamed locations.
	 */
	if (!line && mapping && !mapping->has_functions)
		return 0;
	return add_line(tables, name,
			line ? input->profile->functions[line->function - 1].symbol : name, line,
			location);
}

static int make_location(struct pprof_tables *tables, size_t index, struct protobuf *message)
{
	const struct pprof_location *location = &tables->locations[index];
	const struct stack_view *view = tables->input->view;
	const struct pprof_fields *fields = tables->fields;
	const struct pprof_mapping *mapping = NULL;
	const struct profile_frame *frame;
	int err = 0;

	protobuf__add(message, fields->location_id, index + 1);
	if (!location->n)
		return add_line(tables, EXPORT_NO_FRAME, EXPORT_NO_FRAME, NULL, message);
	frame = &tables->input->profile->frames[view->locations[location->first].frame - 1];
	if (frame->module)
		mapping = &tables->mappings[frame->module - 1];
	protobuf__add(message, fields->location_mapping, mapping ? mapping->id : 0);
	protobuf__add(message, fields->location_address,
		      (mapping ? mapping->start : 0) + export__address(frame));
	for (__u32 i = 0; i < location->n && !err; i++)
		err = add_location_line(tables, location->first + i, mapping, message);
	return err;
}

static int make_function(struct pprof_tables *tables, size_t index, struct protobuf *message)
{
	const struct pprof_function *function = &tables->functions[index];
	const struct pprof_fields *fields = tables->fields;

	protobuf__add(message, fields->function_id, index + 1);
	protobuf__add(message, fields->function_name, function->name - 1);
	protobuf__add(message, fields->function_symbol, function->symbol - 1);
	protobuf__add(message, fields->function_file, function->file - 1);
	return 0;
}

static int make_mapping(struct pprof_tables *tables, size_t index, struct protobuf *message)
{
	__u32 id = tables->by_mapping[index];
	const struct profile_module *module = &tables->input->profile->modules[id - 1];
	const struct pprof_mapping *mapping = &tables->mappings[id - 1];
	const struct pprof_fields *fields = tables->fields;
	__u64 path;
	int err = pprof_tables__string(tables, module->path, &path);

	if (err)
		return err;
	protobuf__add(message, fields->mapping_id, mapping->id);
	protobuf__add(message, fields->mapping_start, mapping->start);
	protobuf__add(message, fields->mapping_limit, mapping->limit);
	protobuf__add(message, fields->mapping_file, path);
	return fields->add_to_mapping(tables, module, mapping, message);
}

struct writer {
	pprof_write_fn write;
	void *context;
};

static int write_table(struct pprof_tables *tables, unsigned int field, const size_t *n,
		       int (*make)(struct pprof_tables *tables, size_t index,
				   struct protobuf *message),
		       const struct writer *writer)
{
	_cleanup_(protobuf__release) struct protobuf message = { 0 };
	_cleanup_(protobuf__release) struct protobuf piece = { 0 };
	int err = 0;

	if (tables->fields->has_null) {
		protobuf__add_message(&piece, field, &message);
		err = writer->write(&piece, writer->context);
	}
	for (size_t i = 0; i < *n && !err; i++) {
		err = make(tables, i, &message);
		protobuf__add_message(&piece, field, &message);
		if (!err)
			err = writer->write(&piece, writer->context);
	}
	return err;
}

int pprof_tables__write_strings(struct pprof_tables *tables, pprof_write_fn write, void *context)
{
	_cleanup_(protobuf__release) struct protobuf piece = { 0 };
	int err = 0;

	for (size_t i = 0; i < tables->strings.n && !err; i++) {
		_cleanup_(free_ptr) char *text = utf8__from_bytes(tables->strings.texts[i]);

		if (!text)
			return -ENOMEM;
		protobuf__add_bytes(&piece, tables->fields->strings, text, strlen(text));
		err = write(&piece, context);
	}
	return err;
}

int pprof_tables__write_places(struct pprof_tables *tables, pprof_write_fn write, void *context)
{
	const struct pprof_fields *fields = tables->fields;
	const struct writer writer = { write, context };
	/* Writing a table may add elements to those after it. */
	int err = write_table(tables, fields->locations, &tables->n_locations, make_location,
			      &writer);

	if (!err)
		err = write_table(tables, fields->functions, &tables->n_functions, make_function,
				  &writer);
	return err ? err
		   : write_table(tables, fields->mappings, &tables->input->profile->n_modules,
				 make_mapping, &writer);
}

void pprof_tables__release(struct pprof_tables *tables)
{
	string_ids__release(&tables->strings);
	free(tables->locations);
	free(tables->functions);
	hash_table__release(&tables->location_index);
	hash_table__release(&tables->function_index);
	free(tables->mappings);
	free(tables->by_mapping);
}
