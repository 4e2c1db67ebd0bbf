/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data file: a profile as an SQLite database, allocprof-data(5). The only interface between
 * capture and reports. */
#ifndef ALLOCPROF_DATA_FILE_H
#define ALLOCPROF_DATA_FILE_H

#include <linux/types.h>
#include <stdbool.h>

struct error;
struct profile;

/* Default of the commands that write or read a data file. */
#define DATA_FILE_DEFAULT "allocprof.data"

/* Comes after the name of a data file where its recording is kept as it goes. */
#define DATA_FILE_CHECKPOINT ".partial"
/* What is appended to it for the log of its events. */
#define DATA_FILE_LOG ".events"

/* SQLite's application id, at bytes 68 to 71: "aprf". */
#define DATA_FILE_APPLICATION_ID 0x61707266
#define DATA_FILE_SCHEMA_VERSION 5

/* Whether data_file__write() to @path would succeed; for a check before a long recording: creates
 * and removes a file beside @path. 0 or a negative errno with @error set. */
int data_file__check_writable(const char *path, struct error *error);

/*
 * Replaces @path atomically, with mode 0600; an older file becomes "<path>.old". Of a link this is true of the file that it
 * leads to; what is no regular file is refused. The new file is
 * written under a temporary name and renamed after data_file__read() has accepted it. 0 or a
 * negative errno with @error set; then the file at @path is unchanged, and a file that was written
 * but not accepted remains under the name that @error mentions.
 */
int data_file__write(const struct profile *profile, const char *path, struct error *error);

/* The same, but removes an older file. */
int data_file__replace(const struct profile *profile, const char *path, struct error *error);

/* Identifies the file that data_file__write_first() wrote. */
struct data_file_version {
	__u64 device, inode;
};

/*
 * The same in two steps, so that the recorded data is safe while names are looked up: the first
 * writes everything, does not sync, and sets @version; the second adds the names, to a copy that
 * replaces the file of @version without making it an older one; if that fails, the first file stays,
 * and @error says so. If another file has replaced it meanwhile, that becomes the older one, and everything is written.
 */
int data_file__write_first(const struct profile *profile, const char *path,
			   struct data_file_version *version, struct error *error);
int data_file__write_names(const struct profile *profile, const char *path,
			   const struct data_file_version *version, struct error *error);

/*
 * Reads @path into a new profile, which the caller frees. Validates everything, and leaves no file
 * beside @path. -ENOENT: missing; -EINVAL: no data file, or damaged; -EPROTONOSUPPORT: of a newer
 * or an older allocprof; or another negative errno; @error is set.
 */
int data_file__read(const char *path, struct profile **profile, struct error *error);
/* Whether the file that @profile was read from was changed since it was written: its digest differs or is missing. */
bool data_file__is_altered(const struct profile *profile);

#endif
