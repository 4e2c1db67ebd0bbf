// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the tables of a data file. */
#include <errno.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>

#include "array.h"
#include "cleanup.h"
#include "data_digest.h"
#include "data_file.h"
#include "data_file_db.h"
#include "data_file_schema.h"
#include "profile.h"

/* Inserts a row of @columns: 'n' takes a __u64, 'd' a double, 't' a text or NULL. */
static int insert(sqlite3 *db, sqlite3_stmt *statement, const char *columns, ...)
{
	int bound = SQLITE_OK;
	va_list values;

	va_start(values, columns);
	for (int i = 0; columns[i]; i++) {
		if (columns[i] == 'n')
			bound |= sqlite3_bind_int64(statement, i + 1, va_arg(values, __u64));
		else if (columns[i] == 'd')
			bound |= sqlite3_bind_double(statement, i + 1, va_arg(values, double));
		else
			bound |= bind_text(statement, i + 1, va_arg(values, const char *));
	}
	va_end(values);
	/* Binding fails only without memory or beyond the length limit. */
	if (bound != SQLITE_OK)
		return bound == SQLITE_TOOBIG ? -E2BIG : -ENOMEM;
	if (sqlite3_step(statement) != SQLITE_DONE)
		return db_errno(db);
	sqlite3_reset(statement);
	return 0;
}

static int write_meta(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	char version[16];
	int err = prepare(db, "INSERT INTO meta VALUES(?, ?)", &statement);

	snprintf(version, sizeof(version), "%d", DATA_FILE_SCHEMA_VERSION);
	if (!err)
		err = insert(db, statement, "tt", "schema_version", version);
	for (size_t i = 0; i < profile->n_meta && !err; i++) {
		const struct profile_meta *meta = &profile->meta[i];

		/* A profile that was read from a file has that file's version in meta. */
		if (strcmp(meta->key, "schema_version"))
			err = insert(db, statement, "tt", meta->key, meta->value);
	}
	return err;
}

static int write_ledger(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO ledger VALUES(?, ?)", &statement);

	for (size_t i = 0; i < profile->n_ledger && !err; i++)
		err = insert(db, statement, "tn", profile->ledger[i].name,
			     profile->ledger[i].value);
	return err;
}

static int write_run(sqlite3_stmt *meta, sqlite3_stmt *ledger, sqlite3 *db,
		     const struct profile_run *run, __u64 number)
{
	int err = 0;

	for (size_t i = 0; i < run->n_meta && !err; i++)
		err = insert(db, meta, "ntt", number, run->meta[i].key, run->meta[i].value);
	for (size_t i = 0; i < run->n_ledger && !err; i++)
		err = insert(db, ledger, "ntn", number, run->ledger[i].name, run->ledger[i].value);
	return err;
}

static int write_runs(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *meta = NULL;
	_cleanup_(finalize) sqlite3_stmt *ledger = NULL;
	int err = prepare(db, "INSERT INTO run_meta VALUES(?, ?, ?)", &meta);

	if (!err)
		err = prepare(db, "INSERT INTO run_ledger VALUES(?, ?, ?)", &ledger);
	for (size_t i = 0; i < profile->n_runs && !err; i++)
		err = write_run(meta, ledger, db, &profile->runs[i], i + 1);
	return err;
}

static int write_gaps(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO gaps VALUES(?, ?, ?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_gaps && !err; i++) {
		const struct profile_gap *gap = &profile->gaps[i];

		err = insert(db, statement, "ntnnntt", (__u64)gap->run, gap__key(gap->kind),
			     gap->number, gap->size_bytes, (__u64)gap->pid, gap->object,
			     gap->detail);
	}
	return err;
}

static int write_modules(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO modules VALUES(?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		const struct profile_module *module = &profile->modules[i];

		err = insert(db, statement, "nttt", (__u64)module->id, module->path,
			     module->build_id, module->symbols);
	}
	return err;
}

