// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes a data file: all of it, or nothing. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "data_file.h"
#include "data_file_reader.h"
#include "data_rows.h"
#include "db_file.h"
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
	return error__set(error, err, "cannot write %s: %s; %s", path, new_file__reason(err),
			  remedy_to_write(err));
}

/* Begins the file that is to replace @path. An older file gets another name, which must not be a
 * directory's. */
static int begin(struct new_file *file, const char *path, struct error *error)
{
	char older[NAME_MAX + 1];
	struct stat st;
	int err;

	if (!*path)
		return error__set(error, -EINVAL,
				  "the data file's name is empty; name a file with -o");
	err = new_file__begin(file, path);
	if (err == -EISDIR)
		return error__set(error, err,
				  "cannot write %s: it is a directory; name a file in it with -o",
				  path);
	if (err == -EINVAL)
		return error__set(error, err,
				  "cannot write %s: it is not a regular file; write elsewhere with "
				  "-o",
				  path);
	if (err)
		return fail_to_write(error, err, path);
	if ((size_t)snprintf(older, sizeof(older), "%s.old", file->entry.name) < sizeof(older) &&
	    !fstatat(file->entry.directory, older, &st, AT_SYMLINK_NOFOLLOW) &&
	    S_ISDIR(st.st_mode)) {
		new_file__release(file);
		return error__set(error, -EISDIR,
				  "cannot write %s: the older file could not become %s.old, which "
				  "is a directory; write elsewhere with -o",
				  path, path);
	}
	return 0;
}

int data_file__check_writable(const char *path, struct error *error)
{
	_cleanup_(new_file__release) struct new_file file = NEW_FILE_NONE;

	return begin(&file, path, error);
}

/* Inserts an array of the profile whose elements have the form of rows. */
static int write_array(sqlite3 *db, const char *table, const void *rows, size_t n, size_t size)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, table };
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = data_insert__row(&insert, (const char *)rows + i * size);
	return err;
}

#define WRITE_ARRAY(db, profile, array)                                                            \
	write_array(db, #array, (profile)->array, (profile)->n_##array, sizeof(*(profile)->array))

static int write_meta(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "meta" };
	char version[16];
	struct data_meta_row row = { .meta = { (char *)"schema_version", version } };
	int err;

	snprintf(version, sizeof(version), "%d", DATA_FILE_SCHEMA_VERSION);
	err = data_insert__row(&insert, &row);
	for (size_t i = 0; i < profile->n_meta && !err; i++) {
		row.meta = profile->meta[i];
		/* A profile that was read from a file has that file's version in meta. */
		if (strcmp(row.meta.key, "schema_version"))
			err = data_insert__row(&insert, &row);
	}
	return err;
}

static int write_ledger(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "ledger" };
	int err = 0;

	for (size_t i = 0; i < profile->n_ledger && !err; i++)
		err = data_insert__row(&insert,
				       &(struct data_ledger_row){ .entry = profile->ledger[i] });
	return err;
}

static int write_runs(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert meta = { db, "run_meta" };
	_cleanup_(data_insert__release) struct data_insert ledger = { db, "run_ledger" };
	int err = 0;

	for (size_t number = 1; number <= profile->n_runs && !err; number++) {
		const struct profile_run *run = &profile->runs[number - 1];

		for (size_t i = 0; i < run->n_meta && !err; i++)
			err = data_insert__row(&meta,
					       &(struct data_meta_row){ number, run->meta[i] });
		for (size_t i = 0; i < run->n_ledger && !err; i++)
			err = data_insert__row(&ledger,
					       &(struct data_ledger_row){ number, run->ledger[i] });
	}
	return err;
}

static int write_gaps(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "gaps" };
	int err = 0;

	for (size_t i = 0; i < profile->n_gaps && !err; i++) {
		const struct profile_gap *gap = &profile->gaps[i];

		err = data_insert__row(&insert,
				       &(struct data_gap_row){ *gap, gap__key(gap->kind) });
	}
	return err;
}

static int write_lines(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "lines" };
	int err = 0;

	for (size_t i = 0; i < profile->n_frames && !err; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		for (__u32 depth = 0; depth < frame->n_lines && !err; depth++)
			err = data_insert__row(
				&insert,
				&(struct data_line_row){ frame->id, depth, frame->lines[depth] });
	}
	return err;
}

/* Bytes that a frame's id in decimal and the comma behind it take. */
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

