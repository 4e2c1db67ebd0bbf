// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes and reads rows of the data file's tables by their columns, and checks each value that is read. */
#include "data_rows.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"

int data_tables__create(sqlite3 *db)
{
	int err = 0;

	for (const struct data_table *table = data_tables; table->name && !err; table++) {
		_cleanup_(free_ptr) char *sql = data_table__definition(table);

		err = sql ? run(db, sql) : -ENOMEM;
	}
	return err;
}

static int begin_insert(struct data_insert *insert)
{
	char sql[128], *end = sql + sizeof(sql), *at = sql;
	const struct data_column *column;

	insert->table = data_table__find(insert->name);
	column = insert->table->columns;
	at += snprintf(at, end - at, "INSERT INTO %s VALUES(?", insert->name);
	while ((++column)->name)
		at += snprintf(at, end - at, ", ?");
	snprintf(at, end - at, ")");
	return prepare(insert->db, sql, &insert->statement);
}

static __u64 get_field(const struct data_column *column, const void *field)
{
	switch (column->size) {
	case sizeof(bool):
		return *(const bool *)field;
	case sizeof(__u32):
		return *(const __u32 *)field;
	default:
		return *(const __u64 *)field;
	}
}

static int bind_column(sqlite3_stmt *statement, int at, const struct data_column *column,
		       const void *field)
{
	__u64 number;

	switch (column->kind) {
	case DATA_KEY:
	case DATA_NAME:
	case DATA_TEXT:
		return bind_text(statement, at, *(const char *const *)field);
	case DATA_REAL:
		return sqlite3_bind_double(statement, at, *(const double *)field);
	default:
		number = get_field(column, field);
		return column->kind == DATA_EPOCH && number == PROFILE_LIVE
			       ? sqlite3_bind_null(statement, at)
			       : sqlite3_bind_int64(statement, at, number);
	}
}

int data_insert__row(struct data_insert *insert, const void *row)
{
	int bound = SQLITE_OK, err = insert->statement ? 0 : begin_insert(insert);
	const struct data_column *columns;

	if (err)
		return err;
	columns = insert->table->columns;
	for (int i = 0; columns[i].name; i++)
		bound |= bind_column(insert->statement, i + 1, &columns[i],
				     (const char *)row + columns[i].offset);
	/* Binding fails only for want of memory or beyond the length limit. */
	if (bound != SQLITE_OK)
		return bound == SQLITE_TOOBIG ? -E2BIG : -ENOMEM;
	if (sqlite3_step(insert->statement) != SQLITE_DONE)
		return db_errno(insert->db);
	sqlite3_reset(insert->statement);
	return 0;
}

void data_insert__release(struct data_insert *insert)
{
	sqlite3_finalize(insert->statement);
}

int data_table__select(const struct data_table *table, sqlite3 *db, sqlite3_stmt **statement)
{
	const char *key = table->key			      ? table->key
			  : table->columns[0].kind == DATA_ID ? table->columns[0].name
							      : NULL;
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT * FROM %s NOT INDEXED%s%s", table->name,
		 key ? " ORDER BY " : "", key ?: "");
	return prepare(db, sql, statement);
}

static int get_number(const struct data_column *column, sqlite3_stmt *statement, int at,
		      void *field)
{
	sqlite3_int64 number = sqlite3_column_int64(statement, at);
	int type = sqlite3_column_type(statement, at);

	if (column->kind == DATA_EPOCH && type == SQLITE_NULL)
		number = PROFILE_LIVE;
	else if (type != SQLITE_INTEGER || (number < 0 && column->kind != DATA_ADDRESS))
		return -EINVAL;
	if (column->size == sizeof(__u64))
		*(__u64 *)field = number;
	else if (number > (column->size == sizeof(bool) ? 1 : (sqlite3_int64)UINT32_MAX))
		return -EINVAL;
	else if (column->size == sizeof(bool))
		*(bool *)field = number;
	else
		*(__u32 *)field = number;
	return 0;
}

static int get_real(sqlite3_stmt *statement, int at, double *value)
{
	double number = sqlite3_column_double(statement, at);

	/* The number must not exceed the greatest possible sum of all counts. */
	if (sqlite3_column_type(statement, at) != SQLITE_FLOAT || !(number >= 0) || number > 1e100)
		return -EINVAL;
	*value = number;
	return 0;
}

static int get_text(sqlite3_stmt *statement, int at, size_t most, const char **text,
		    __u64 *text_left)
{
	const char *value;
	size_t size;

	if (sqlite3_column_type(statement, at) != SQLITE_TEXT)
		return -EINVAL;
	value = (const char *)sqlite3_column_text(statement, at);
	if (!value)
		return -ENOMEM;
	size = sqlite3_column_bytes(statement, at);
	if (strlen(value) != size || size > *text_left)
		return -EINVAL;
	if (size > most)
		return -E2BIG;
	*text_left -= size;
	*text = value;
	return 0;
}

int data_table__get_row(const struct data_table *table, sqlite3_stmt *statement, void *row,
			__u64 *text_left)
{
	int err = 0;

	for (int i = 0; table->columns[i].name && !err; i++) {
		const struct data_column *column = &table->columns[i];
		void *field = (char *)row + column->offset;

		if (column->kind == DATA_REAL)
			err = get_real(statement, i, field);
		else if (column->kind < DATA_REAL)
			err = get_number(column, statement, i, field);
		else
			err = get_text(statement, i,
				       column->kind == DATA_TEXT ? SIZE_MAX : DATA_MAX_NAME, field,
				       text_left);
	}
	return err;
}

struct data_digest_text data_digest__text(__u64 digest)
{
	struct data_digest_text text;

	snprintf(text.text, sizeof(text.text), "%016llx", digest);
	return text;
}

/* Adds a word to a hash. Different words give different results, and so do different hashes. */
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
		/* This comes first, since it may convert the value whose size is asked for next. */
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

int data_digest__compute(sqlite3 *db, __u64 lacking, __u64 *digest)
{
	__u64 sum = 0;

	for (const struct data_table *table = data_tables; table->name; table++) {
		_cleanup_(finalize) sqlite3_stmt *statement = NULL;
		int err, status;

		if (table->view || lacking >> (table - data_tables) & 1)
			continue;
		err = data_table__select(table, db, &statement);
		if (err)
			return err;
		while ((status = sqlite3_step(statement)) == SQLITE_ROW)
			sum += data_digest__row(table->name, statement);
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
	int err = data_digest__compute(db, 0, &digest);

	if (!err)
		err = prepare(db, "INSERT OR IGNORE INTO meta VALUES('" DATA_DIGEST_KEY "', ?)",
			      &statement);
	if (err)
		return err;
	if (bind_text(statement, 1, data_digest__text(digest).text) != SQLITE_OK)
		return -ENOMEM;
	return sqlite3_step(statement) == SQLITE_DONE ? 0 : db_errno(db);
}
