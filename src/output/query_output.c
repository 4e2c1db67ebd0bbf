// SPDX-License-Identifier: GPL-3.0-or-later
#include "query_output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "array.h"
#include "cleanup.h"
#include "data_file_query.h"
#include "error.h"
#include "json.h"
#include "table.h"

/* How many rows, and bytes of them, are kept in memory at first: columns are as wide as these rows
 * need. */
#define FITTED_ROWS  1000
#define FITTED_BYTES (4 << 20)
/* Columns that the last column gets on a narrow terminal. */
#define LAST_COLUMNS 20

static int fail_memory(struct error *error)
{
	return error__set(error, -ENOMEM, "out of memory");
}

static struct number_text number_of(const struct data_value *value)
{
	struct number_text number;

	if (value->kind == DATA_VALUE_INTEGER)
		snprintf(number.text, sizeof(number.text), "%lld", (long long)value->integer);
	else
		snprintf(number.text, sizeof(number.text), "%.15g", value->real);
	return number;
}

struct table_writer {
	struct data_query *query;
	const struct terminal *terminal;
	struct table_column *columns;
	struct table_cell *cells; /* cells of the fitted rows */
	size_t n_columns, n_rows, n_bytes;
	struct arena names;
};

static void release_table(struct table_writer *writer)
{
	free(writer->columns);
	free(writer->cells);
	arena__release(&writer->names);
}

/* Makes a cell. @keep: the cell is needed after the query's next step. */
static int make_cell(struct table_writer *writer, size_t column, bool keep, struct table_cell *cell)
{
	struct data_value value;
	int err = data_query__value(writer->query, column, &value);

	if (err)
		return err;
	if (value.kind == DATA_VALUE_NULL) {
		*cell = (struct table_cell){ .name = "NULL", .colour = COLOUR_DIM };
		return 0;
	}
	if (value.kind != DATA_VALUE_TEXT) {
		*cell = (struct table_cell){ .text = number_of(&value) };
		return 0;
	}
	*cell = (struct table_cell){ .name = value.text };
	if (keep) {
		size_t size = strlen(value.text);

		cell->name = arena__string(&writer->names, value.text, size);
		writer->n_bytes += size;
	}
	return cell->name ? 0 : -ENOMEM;
}

static int make_row(struct table_writer *writer, bool keep, struct table_cell *cells)
{
	int err = 0;

	for (size_t i = 0; i < writer->n_columns && !err; i++)
		err = make_cell(writer, i, keep, &cells[i]);
	return err;
}

/* Returns whether @column has text in the fitted rows. */
static bool has_text(const struct table_writer *writer, size_t column)
{
	for (size_t row = 0; row < writer->n_rows; row++) {
		const struct table_cell *cell = &writer->cells[row * writer->n_columns + column];

		if (cell->name && cell->colour != COLOUR_DIM)
			return true;
	}
	return false;
}

static void fit_columns(struct table_writer *writer)
{
	struct table_column *columns = writer->columns, *last = &columns[writer->n_columns - 1];
	size_t others = 0;

	for (size_t i = 0; i < writer->n_columns; i++) {
		columns[i].title = data_query__column(writer->query, i);
		columns[i].gap = i ? 2 : 0;
		columns[i].left = has_text(writer, i);
	}
	table__fit_titles(columns, writer->n_columns);
	for (size_t row = 0; row < writer->n_rows; row++)
		table__fit(columns, writer->n_columns, &writer->cells[row * writer->n_columns]);
	for (size_t i = 0; i + 1 < writer->n_columns; i++)
		others += columns[i].width + columns[i + 1].gap;
	if (!last->left)
		return;
	last->width = 0;
	if (writer->terminal->columns)
		last->max = others + LAST_COLUMNS < writer->terminal->columns
				    ? writer->terminal->columns - others
				    : LAST_COLUMNS;
}

static void print_row(const struct table_writer *writer, const struct table_cell *cells)
{
	table__print_row(writer->columns, writer->n_columns, cells, writer->terminal);
	fputc('\n', writer->terminal->to);
}

/* Reads the first rows. Returns 1 if there may be further ones, 0 if not, or a negative errno. */
static int read_fitted(struct table_writer *writer, struct error *error)
{
	size_t room = 0;
	int err;

	while (writer->n_rows < FITTED_ROWS && writer->n_bytes < FITTED_BYTES) {
		size_t at = writer->n_rows * writer->n_columns;

		err = data_query__next(writer->query, error);
		if (err <= 0)
			return err;
		err = array__reserve(&writer->cells, &room, at + writer->n_columns,
				     sizeof(*writer->cells));
		if (!err)
			err = make_row(writer, true, &writer->cells[at]);
		if (err)
			return fail_memory(error);
		writer->n_rows++;
	}
	return 1;
}

