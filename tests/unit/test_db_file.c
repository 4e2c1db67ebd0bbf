// SPDX-License-Identifier: GPL-3.0-or-later
/* What others put beside a database that is being written, or where its file was. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db_file.h"

static int enter_directory(void **state)
{
	char template[] = "/tmp/allocprof-test.XXXXXX";

	*state = NULL;
	return mkdtemp(template) && !chdir(template) ? 0 : -1;
}

static int leave_directory(void **state)
{
	char path[64];

	unlink("db");
	unlink("db-journal");
	unlink("other");
	return getcwd(path, sizeof(path)) && !rmdir(path) ? 0 : -1;
}

static void make_database(const char *name)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE a(b)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void make_journal(void)
{
	FILE *file = fopen("db-journal", "w");

	assert_non_null(file);
	fputs("not empty, and no byte of zero at its start, so SQLite takes it for one to be played back",
	      file);
	fclose(file);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(name, &st);
}

#define WRITE "PRAGMA journal_mode = OFF; PRAGMA locking_mode = EXCLUSIVE; CREATE TABLE c(d)"

static void write_to(const char *name, const char *then)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	sqlite3 *db;

	if (then)
		assert_int_equal(rename(name, then), 0);
	assert_int_equal(db_file__open(fd, true, &db), 0);
	assert_int_equal(sqlite3_exec(db, WRITE, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	close(fd);
}

static void test_no_journal_is_played_back(void **state)
{
	sqlite3 *db;

	make_database("db");
	make_journal();
	write_to("db", NULL);
	assert_true(is_there("db-journal"));

	/* By itself SQLite does, and removes it. */
	assert_int_equal(sqlite3_open("db", &db), SQLITE_OK);
	sqlite3_exec(db, "CREATE TABLE e(f)", NULL, NULL, NULL);
	sqlite3_close(db);
	assert_false(is_there("db-journal"));
}

static bool has_table(const char *name, const char *table)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	char sql[64];
	sqlite3 *db;
	bool has;

	snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
	assert_int_equal(db_file__open(fd, false, &db), 0);
	has = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
	assert_int_not_equal(sqlite3_exec(db, "CREATE TABLE x(y)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	close(fd);
	return has;
}

static void test_the_open_file_is_used(void **state)
{
	make_database("db");
	write_to("db", "other");
	assert_false(is_there("db"));
	assert_true(has_table("other", "c"));
	assert_false(has_table("other", "e"));
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, leave_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_no_journal_is_played_back),
		IN_DIRECTORY(test_the_open_file_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
