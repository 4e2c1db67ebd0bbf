// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the tables of counts, blocks, samples, lifetimes and the time line. */
#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "cleanup.h"
#include "data_file_db.h"
#include "data_file_reader.h"
#include "data_file_schema.h"
#include "profile.h"

int data_reader__read_counts(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM counts NOT INDEXED ORDER BY id", &statement);
	__u64 id, process, thread, stack, calls, size_bytes;
	const char *name;
	int function;

	while (!err && (err = data_reader__next(reader, statement, "counts")) > 0) {
		__u32 added = ++reader->n_counts;

		err = data_reader__get_row(reader, statement, "nnnntnn", &id, &process, &thread,
					   &stack, &name, &calls, &size_bytes);
		if (err)
			break;
		function = source_names__take(&reader->profile->sources, name);
		if (function < 0 || !thread || thread > reader->profile->n_threads || !stack ||
		    stack > reader->profile->n_stacks ||
		    reader->profile->threads[thread - 1].process != process)
			return -EINVAL;
		if (!reader->only_checks)
			err = profile__add_count(reader->profile, thread, stack, function, calls,
						 size_bytes, &added);
		if (!err)
			err = data_reader__expect_new(id, reader->n_counts - 1, added);
	}
	return err;
}

/* Checks that frees and the like do not exceed the allocations. */
static bool is_plausible(const struct profile_blocks *blocks)
{
	return profile__add_up(blocks->frees, blocks->discarded) <= blocks->allocations &&
	       profile__add_up(blocks->freed_bytes, blocks->discarded_bytes) <=
		       blocks->size_bytes &&
	       blocks->temporary <= blocks->frees && blocks->temporary_bytes <= blocks->freed_bytes;
}

/* Read-ahead of a histogram's table, one row. */
struct histogram_rows {
	const char *table;
	sqlite3_stmt *statement;
	__u64 count, bucket, blocks; /* count 0: no rows left */
};

static int next_histogram_row(struct data_reader *reader, struct histogram_rows *rows)
{
	__u64 last = rows->count;
	int err = data_reader__next(reader, rows->statement, rows->table);

	rows->count = 0;
	if (err <= 0)
		return err;
	err = data_reader__get_row(reader, rows->statement, "nnn", &rows->count, &rows->bucket,
				   &rows->blocks);
	if (!err && (!rows->count || rows->count < last || rows->bucket >= PROFILE_BUCKETS))
		err = -EINVAL;
	return err;
}

/* Reads the rows of @count, which must come next. */
static int read_histogram(struct data_reader *reader, struct histogram_rows *rows, __u64 count,
			  __u64 buckets[PROFILE_BUCKETS])
{
	int err = 0;

	while (!err && rows->count == count) {
		buckets[rows->bucket] = rows->blocks;
		err = next_histogram_row(reader, rows);
	}
	return err;
}

static int begin_histogram(struct data_reader *reader, struct histogram_rows *rows)
{
	char sql[64];
	int err;

	snprintf(sql, sizeof(sql), "SELECT * FROM %s NOT INDEXED ORDER BY count", rows->table);
	err = prepare(reader->db, sql, &rows->statement);
	return err ? err : next_histogram_row(reader, rows);
}

static int read_block_rows(struct data_reader *reader, sqlite3_stmt *statement,
			   struct histogram_rows *sizes, struct histogram_rows *lifetimes)
{
	struct profile_blocks row;
	__u64 count, last = 0;
	int err;

	while ((err = data_reader__next(reader, statement, "blocks")) > 0) {
		row = (struct profile_blocks){ 0 };
		err = data_reader__get_row(reader, statement, "nnnnnnnnnnnnn", &count, &row.failed,
					   &row.allocations, &row.size_bytes, &row.frees,
					   &row.freed_bytes, &row.discarded, &row.discarded_bytes,
					   &row.temporary, &row.temporary_bytes, &row.peak,
					   &row.peak_bytes, &row.oldest_ns);
		if (!err && (count <= last || count > reader->n_counts || !is_plausible(&row)))
			err = -EINVAL;
		row.count = last = count;
		if (!err)
			err = read_histogram(reader, sizes, count, row.sizes);
		if (!err)
			err = read_histogram(reader, lifetimes, count, row.lifetimes);
		if (!err && !reader->only_checks)
			err = profile__add_blocks(reader->profile, &row);
		if (err)
			return err;
	}
	/* A histogram for a count without blocks. */
	if (!err && (sizes->count || lifetimes->count))
		err = -EINVAL;
	return err;
}

int data_reader__read_blocks(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	struct histogram_rows sizes = { "size_histogram" }, lifetimes = { "lifetime_histogram" };
	int err =
		prepare(reader->db, "SELECT * FROM blocks NOT INDEXED ORDER BY count", &statement);

	if (!err)
		err = begin_histogram(reader, &sizes);
	if (!err)
		err = begin_histogram(reader, &lifetimes);
	if (!err)
		err = read_block_rows(reader, statement, &sizes, &lifetimes);
	sqlite3_finalize(sizes.statement);
	sqlite3_finalize(lifetimes.statement);
	return err;
}

int data_reader__read_samples(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM samples NOT INDEXED", &statement);
	struct profile_estimate row;
	struct profile_samples *samples;
	const char *name;
	__u64 count;
	int what;

	while (!err && (err = data_reader__next(reader, statement, "samples")) > 0) {
		err = data_reader__get_row(reader, statement, "ntndd", &count, &name, &row.samples,
					   &row.variance, &row.bytes_variance);
		if (err)
			break;
		what = profile__sampled_by_name(name);
		if (what < 0 || !row.samples || !count || count > reader->n_counts)
			return -EINVAL;
		if (reader->only_checks)
			continue;
		err = profile__get_samples(reader->profile, count, &samples);
		if (!err && samples->of[what].samples)
			err = -EINVAL;
		if (!err)
			samples->of[what] = row;
	}
	return err;
}

int data_reader__read_lifetimes(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM lifetimes NOT INDEXED", &statement);
	__u64 count, born, died, exited, blocks, size_bytes;

	while (!err && (err = data_reader__next(reader, statement, "lifetimes")) > 0) {
		err = data_reader__get_row(reader, statement, "nnllnn", &count, &born, &died,
					   &exited, &blocks, &size_bytes);
		if (!err && (!count || count > reader->n_counts || born > died || born > exited ||
			     (died != PROFILE_LIVE && exited != PROFILE_LIVE)))
			err = -EINVAL;
		if (!err && !reader->only_checks)
			err = profile__add_lifetime(reader->profile,
						    &(struct profile_lifetime){ count, born, died,
										exited, blocks,
										size_bytes });
	}
	return err;
}

int data_reader__read_timeline(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT * FROM timeline NOT INDEXED ORDER BY run, time_ns",
			  &statement);
	struct profile_moment moment = { 0 };
	__u64 run;

	while (!err && (err = data_reader__next(reader, statement, "timeline")) > 0) {
		err = data_reader__get_row(reader, statement, "nnnnnnn", &run, &moment.time_ns,
					   &moment.live, &moment.live_bytes, &moment.allocations,
					   &moment.size_bytes, &moment.rss_bytes);
		if (!err && !data_reader__is_run(reader->profile, run))
			err = -EINVAL;
		moment.run = run;
		if (!err)
			err = profile__add_moment(reader->profile, &moment);
	}
	return err;
}
