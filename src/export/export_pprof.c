// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes pprof's profile.proto, compressed (pprof_tables.h). Samples are written as they come, and
 * the data to which they refer after them.
 */
#include <errno.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "export_internal.h"
#include "gzip.h"
#include "pprof_tables.h"
#include "recording_text.h"
#include "stack_view.h"

enum {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING_TABLE = 6,
	PPROF_TIME_NANOS = 9,
	PPROF_DURATION_NANOS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_COMMENT = 13,
	PPROF_DEFAULT_SAMPLE_TYPE = 14,
};

enum {
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10,
};

static int add_to_mapping(struct pprof_tables *tables, const struct profile_module *module,
			  const struct pprof_mapping *mapping, struct protobuf *message)
{
	__u64 build_id;
	int err = pprof_tables__string(tables, module->build_id, &build_id);

	if (err)
		return err;
	protobuf__add(message, MAPPING_BUILD_ID, build_id);
	protobuf__add(message, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
	protobuf__add(message, MAPPING_HAS_FILENAMES, mapping->has_files);
	protobuf__add(message, MAPPING_HAS_LINE_NUMBERS, mapping->has_lines);
	protobuf__add(message, MAPPING_HAS_INLINE_FRAMES, mapping->has_inlined);
	return 0;
}

static const struct pprof_fields fields = {
	.locations = PPROF_LOCATION,
	.functions = PPROF_FUNCTION,
	.mappings = PPROF_MAPPING,
	.strings = PPROF_STRING_TABLE,
	.location_id = 1,
	.location_mapping = 2,
	.location_address = 3,
	.location_lines = 4,
	.function_id = 1,
	.function_name = 2,
	.function_symbol = 3,
	.function_file = 4,
	.mapping_id = 1,
	.mapping_start = 2,
	.mapping_limit = 3,
	.mapping_file = 5,
	.add_to_mapping = add_to_mapping,
};

struct pprof {
	const struct export_input *input;
	struct pprof_tables tables;
	struct gzip gzip;
	/* Kept so that their memory is reused. */
	struct protobuf piece, sample, inner;
};

/* Writes @piece, which has fields of Profile, and empties it. */
static int write_piece(struct protobuf *piece, void *context)
{
	struct pprof *pprof = context;
	int err = piece->failed ? -ENOMEM : gzip__write(&pprof->gzip, piece->bytes, piece->size);

	piece->size = 0;
	return err;
}

static size_t n_sample_types(const struct pprof *pprof)
{
	return export__has_live(pprof->input) ? PPROF_SAMPLE_TYPES : PPROF_WITHOUT_LIVE;
}

/* Returns whether the recording covers a part of the program's run. The profile of a whole run has
 * no duration, like those of Go's heap. */
static bool is_delta(const struct profile *profile)
{
	static const char *const keys[] = { "attached_pid", "window_opened", "stops", "resets" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (profile__meta(profile, keys[i]))
			return true;
	return false;
}

static int write_head(struct pprof *pprof)
{
	const struct profile *profile = pprof->input->profile;
	size_t n = n_sample_types(pprof);
	__u64 by_default;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = pprof_tables__value_type(&pprof->tables, &pprof_sample_types[i],
					       &pprof->piece, PPROF_SAMPLE_TYPE);
	if (!err)
		err = pprof_tables__value_type(&pprof->tables, &pprof_period_type, &pprof->piece,
					       PPROF_PERIOD_TYPE);
	if (!err)
		err = pprof_tables__string(
			&pprof->tables, pprof->input->by_default ?: pprof_sample_types[n - 1].type,
			&by_default);
	if (err)
		return err;
	protobuf__add(&pprof->piece, PPROF_PERIOD, profile__sample_bytes(profile));
	protobuf__add(&pprof->piece, PPROF_TIME_NANOS,
		      pprof->input->taken_ns ?: export__start_ns(pprof->input));
	if (pprof->input->taken_ns)
		protobuf__add(&pprof->piece, PPROF_DURATION_NANOS, pprof->input->duration_ns);
	else if (is_delta(profile))
		protobuf__add(&pprof->piece, PPROF_DURATION_NANOS, pprof->input->end_ns);
	protobuf__add(&pprof->piece, PPROF_DEFAULT_SAMPLE_TYPE, by_default);
	return write_piece(&pprof->piece, pprof);
}

/* Adds a comment for each line of @text. Changes newlines in @text to ends of strings. */
static int add_comments(struct pprof *pprof, char *text)
{
	char *rest = text, *line;
	__u64 string;
	int err = 0;

	while (!err && (line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		err = pprof_tables__string(&pprof->tables, line, &string);
		protobuf__append(&pprof->inner, err ? 0 : string);
	}
	return err;
}

/* Adds the comments. @title and @remarks must outlive the tables. */
static int write_comments(struct pprof *pprof, char *title, char *remarks)
{
	int err = add_comments(pprof, title);

	if (!err)
		err = add_comments(pprof, remarks);
	protobuf__add_message(&pprof->piece, PPROF_COMMENT, &pprof->inner);
	return err ? err : write_piece(&pprof->piece, pprof);
}

/* Adds a label; if @text is NULL its value is @number. */
static int add_label(struct pprof *pprof, const char *name, const char *text, __u64 number)
{
	__u64 key, string = 0;
	int err = pprof_tables__string(&pprof->tables, name, &key);

	if (!err && text)
		err = pprof_tables__string(&pprof->tables, text, &string);
	if (err)
		return err;
	protobuf__add(&pprof->inner, LABEL_KEY, key);
	protobuf__add(&pprof->inner, LABEL_STR, string);
	protobuf__add(&pprof->inner, LABEL_NUM, number);
	protobuf__add_message(&pprof->sample, SAMPLE_LABEL, &pprof->inner);
	return 0;
}

static int add_labels(struct pprof *pprof, const struct export_sample *sample)
{
	int err = add_label(pprof, "process", sample->process->comm, 0);

	if (!err)
		err = add_label(pprof, "pid", NULL, sample->process->pid);
	if (!err)
		err = add_label(pprof, "thread", sample->thread, 0);
	if (!err)
		err = add_label(pprof, "function", sample->function, 0);
	if (!err && sample->type)
		err = add_label(pprof, "type", sample->type, 0);
	if (!err && sample->end)
		err = add_label(pprof, "incomplete", sample->end, 0);
	return err;
}

static int add_location(void *context, __u64 id)
{
	protobuf__append(context, id);
	return 0;
}

static int write_sample(struct pprof *pprof, const struct export_sample *sample)
{
	const struct selection *selected = sample->selected;
	const __u64 values[] = { selected->allocations, selected->size_bytes, selected->live,
				 selected->live_bytes };
	int err = pprof_tables__each_location(&pprof->tables, sample, add_location, &pprof->inner);

	protobuf__add_message(&pprof->sample, SAMPLE_LOCATION_ID, &pprof->inner);
	for (size_t i = 0; i < n_sample_types(pprof); i++)
		protobuf__append(&pprof->inner, values[i]);
	protobuf__add_message(&pprof->sample, SAMPLE_VALUE, &pprof->inner);
	if (!err)
		err = add_labels(pprof, sample);
	protobuf__add_message(&pprof->piece, PPROF_SAMPLE, &pprof->sample);
	return err ? err : write_piece(&pprof->piece, pprof);
}

static int write_samples(struct pprof *pprof)
{
	struct export_sample sample;
	size_t at = 0;
	int err = 0;

	while (!err && export__next(pprof->input, &at, &sample))
		err = write_sample(pprof, &sample);
	return err;
}

int export_pprof__write(const struct export_input *input, FILE *to)
{
	_cleanup_(free_ptr) char *title = recording_text__title(input->profile), *remarks = NULL;
	struct pprof pprof = { .input = input };
	int err = gzip__open(&pprof.gzip, to, Z_DEFAULT_COMPRESSION);

	if (!err)
		err = title ? recording_text__remarks(input->profile, &remarks) : -ENOMEM;
	if (!err)
		err = pprof_tables__init(&pprof.tables, input, &fields);
	if (!err)
		err = write_head(&pprof);
	if (!err)
		err = write_comments(&pprof, title, remarks);
	if (!err)
		err = write_samples(&pprof);
	if (!err)
		err = pprof_tables__write_places(&pprof.tables, write_piece, &pprof);
	if (!err)
		err = pprof_tables__write_strings(&pprof.tables, write_piece, &pprof);
	if (!err)
		err = gzip__finish(&pprof.gzip);
	gzip__close(&pprof.gzip);
	pprof_tables__release(&pprof.tables);
	protobuf__release(&pprof.piece);
	protobuf__release(&pprof.sample);
	protobuf__release(&pprof.inner);
	return err;
}
