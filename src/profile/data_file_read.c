// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens a data file, checks that its version is a known one, and reads it. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "data_file.h"
#include "data_file_reader.h"
#include "data_rows.h"
#include "db_file.h"
#include "error.h"
#include "profile.h"

/* SQLite's file header: https://www.sqlite.org/fileformat2.html section 1.3 */
#define HEADER_SIZE	      100
#define HEADER_MAGIC	      "SQLite format 3"
#define HEADER_PAGE_SIZE      16
#define HEADER_PAGES	      28
#define HEADER_APPLICATION_ID 68

static __u32 big_endian_32(const unsigned char *at)
{
	return (__u32)at[0] << 24 | (__u32)at[1] << 16 | (__u32)at[2] << 8 | at[3];
}

static int fail_damaged(struct error *error, const char *path, const char *what)
{
	return error__set(error, -EINVAL, "%s is damaged (%s); record again", path, what);
}

static bool has_checkpoint(const char *path);

static int fail_foreign(struct error *error, const char *path)
{
	size_t len = strlen(path), suffix = strlen(DATA_FILE_LOG);

	if (len > suffix && !strcmp(path + len - suffix, DATA_FILE_LOG)) {
		_cleanup_(free_ptr) char *data = strndup(path, len - suffix);
		bool is_cut_off = data && access(data, F_OK) && has_checkpoint(data);

		return error__set(
			error, -EINVAL,
			"%s is a log of events, which `allocprof export --format=events` prints; "
			"name the data file of the same recording, %.*s%s",
			path, (int)(len - suffix), path, is_cut_off ? DATA_FILE_CHECKPOINT : "");
	}
	return error__set(error, -EINVAL,
			  "%s is not a data file of allocprof; name one that `allocprof record` "
			  "wrote",
			  path);
}

static bool has_checkpoint(const char *path)
{
	_cleanup_(free_ptr) char *checkpoint = NULL;
	bool has;

	if (asprintf(&checkpoint, "%s" DATA_FILE_CHECKPOINT, path) < 0) {
		checkpoint = NULL;
		return false;
	}
	has = !access(checkpoint, F_OK);
	errno = ENOENT;
	return has;
}

/* Checks the header and the size of the open file @fd before SQLite reads it. @fd is -1 if the
 * file could not be opened, for the reason in errno. */
static int check_header(int fd, const char *path, __u64 *file_size, struct error *error)
{
	unsigned char header[HEADER_SIZE];
	__u32 page_size;
	struct stat st;
	ssize_t len;

	if (fd < 0 && errno == ENOENT && has_checkpoint(path))
		return error__set(error, -ENOENT,
				  "no such file %s, but %s" DATA_FILE_CHECKPOINT
				  ", what a recording has kept that was cut off; name that one",
				  path, path);
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

int data_reader__step(struct data_reader *reader, sqlite3_stmt *statement)
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

/* Checks that the file's schema has exactly this statement. Returns 0 or a negative errno. */
static int check_definition(struct data_reader *reader, sqlite3_stmt *statement,
			    const struct data_table *table)
{
	_cleanup_(free_ptr) char *sql = data_table__definition(table);
	bool has = false;
	int err = sql && bind_text(statement, 1, sql) == SQLITE_OK ? 1 : -ENOMEM;

	if (err > 0)
		err = data_reader__step(reader, statement);
	if (err > 0)
		has = sqlite3_column_int64(statement, 0) == 1;
	sqlite3_reset(statement);
	return err < 0 ? err : has ? 0 : -EINVAL;
}

/*
 * Compares definitions letter by letter: a table of the right name could be a view that never ends.
 * Further definitions are allowed, since users add indexes and views. In files of another version
 * only meta must match, whose definition therefore never changes.
 */
static int check_schema(struct data_reader *reader, bool only_meta)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err =
		prepare(reader->db, "SELECT count(*) FROM sqlite_schema WHERE sql = ?", &statement);

	if (err)
		return -EINVAL;
	for (const struct data_table *table = data_tables; table->name && !err; table++) {
		if (only_meta && strcmp(table->name, "meta"))
			continue;
		err = check_definition(reader, statement, table);
		if (err == -EINVAL && table->may_lack) {
			reader->lacking |= 1ULL << (table - data_tables);
			err = 0;
		}
	}
	return err;
}

