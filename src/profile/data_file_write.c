// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "data_file_db.h"
#include "data_file_schema.h"
#include "error.h"
#include "new_file.h"
#include "profile.h"

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
	made = new_file__create_unique(candidate);
	if (made < 0)
		return fail_to_write(error, made, path);
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

/* Whether there are functions that readers of the version before do not know. */
static bool needs_sources(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_counts; i++)
		if (profile__function_maps(profile->counts[i].function))
			return true;
	return profile->sources.n;
}

static int write_meta(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	char version[16];
	int err = prepare(db, "INSERT INTO meta VALUES(?, ?)", &statement);

	snprintf(version, sizeof(version), "%d",
		 needs_sources(profile) ? DATA_FILE_SCHEMA_VERSION
					: DATA_FILE_SCHEMA_WITHOUT_SOURCES);
	if (!err)
		err = insert(db, statement, "tt", "schema_version", version);
	for (size_t i = 0; i < profile->n_meta && !err; i++) {
		const struct profile_meta *meta = &profile->meta[i];

		/* A profile that was read from a file carries the version it was read at. */
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

static int write_stacks(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(finalize) sqlite3_stmt *stacks = NULL;
	_cleanup_(finalize) sqlite3_stmt *frames = NULL;
	int err = prepare(db, "INSERT INTO stacks VALUES(?, ?, ?)", &stacks);

	if (!err)
		err = prepare(db, "INSERT INTO stack_frames VALUES(?, ?, ?)", &frames);
	for (size_t i = 0; i < profile->n_stacks && !err; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		err = insert(db, stacks, "ntn", (__u64)stack->id,
			     profile__stack_end_name(stack->end), (__u64)stack->n_frames);
		for (__u32 depth = 0; depth < stack->n_frames && !err; depth++)
			err = insert(db, frames, "nnn", (__u64)stack->id, (__u64)depth,
				     (__u64)stack->frames[depth]);
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
	int err = prepare(db, "INSERT INTO lifetimes VALUES(?, ?, nullif(?, 4294967295), ?, ?)",
			  &statement);

	while (!err && profile__next_lifetime(profile, &at, &lifetime))
		err = insert(db, statement, "nnnnn", (__u64)lifetime.count, (__u64)lifetime.born,
			     (__u64)lifetime.died, lifetime.blocks, lifetime.size_bytes);
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

static int write_tables(sqlite3 *db, const struct profile *profile)
{
	static int (*const writers[])(sqlite3 *, const struct profile *) = {
		write_meta,	 write_ledger,	write_runs,	 write_modules,
		write_processes, write_threads, write_functions, write_files,
		write_frames,	 write_lines,	write_stacks,	 write_counts,
		write_blocks,	 write_samples, write_lifetimes, write_timeline,
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(writers) && !err; i++)
		err = writers[i](db, profile);
	return err;
}

static int create_schema(sqlite3 *db)
{
	char application_id[64];
	int err;

	snprintf(application_id, sizeof(application_id), "PRAGMA application_id = %d",
		 DATA_FILE_APPLICATION_ID);
	err = run(db, application_id);
	for (size_t i = 0; i < ARRAY_SIZE(data_file_schema) && !err; i++)
		err = run(db, data_file_schema[i]);
	return err;
}

/* All of @profile into an empty file. */
static int write_all(sqlite3 *db, const struct profile *profile)
{
	int err = create_schema(db);

	return err ? err : write_tables(db, profile);
}

/* Writes the parts of @profile that a look-up of names changes into a file that has the rest. */
static bool has_tail_calls(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_frames; i++)
		if (profile->frames[i].tail_call)
			return true;
	return false;
}

static int rewrite_stacks(sqlite3 *db, const struct profile *profile)
{
	int err = run(db, "DELETE FROM frames; DELETE FROM stacks; DELETE FROM stack_frames");

	if (!err)
		err = write_frames(db, profile);
	return err ? err : write_stacks(db, profile);
}

static int write_names(sqlite3 *db, const struct profile *profile)
{
	int err = run(db, "DELETE FROM modules; DELETE FROM functions; DELETE FROM files; "
			  "DELETE FROM lines");

	if (!err)
		err = write_modules(db, profile);
	if (!err)
		err = write_functions(db, profile);
	if (!err)
		err = write_files(db, profile);
	if (!err)
		err = write_lines(db, profile);
	/* What only a file's code tells was put into the stacks. */
	if (!err && has_tail_calls(profile))
		err = rewrite_stacks(db, profile);
	return err;
}

static int write_db(const struct profile *profile, const char *name,
		    int (*write)(sqlite3 *db, const struct profile *profile))
{
	_cleanup_(close_db) sqlite3 *db = NULL;
	int err;

	if (sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return db ? db_errno(db) : -ENOMEM;
	/* Nobody sees the file before it is whole: no journal, one sync at the end. */
	err = run(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
		      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -8192; BEGIN");
	if (!err)
		err = write(db, profile);
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
	int err;

	if (!old)
		return -ENOMEM;
	/* In one step where the file system can do it, so that there is a file at @path always. */
	if (!renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_EXCHANGE)) {
		if (!rename(name, old))
			return 0;
		err = -errno;
		(void)renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_EXCHANGE);
		return err;
	}
	if (errno == ENOENT)
		return rename(name, path) ? -errno : 0;
	if (rename(path, old) && errno != ENOENT)
		return -errno;
	if (!rename(name, path))
		return 0;
	err = -errno;
	(void)rename(old, path);
	return err;
}

/* Whether the reader takes what was written. Where it does not, the file at @name stays: of a recording
 * there is no other. */
static int read_back(const char *name, const char *path, struct error *error)
{
	int err = data_file__check(name, error);

	if (err)
		error__wrap(error, err,
			    "%s is not written, and what was there is kept: what was to replace it "
			    "cannot be read back%s",
			    path, err == -EINVAL ? ", which is an error in allocprof" : "");
	return err;
}

/* The file of @version, where it is the one at @path still; else -1. */
static int open_version(const char *path, const struct data_file_version *version)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 ||
	    (!fstat(fd, &st) && st.st_dev == version->device && st.st_ino == version->inode))
		return fd;
	close(fd);
	return -1;
}

static int copy_file(int from, int to)
{
	ssize_t n;

	while ((n = sendfile(to, from, NULL, 1 << 30)) > 0)
		;
	return n < 0 ? -errno : 0;
}

/* Removes the temporary file at @name, which could not be renamed to @path. */
static int abandon(const char *name, const char *path, int err, struct error *error)
{
	unlink(name);
	return fail_to_write(error, err, path);
}

/* Moves the whole file @name to @path, when it can be read. */
static int publish(const char *name, int fd, const char *path, bool is_replaced,
		   struct error *error)
{
	int err = fsync(fd) ? -errno : 0;

	if (err)
		return abandon(name, path, err, error);
	err = read_back(name, path, error);
	if (err)
		return err;
	if (is_replaced)
		err = rename(name, path) ? -errno : 0;
	else
		err = replace(name, path);
	if (err)
		return abandon(name, path, err, error);
	sync_directory(path);
	return 0;
}

int data_file__write(const struct profile *profile, const char *path, struct error *error)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err = create_temporary(path, &name, &fd, error);

	if (err)
		return err;
	err = write_db(profile, name, write_all);
	return err ? abandon(name, path, err, error) : publish(name, fd, path, false, error);
}

int data_file__write_first(const struct profile *profile, const char *path,
			   struct data_file_version *version, struct error *error)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	struct stat st;
	int err = create_temporary(path, &name, &fd, error);

	if (err)
		return err;
	err = write_db(profile, name, write_all);
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err)
		err = replace(name, path);
	if (err)
		return abandon(name, path, err, error);
	*version = (struct data_file_version){ st.st_dev, st.st_ino };
	return 0;
}

int data_file__write_names(const struct profile *profile, const char *path,
			   const struct data_file_version *version, struct error *error)
{
	_cleanup_(close_fd) int first = open_version(path, version);
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err;

	if (first < 0)
		return data_file__write(profile, path, error);
	err = create_temporary(path, &name, &fd, error);
	if (err)
		return err;
	err = copy_file(first, fd);
	if (!err)
		err = write_db(profile, name, write_names);
	return err ? abandon(name, path, err, error) : publish(name, fd, path, true, error);
}