static int write_processes(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO processes VALUES(?, ?, ?, ?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_processes && !err; i++) {
		const struct profile_process *process = &profile->processes[i];

		err = insert(db, statement, "nnnnnnnt", (__u64)process->id, (__u64)process->parent,
			     (__u64)process->pid, process->start_ns, process->end_ns,
			     (__u64)process->execed, (__u64)process->run, process->comm);
	}
	return err;
}

static int write_threads(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO threads VALUES(?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_threads && !err; i++)
		err = insert(db, statement, "nnt", (__u64)profile->threads[i].id,
			     (__u64)profile->threads[i].process, profile->threads[i].name);
	return err;
}

static int write_functions(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO functions VALUES(?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_functions && !err; i++) {
		const struct profile_function *function = &profile->functions[i];

		err = insert(db, statement, "nttt", (__u64)function->id, function->symbol,
			     function->name, function->full_name);
	}
	return err;
}

static int write_files(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO files VALUES(?, ?)", &statement);

	for (size_t i = 0; i < profile->n_files && !err; i++)
		err = insert(db, statement, "nt", (__u64)profile->files[i].id,
			     profile->files[i].path);
	return err;
}

static int write_frames(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO frames VALUES(?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_frames && !err; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		err = insert(db, statement, "nnnnn", (__u64)frame->id, (__u64)frame->module,
			     frame->offset, (__u64)frame->interrupted, (__u64)frame->tail_call);
	}
	return err;
}

static int write_lines(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO lines VALUES(?, ?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_frames && !err; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		for (__u32 depth = 0; depth < frame->n_lines && !err; depth++) {
			const struct profile_line *line = &frame->lines[depth];

			err = insert(db, statement, "nnnnnn", (__u64)frame->id, (__u64)depth,
				     (__u64)line->function, (__u64)line->file, (__u64)line->line,
				     (__u64)line->inlined);
		}
	}
	return err;
}

/* Bytes of a frame's id in decimal and of the comma after it. */
#define FRAME_TEXT_LENGTH 11