/* Prints the frames as a JSON array. printf() would take several times as long, and there may be a
 * hundred million of them. */
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
	_cleanup_(data_insert__release) struct data_insert insert = { db, "stacks" };
	char frames[AP_MAX_DEPTH * FRAME_TEXT_LENGTH + sizeof("[]")];
	int err = 0;

	for (size_t i = 0; i < profile->n_stacks && !err; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		print_frames(stack, frames);
		err = data_insert__row(
			&insert, &(struct data_stack_row){
					 stack->id, profile__stack_end_name(stack->end), frames });
	}
	return err;
}

static int write_counts(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "counts" };
	int err = 0;

	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		const struct profile_count *count = &profile->counts[i];
		const char *function =
			definition_names__function(&profile->definitions, count->function);

		err = data_insert__row(&insert, &(struct data_count_row){ *count, function });
	}
	return err;
}

static int write_histogram(struct data_insert *insert, __u32 count,
			   const __u64 buckets[PROFILE_BUCKETS])
{
	int err = 0;

	for (__u32 i = 0; i < PROFILE_BUCKETS && !err; i++)
		if (buckets[i])
			err = data_insert__row(
				insert, &(struct data_histogram_row){ count, i, buckets[i] });
	return err;
}

static int write_blocks(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "blocks" };
	_cleanup_(data_insert__release) struct data_insert sizes = { db, "size_histogram" };
	_cleanup_(data_insert__release) struct data_insert lifetimes = { db, "lifetime_histogram" };
	struct profile_blocks row;
	int err = 0;

	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		if (!profile__count_blocks(profile, &profile->counts[i], &row))
			continue;
		err = data_insert__row(&insert, &row);
		if (!err)
			err = write_histogram(&sizes, row.count, row.sizes);
		if (!err)
			err = write_histogram(&lifetimes, row.count, row.lifetimes);
	}
	return err;
}

static int write_samples(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "samples" };
	int err = 0;

	for (size_t i = 0; i < profile->n_samples * PROFILE_SAMPLED && !err; i++) {
		const struct profile_samples *samples = &profile->samples[i / PROFILE_SAMPLED];
		enum profile_sampled what = i % PROFILE_SAMPLED;
		struct data_sample_row row = { samples->count, profile__sampled_name(what),
					       samples->of[what] };

		if (row.estimate.samples)
			err = data_insert__row(&insert, &row);
	}
	return err;
}

static int write_lifetimes(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "lifetimes" };
	struct profile_lifetime lifetime;
	__u32 at = 0;
	int err = 0;

	while (!err && profile__next_lifetime(profile, &at, &lifetime))
		err = data_insert__row(&insert, &lifetime);
	return err;
}

/* Writes the rows of @table for the counts whose blocks @has. */
static int write_of_blocks(sqlite3 *db, const struct profile *profile, const char *table,
			   bool (*has)(const struct profile_blocks *blocks))
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, table };
	struct profile_blocks row;
	int err = 0;

	for (size_t i = 0; i < profile->n_counts && !err; i++)
		if (profile__count_blocks(profile, &profile->counts[i], &row) && has(&row))
			err = data_insert__row(&insert, &row);
	return err;
}

static bool has_ends(const struct profile_blocks *blocks)
{
	return blocks->grown || blocks->freed_by_others;
}

static int write_ends(sqlite3 *db, const struct profile *profile)
{
	return write_of_blocks(db, profile, "ends", has_ends);
}

static bool has_resident(const struct profile_blocks *blocks)
{
	return blocks->resident_bytes || blocks->pages;
}

static int write_resident(sqlite3 *db, const struct profile *profile)
{
	return write_of_blocks(db, profile, "resident", has_resident);
}

static bool has_rounding(const struct profile_blocks *blocks)
{
	return blocks->rounding_bytes;
}

static int write_rounding(sqlite3 *db, const struct profile *profile)
{
	return write_of_blocks(db, profile, "rounding", has_rounding);
}

static bool has_reach(const struct profile_blocks *blocks)
{
	for (int i = 0; i < PROFILE_REACHES; i++)
		if (blocks->reached[i].blocks)
			return true;
	return false;
}

static int write_reach(sqlite3 *db, const struct profile *profile)
{
	return write_of_blocks(db, profile, "reach", has_reach);
}

static int write_rss(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "rss" };
	int err = 0;

	for (size_t i = 0; i < profile->n_rss && !err; i++)
		err = data_insert__row(
			&insert, &(struct data_rss_row){ profile->rss[i],
							 rss_kind__name(profile->rss[i].kind) });
	return err ?: WRITE_ARRAY(db, profile, rss_samples);
}

