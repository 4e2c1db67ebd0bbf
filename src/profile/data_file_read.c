// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "data_file_db.h"
#include "data_file_schema.h"
#include "error.h"
#include "profile.h"
#include "profile_runs.h"

/* SQLite's file header: https://www.sqlite.org/fileformat2.html section 1.3 */
#define HEADER_SIZE	      100
#define HEADER_MAGIC	      "SQLite format 3"
#define HEADER_PAGE_SIZE      16
#define HEADER_PAGES	      28
#define HEADER_APPLICATION_ID 68

struct reader {
	sqlite3 *db;
	struct profile *profile;
	bool only_checks; /* what there may be millions of is not kept: counts and what refers to them */
	size_t n_counts;
	/* Bytes of text that may still come: a small file can name one long text many times. */
	__u64 text_left;
	/* The profile's id of each row of the table functions: files may have several rows of one
	 * symbol, a profile has not. */
	__u32 *functions;
	size_t n_functions, functions_room;
};

static __u32 big_endian_32(const unsigned char *at)
{
	return (__u32)at[0] << 24 | (__u32)at[1] << 16 | (__u32)at[2] << 8 | at[3];
}

static int fail_damaged(struct error *error, const char *path, const char *what)
{
	return error__set(error, -EINVAL, "%s is damaged (%s); record again", path, what);
}

static int fail_foreign(struct error *error, const char *path)
{
	return error__set(error, -EINVAL,
			  "%s is not a data file of allocprof; name one that `allocprof record` "
			  "wrote",
			  path);
}

/* What can be told from the first bytes and the size, before SQLite sees any of it. */
static int check_header(const char *path, __u64 *file_size, struct error *error)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	unsigned char header[HEADER_SIZE];
	__u32 page_size;
	struct stat st;
	ssize_t len;

	if (fd < 0 && errno == ENOENT)
		return error__set(error, -ENOENT,
				  "no such file %s; run `allocprof record` first, or name "
				  "another",
				  path);
	if (fd < 0 || fstat(fd, &st)) {
		int err = -errno;

		return error__set(error, err, "cannot read %s: %s; %s", path, strerror(-err),
				  err == -EACCES ? "read it as the user who recorded it (sudo)"
						 : "name another with -i");
	}
	if (S_ISDIR(st.st_mode))
		return error__set(error, -EISDIR,
				  "cannot read %s: it is a directory; name a data file with -i",
				  path);
	if (!S_ISREG(st.st_mode))
		return fail_foreign(error, path);
	if (!st.st_size)
		return fail_damaged(error, path, "it is empty");
	len = pread(fd, header, sizeof(header), 0);
	if (len < 0) {
		int err = -errno;

		return error__set(error, err, "cannot read %s: %s; copy it to a sound disk", path,
				  strerror(-err));
	}
	if (memcmp(header, HEADER_MAGIC,
		   (size_t)len < sizeof(HEADER_MAGIC) ? (size_t)len : sizeof(HEADER_MAGIC)))
		return fail_foreign(error, path);
	if (len < HEADER_SIZE)
		return fail_damaged(error, path, "it is cut short");
	if (big_endian_32(header + HEADER_APPLICATION_ID) != DATA_FILE_APPLICATION_ID)
		return fail_foreign(error, path);
	page_size = (__u32)header[HEADER_PAGE_SIZE] << 8 | header[HEADER_PAGE_SIZE + 1];
	if (page_size == 1)
		page_size = 65536;
	if ((__u64)st.st_size < (__u64)page_size * big_endian_32(header + HEADER_PAGES))
		return fail_damaged(error, path, "it is cut short");
	*file_size = st.st_size;
	return 0;
}

/* "file:" with everything that a URI gives meaning to escaped; to be freed. */
static char *immutable_uri(const char *path)
{
	static const char prefix[] = "file:", suffix[] = "?mode=ro&immutable=1";
	static const char hex[] = "0123456789ABCDEF";
	char *uri = malloc(sizeof(prefix) + sizeof(suffix) + 2 + 3 * strlen(path));
	char *to;

	if (!uri)
		return NULL;
	to = stpcpy(uri, prefix);
	/* "//x" after the scheme would be a host. */
	if (*path != '/')
		to = stpcpy(to, "./");
	while (*path == '/' && path[1] == '/')
		path++;
	for (; *path; path++) {
		unsigned char c = *path;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("/._-", c)) {
			*to++ = c;
		} else {
			*to++ = '%';
			*to++ = hex[c >> 4];
			*to++ = hex[c & 15];
		}
	}
	stpcpy(to, suffix);
	return uri;
}