static char *put_frame(char *to, __u32 frame)
{
	char digits[FRAME_TEXT_LENGTH];
	int n = 0;

	do
		digits[n++] = '0' + frame % 10;
	while (frame /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

/* The frames as a JSON array; printf() takes several times as long, and there may be a hundred million of them. */
static void print_frames(const struct profile_stack *stack, char *to)
{
	*to++ = '[';
	for (__u32 depth = 0; depth < stack->n_frames; depth++) {
		if (depth)
			*to++ = ',';
		to = put_frame(to, stack->frames[depth]);
	}
	*to++ = ']';
	*to = 0;
}

static int write_stacks(sqlite3 *db, const struct profile *profile)
{
	char frames[AP_MAX_DEPTH * FRAME_TEXT_LENGTH + sizeof("[]")];
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO stacks VALUES(?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_stacks && !err; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		print_frames(stack, frames);
		err = insert(db, statement, "ntt", (__u64)stack->id,
			     profile__stack_end_name(stack->end), frames);
	}
	return err;
}

static int write_counts(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO counts VALUES(?, ?, ?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];

		err = insert(db, statement, "nnnntnn", (__u64)count->id, (__u64)count->process,
			     (__u64)count->thread, (__u64)count->stack,
			     source_names__function(&profile->sources, count->function),
			     count->calls, count->size_bytes);
	}
	return err;
}

static int write_histogram(sqlite3 *db, sqlite3_stmt *statement, __u32 count,
			   const __u64 buckets[PROFILE_BUCKETS])
{
	int err = 0;

	for (int i = 0; i < PROFILE_BUCKETS && !err; i++) {
		if (buckets[i])
			err = insert(db, statement, "nnn", (__u64)count, (__u64)i, buckets[i]);
	}
	return err;
}

static int write_blocks(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	_cleanup_(finalize) sqlite3_stmt *sizes = NULL;
	_cleanup_(finalize) sqlite3_stmt *lifetimes = NULL;
	int err = prepare(db, "INSERT INTO blocks VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			  &statement);

	if (!err)
		err = prepare(db, "INSERT INTO size_histogram VALUES(?, ?, ?)", &sizes);
	if (!err)
		err = prepare(db, "INSERT INTO lifetime_histogram VALUES(?, ?, ?)", &lifetimes);
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		struct profile_blocks row, *blocks = &row;

		if (!profile__count_blocks(profile, &profile->counts[i], blocks))
			continue;
		err = insert(db, statement, "nnnnnnnnnnnnn", (__u64)blocks->count, blocks->failed,
			     blocks->allocations, blocks->size_bytes, blocks->frees,
			     blocks->freed_bytes, blocks->discarded, blocks->discarded_bytes,
			     blocks->temporary, blocks->temporary_bytes, blocks->peak,
			     blocks->peak_bytes, blocks->oldest_ns);
		if (!err)
			err = write_histogram(db, sizes, blocks->count, blocks->sizes);
		if (!err)
			err = write_histogram(db, lifetimes, blocks->count, blocks->lifetimes);
	}
	return err;
}

static int write_samples(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO samples VALUES(?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_samples * PROFILE_SAMPLED && !err; i++) {
		const struct profile_samples *samples = &profile->samples[i / PROFILE_SAMPLED];
		enum profile_sampled what = i % PROFILE_SAMPLED;
		const struct profile_estimate *estimate = &samples->of[what];

		if (estimate->samples)
			err = insert(db, statement, "ntndd", (__u64)samples->count,
				     profile__sampled_name(what), estimate->samples,
				     estimate->variance, estimate->bytes_variance);
	}
	return err;
}

static int write_lifetimes(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	struct profile_lifetime lifetime;
	__u32 at = 0;
	int err = prepare(db,
			  "INSERT INTO lifetimes VALUES(?, ?, nullif(?, 4294967295), "
			  "nullif(?, 4294967295), ?, ?)",
			  &statement);

	while (!err && profile__next_lifetime(profile, &at, &lifetime))
		err = insert(db, statement, "nnnnnn", (__u64)lifetime.count, (__u64)lifetime.born,
			     (__u64)lifetime.died, (__u64)lifetime.exited, lifetime.blocks,
			     lifetime.size_bytes);
	return err;
}

static int write_timeline(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO timeline VALUES(?, ?, ?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_timeline && !err; i++) {
		const struct profile_moment *moment = &profile->timeline[i];

		err = insert(db, statement, "nnnnnnn", (__u64)moment->run, moment->time_ns,
			     moment->live, moment->live_bytes, moment->allocations,
			     moment->size_bytes, moment->rss_bytes);
	}
	return err;
}

int data_file__write_tables(sqlite3 *db, const struct profile *profile)
{
	static int (*const writers[])(sqlite3 *, const struct profile *) = {
		write_meta,	write_ledger,	 write_runs,   write_modules, write_processes,
		write_threads,	write_functions, write_files,  write_frames,  write_lines,
		write_stacks,	write_counts,	 write_blocks, write_samples, write_lifetimes,
		write_timeline, write_gaps,
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(writers) && !err; i++)
		err = writers[i](db, profile);
	return err ? err : data_digest__write(db);
}

static bool has_tail_calls(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_frames; i++)
		if (profile->frames[i].tail_call)
			return true;
	return false;
}

static int rewrite_stacks(sqlite3 *db, const struct profile *profile)
{
	int err = run(db, "DELETE FROM frames; DELETE FROM stacks");

	if (!err)
		err = write_frames(db, profile);
	return err ? err : write_stacks(db, profile);
}

int data_file__rewrite_names(sqlite3 *db, const struct profile *profile)
{
	int err = run(db, "DELETE FROM meta; DELETE FROM modules; DELETE FROM functions; "
			  "DELETE FROM files; DELETE FROM lines");

	/* It says which files could not be read. */
	if (!err)
		err = write_meta(db, profile);
	if (!err)
		err = write_modules(db, profile);
	if (!err)
		err = write_functions(db, profile);
	if (!err)
		err = write_files(db, profile);
	if (!err)
		err = write_lines(db, profile);
	/* Tail calls were inserted into the stacks. */
	if (!err && has_tail_calls(profile))
		err = rewrite_stacks(db, profile);
	return err ? err : data_digest__write(db);
}
