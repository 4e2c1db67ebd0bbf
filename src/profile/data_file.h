/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The data file: a profile as an SQLite database, allocprof-data(5). The only thing that capture
 * and reports share.
 */
#ifndef ALLOCPROF_DATA_FILE_H
#define ALLOCPROF_DATA_FILE_H

#include <linux/types.h>

struct error;
struct profile;

/* Where commands write and read when no other name is given. */
#define DATA_FILE_DEFAULT "allocprof.data"

/* "aprf" at bytes 68 to 71: what makes an SQLite database one of ours. */
#define DATA_FILE_APPLICATION_ID 0x61707266
#define DATA_FILE_SCHEMA_VERSION 3
/* The same without functions of defined sources. */
#define DATA_FILE_SCHEMA_WITHOUT_SOURCES 2

/*
 * Whether data_file__write() to @path could succeed, to be asked before a long recording: creates
 * and removes a file beside @path. 0 or a negative errno with @error set.
 */
int data_file__check_writable(const char *path, struct error *error);

/*
 * Writes @profile to @path, mode 0600, whole or not at all; an older file there becomes
 * "<path>.old". It is written under another name and takes its place when data_file__read() has read
 * it. 0 or a negative errno with @error set; then what was at @path is still there, and what could be
 * written but not read is under the name that @error tells.
 */
int data_file__write(const struct profile *profile, const char *path, struct error *error);

/* Tells the file that data_file__write_first() left from all others. */
struct data_file_version {
	__u64 device, inode;
};

/*
 * The same in two steps, for a profile that gets its names while what was recorded is safe already: the
 * first writes all, does not wait until it is on the disk, and tells @version; the second adds what looking
 * names up has changed since, to a copy that replaces the file of @version. That does not become an older
 * one; where another file has come to @path meanwhile, this does, and all is written.
 */
int data_file__write_first(const struct profile *profile, const char *path,
			   struct data_file_version *version, struct error *error);
int data_file__write_names(const struct profile *profile, const char *path,
			   const struct data_file_version *version, struct error *error);

/*
 * Reads @path into a new profile that the caller frees. Trusts nothing in it and leaves no file
 * beside it. -ENOENT missing, -EINVAL not ours or damaged, -EPROTONOSUPPORT from a newer or an older
 * allocprof,
 * or another negative errno; @error is set.
 */
int data_file__read(const char *path, struct profile **profile, struct error *error);

/* Whether data_file__read() takes the file, with little memory. */
int data_file__check(const char *path, struct error *error);

#endif