/* 1 with a row, 0 at the end, or a negative errno: -EINVAL where the file is to blame. */
static int next(struct reader *reader, sqlite3_stmt *statement)
{
	switch (sqlite3_step(statement)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	default:
		return sqlite3_system_errno(reader->db) == EIO ? -EIO : -EINVAL;
	}
}

static int get_number(sqlite3_stmt *statement, int column, __u64 max, __u64 *value)
{
	sqlite3_int64 number;

	if (sqlite3_column_type(statement, column) != SQLITE_INTEGER)
		return -EINVAL;
	number = sqlite3_column_int64(statement, column);
	if (number < 0 || (__u64)number > max)
		return -EINVAL;
	*value = number;
	return 0;
}

static int get_double(sqlite3_stmt *statement, int column, double *value)
{
	double number = sqlite3_column_double(statement, column);

	/* No text, and not more than all numbers there may be can add up to. */
	if (sqlite3_column_type(statement, column) != SQLITE_FLOAT || !(number >= 0) ||
	    number > 1e100)
		return -EINVAL;
	*value = number;
	return 0;
}

/* Valid until the next step. */
static int get_text(struct reader *reader, sqlite3_stmt *statement, int column, const char **text)
{
	const char *value;
	size_t size;

	if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
		return -EINVAL;
	value = (const char *)sqlite3_column_text(statement, column);
	if (!value)
		return -ENOMEM;
	size = sqlite3_column_bytes(statement, column);
	if (strlen(value) != size || size > reader->text_left)
		return -EINVAL;
	reader->text_left -= size;
	*text = value;
	return 0;
}

/*
 * Takes the first columns of a row: 'n' a number from 0 to PROFILE_MAX into a __u64, 'a' any number,
 * 'd' a double from 0 on, 't' text, which is valid until the next step.
 */
static int get_row(struct reader *reader, sqlite3_stmt *statement, const char *columns, ...)
{
	va_list outputs;
	int err = 0;

	va_start(outputs, columns);
	for (int i = 0; columns[i] && !err; i++) {
		if (columns[i] == 't') {
			err = get_text(reader, statement, i, va_arg(outputs, const char **));
		} else if (columns[i] == 'n') {
			err = get_number(statement, i, PROFILE_MAX, va_arg(outputs, __u64 *));
		} else if (columns[i] == 'd') {
			err = get_double(statement, i, va_arg(outputs, double *));
		} else {
			*va_arg(outputs, __u64 *) = sqlite3_column_int64(statement, i);
			if (sqlite3_column_type(statement, i) != SQLITE_INTEGER)
				err = -EINVAL;
		}
	}
	va_end(outputs);
	return err;
}

/* Whether the file defines something with exactly these words. 0 or a negative errno. */
static int check_definition(struct reader *reader, sqlite3_stmt *statement, const char *sql)
{
	__u64 n;
	int err;

	if (bind_text(statement, 1, sql) != SQLITE_OK)
		return -ENOMEM;
	err = next(reader, statement);
	if (err < 0)
		return err;
	if (!err || get_number(statement, 0, 1, &n) || n != 1)
		return -EINVAL;
	sqlite3_reset(statement);
	return 0;
}

/*
 * Our definitions must be there letter by letter: a table of the right name may else be a view that
 * never ends. Others may be there too, users add indexes and views of their own. Of a file from
 * another version only meta must be known, which therefore stays as it is in every version.
 */
static int check_schema(struct reader *reader, size_t n_definitions)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err =
		prepare(reader->db, "SELECT count(*) FROM sqlite_schema WHERE sql = ?", &statement);

	if (err)
		return -EINVAL;
	for (size_t i = 0; i < n_definitions && !err; i++)
		err = check_definition(reader, statement, data_file_schema[i]);
	return err;
}

