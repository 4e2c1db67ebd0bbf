// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "data_file_schema.h"
#include "error.h"
#include "profile.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* SQLite's file header: https://www.sqlite.org/fileformat2.html section 1.3 */
#define HEADER_SIZE	      100
#define HEADER_MAGIC	      "SQLite format 3"
#define HEADER_PAGE_SIZE      16
#define HEADER_PAGES	      28
#define HEADER_APPLICATION_ID 68

static void close_db(sqlite3 **db)
{
	sqlite3_close_v2(*db);
}

static void finalize(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

static const char *remedy_to_write(int err)
{
	switch (-err) {
	case ENOSPC:
	case EDQUOT:
		return "free space there or write elsewhere with -o";
	case EFBIG:
		return "raise the file size limit (ulimit -f) or write elsewhere with -o";
	case ENOENT:
	case ENOTDIR:
		return "create the directory or write elsewhere with -o";
	default:
		return "write elsewhere with -o";
	}
}

static int fail_to_write(struct error *error, int err, const char *path)
{
	return error__set(error, err, "cannot write %s: %s; %s", path, strerror(-err),
			  remedy_to_write(err));
}

/* A name beside @path, so that rename() stays within one file system. To be freed. */
static char *temporary_name(const char *path)
{
	char *name;

	/* SQLite reads "file:x" and ":memory:" as something else than files. */
	return asprintf(&name, "%s%s.XXXXXX", *path == '/' ? "" : "./", path) < 0 ? NULL : name;
}

/* Where an older file at @path goes. To be freed. */
static char *older_name(const char *path)
{
	char *name;

	return asprintf(&name, "%s.old", path) < 0 ? NULL : name;
}

/* Creates the temporary file. On success @name and @fd are the caller's. */
static int create_temporary(const char *path, char **name, int *fd, struct error *error)
{
	_cleanup_(free_ptr) char *candidate = NULL;
	_cleanup_(free_ptr) char *older = older_name(path);
	struct stat st;
	int made;

	if (!older)
		return fail_to_write(error, -ENOMEM, path);
	if (!*path)
		return error__set(error, -EINVAL,
				  "the data file's name is empty; name a file with -o");
	if (!lstat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return error__set(error, -EISDIR,
					  "cannot write %s: it is a directory; name a file in it "
					  "with -o",
					  path);
		if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
			return error__set(error, -EINVAL,
					  "cannot write %s: it is not a regular file; write "
					  "elsewhere with -o",
					  path);
	}
	if (!lstat(older, &st) && S_ISDIR(st.st_mode))
		return error__set(error, -EISDIR,
				  "cannot write %s: the older file could not become %s, which is a "
				  "directory; write elsewhere with -o",
				  path, older);
	candidate = temporary_name(path);
	if (!candidate)
		return fail_to_write(error, -ENOMEM, path);
	made = mkostemp(candidate, O_CLOEXEC);
	if (made < 0)
		return fail_to_write(error, -errno, path);
	*fd = made;
	*name = candidate;
	candidate = NULL;
	return 0;
}

int data_file__check_writable(const char *path, struct error *error)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err = create_temporary(path, &name, &fd, error);

	if (err)
		return err;
	unlink(name);
	return 0;
}

/* The negative errno behind what SQLite just returned. */
static int db_errno(sqlite3 *db)
{
	int system_errno = sqlite3_system_errno(db);

	switch (sqlite3_errcode(db) & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_TOOBIG:
		return -E2BIG;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return system_errno > 0 ? -system_errno : -EIO;
	default:
		return -EIO;
	}
}

static int run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_errno(db);
}

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement)
{
	return sqlite3_prepare_v2(db, sql, -1, statement, NULL) == SQLITE_OK ? 0 : db_errno(db);
}

/* Binding fails only without memory or beyond the length limit; the step then says so too. */
static int insert(sqlite3 *db, sqlite3_stmt *statement, int bound)
{
	if (bound != SQLITE_OK)
		return bound == SQLITE_TOOBIG ? -E2BIG : -ENOMEM;
	if (sqlite3_step(statement) != SQLITE_DONE)
		return db_errno(db);
	sqlite3_reset(statement);
	return 0;
}

