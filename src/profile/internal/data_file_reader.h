/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reader of a data file's tables, for the files that implement it. */
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
/* Checks that the tables and views are defined as in data_file_schema.h. */
int data_reader__read_definitions(struct data_reader *reader);

/* 1 with a row of @table, all columns of which count for the digest (NULL: of no table), 0 at the end, or a negative
 * errno: -EINVAL if the file is damaged. */
int data_reader__next(struct data_reader *reader, sqlite3_stmt *statement, const char *table);

/* Reads the first columns of a row: 'n' a number from 0 to PROFILE_MAX into a __u64, 'a' any
 * number, 'l' an epoch, PROFILE_LIVE for NULL, 'd' a double that is not negative, 't' text, valid until the next step, and 'T' such
 * text, which may also be longer than names and paths are. -E2BIG for a 't' that is. */
int data_reader__get_row(struct data_reader *reader, sqlite3_stmt *statement, const char *columns,
			 ...);

/* Checks that an adder made a new element: ids must count from 1 without gaps, and rows must be
 * unique. */
int data_reader__expect_new(__u64 id, size_t n_before, __u32 added);

/* Files made by hand need not list their runs. */
bool data_reader__is_run(const struct profile *profile, __u64 run);

/* Each reads the table of its name into the profile; call them in this order. -EINVAL for an
 * invalid row. */
int data_reader__read_modules(struct data_reader *reader);
int data_reader__read_processes(struct data_reader *reader);
int data_reader__read_threads(struct data_reader *reader);
int data_reader__read_functions(struct data_reader *reader);
int data_reader__read_files(struct data_reader *reader);
int data_reader__read_frames(struct data_reader *reader);
int data_reader__read_lines(struct data_reader *reader);
int data_reader__read_stacks(struct data_reader *reader);
int data_reader__read_counts(struct data_reader *reader);
int data_reader__read_blocks(struct data_reader *reader);
int data_reader__read_samples(struct data_reader *reader);
int data_reader__read_lifetimes(struct data_reader *reader);
int data_reader__read_timeline(struct data_reader *reader);
int data_reader__read_gaps(struct data_reader *reader);

/* Figures of meta are read by strtoull(3), which takes what is no number for 0: -EINVAL for those that are none. */
int data_reader__check_figure(const char *key, const char *value);

#endif
