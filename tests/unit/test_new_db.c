// SPDX-License-Identifier: GPL-3.0-or-later
/* What others put beside a database that is being written. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "new_db.h"

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

static void test_no_journal_is_played_back(void **state)
{
	int fd;
	struct new_db new;
	sqlite3 *db;

	make_database("db");
	fd = open("db", O_RDONLY | O_CLOEXEC);
	make_journal();
	assert_int_equal(new_db__open(&new, "db", fd), 0);
	assert_int_equal(sqlite3_exec(new.db, WRITE, NULL, NULL, NULL), SQLITE_OK);
	new_db__close(&new);
	assert_true(is_there("db-journal"));
	close(fd);

	/* By itself SQLite does, and removes it. */
	assert_int_equal(sqlite3_open("db", &db), SQLITE_OK);
	sqlite3_exec(db, "CREATE TABLE e(f)", NULL, NULL, NULL);
	sqlite3_close(db);
	assert_false(is_there("db-journal"));
}

static void test_no_link_is_followed(void **state)
{
	int fd;
	struct new_db new;
	struct stat before, after;

	make_database("other");
	assert_int_equal(symlink("other", "db"), 0);
	assert_int_equal(stat("other", &before), 0);
	fd = open("other", O_RDONLY | O_CLOEXEC);
	assert_int_equal(new_db__open(&new, "db", fd), -ELOOP);
	new_db__close(&new);
	assert_int_equal(stat("other", &after), 0);
	assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	close(fd);
}

static void test_another_file_is_left_alone(void **state)
{
	int fd;
	struct new_db new;

	make_database("other");
	make_database("db");
	fd = open("other", O_RDONLY | O_CLOEXEC);
	assert_int_equal(new_db__open(&new, "db", fd), -EEXIST);
	new_db__close(&new);
	close(fd);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, leave_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_no_journal_is_played_back),
		IN_DIRECTORY(test_no_link_is_followed),
		IN_DIRECTORY(test_another_file_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
