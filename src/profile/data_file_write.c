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
#include "data_file_db.h"
#include "data_file_schema.h"
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

/* Begins the file that is to be at @path, where an older one is in its way if that is a directory. */
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
	if ((size_t)snprintf(older, sizeof(older), "%s.old", file->place.name) < sizeof(older) &&
	    !fstatat(file->place.directory, older, &st, AT_SYMLINK_NOFOLLOW) &&
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

/* Writes @profile to an empty file. */
static int write_all(sqlite3 *db, const struct profile *profile)
{
	int err = create_schema(db);

	return err ? err : data_file__write_tables(db, profile);
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
static void sync_directory(const struct file_place *place)
{
	_cleanup_(close_fd) int fd =
		openat(place->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)fsync(fd);
}

/* Whether the reader accepts the new file. If not, the file gets a name, because there is no
 * other copy of the recording. */
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

/* Opens the file of @version, if it is still at @place; else returns -1. */
static int open_version(const struct file_place *place, const struct data_file_version *version)
{
	int fd = openat(place->directory, place->name,
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

/* Moves the complete file to its place by @finish, if it can be read. */
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
	sync_directory(&file->place);
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

/* Replaces the file @first at the place of @file, which is @path, by a copy with names. */
static int add_names(const struct profile *profile, struct new_file *file, const char *path,
		     int first, struct error *error)
{
	int err = copy_file(first, file->fd);

	if (!err)
		err = write_db(profile, file->fd, data_file__rewrite_names);
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
	first = open_version(&file.place, version);
	if (first < 0)
		return data_file__write(profile, path, error);
	err = add_names(profile, &file, path, first, &why);
	if (!err)
		return 0;
	/* The file without names stays, so it has to be on the disk. */
	(void)fsync(first);
	sync_directory(&file.place);
	return error__set(error, err,
			  "%s has all calls, but lacks names of functions: %s; then "
			  "`allocprof symbolize` adds them",
			  path, why.text);
}
