// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs a script in the place of debuginfod-find, which does what its build id says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "array.h"
#include "cleanup.h"
#include "debuginfod_client.h"

static const char script[] =
	"#!/bin/sh\n"
	"[ \"$1 $2\" = '-v debuginfo' ] || exit 1\n"
	/* Others may read its environment. */
	"[ -z \"$SECRET\" ] || exit 1\n"
	"echo 'server urls none' >&2\n"
	"case $3 in\n"
	"found) echo 'Progress 1 / 2' >&2; echo 'Progress 2 / 2' >&2; echo \"$HOME/file\" ;;\n"
	"lost) echo \"$HOME/nothing\" ;;\n"
	"silent) ;;\n"
	"missing) echo 'Server query failed: No such file or directory' >&2; exit 1 ;;\n"
	"refused) echo 'Server query failed: Connection refused' >&2; exit 1 ;;\n"
	"odd) echo 'Server query failed: nobody knows' >&2; exit 1 ;;\n"
	"killed) kill -9 $$ ;;\n"
	"esac\n";

struct reports {
	int n;
	long done, total;
	int result;
};

static int note(void *context, long done, long total)
{
	struct reports *reports = context;

	reports->n++;
	reports->done = done;
	reports->total = total;
	return reports->result;
}

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[256];
	_cleanup_(close_file) FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static int set_up(void **state)
{
	static char directory[] = "/tmp/allocprof-test-XXXXXX";
	char path[sizeof(directory) + 32];

	assert_non_null(mkdtemp(directory));
	write_file(directory, "debuginfod-find", script);
	write_file(directory, "file", "contents");
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", directory);
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(setenv("HOME", directory, 1), 0);
	assert_int_equal(setenv("SECRET", "known to root", 1), 0);
	*state = directory;
	return 0;
}

static int tear_down(void **state)
{
	const char *const names[] = { "debuginfod-find", "file" };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", (const char *)*state, names[i]);
		unlink(path);
	}
	return rmdir(*state);
}

static int find(const char *build_id, struct reports *reports)
{
	const struct debuginfod_reporter reporter = { .report = note, .context = reports };
	struct debuginfod_client *client = debuginfod_client__open(&reporter);
	int fd;

	assert_non_null(client);
	fd = debuginfod_client__find(client, build_id);
	free(client);
	return fd;
}

static void test_found(void **state)
{
	struct reports reports = { 0 };
	_cleanup_(close_fd) int fd = find("found", &reports);
	char text[16] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 8);
	assert_string_equal(text, "contents");
	assert_int_equal(reports.n, 2);
	assert_int_equal(reports.done, 2);
	assert_int_equal(reports.total, 2);
}

static void test_errors(void **state)
{
	struct reports reports = { 0 };

	assert_int_equal(find("missing", &reports), -ENOENT);
	assert_int_equal(find("refused", &reports), -ECONNREFUSED);
	assert_int_equal(find("odd", &reports), -EIO);
	assert_int_equal(find("killed", &reports), -EIO);
	assert_int_equal(find("silent", &reports), -EIO);
	assert_int_equal(find("lost", &reports), -ENOENT);
	assert_int_equal(reports.n, 0);
}

/* Returns the status with which a process ends that looks for @build_id; 99: it went on. */
static int status_of(const char *build_id, int result)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct reports reports = { .result = result };

		find(build_id, &reports);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The process that asks ends, which says that there is no client. */
static void test_no_program(void **state)
{
	_cleanup_(free_ptr) char *path = strdup(getenv("PATH"));

	assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
	assert_int_equal(status_of("missing", 0), 1);
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(status_of("missing", 0), 99);
}

static void test_aborted(void **state)
{
	assert_int_equal(status_of("found", 0), 99);
	assert_int_equal(status_of("found", 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_aborted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