static int read_version(struct reader *reader, __u64 *version)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = check_schema(reader, 1);
	const char *text;
	char *end;

	if (err)
		return err;
	err = prepare(reader->db, "SELECT value FROM meta NOT INDEXED WHERE key = 'schema_version'",
		      &statement);
	if (err)
		return -EINVAL;
	err = next(reader, statement);
	if (err <= 0)
		return err ? err : -EINVAL;
	err = get_text(reader, statement, 0, &text);
	if (err)
		return err;
	if (*text < '1' || *text > '9' || strlen(text) > 9)
		return -EINVAL;
	*version = strtoul(text, &end, 10);
	return *end ? -EINVAL : 0;
}

static int read_definitions(struct reader *reader)
{
	return check_schema(reader, ARRAY_SIZE(data_file_schema));
}

static int read_meta(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT key, value FROM meta NOT INDEXED", &statement);
	const char *key, *value;

	while (!err && (err = next(reader, statement)) > 0) {
		err = get_text(reader, statement, 0, &key);
		if (!err)
			err = get_text(reader, statement, 1, &value);
		if (!err && profile__meta(reader->profile, key))
			err = -EINVAL;
		if (!err)
			err = profile__set_meta(reader->profile, key, value);
	}
	return err;
}

static int read_ledger(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT name, value FROM ledger NOT INDEXED", &statement);
	const char *name;
	__u64 value;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_ledger;

		err = get_text(reader, statement, 0, &name);
		if (!err)
			err = get_number(statement, 1, PROFILE_MAX, &value);
		if (!err)
			err = profile__set_ledger(reader->profile, name, value);
		if (!err && reader->profile->n_ledger == n_before)
			err = -EINVAL;
	}
	return err;
}

/* What an adder that finds what is there already was given must be new: ids count from 1 without gaps,
 * and no row comes twice. */
static int expect_new(__u64 id, size_t n_before, __u32 added)
{
	return id == n_before + 1 && added == id ? 0 : -EINVAL;
}

static int read_run_meta(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err =
		prepare(reader->db, "SELECT run, key, value FROM run_meta NOT INDEXED ORDER BY run",
			&statement);
	const char *key, *value;
	__u64 run;

	while (!err && (err = next(reader, statement)) > 0) {
		err = get_row(reader, statement, "ntt", &run, &key, &value);
		if (!err && run > PROFILE_MAX_RUNS)
			err = -EINVAL;
		if (!err)
			err = profile__add_run_meta(reader->profile, run, key, value);
	}
	return err;
}

/* Runs without any meta there are none. */
static int read_run_ledger(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT run, name, value FROM run_ledger NOT INDEXED ORDER BY run",
			  &statement);
	__u64 run, value;
	const char *name;

	while (!err && (err = next(reader, statement)) > 0) {
		err = get_row(reader, statement, "ntn", &run, &name, &value);
		if (!err && run > reader->profile->n_runs)
			err = -EINVAL;
		if (!err)
			err = profile__add_run_ledger(reader->profile, run, name, value);
	}
	return err;
}

static int read_modules(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT id, path, build_id, symbols FROM modules NOT INDEXED ORDER BY id",
			  &statement);
	const char *path, *build_id, *symbols;
	__u64 id;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_modules;
		__u32 added = 0;

		err = get_row(reader, statement, "nttt", &id, &path, &build_id, &symbols);
		if (!err && build_id[strspn(build_id, "0123456789abcdef")])
			err = -EINVAL;
		if (!err)
			err = profile__add_module_file(reader->profile, path, build_id, id, &added);
		if (!err)
			err = profile__set_module_symbols(reader->profile, added, symbols);
		if (!err)
			err = expect_new(id, n_before, added);
	}
	return err;
}

/* Whoever makes files by hand need not list the runs. */
static bool is_run(const struct profile *profile, __u64 run)
{
	return run && run <= (profile->n_runs ? profile->n_runs : PROFILE_MAX_RUNS);
}