static int write_heaps(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert heaps = { db, "heaps" };
	_cleanup_(data_insert__release) struct data_insert sizes = { db, "size_classes" };
	int err = 0;

	for (size_t i = 0; i < profile->n_heaps && !err; i++)
		err = data_insert__row(
			&heaps, &(struct data_heap_row){ profile->heaps[i],
							 heap_kind__name(profile->heaps[i].kind) });
	for (size_t i = 0; i < profile->n_size_classes && !err; i++)
		err = data_insert__row(&sizes,
				       &(struct data_size_class_row){
					       profile->size_classes[i],
					       size_rule__name(profile->size_classes[i].rule) });
	return err;
}

static int write_mappings(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert insert = { db, "mappings" };
	int err = 0;

	for (size_t i = 0; i < profile->n_mappings && !err; i++)
		err = data_insert__row(&insert,
				       &(struct data_mapping_row){
					       profile->mappings[i],
					       mapping_kind__name(profile->mappings[i].kind) });
	return err;
}

static int write_groups(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert groups = { db, "control_groups" };
	int err = 0;

	for (size_t i = 0; i < profile->n_processes && !err; i++) {
		const struct profile_process *process = &profile->processes[i];

		if (process->group)
			err = data_insert__row(
				&groups, &(struct data_group_row){ process->id, process->group,
								   process->group_name });
	}
	return err;
}

static int write_arguments(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert arguments = { db, "arguments" };
	int err = 0;

	for (size_t i = 0; i < profile->n_processes && !err; i++) {
		const struct profile_process *process = &profile->processes[i];

		if (process->arguments)
			err = data_insert__row(
				&arguments,
				&(struct data_arguments_row){ process->id, process->arguments });
	}
	return err;
}

static int write_marks(sqlite3 *db, const struct profile *profile)
{
	_cleanup_(data_insert__release) struct data_insert marks = { db, "marks" };
	int err = 0;

	for (size_t i = 0; i < profile->n_marks && !err; i++)
		err = data_insert__row(
			&marks, &(struct data_mark_row){ profile->marks[i].time_ns,
							 mark_kind__name(profile->marks[i].kind),
							 profile->marks[i].name });
	return err;
}

/* Writes the tables of names. */
static int write_names(sqlite3 *db, const struct profile *profile)
{
	int err = write_meta(db, profile);

	return err							?:
	       WRITE_ARRAY(db, profile, modules) ?: WRITE_ARRAY(db, profile, functions) ?:
	       WRITE_ARRAY(db, profile, files) ?: write_lines(db, profile);
}

static int write_frames(sqlite3 *db, const struct profile *profile)
{
	return WRITE_ARRAY(db, profile, frames) ?: write_stacks(db, profile);
}

/* Writes @profile to an empty file. */
static int write_all(sqlite3 *db, const struct profile *profile)
{
	int (*const writers[])(sqlite3 *, const struct profile *) = {
		write_names,	write_ledger,	write_runs,	 write_frames, write_counts,
		write_blocks,	write_samples,	write_lifetimes, write_gaps,   write_ends,
		write_resident, write_rounding, write_rss,	 write_heaps,  write_reach,
		write_mappings, write_groups,	write_arguments, write_marks,
	};
	char application_id[64];
	int err;

	snprintf(application_id, sizeof(application_id), "PRAGMA application_id = %d",
		 DATA_FILE_APPLICATION_ID);
	err = run(db, application_id) ?: data_tables__create(db);

	if (!err)
		err = WRITE_ARRAY(db, profile, processes) ?: WRITE_ARRAY(db, profile, threads) ?:
		      WRITE_ARRAY(db, profile, timeline);
	for (size_t i = 0; i < ARRAY_SIZE(writers) && !err; i++)
		err = writers[i](db, profile);
	return err ?: data_digest__write(db);
}

static bool has_tail_calls(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_frames; i++)
		if (profile->frames[i].tail_call)
			return true;
	return false;
}

/* Rewrites the tables of names, and stacks with inserted tail calls, in a copy of a file. */
static int rewrite_names(sqlite3 *db, const struct profile *profile)
{
	/* meta is rewritten, too, since it says which files could not be read. */
	int err = run(db, "DELETE FROM meta; DELETE FROM modules; DELETE FROM functions; "
			  "DELETE FROM files; DELETE FROM lines")
			  ?: write_names(db, profile);

	/* Tail calls were inserted into the stacks. */
	if (!err && has_tail_calls(profile))
		err = run(db, "DELETE FROM frames; DELETE FROM stacks")
			      ?: write_frames(db, profile);
	return err ?: data_digest__write(db);
}