static int bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	return text ? sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC)
		    : sqlite3_bind_null(statement, at);
}

static int write_meta(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	char version[16];
	int err = prepare(db, "INSERT INTO meta VALUES(?, ?)", &statement);

	if (err)
		return err;
	snprintf(version, sizeof(version), "%d", DATA_FILE_SCHEMA_VERSION);
	err = insert(db, statement,
		     bind_text(statement, 1, "schema_version") | bind_text(statement, 2, version));
	for (size_t i = 0; i < profile->n_meta && !err; i++) {
		const struct profile_meta *meta = &profile->meta[i];

		/* A profile that was read from a file carries the version it was read at. */
		if (!strcmp(meta->key, "schema_version"))
			continue;
		err = insert(db, statement,
			     bind_text(statement, 1, meta->key) |
				     bind_text(statement, 2, meta->value));
	}
	return err;
}

static int write_ledger(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO ledger VALUES(?, ?)", &statement);

	for (size_t i = 0; i < profile->n_ledger && !err; i++) {
		err = insert(db, statement,
			     bind_text(statement, 1, profile->ledger[i].name) |
				     sqlite3_bind_int64(statement, 2, profile->ledger[i].value));
	}
	return err;
}

static int write_modules(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO modules VALUES(?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_modules && !err; i++) {
		const struct profile_module *module = &profile->modules[i];

		err = insert(db, statement,
			     sqlite3_bind_int64(statement, 1, module->id) |
				     bind_text(statement, 2, module->path) |
				     bind_text(statement, 3, module->build_id));
	}
	return err;
}

static int write_processes(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO processes VALUES(?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_processes && !err; i++) {
		const struct profile_process *process = &profile->processes[i];

		err = insert(db, statement,
			     sqlite3_bind_int64(statement, 1, process->id) |
				     sqlite3_bind_int64(statement, 2, process->parent) |
				     sqlite3_bind_int64(statement, 3, process->pid) |
				     sqlite3_bind_int64(statement, 4, process->start_ns) |
				     bind_text(statement, 5, process->comm));
	}
	return err;
}

static int write_frames(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO frames VALUES(?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_frames && !err; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		err = insert(db, statement,
			     sqlite3_bind_int64(statement, 1, frame->id) |
				     sqlite3_bind_int64(statement, 2, frame->module) |
				     sqlite3_bind_int64(statement, 3, frame->offset) |
				     bind_text(statement, 4, frame->function));
	}
	return err;
}

static int write_stacks(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *stacks = NULL;
	_cleanup_(finalize) sqlite3_stmt *frames = NULL;
	int err = prepare(db, "INSERT INTO stacks VALUES(?, ?, ?)", &stacks);

	if (!err)
		err = prepare(db, "INSERT INTO stack_frames VALUES(?, ?, ?)", &frames);
	for (size_t i = 0; i < profile->n_stacks && !err; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		err = insert(db, stacks,
			     sqlite3_bind_int64(stacks, 1, stack->id) |
				     bind_text(stacks, 2, profile__stack_end_name(stack->end)) |
				     sqlite3_bind_int64(stacks, 3, stack->n_frames));
	}
	for (size_t i = 0; i < profile->n_stacks && !err; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		if (stack->n_frames && sqlite3_bind_int64(frames, 1, stack->id) != SQLITE_OK)
			return -ENOMEM;
		for (__u32 depth = 0; depth < stack->n_frames && !err; depth++) {
			err = insert(db, frames,
				     sqlite3_bind_int64(frames, 2, depth) |
					     sqlite3_bind_int64(frames, 3, stack->frames[depth]));
		}
	}
	return err;
}

static int write_counts(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(db, "INSERT INTO counts VALUES(?, ?, ?, ?, ?)", &statement);

	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];
		const char *function = profile__function_name(count->function);

		err = insert(db, statement,
			     sqlite3_bind_int64(statement, 1, count->process) |
				     sqlite3_bind_int64(statement, 2, count->stack) |
				     bind_text(statement, 3, function) |
				     sqlite3_bind_int64(statement, 4, count->calls) |
				     sqlite3_bind_int64(statement, 5, count->size_bytes));
	}
	return err;
}

