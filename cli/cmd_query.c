// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof query`: runs SQL on a recording. */
#include <errno.h>

#include "cleanup.h"
#include "clock.h"
#include "command.h"
#include "completeness.h"
#include "data_command.h"
#include "data_file_query.h"
#include "error.h"
#include "message.h"
#include "options.h"
#include "output_file.h"
#include "query_output.h"
#include "sql_limits.h"
#include "sql_time.h"
#include "stat_report.h"
#include "user_terminal.h"

#define DEFAULT_CPU_NS (60 * NS_PER_S)

enum {
	OPT_CSV = 256,
	OPT_SCHEMA,
	OPT_TIMEOUT,
};

static const struct argp_option query_options[] = {
	DATA_PATHS_INPUT,
	DATA_OPTION_OUTPUT,
	{ "csv", OPT_CSV, NULL, 0, "Print comma-separated values, with a line of column names" },
	{ "json", OPT_JSON, NULL, 0, "Print JSON" },
	{ "schema", OPT_SCHEMA, NULL, 0,
	  "Print the tables, views and columns that can be queried" },
	{ "timeout", OPT_TIMEOUT, "TIME", 0,
	  "Stop a query that takes more processor time, such as 10s or 5m (default: 1m)" },
	DATA_OPTION_NO_PAGER,
	{ 0 },
};

struct query_command {
	struct data_paths paths;
	const char *sql; /* NULL: not given */
	enum query_format format;
	__u64 cpu_ns;
	bool schema, no_pager;
};

static int take_format(struct query_command *options, enum query_format format, struct error *error)
{
	if (options->format != QUERY_TABLE && options->format != format)
		return error__set(error, -EINVAL,
				  "--csv and --json are two formats; leave one out");
	options->format = format;
	return 0;
}

static int check_query(const struct query_command *options, struct error *error)
{
	if (!options->sql == options->schema)
		return 0;
	if (options->schema)
		return error__set(error, -EINVAL,
				  "--schema prints tables and columns and runs no SQL; leave one "
				  "of them out");
	return error__set(
		error, -EINVAL,
		"no SQL is given; for example: allocprof query 'SELECT * FROM ledger', or "
		"`allocprof query --schema` for tables and columns");
}

static int parse_query(int key, char *arg, struct options_input *input)
{
	struct query_command *options = input->options;

	switch (key) {
	case OPT_CSV:
		return take_format(options, QUERY_CSV, input->error);
	case OPT_JSON:
		return take_format(options, QUERY_JSON, input->error);
	case OPT_SCHEMA:
		options->schema = true;
		return 0;
	case OPT_TIMEOUT:
		return number__parse_duration(arg, &options->cpu_ns, input->error);
	case OPT_NO_PAGER:
		options->no_pager = true;
		return 0;
	case OPTIONS_OPERAND:
		if (options->sql)
			return data_paths__parse(&options->paths, key, arg, input->error);
		options->sql = arg;
		return 0;
	case OPTIONS_END:
		return check_query(options, input->error);
	default:
		return data_paths__parse(&options->paths, key, arg, input->error);
	}
}

static int write_schema(FILE *to, const void *context)
{
	for (const struct data_table *table = data_tables; table->name; table++) {
		_cleanup_(free_ptr) char *columns = NULL, *title = NULL;
		int err = data_table__columns(table, &columns);

		if (err)
			return err;
		if (asprintf(&title, "%s %s(%s)", table->view ? "view" : "table", table->name,
			     columns) < 0)
			return -ENOMEM;
		stat_print__wrapped(to, title, 0, 8);
		fputs("    ", to);
		stat_print__wrapped(to, table->about, 4, 4);
		if (table[1].name)
			fputc('\n', to);
	}
	return 0;
}

static void free_query(struct data_query **query)
{
	data_query__free(*query);
}

/* The state of a query whose rows are being written. It can fail at any row. */
struct held {
	struct data_query *query;
	enum query_format format;
	struct error *error;
	int *err;
	bool to_file; /* the output is a file, which must be complete or not exist */
};

static int write_rows(FILE *to, const void *context)
{
	const struct held *held = context;
	struct terminal terminal = terminal__of(to);

	*held->err = query_output__write(held->query, held->format, &terminal, held->error);
	return held->to_file ? *held->err : 0;
}

static int run_query(char **argv)
{
	_cleanup_(free_query) struct data_query *query = NULL;
	struct query_command options = { .paths = DATA_PATHS_DEFAULT, .cpu_ns = DEFAULT_CPU_NS };
	const struct data_paths *paths = &options.paths;
	struct error error = { 0 }, query_error = { 0 };
	int err, query_err = 0, status;

	status = options__read(&cmd_query, parse_query, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	if (options.schema) {
		err = output_file__write(paths->output, paths->input, !options.no_pager,
					 write_schema, NULL, &error);
		return err ? output_file__status(err, &error) : EXIT_GOOD;
	}
	err = data_query__open(paths->input, options.sql, options.cpu_ns, &query, &error);
	sql_time__limit(options.cpu_ns,
			"allocprof: the query " SQL_OVER_TIME "; " DATA_QUERY_TIME_REMEDY "\n");
	if (!err)
		err = output_file__write(paths->output, paths->input, !options.no_pager, write_rows,
					 &(struct held){ query, options.format, &query_error,
							 &query_err, paths->output },
					 &error);
	if (query_err)
		return output_file__status(query_err, &query_error);
	if (err)
		return output_file__status(err, &error);
	if (data_query__is_altered(query))
		message__print("%s", ALTERED_NOTE);
	return data_query__is_altered(query) ? EXIT_INCOMPLETE : EXIT_GOOD;
}

const struct command cmd_query = {
	.name = "query",
	.summary = "Run SQL on a recording",
	.args_doc = "SQL [FILE]\n--schema",
	.doc = "Run an SQL statement on a recording, which it cannot change.\v"
	       "For example: allocprof query 'SELECT function, sum(calls) FROM calls GROUP BY "
	       "function'",
	.options = query_options,
	.run = run_query,
};