static int write_db(const struct profile *profile, int fd,
		    int (*write)(sqlite3 *db, const struct profile *profile))
{
	_cleanup_(close_db) sqlite3 *db = NULL;
	int err = db_file__open(fd, true, &db);

	/* Nobody reads the file until it is complete: no journal, one sync at the end. */
	if (!err)
		err = run(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
			      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -8192; BEGIN");
	if (!err)
		err = write(db, profile);
	if (!err)
		err = run(db, "COMMIT");
	return err;
}

/* Makes the rename durable, if the file system supports it. */
static void sync_directory(const struct directory_entry *entry)
{
	_cleanup_(close_fd) int fd =
		openat(entry->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)fsync(fd);
}

/* Returns whether the reader accepts the new file. If it does not, the file gets a name
 * nevertheless, since there is no other copy of the recording. */
static int read_back(struct new_file *file, const char *path, struct error *error)
{
	struct error why = { 0 };
	int err = data_file__check(file->fd, "the new file", &why);

	if (!err)
		return 0;
	error__set(
		error, err,
		"%s is not written, and an older one stays: the new file cannot be read back%s: %s",
		path, err == -EINVAL ? ", which is an error in allocprof" : "", why.text);
	if (!new_file__keep(file)) {
		error__wrap(error, err, "the new file is %s beside it", file->temporary);
		file->temporary[0] = '\0';
	}
	return err;
}

/* Opens the file of @version if it is still at @entry. Returns its descriptor, else -1. */
static int open_version(const struct directory_entry *entry,
			const struct data_file_version *version)
{
	int fd = openat(entry->directory, entry->name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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

/* Moves the complete file to its path by calling @finish, if the reader accepts the file. */
static int publish(struct new_file *file, const char *path, int (*finish)(struct new_file *file),
		   struct error *error)
{
	int err = fsync(file->fd) ? -errno : 0;

	if (err)
		return fail_to_write(error, err, path);
	err = read_back(file, path, error);
	if (err)
		return err;
	err = finish(file);
	if (err)
		return fail_to_write(error, err, path);
	sync_directory(&file->entry);
	return 0;
}

static int write_whole(const struct profile *profile, const char *path,
		       int (*finish)(struct new_file *file), struct error *error)
{
	_cleanup_(new_file__release) struct new_file file = NEW_FILE_NONE;
	int err = begin(&file, path, error);

	if (err)
		return err;
	err = write_db(profile, file.fd, write_all);
	return err ? fail_to_write(error, err, path) : publish(&file, path, finish, error);
}

int data_file__write(const struct profile *profile, const char *path, struct error *error)
{
	return write_whole(profile, path, new_file__finish_keeping, error);
}

int data_file__replace(const struct profile *profile, const char *path, struct error *error)
{
	return write_whole(profile, path, new_file__finish, error);
}

int data_file__write_open(const struct profile *profile, int fd)
{
	return ftruncate(fd, 0) ? -errno : write_db(profile, fd, write_all);
}

int data_file__write_first(const struct profile *profile, const char *path,
			   struct data_file_version *version, struct error *error)
{
	_cleanup_(new_file__release) struct new_file file = NEW_FILE_NONE;
	struct stat st;
	int err = begin(&file, path, error);

	if (err)
		return err;
	err = write_db(profile, file.fd, write_all);
	if (!err && fstat(file.fd, &st))
		err = -errno;
	if (!err)
		err = new_file__finish_keeping(&file);
	if (err)
		return fail_to_write(error, err, path);
	*version = (struct data_file_version){ st.st_dev, st.st_ino };
	return 0;
}

/* Replaces the file @first, which is at @path, by a copy with names. */
static int add_names(const struct profile *profile, struct new_file *file, const char *path,
		     int first, struct error *error)
{
	int err = copy_file(first, file->fd);

	if (!err)
		err = write_db(profile, file->fd, rewrite_names);
	return err ? fail_to_write(error, err, path) : publish(file, path, new_file__finish, error);
}

int data_file__write_names(const struct profile *profile, const char *path,
			   const struct data_file_version *version, struct error *error)
{
	_cleanup_(new_file__release) struct new_file file = NEW_FILE_NONE;
	_cleanup_(close_fd) int first = -1;
	struct error why = { 0 };
	int err = begin(&file, path, error);

	if (err)
		return err;
	first = open_version(&file.entry, version);
	if (first < 0)
		return data_file__write(profile, path, error);
	err = add_names(profile, &file, path, first, &why);
	if (!err)
		return 0;
	/* The file without names is kept, so it has to be synced. */
	(void)fsync(first);
	sync_directory(&file.entry);
	return error__set(error, err,
			  "%s has all calls, but lacks names of functions: %s; then "
			  "`allocprof symbolize` adds them",
			  path, why.text);
}