static int create_schema(sqlite3 *db)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(data_file_schema) && !err; i++)
		err = run(db, data_file_schema[i]);
	return err;
}

static int write_db(const struct profile *profile, const char *name)
{
	_cleanup_(close_db) sqlite3 *db = NULL;
	char application_id[64];
	int err;

	if (sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return db ? db_errno(db) : -ENOMEM;
	snprintf(application_id, sizeof(application_id), "PRAGMA application_id = %d",
		 DATA_FILE_APPLICATION_ID);
	/* Nobody sees the file before it is whole: no journal, one sync at the end. */
	err = run(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
		      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536; BEGIN");
	if (!err)
		err = run(db, application_id);
	if (!err)
		err = create_schema(db);
	if (!err)
		err = write_meta(db, profile);
	if (!err)
		err = write_ledger(db, profile);
	if (!err)
		err = write_modules(db, profile);
	if (!err)
		err = write_processes(db, profile);
	if (!err)
		err = write_frames(db, profile);
	if (!err)
		err = write_stacks(db, profile);
	if (!err)
		err = write_counts(db, profile);
	if (!err)
		err = run(db, "COMMIT");
	return err;
}

/* The rename itself must survive a crash as well; where a directory cannot be synced, so be it. */
static void sync_directory(const char *path)
{
	_cleanup_(free_ptr) char *copy = strdup(path);
	_cleanup_(close_fd) int fd = -1;

	if (!copy)
		return;
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd);
}

/* Moves @name to @path and what was there to @path.old. */
static int replace(const char *name, const char *path)
{
	_cleanup_(free_ptr) char *old = older_name(path);
	struct stat st;
	bool had_older = !lstat(path, &st);
	int err;

	if (!old)
		return -ENOMEM;
	if (had_older && rename(path, old))
		return -errno;
	if (!rename(name, path))
		return 0;
	err = -errno;
	if (had_older)
		(void)rename(old, path);
	return err;
}

int data_file__write(const struct profile *profile, const char *path, struct error *error)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err = create_temporary(path, &name, &fd, error);

	if (err)
		return err;
	err = write_db(profile, name);
	if (!err && fsync(fd))
		err = -errno;
	if (!err)
		err = replace(name, path);
	if (err) {
		unlink(name);
		return fail_to_write(error, err, path);
	}
	sync_directory(path);
	return 0;
}

struct reader {
	sqlite3 *db;
	struct profile *profile;
	/* Bytes of text that may still come: a small file can name one long text many times. */
	__u64 text_left;
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
			  "wrote with -i",
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
				  "no such file %s; run `allocprof record` first or name one with "
				  "-i",
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

/* The ids of a table count from 1 without gaps, so a row that comes twice is seen at once. */
static int expect_id(sqlite3_stmt *statement, __u64 id)
{
	__u64 found;

	return get_number(statement, 0, UINT32_MAX, &found) || found != id ? -EINVAL : 0;
}

static int read_modules(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT id, path, build_id FROM modules NOT INDEXED ORDER BY id",
			  &statement);
	const char *path, *build_id;
	__u32 id;

	while (!err && (err = next(reader, statement)) > 0) {
		err = expect_id(statement, reader->profile->n_modules + 1);
		if (!err)
			err = get_text(reader, statement, 1, &path);
		if (!err)
			err = get_text(reader, statement, 2, &build_id);
		if (!err && build_id[strspn(build_id, "0123456789abcdef")])
			err = -EINVAL;
		if (!err) {
			size_t n_before = reader->profile->n_modules;

			err = profile__add_module(reader->profile, path, build_id, &id);
			if (!err && reader->profile->n_modules == n_before)
				err = -EINVAL;
		}
	}
	return err;
}

static int read_processes(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT id, parent, pid, start_ns, comm FROM processes NOT INDEXED "
			  "ORDER BY id",
			  &statement);
	__u64 parent, pid, start_ns;
	const char *comm;
	__u32 id;

	while (!err && (err = next(reader, statement)) > 0) {
		err = expect_id(statement, reader->profile->n_processes + 1);
		if (!err)
			err = get_number(statement, 1, reader->profile->n_processes, &parent);
		if (!err)
			err = get_number(statement, 2, INT32_MAX, &pid);
		if (!err)
			err = get_number(statement, 3, INT64_MAX, &start_ns);
		if (!err)
			err = get_text(reader, statement, 4, &comm);
		if (!err)
			err = profile__add_process(reader->profile, parent, pid, start_ns, comm,
						   &id);
	}
	return err;
}

