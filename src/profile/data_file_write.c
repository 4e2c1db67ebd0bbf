// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "data_file.h"
#include "data_file_db.h"
#include "data_file_schema.h"
#include "error.h"
#include "new_db.h"
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

/* A name in the directory of @path, so that rename() does not cross file systems. To be freed. */
static char *temporary_name(const char *path)
{
	char *name;

	/* SQLite would not take "file:x" and ":memory:" for files. */
	return asprintf(&name, "%s%s.XXXXXX", *path == '/' ? "" : "./", path) < 0 ? NULL : name;
}

/* The name for an older file at @path. To be freed. */
static char *older_name(const char *path)
{
	char *name;

	return asprintf(&name, "%s.old", path) < 0 ? NULL : name;
}

/* Finds the file that is to be written, where @path may be a link. *@place is to be freed. */
static int find_place(const char *path, char **place, struct error *error)
{
	int err;

	if (!*path)
		return error__set(error, -EINVAL,
				  "the data file's name is empty; name a file with -o");
	err = new_file__find_place(path, place);
	if (err == -EISDIR)
		return error__set(error, err,
				  "cannot write %s: it is a directory; name a file in it with -o",
				  path);
	if (err == -EINVAL)
		return error__set(error, err,
				  "cannot write %s: it is not a regular file; write elsewhere with "
				  "-o",
				  path);
	return err ? fail_to_write(error, err, path) : 0;
}

/* Creates the temporary file. On success the caller owns @name and @fd. */
static int create_temporary(const char *path, char **name, int *fd, struct error *error)
{
	_cleanup_(free_ptr) char *candidate = NULL;
	_cleanup_(free_ptr) char *older = older_name(path);
	struct stat st;
	int made;

	if (!older)
		return fail_to_write(error, -ENOMEM, path);
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
	_cleanup_(free_ptr) char *name = NULL, *place = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err = find_place(path, &place, error);

	if (!err)
		err = create_temporary(place, &name, &fd, error);
	if (err)
		return err;
	unlink(name);
	return 0;
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

static int write_db(const struct profile *profile, const char *name, int fd,
		    int (*write)(sqlite3 *db, const struct profile *profile))
{
	_cleanup_(new_db__close) struct new_db new;
	int err = new_db__open(&new, name, fd);

	/* Nobody reads the file until it is complete: no journal, one sync at the end. */
	if (!err)
		err = run(new.db,
			  "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
			  "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -8192; BEGIN");
	if (!err)
		err = write(new.db, profile);
	if (!err)
		err = run(new.db, "COMMIT");
	return err;
}

/* Makes the rename durable, if the file system supports it. */
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

/* Renames @name to @path and an older file to @path.old. */
static int replace(const char *name, const char *path)
{
	_cleanup_(free_ptr) char *old = older_name(path);
	int err;

	if (!old)
		return -ENOMEM;
	/* An exchange, if supported, so that @path always exists. */
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

/* Whether the reader accepts the new file. If not, the file remains at @name, because there is no
 * other copy of the recording. */
static int read_back(const char *name, const char *path, struct error *error)
{
	int err = data_file__check(name, error);

	if (err)
		error__wrap(
			error, err,
			"%s is not written, and an older one stays: the new file cannot be read back%s",
			path, err == -EINVAL ? ", which is an error in allocprof" : "");
	return err;
}

/* Opens the file of @version, if it is still at @path; else returns -1. */
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

/* Removes the temporary file @name, which could not be renamed to @path. */
static int abandon(const char *name, const char *path, int err, struct error *error)
{
	unlink(name);
	return fail_to_write(error, err, path);
}

/* Moves the complete file @name to @path, if it can be read. */
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
	_cleanup_(free_ptr) char *name = NULL, *place = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err = find_place(path, &place, error);

	if (!err)
		err = create_temporary(place, &name, &fd, error);
	if (err)
		return err;
	err = write_db(profile, name, fd, write_all);
	return err ? abandon(name, place, err, error) : publish(name, fd, place, false, error);
}

int data_file__write_first(const struct profile *profile, const char *path,
			   struct data_file_version *version, struct error *error)
{
	_cleanup_(free_ptr) char *name = NULL, *place = NULL;
	_cleanup_(close_fd) int fd = -1;
	struct stat st;
	int err = find_place(path, &place, error);

	if (!err)
		err = create_temporary(place, &name, &fd, error);
	if (err)
		return err;
	err = write_db(profile, name, fd, write_all);
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err)
		err = replace(name, place);
	if (err)
		return abandon(name, place, err, error);
	*version = (struct data_file_version){ st.st_dev, st.st_ino };
	return 0;
}

/* Replaces the file @first at @path by a copy with names. */
static int add_names(const struct profile *profile, const char *path, int first,
		     struct error *error)
{
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(close_fd) int fd = -1;
	int err = create_temporary(path, &name, &fd, error);

	if (err)
		return err;
	err = copy_file(first, fd);
	if (!err)
		err = write_db(profile, name, fd, data_file__rewrite_names);
	return err ? abandon(name, path, err, error) : publish(name, fd, path, true, error);
}

int data_file__write_names(const struct profile *profile, const char *path,
			   const struct data_file_version *version, struct error *error)
{
	_cleanup_(free_ptr) char *place = NULL;
	_cleanup_(close_fd) int first = -1;
	struct error why = { 0 };
	int err = find_place(path, &place, error);

	if (err)
		return err;
	first = open_version(place, version);
	if (first < 0)
		return data_file__write(profile, path, error);
	err = add_names(profile, place, first, &why);
	if (!err)
		return 0;
	/* The file without names stays, so it has to be on the disk. */
	(void)fsync(first);
	sync_directory(place);
	return error__set(error, err,
			  "%s has all calls, but lacks names of functions: %s; then "
			  "`allocprof symbolize` adds them",
			  path, why.text);
}