static int read_processes(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT id, parent, pid, start_ns, end_ns, execed, run, comm "
			  "FROM processes NOT INDEXED ORDER BY id",
			  &statement);
	__u64 id, parent, pid, start_ns, end_ns, execed, run;
	struct profile_process *process;
	const char *comm;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_processes;
		__u32 added = 0;

		err = get_row(reader, statement, "nnnnnnnt", &id, &parent, &pid, &start_ns, &end_ns,
			      &execed, &run, &comm);
		if (!err && (parent > n_before || pid > INT32_MAX || execed > 1 ||
			     !is_run(reader->profile, run)))
			err = -EINVAL;
		if (!err)
			err = profile__add_process(reader->profile, parent, pid, start_ns, comm,
						   &added);
		if (!err)
			err = expect_new(id, n_before, added);
		if (err)
			break;
		process = &reader->profile->processes[n_before];
		process->end_ns = end_ns;
		process->execed = execed;
		process->run = run;
	}
	return err;
}

static int read_threads(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err =
		prepare(reader->db, "SELECT id, process, name FROM threads NOT INDEXED ORDER BY id",
			&statement);
	__u64 id, process;
	const char *name;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_threads;
		__u32 added = 0;

		err = get_row(reader, statement, "nnt", &id, &process, &name);
		if (!err && process > reader->profile->n_processes)
			err = -EINVAL;
		if (!err)
			err = profile__add_thread(reader->profile, process, name, &added);
		if (!err)
			err = expect_new(id, n_before, added);
	}
	return err;
}

static int read_functions(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT id, symbol, name, full_name FROM functions NOT INDEXED "
			  "ORDER BY id",
			  &statement);
	const char *symbol, *name, *full_name;
	__u64 id;

	while (!err && (err = next(reader, statement)) > 0) {
		__u32 added;

		err = get_row(reader, statement, "nttt", &id, &symbol, &name, &full_name);
		if (!err && id != reader->n_functions + 1)
			err = -EINVAL;
		if (!err)
			err = profile__add_function(reader->profile, symbol, name, full_name,
						    &added);
		if (!err)
			err = array__reserve(&reader->functions, &reader->functions_room,
					     reader->n_functions + 1, sizeof(added));
		if (!err)
			reader->functions[reader->n_functions++] = added;
	}
	return err;
}

static int read_files(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db, "SELECT id, path FROM files NOT INDEXED ORDER BY id",
			  &statement);
	const char *path;
	__u64 id;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_files;
		__u32 added = 0;

		err = get_row(reader, statement, "nt", &id, &path);
		if (!err)
			err = profile__add_file(reader->profile, path, &added);
		if (!err)
			err = expect_new(id, n_before, added);
	}
	return err;
}

static int read_frames(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err =
		prepare(reader->db,
			"SELECT id, module, offset, interrupted, tail_call FROM frames NOT INDEXED "
			"ORDER BY id",
			&statement);
	__u64 id, module, offset, interrupted, tail_call;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_frames;
		__u32 added = 0;

		/* All 64 bits of an address may be set: vsyscall's are negative in SQL. */
		err = get_row(reader, statement, "nnann", &id, &module, &offset, &interrupted,
			      &tail_call);
		if (!err && (module > reader->profile->n_modules || interrupted > 1 ||
			     tail_call > 1 || (tail_call && (interrupted || !module))))
			err = -EINVAL;
		if (!err && tail_call)
			err = profile__add_tail_call(reader->profile, module, offset, &added);
		else if (!err)
			err = module ? profile__add_frame(reader->profile, module, offset,
							  interrupted, &added)
				     : profile__add_other_frame(reader->profile, offset,
								interrupted, &added);
		if (!err)
			err = expect_new(id, n_before, added);
	}
	return err;
}

/* More levels of inlining than compilers make. */
#define MAX_LINES 1024

struct frame_lines {
	__u32 frame;
	__u32 n;
	struct profile_line lines[MAX_LINES];
};

static int set_lines(struct reader *reader, struct frame_lines *lines)
{
	int err = lines->n ? profile__set_frame_lines(reader->profile, lines->frame, lines->lines,
						      lines->n)
			   : 0;

	lines->n = 0;
	return err;
}