static int read_frames(struct reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = prepare(reader->db,
			  "SELECT id, module, offset, function FROM frames NOT INDEXED ORDER BY id",
			  &statement);
	const char *function;
	__u64 module;
	__u32 id;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_frames;

		err = expect_id(statement, n_before + 1);
		if (!err)
			err = get_number(statement, 1, reader->profile->n_modules, &module);
		/* All 64 bits of an address may be set: vsyscall's are negative in SQL. */
		if (!err && sqlite3_column_type(statement, 2) != SQLITE_INTEGER)
			err = -EINVAL;
		function = NULL;
		if (!err && sqlite3_column_type(statement, 3) != SQLITE_NULL)
			err = get_text(reader, statement, 3, &function);
		if (!err)
			err = profile__add_frame(reader->profile, module,
						 sqlite3_column_int64(statement, 2), &id);
		if (!err && reader->profile->n_frames == n_before)
			err = -EINVAL;
		if (!err)
			err = profile__set_frame_function(reader->profile, id, function);
	}
	return err;
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
		if (get_number(statement, 0, UINT32_MAX, &stack) || stack != id ||
		    get_number(statement, 1, AP_MAX_DEPTH, &row_depth) || row_depth != depth ||
		    get_number(statement, 2, reader->profile->n_frames, &frame) || !frame)
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
	__u64 n_frames;
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

		err = expect_id(stacks, n_before + 1);
		if (!err)
			err = get_text(reader, stacks, 1, &end_name);
		if (err)
			break;
		end = profile__stack_end_by_name(end_name);
		if (end < 0 || get_number(stacks, 2, AP_MAX_DEPTH, &n_frames))
			return -EINVAL;
		err = read_stack_frames(reader, stack_frames, n_before + 1, n_frames, frames);
		if (!err)
			err = profile__add_stack(reader->profile, frames, n_frames, end, &id);
		if (!err && reader->profile->n_stacks == n_before)
			err = -EINVAL;
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
			  "SELECT process, stack, function, calls, bytes FROM counts NOT INDEXED",
			  &statement);
	__u64 process, stack, calls, size_bytes;
	const char *name;
	int function;

	while (!err && (err = next(reader, statement)) > 0) {
		size_t n_before = reader->profile->n_counts;

		err = get_number(statement, 0, reader->profile->n_processes, &process);
		if (!err)
			err = get_number(statement, 1, reader->profile->n_stacks, &stack);
		if (!err)
			err = get_text(reader, statement, 2, &name);
		if (!err)
			err = get_number(statement, 3, PROFILE_MAX, &calls);
		if (!err)
			err = get_number(statement, 4, PROFILE_MAX, &size_bytes);
		if (err)
			break;
		function = profile__function_by_name(name);
		if (function < 0)
			return -EINVAL;
		err = profile__add_count(reader->profile, process, stack, function, calls,
					 size_bytes);
		if (!err && reader->profile->n_counts == n_before)
			err = -EINVAL;
	}
	return err;
}

static int open_to_read(const char *path, sqlite3 **db)
{
	_cleanup_(free_ptr) char *uri = immutable_uri(path);
	int status;

	if (!uri)
		return -ENOMEM;
	status = sqlite3_open_v2(uri, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
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
		{ "ledger", read_ledger },	     { "modules", read_modules },
		{ "processes", read_processes },     { "frames", read_frames },
		{ "stacks", read_stacks },	     { "counts", read_counts },
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

int data_file__read(const char *path, struct profile **profile, struct error *error)
{
	_cleanup_(close_db) sqlite3 *db = NULL;
	struct reader reader = { 0 };
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
	if (!err) {
		reader.profile = profile__new();
		err = reader.profile ? read_tables(&reader, &table) : -ENOMEM;
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