static int read_version(struct data_reader *reader, __u64 *version)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	int err = check_schema(reader, true);
	struct data_meta_row row;
	char *end;

	if (err)
		return err;
	err = prepare(reader->db, "SELECT * FROM meta NOT INDEXED WHERE key = 'schema_version'",
		      &statement);
	if (err)
		return -EINVAL;
	err = data_reader__step(reader, statement);
	if (err <= 0)
		return err ? err : -EINVAL;
	err = data_table__get_row(data_table__find("meta"), statement, &row, &reader->text_left);
	if (err)
		return err;
	if (*row.meta.value < '1' || *row.meta.value > '9' || strlen(row.meta.value) > 9)
		return -EINVAL;
	*version = strtoul(row.meta.value, &end, 10);
	return *end ? -EINVAL : 0;
}

/* From here on "SELECT *" has the columns of data_tables.c, in their order. */
int data_reader__read_definitions(struct data_reader *reader)
{
	return check_schema(reader, false);
}

static int open_to_read(int fd, sqlite3 **db)
{
	int err = db_file__open(fd, false, db);

	if (err)
		return err == -ENOMEM ? err : -EINVAL;
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	return run(*db, "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY") ? -EINVAL : 0;
}

/* How many instructions SQLite may execute for each byte of a file; recordings take less than half
 * of one. */
#define STEPS_PER_BYTE	8
#define STEPS_AT_LEAST	1000000
#define STEPS_PER_CHECK 10000

static int is_over_steps(void *context)
{
	struct data_reader *reader = context;

	if (reader->steps_left < STEPS_PER_CHECK)
		return 1;
	reader->steps_left -= STEPS_PER_CHECK;
	return 0;
}

static void limit_steps(struct data_reader *reader, __u64 file_size)
{
	reader->steps_left = STEPS_AT_LEAST + file_size * STEPS_PER_BYTE;
	sqlite3_progress_handler(reader->db, STEPS_PER_CHECK, is_over_steps, reader);
}

int data_reader__fail(const char *path, int err, const char *what, struct error *error)
{
	char damage[96];

	if (err == -ENOMEM)
		return error__set(error, err, "cannot read %s: out of memory", path);
	if (err == -EIO)
		return error__set(error, err, "cannot read %s: %s; copy it to a sound disk", path,
				  strerror(EIO));
	if (err == -E2BIG)
		snprintf(damage, sizeof(damage), "a text of more than %d bytes: %s", DATA_MAX_NAME,
			 what);
	else
		snprintf(damage, sizeof(damage), "unreadable: %s", what);
	return fail_damaged(error, path, damage);
}

int data_reader__open(struct data_reader *reader, const char *path, struct error *error)
{
	__u64 version, file_size = 0;
	int err;

	err = check_header(reader->fd, path, &file_size, error);
	if (err)
		return err;
	reader->text_left = file_size;
	err = open_to_read(reader->fd, &reader->db);
	if (reader->db)
		limit_steps(reader, file_size);
	if (!err)
		err = read_version(reader, &version);
	if (err)
		return data_reader__fail(path, err, "schema version", error);
	if (version > DATA_FILE_SCHEMA_VERSION)
		return error__set(
			error, -EPROTONOSUPPORT,
			"%s was written by a newer allocprof: schema %llu, this one reads "
			"up to %d; update allocprof",
			path, version, DATA_FILE_SCHEMA_VERSION);
	if (version < DATA_FILE_SCHEMA_VERSION)
		return error__set(error, -EPROTONOSUPPORT,
				  "%s was written by an older allocprof: schema %llu, this one "
				  "reads %d; record again",
				  path, version, DATA_FILE_SCHEMA_VERSION);
	return 0;
}

int data_reader__open_path(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int read_file(int fd, const char *path, bool only_checks, struct profile **profile,
		     struct error *error)
{
	struct data_reader reader = { .fd = fd, .only_checks = only_checks };
	const char *table = "schema version";
	int err = data_reader__open(&reader, path, error);

	if (!err) {
		reader.profile = profile__new();
		err = reader.profile ? data_reader__read_tables(&reader, &table) : -ENOMEM;
		free(reader.functions);
		if (err)
			err = data_reader__fail(path, err, table, error);
	}
	sqlite3_close_v2(reader.db);
	if (err)
		profile__free(reader.profile);
	else
		*profile = reader.profile;
	return err;
}

int data_file__read(const char *path, struct profile **profile, struct error *error)
{
	_cleanup_(close_fd) int fd = data_reader__open_path(path);

	return read_file(fd, path, false, profile, error);
}

int data_file__read_open(int fd, const char *path, struct profile **profile, struct error *error)
{
	return read_file(fd, path, false, profile, error);
}

bool data_file__is_altered(const struct profile *profile)
{
	return profile__meta(profile, DATA_DIGEST_KEY);
}

int data_file__check(int fd, const char *path, struct error *error)
{
	struct profile *profile;
	int err = read_file(fd, path, true, &profile, error);

	if (!err)
		profile__free(profile);
	return err;
}
