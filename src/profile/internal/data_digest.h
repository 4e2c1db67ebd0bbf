/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The digest of a data file, by which readers notice that it is not as it was written: the sum of a number for each row of
 * each table, as allocprof-data(5) has it. It is no signature: whoever changes a file on purpose can also write a digest.
 */
#ifndef ALLOCPROF_DATA_DIGEST_H
#define ALLOCPROF_DATA_DIGEST_H

#include <linux/types.h>
#include <sqlite3.h>
#include <stdbool.h>

/* The key of meta, whose row does not count. */
#define DATA_DIGEST_KEY "digest"
/* Its value in a file that was made from one whose digest did not fit. */
#define DATA_DIGEST_WRONG "wrong"

struct data_digest_text {
	char text[17];
};

struct data_digest_text data_digest__text(__u64 digest);
/* The number of the row of @table that @row, a SELECT * of it, has come to. */
__u64 data_digest__row(const char *table, sqlite3_stmt *row);
/* Reads all tables; @lacks_gaps: there is none of gaps. 0 or a negative errno. */
int data_digest__compute(sqlite3 *db, bool lacks_gaps, __u64 *digest);
/* Writes it to meta, after all else. 0 or a negative errno. */
int data_digest__write(sqlite3 *db);

#endif
