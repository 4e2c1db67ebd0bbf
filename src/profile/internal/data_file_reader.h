/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What reads the tables of a data file, for the files that implement it. */
#ifndef ALLOCPROF_DATA_FILE_READER_H
#define ALLOCPROF_DATA_FILE_READER_H

#include <linux/types.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

struct data_reader {
	sqlite3 *db;
	struct profile *profile;
	bool only_checks; /* what there may be millions of is not kept: counts and what refers to them */
	size_t n_counts;
	/* Bytes of text that may still come: a small file can name one long text many times. */
	__u64 text_left;
	/* The profile's id of each row of the table functions: files may have several rows of one
	 * symbol, a profile has not. */
	__u32 *functions;
	size_t n_functions, functions_room;
};

/* 1 with a row, 0 at the end, or a negative errno: -EINVAL where the file is to blame. */
int data_reader__next(struct data_reader *reader, sqlite3_stmt *statement);

/*
 * Takes the first columns of a row: 'n' a number from 0 to PROFILE_MAX into a __u64, 'a' any number,
 * 'd' a double from 0 on, 't' text, which is valid until the next step.
 */
int data_reader__get_row(struct data_reader *reader, sqlite3_stmt *statement, const char *columns,
			 ...);

/* What an adder that finds what is there already was given must be new: ids count from 1 without gaps,
 * and no row comes twice. */
int data_reader__expect_new(__u64 id, size_t n_before, __u32 added);

/* Whoever makes files by hand need not list the runs. */
bool data_reader__is_run(const struct profile *profile, __u64 run);

/* Each reads the table of its name into the profile; in this order. -EINVAL where a row cannot be. */
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

#endif
