/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data file: a profile as an SQLite database, allocprof-data(5). The only interface between
 * capture and reports. */
#ifndef ALLOCPROF_DATA_FILE_H
#define ALLOCPROF_DATA_FILE_H

#include <linux/types.h>
#include <stdbool.h>

struct error;
struct profile;

/* The data file that commands write or read by default. */
#define DATA_FILE_DEFAULT "allocprof.data"

/* Suffix of the name under which a recording is kept while it goes on. */
#define DATA_FILE_CHECKPOINT ".partial"
/* Suffix of the name of the copy at the peak (record --dump-at=peak). */
#define DATA_FILE_PEAK ".peak"
/* Suffix of the name of the log of events. */
#define DATA_FILE_LOG ".events"

/* The application id in SQLite's header, at bytes 68 to 71: "aprf". */
#define DATA_FILE_APPLICATION_ID 0x61707266
#define DATA_FILE_SCHEMA_VERSION 5

/* Checks before a long recording whether data_file__write() to @path would succeed: creates and
 * removes a file beside @path. Returns 0 or a negative errno with @error set. */
int data_file__check_writable(const char *path, struct error *error);

/*
 * Replaces @path atomically by a file with mode 0600; an older file becomes "<path>.old". If @path
 * is a link, this applies to the file to which it leads. A path that is not a regular file is
 * refused. The new file is written under a temporary name and renamed after data_file__read() has
 * accepted it. Returns 0 or a negative errno with @error set; then the file at @path is unchanged,
 * and a file that was written but not accepted remains under the name that @error mentions.
 */
int data_file__write(const struct profile *profile, const char *path, struct error *error);

/* Works like data_file__write(), but removes an older file. */
int data_file__replace(const struct profile *profile, const char *path, struct error *error);

/* Writes into the open file @fd, whose contents are replaced, for a reader that shares it: nothing
 * is synced or read back. Returns 0 or a negative errno. */
int data_file__write_open(const struct profile *profile, int fd);

/* Identifies the file that data_file__write_first() wrote. */
struct data_file_version {
	__u64 device, inode;
};

/*
 * Works like data_file__write(), in two steps, so that the recorded data is safe while names are
 * looked up. The first step writes everything, without a sync, and sets *@version. The second adds
 * the names to a copy, which replaces the file of *@version without making it an older one; if
 * that fails, the first file stays, and @error says so. If another file has replaced it meanwhile,
 * that one becomes the older one, and everything is written.
 */
int data_file__write_first(const struct profile *profile, const char *path,
			   struct data_file_version *version, struct error *error);
int data_file__write_names(const struct profile *profile, const char *path,
			   const struct data_file_version *version, struct error *error);

/*
 * Reads @path into a new profile, which the caller frees. Validates everything, and leaves no file
 * beside @path. Fails with -ENOENT if there is none; -EINVAL if it is no data file, or damaged;
 * -EPROTONOSUPPORT if it is of a newer or an older allocprof; or another negative errno. @error is
 * set.
 */
int data_file__read(const char *path, struct profile **profile, struct error *error);
/* Does the same with the open file @fd, which @error calls @path. */
int data_file__read_open(int fd, const char *path, struct profile **profile, struct error *error);
/* Returns whether the file from which @profile was read was changed after it was written: its
 * digest differs or is missing. */
bool data_file__is_altered(const struct profile *profile);

#endif
