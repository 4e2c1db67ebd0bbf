// SPDX-License-Identifier: GPL-3.0-or-later
/* Adds up a number for each row of a data file, by which later commands see that the file was changed. */
#include "data_digest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file_db.h"
#include "data_file_schema.h"

struct data_digest_text data_digest__text(__u64 digest)
{
	struct data_digest_text text;

	snprintf(text.text, sizeof(text.text), "%016llx", digest);
	return text;
}

/* Different words give different results, and so do different hashes. */
static __u64 add_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

static __u64 add_bytes(__u64 hash, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	__u64 word;

	hash = add_word(hash, size);
	for (size_t i = 0; i < size; i += sizeof(word)) {
		word = 0;
		memcpy(&word, from + i, size - i < sizeof(word) ? size - i : sizeof(word));
		hash = add_word(hash, word);
	}
	return hash;
}

static __u64 add_column(__u64 hash, sqlite3_stmt *row, int column)
{
	int type = sqlite3_column_type(row, column);
	const void *bytes;
	double real;
	__u64 word;

	hash = add_word(hash, type);
	switch (type) {
	case SQLITE_INTEGER:
		return add_word(hash, sqlite3_column_int64(row, column));
	case SQLITE_FLOAT:
		real = sqlite3_column_double(row, column);
		memcpy(&word, &real, sizeof(word));
		return add_word(hash, word);
	case SQLITE_NULL:
		return hash;
	default:
		/* First, since it may convert what the size is of. */
		bytes = sqlite3_column_blob(row, column);
		return add_bytes(hash, bytes, bytes ? sqlite3_column_bytes(row, column) : 0);
	}
}

static int is_digest(const char *table, sqlite3_stmt *row)
{
	const char *key = strcmp(table, "meta") ? NULL : (const char *)sqlite3_column_text(row, 0);

	return key && !strcmp(key, DATA_DIGEST_KEY);
}

__u64 data_digest__row(const char *table, sqlite3_stmt *row)
{
	int n = sqlite3_column_count(row);
	__u64 hash;

	if (is_digest(table, row))
		return 0;
	hash = add_bytes(0, table, strlen(table));
	for (int column = 0; column < n; column++)
		hash = add_column(hash, row, column);
	return hash;
}

int data_digest__compute(sqlite3 *db, bool lacks_gaps, __u64 *digest)
{
	__u64 sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(data_file_schema); i++) {
		_cleanup_(finalize) sqlite3_stmt *statement = NULL;
		char sql[64], table[32];
		int err, status;

		if (sscanf(data_file_schema[i], "CREATE TABLE %31[a-z_]", table) != 1)
			continue;
		if (lacks_gaps && !strcmp(data_file_schema[i], DATA_FILE_GAPS))
			continue;
		snprintf(sql, sizeof(sql), "SELECT * FROM %s NOT INDEXED", table);
		err = prepare(db, sql, &statement);
		if (err)
			return err;
		while ((status = sqlite3_step(statement)) == SQLITE_ROW)
			sum += data_digest__row(table, statement);
		if (status != SQLITE_DONE)
			return db_errno(db);
	}
	*digest = sum;
	return 0;
}

int data_digest__write(sqlite3 *db)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	__u64 digest;
	int err = data_digest__compute(db, false, &digest);

	if (!err)
		err = prepare(db, "INSERT OR IGNORE INTO meta VALUES('" DATA_DIGEST_KEY "', ?)",
			      &statement);
	if (err)
		return err;
	if (bind_text(statement, 1, data_digest__text(digest).text) != SQLITE_OK)
		return -ENOMEM;
	return sqlite3_step(statement) == SQLITE_DONE ? 0 : db_errno(db);
}