static int read_lines(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	_cleanup_(free_ptr) struct frame_lines *lines = calloc(1, sizeof(*lines));
	int err = prepare(reader->db,
			  "SELECT frame, depth, function, file, line, inlined FROM lines "
			  "NOT INDEXED ORDER BY frame, depth",
			  &statement);
	__u64 frame, depth, function, file, line, inlined;

	if (!lines)
		return -ENOMEM;
	while (!err && (err = next(reader, statement)) > 0) {
		err = get_row(reader, statement, "nnnnnn", &frame, &depth, &function, &file, &line,
			      &inlined);
		if (!err && (frame > UINT32_MAX || !function || function > reader->n_functions ||
			     file > UINT32_MAX || line > UINT32_MAX || inlined > 1))
			err = -EINVAL;
		if (!err && frame != lines->frame) {
			err = set_lines(reader, lines);
			lines->frame = frame;
		}
		if (!err && (depth != lines->n || lines->n == MAX_LINES))
			err = -EINVAL;
		if (!err)
			lines->lines[lines->n++] = (struct profile_line){
				.function = reader->functions[function - 1],
				.file = file,
				.line = line,
				.inlined = inlined,
			};
	}
	return err ? err : set_lines(reader, lines);
}

/* Takes the frames of stack @id, which must be the next rows of @statement. */
static int read_stack_frames(struct reader *reader, sqlite3_stmt *statement, __u64 id,
			     __u64 n_frames, __u32 *frames)
{
	for (__u64 depth = 0; depth < n_frames; depth++) {
		__u64 stack, row_depth, frame;
		int err = next(reader, statement);

		if (err <= 0)
			return err ? err : -EINVAL;
		if (get_row(reader, statement, "nnn", &stack, &row_depth, &frame) || stack != id ||
		    row_depth != depth || frame > reader->profile->n_frames)
			return -EINVAL;
		frames[depth] = frame;
	}
	return 0;
}

static int read_stacks(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *stacks = NULL;
	_cleanup_(finalize) sqlite3_stmt *stack_frames = NULL;
	__u32 frames[AP_MAX_DEPTH], id;
	const char *end_name;
	__u64 stack, n_frames;
	int err, end;

	err = prepare(reader->db, "SELECT id, end, n_frames FROM stacks NOT INDEXED ORDER BY id",
		      &stacks);
	if (!err)
		err = prepare(reader->db,
			      "SELECT stack, depth, frame FROM stack_frames NOT INDEXED "
			      "ORDER BY stack, depth",
			      &stack_frames);
	while (!err && (err = next(reader, stacks)) > 0) {
		size_t n_before = reader->profile->n_stacks;

		err = get_row(reader, stacks, "ntn", &stack, &end_name, &n_frames);
		if (err)
			break;
		end = profile__stack_end_by_name(end_name);
		if (end < 0 || n_frames > AP_MAX_DEPTH)
			return -EINVAL;
		err = read_stack_frames(reader, stack_frames, n_before + 1, n_frames, frames);
		if (!err)
			err = profile__add_stack(reader->profile, frames, n_frames, end, &id);
		if (!err)
			err = expect_new(stack, n_before, id);
	}
	if (err)
		return err;
	err = next(reader, stack_frames);
	return err > 0 ? -EINVAL : err;
}

static int read_counts(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT id, process, thread, stack, function, calls, bytes "
			  "FROM counts NOT INDEXED ORDER BY id",
			  &statement);
	__u64 id, process, thread, stack, calls, size_bytes;
	const char *name;
	int function;

	while (!err && (err = next(reader, statement)) > 0) {
		__u32 added = ++reader->n_counts;

		err = get_row(reader, statement, "nnnntnn", &id, &process, &thread, &stack, &name,
			      &calls, &size_bytes);
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
			err = expect_new(id, reader->n_counts - 1, added);
	}
	return err;
}

/* What a block can have become adds up to no more than was allocated. */
static bool is_plausible(const struct profile_blocks *blocks)
{
	return profile__add_up(blocks->frees, blocks->discarded) <= blocks->allocations &&
	       profile__add_up(blocks->freed_bytes, blocks->discarded_bytes) <=
		       blocks->size_bytes &&
	       blocks->temporary <= blocks->frees && blocks->temporary_bytes <= blocks->freed_bytes;
}

