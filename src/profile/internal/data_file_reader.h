/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reader of a data file, for the files that implement it. */
#ifndef ALLOCPROF_DATA_FILE_READER_H
#define ALLOCPROF_DATA_FILE_READER_H

#include <linux/types.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

struct error;

struct data_reader {
	int fd; /* of the file; the opener's */
	sqlite3 *db;
	struct profile *profile;
	bool only_checks; /* only validates: does not keep counts and their details, of which
			   * there may be millions */
	bool lacks_gaps;  /* has no table of gaps: older than these */
	size_t n_counts;
	__u64 digest;		 /* of the rows that were read */
	char written_digest[32]; /* "": none */
	/* Remaining budget of text: a small file can refer to one long text many times. */
	__u64 text_left;
	/* Remaining instructions of SQLite: pages of a hostile file can refer to one page many times. */
	__u64 steps_left;
	/* Profile id of each row of the table functions: in a file several rows may have one
	 * symbol. */
	__u32 *functions;
	size_t n_functions, functions_room;
};

/* Opens @path to be read: a file descriptor, or -1 with errno set, which data_reader__open() takes, too. */
int data_reader__open_path(const char *path);
/* Opens reader->fd, which is of @path, if it is a data file of a version that is known. 0 or a negative errno with @error set;
 * reader->db is the caller's to close in either case. */
int data_reader__open(struct data_reader *reader, const char *path, struct error *error);
/* Sets the sentence for @err, the result of a function below that was to read @what. Returns @err,
 * -EINVAL where the file is damaged, also for -E2BIG. */
int data_reader__fail(const char *path, int err, const char *what, struct error *error);
/* Checks that the tables and views are defined as data_tables.c has them. */
int data_reader__read_definitions(struct data_reader *reader);

/* 1 with a row, 0 at the end, or a negative errno: -EINVAL if the file is damaged. */
int data_reader__step(struct data_reader *reader, sqlite3_stmt *statement);
/* Reads all tables into the profile. 0 or a negative errno, -EINVAL for a row that is not valid; then *@table is the table's
 * name. */
int data_reader__read_tables(struct data_reader *reader, const char **table);

/* Whether data_file__read() would accept the open file @fd, which @error calls @path; needs little memory. */
int data_file__check(int fd, const char *path, struct error *error);

#endif