static int write_table(struct data_query *query, const struct terminal *terminal,
		       struct error *error)
{
	_cleanup_(release_table) struct table_writer writer = {
		.query = query,
		.terminal = terminal,
		.n_columns = data_query__n_columns(query),
	};
	int more;

	writer.columns = calloc(writer.n_columns, sizeof(*writer.columns));
	if (!writer.columns)
		return fail_memory(error);
	more = read_fitted(&writer, error);
	if (more < 0)
		return more;
	fit_columns(&writer);
	table__print_titles(writer.columns, writer.n_columns, terminal);
	fputc('\n', terminal->to);
	for (size_t row = 0; row < writer.n_rows; row++)
		print_row(&writer, &writer.cells[row * writer.n_columns]);
	while (more > 0 && !ferror(terminal->to) && (more = data_query__next(query, error)) > 0) {
		/* The cells of the first fitted row are reused, since they have been printed. */
		if (make_row(&writer, false, writer.cells))
			return fail_memory(error);
		print_row(&writer, writer.cells);
	}
	return more < 0 ? more : 0;
}

/* Prints text. In a file the bytes stay as they are, on a terminal unsafe ones are replaced. */
static void print_csv_text(const struct terminal *terminal, const char *text)
{
	bool quoted = strpbrk(text, ",\"\r\n") != NULL;

	if (terminal->is_terminal) {
		terminal__print(terminal, text, 0);
		return;
	}
	if (!quoted) {
		fputs(text, terminal->to);
		return;
	}
	fputc('"', terminal->to);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', terminal->to);
		fputc(*text, terminal->to);
	}
	fputc('"', terminal->to);
}

static int write_csv(struct data_query *query, const struct terminal *terminal, struct error *error)
{
	size_t n = data_query__n_columns(query);
	int more = 1;

	for (size_t i = 0; i < n; i++) {
		if (i)
			fputc(',', terminal->to);
		print_csv_text(terminal, data_query__column(query, i));
	}
	fputc('\n', terminal->to);
	while (!ferror(terminal->to) && (more = data_query__next(query, error)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct data_value value;

			if (data_query__value(query, i, &value))
				return fail_memory(error);
			if (i)
				fputc(',', terminal->to);
			if (value.kind == DATA_VALUE_TEXT)
				print_csv_text(terminal, value.text);
			else if (value.kind != DATA_VALUE_NULL)
				fputs(number_of(&value).text, terminal->to);
		}
		fputc('\n', terminal->to);
	}
	return more < 0 ? more : 0;
}

struct json_writer {
	struct data_query *query;
	struct error *error;
	int err;
};

static json_object *json_value(const struct data_value *value)
{
	switch (value->kind) {
	case DATA_VALUE_INTEGER:
		return json_object_new_int64(value->integer);
	case DATA_VALUE_REAL:
		/* JSON has no infinity. */
		return isfinite(value->real) ? json_object_new_double(value->real) : NULL;
	case DATA_VALUE_TEXT:
		return json__string(value->text);
	case DATA_VALUE_NULL:
		break;
	}
	return NULL;
}

static json_object *next_row(void *context)
{
	struct json_writer *writer = context;
	json_object *row;

	writer->err = data_query__next(writer->query, writer->error);
	if (writer->err <= 0)
		return NULL;
	writer->err = 0;
	row = json_object_new_array();
	for (size_t i = 0; row && i < data_query__n_columns(writer->query); i++) {
		struct data_value value;

		if (data_query__value(writer->query, i, &value))
			writer->err = fail_memory(writer->error);
		else
			json_object_array_add(row, json_value(&value));
	}
	if (!row)
		writer->err = fail_memory(writer->error);
	if (!writer->err)
		return row;
	json_object_put(row);
	return NULL;
}

static int write_json(struct data_query *query, FILE *to, struct error *error)
{
	struct json_writer writer = { query, error };
	json_object *root = json_object_new_object(), *columns = json_object_new_array();
	int err;

	json__add(root, "schema", json_object_new_string("allocprof-query/1"));
	for (size_t i = 0; i < data_query__n_columns(query); i++)
		json_object_array_add(columns, json__string(data_query__column(query, i)));
	json__add(root, "columns", columns);
	err = json__begin(root, to);
	if (!err)
		err = json__list("rows", next_row, &writer, to);
	json_object_put(root);
	if (err)
		return fail_memory(error);
	if (!writer.err)
		json__end(to);
	return writer.err;
}

int query_output__write(struct data_query *query, enum query_format format,
			const struct terminal *terminal, struct error *error)
{
	/* A pragma that prints nothing has no columns. */
	if (!data_query__n_columns(query))
		return 0;
	switch (format) {
	case QUERY_CSV:
		return write_csv(query, terminal, error);
	case QUERY_JSON:
		return write_json(query, terminal->to, error);
	default:
		return write_table(query, terminal, error);
	}
}