/* A row of a histogram's table that was read ahead. */
struct histogram_rows {
	sqlite3_stmt *statement;
	__u64 count, bucket, blocks; /* count 0: none are left */
};

static int next_histogram_row(struct reader *reader, struct histogram_rows *rows)
{
	__u64 last = rows->count;
	int err = next(reader, rows->statement);

	rows->count = 0;
	if (err <= 0)
		return err;
	err = get_row(reader, rows->statement, "nnn", &rows->count, &rows->bucket, &rows->blocks);
	if (!err && (!rows->count || rows->count < last || rows->bucket >= PROFILE_BUCKETS))
		err = -EINVAL;
	return err;
}

/* The rows of @count, which must be the next. */
static int read_histogram(struct reader *reader, struct histogram_rows *rows, __u64 count,
			  __u64 buckets[PROFILE_BUCKETS])
{
	int err = 0;

	while (!err && rows->count == count) {
		buckets[rows->bucket] = rows->blocks;
		err = next_histogram_row(reader, rows);
	}
	return err;
}

static int begin_histogram(struct reader *reader, const char *sql, struct histogram_rows *rows)
{
	int err = prepare(reader->db, sql, &rows->statement);

	return err ? err : next_histogram_row(reader, rows);
}

static int read_block_rows(struct reader *reader, sqlite3_stmt *statement,
			   struct histogram_rows *sizes, struct histogram_rows *lifetimes)
{
	struct profile_blocks row;
	__u64 count, last = 0;
	int err;

	while ((err = next(reader, statement)) > 0) {
		row = (struct profile_blocks){ 0 };
		err = get_row(reader, statement, "nnnnnnnnnnnnn", &count, &row.failed,
			      &row.allocations, &row.size_bytes, &row.frees, &row.freed_bytes,
			      &row.discarded, &row.discarded_bytes, &row.temporary,
			      &row.temporary_bytes, &row.peak, &row.peak_bytes, &row.oldest_ns);
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
	/* A histogram of no blocks. */
	if (!err && (sizes->count || lifetimes->count))
		err = -EINVAL;
	return err;
}

static int read_blocks(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	struct histogram_rows sizes = { 0 }, lifetimes = { 0 };
	int err = prepare(reader->db,
			  "SELECT count, failed, allocations, bytes, frees, freed_bytes, "
			  "discarded, discarded_bytes, temporary, temporary_bytes, peak, "
			  "peak_bytes, oldest_ns FROM blocks NOT INDEXED ORDER BY count",
			  &statement);

	if (!err)
		err = begin_histogram(reader,
				      "SELECT count, bucket, blocks FROM size_histogram "
				      "NOT INDEXED ORDER BY count",
				      &sizes);
	if (!err)
		err = begin_histogram(reader,
				      "SELECT count, bucket, blocks FROM lifetime_histogram "
				      "NOT INDEXED ORDER BY count",
				      &lifetimes);
	if (!err)
		err = read_block_rows(reader, statement, &sizes, &lifetimes);
	sqlite3_finalize(sizes.statement);
	sqlite3_finalize(lifetimes.statement);
	return err;
}

static int read_samples(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT count, what, samples, variance, bytes_variance "
			  "FROM samples NOT INDEXED",
			  &statement);
	struct profile_estimate row;
	struct profile_samples *samples;
	const char *name;
	__u64 count;
	int what;

