/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints the rows of a query as text. */
#ifndef ALLOCPROF_QUERY_OUTPUT_H
#define ALLOCPROF_QUERY_OUTPUT_H

struct data_query;
struct error;
struct terminal;

enum query_format {
	QUERY_TABLE, /* aligned columns, cut to a terminal's width */
	QUERY_CSV,   /* RFC 4180, but lines end with '\n' */
	QUERY_JSON,  /* allocprof-query/1 */
};

/*
 * Writes all rows of @query to @terminal as they come, with no more than a few MiB of them in
 * memory. Returns 0, or a negative errno with @error set if the query failed or memory is short.
 * The caller checks @terminal->to for errors.
 */
int query_output__write(struct data_query *query, enum query_format format,
			const struct terminal *terminal, struct error *error);

#endif
