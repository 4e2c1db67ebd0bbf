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
	int fd; /* descriptor of the file, which belongs to the opener */
	sqlite3 *db;
	struct profile *profile;
	/* Only validate: do not keep counts and their details, of which there may be millions. */
	bool only_checks;
	/* Bit N: the file is so old that it lacks table number N of data_tables, which may_lack. */
	__u64 lacking;
	size_t n_counts;
	__u64 digest;		 /* digest of the rows that were read */
	char written_digest[32]; /* digest in the file; "": there is none */
	/* Remaining budget of text: a small file can refer to one long text many times. */
	__u64 text_left;
	/* Remaining instructions of SQLite: pages of a hostile file can refer to one page many times. */
	__u64 steps_left;
	/* Profile id of each row of the table functions: in a file several rows may have one
	 * symbol. */
	__u32 *functions;
	size_t n_functions, functions_room;
};

/* Opens @path for reading. Returns a descriptor, or -1 with errno set, which data_reader__open()
 * accepts, too. */
int data_reader__open_path(const char *path);
/* Opens reader->fd, which is @path, if it is a data file of a known version. Returns 0 or a
 * negative errno with @error set; in either case the caller closes reader->db. */
int data_reader__open(struct data_reader *reader, const char *path, struct error *error);
/* Sets the sentence for @err, the result of a function below that was to read @what. Returns @err,
 * or -EINVAL if the file is damaged, also for -E2BIG. */
int data_reader__fail(const char *path, int err, const char *what, struct error *error);
/* Checks that the tables and views are defined as in data_tables.c. */
int data_reader__read_definitions(struct data_reader *reader);

/* Returns 1 with a row, 0 at the end, or a negative errno: -EINVAL if the file is damaged. */
int data_reader__step(struct data_reader *reader, sqlite3_stmt *statement);
/* Reads all tables into the profile. Returns 0 or a negative errno, and the table's name in
 * *@table; -EINVAL if a row is not valid. */
int data_reader__read_tables(struct data_reader *reader, const char **table);

/* Checks whether data_file__read() would accept the open file @fd, which @error calls @path. Needs
 * little memory. */
int data_file__check(int fd, const char *path, struct error *error);

#endif