	while (!err && (err = next(reader, statement)) > 0) {
		err = get_row(reader, statement, "ntndd", &count, &name, &row.samples,
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

static int read_lifetimes(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT count, born, coalesce(died, 4294967295), blocks, bytes "
			  "FROM lifetimes NOT INDEXED",
			  &statement);
	__u64 count, born, died, blocks, size_bytes;

	while (!err && (err = next(reader, statement)) > 0) {
		err = get_row(reader, statement, "nnnnn", &count, &born, &died, &blocks,
			      &size_bytes);
		if (!err &&
		    (!count || count > reader->n_counts || born > died || died > PROFILE_LIVE))
			err = -EINVAL;
		if (!err && !reader->only_checks)
			err = profile__add_lifetime(reader->profile, count, born, died, blocks,
						    size_bytes);
	}
	return err;
}

static int read_timeline(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT run, time_ns, live, live_bytes, allocations, bytes, rss_bytes "
			  "FROM timeline NOT INDEXED ORDER BY run, time_ns",
			  &statement);
	struct profile_moment moment = { 0 };
	__u64 run;

	while (!err && (err = next(reader, statement)) > 0) {
		err = get_row(reader, statement, "nnnnnnn", &run, &moment.time_ns, &moment.live,
			      &moment.live_bytes, &moment.allocations, &moment.size_bytes,
			      &moment.rss_bytes);
		if (!err && !is_run(reader->profile, run))
			err = -EINVAL;
		moment.run = run;
		if (!err)
			err = profile__add_moment(reader->profile, &moment);
	}
	return err;
}

static int open_to_read(const char *path, sqlite3 **db)
{
	_cleanup_(free_ptr) char *uri = immutable_uri(path);
	int status;

	if (!uri)
		return -ENOMEM;
	status = sqlite3_open_v2(
		uri, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
	if (status != SQLITE_OK)
		return status == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	return run(*db, "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY") ? -EINVAL : 0;
}

static int read_tables(struct reader *reader, const char **table)
{
	static const struct {
		const char *name;
		int (*read)(struct reader *reader);
	} tables[] = {
		{ "definitions", read_definitions }, { "meta", read_meta },
		{ "ledger", read_ledger },	     { "run_meta", read_run_meta },
		{ "run_ledger", read_run_ledger },   { "modules", read_modules },
		{ "processes", read_processes },     { "threads", read_threads },
		{ "functions", read_functions },     { "files", read_files },
		{ "frames", read_frames },	     { "lines", read_lines },
		{ "stacks", read_stacks },	     { "counts", read_counts },
		{ "blocks", read_blocks },	     { "samples", read_samples },
		{ "lifetimes", read_lifetimes },     { "timeline", read_timeline },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		int err = tables[i].read(reader);

		if (err) {
			*table = tables[i].name;
			return err;
		}
	}
	return 0;
}

static int read_file(const char *path, bool only_checks, struct profile **profile,
		     struct error *error)
{
	_cleanup_(close_db) sqlite3 *db = NULL;
	struct reader reader = { .only_checks = only_checks };
	const char *table = "schema version";
	char what[64];
	__u64 version;
	int err;

	err = check_header(path, &reader.text_left, error);
	if (err)
		return err;
	err = open_to_read(path, &db);
	reader.db = db;
	if (!err)
		err = read_version(&reader, &version);
	if (!err && version > DATA_FILE_SCHEMA_VERSION)
		return error__set(
			error, -EPROTONOSUPPORT,
			"%s was written by a newer allocprof: schema %llu, this one reads "
			"up to %d; update allocprof",
			path, version, DATA_FILE_SCHEMA_VERSION);
	if (!err && version < DATA_FILE_SCHEMA_WITHOUT_SOURCES)
		return error__set(error, -EPROTONOSUPPORT,
				  "%s was written by an older allocprof: schema %llu, this one "
				  "reads %d; record again",
				  path, version, DATA_FILE_SCHEMA_VERSION);
	if (!err) {
		reader.profile = profile__new();
		err = reader.profile ? read_tables(&reader, &table) : -ENOMEM;
		free(reader.functions);
	}
	if (!err) {
		*profile = reader.profile;
		return 0;
	}
	profile__free(reader.profile);
	if (err == -ENOMEM)
		return error__set(error, err, "cannot read %s: out of memory", path);
	if (err == -EIO)
		return error__set(error, err, "cannot read %s: %s; copy it to a sound disk", path,
				  strerror(EIO));
	snprintf(what, sizeof(what), "unreadable: %s", table);
	return fail_damaged(error, path, what);
}

int data_file__read(const char *path, struct profile **profile, struct error *error)
{
	return read_file(path, false, profile, error);
}

int data_file__check(const char *path, struct error *error)
{
	struct profile *profile;
	int err = read_file(path, true, &profile, error);

	if (!err)
		profile__free(profile);
	return err;
}
