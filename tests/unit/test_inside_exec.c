// SPDX-License-Identifier: GPL-3.0-or-later
/* Programs that the library of src/inside cannot be preloaded into, which it names, and the environment that system(3) and its kin find. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "exec.h"
#include "inside_host.h"
#include "measured_process.h"
#include "memory.h"
#include "process.h"
#include "refusal_abi.h"
#include "sys.h"

static char name[] = "program", other[] = "A=1";
static char *const argv[] = { name, NULL }, *const environment[] = { other, NULL };

/* A directory with the program "static" and "own", which has malloc. None of them can be executed, so that execve(2) fails. */
static char directory[] = "/tmp/allocprof-unit-XXXXXX";

static void copy_program(const char *from, const char *to)
{
	char path[PATH_MAX], bytes[1 << 16];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", getenv("ALLOCPROF_UNIT_DATA"), from);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, bytes, sizeof(bytes));
	assert_true(fd >= 0 && n > 0 && n < (ssize_t)sizeof(bytes));
	close(fd);
	snprintf(path, sizeof(path), "%s/%s", directory, to);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

static int make_programs(void **state)
{
	assert_non_null(mkdtemp(directory));
	copy_program("unit_program", "static");
	copy_program("unit_dynamic_malloc", "own");
	return 0;
}

static void path_of(const char *program, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", directory, program);
}

static int remove_programs(void **state)
{
	char path[PATH_MAX];

	path_of("static", path);
	unlink(path);
	path_of("own", path);
	unlink(path);
	return rmdir(directory);
}

static void execute_static(void)
{
	int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd, pid;
	char path[PATH_MAX];

	path_of("static", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(at >= 0 && fd >= 0);
	CHECK(inside_execve(path, argv, environment) == -1);
	CHECK(inside_fexecve(fd, argv, environment) == -1);
	CHECK(inside_execveat(at, "static", argv, environment, 0) == -1);
	CHECK(inside_execveat(at, path, argv, environment, 0) == -1);
	CHECK(inside_posix_spawn(&pid, path, NULL, NULL, argv, environment) == EACCES);
	/* The first of the directories that has it. */
	snprintf(path, sizeof(path), "/none::%s", directory);
	CHECK(!setenv("PATH", path, 1));
	CHECK(inside_execvp("static", argv) == -1);
	CHECK(inside_posix_spawnp(&pid, "static", NULL, NULL, argv, environment) == EACCES);
	/* A search does not find a file that cannot be executed; a path needs no search. */
	path_of("static", path);
	CHECK(inside_execvp(path, argv) == -1);
}

static void test_named(void **state)
{
	static const char *const paths[] = { "/static", "/static", "/fd/",
					     "/static", "/static", "/static" };
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .follow = 1 };
	struct measured measured;

	measure(&settings, execute_static, &measured);
	assert_int_equal(measured.results.n_refused, ARRAY_SIZE(paths));
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const struct preload_refused *refused = &measured.results.refused[i];

		print_message("%s\n", refused->path);
		assert_int_equal(refused->reason, INSIDE_REFUSES_STATIC);
		assert_int_equal(refused->program, 0);
		assert_false(refused->by_other_engine);
		assert_non_null(strstr(refused->path, paths[i]));
	}
	assert_int_equal(measured.results.gaps[INSIDE_GAP_EXECS], ARRAY_SIZE(paths));
	measured__finish(&measured);
}

static void refuse_for_other_reasons(void)
{
	static char sanitizer[] = "LD_PRELOAD=/usr/lib/libasan.so.8",
		    lists[] = "LD_TRACE_LOADED_OBJECTS=1";
	char *const with_sanitizer[] = { sanitizer, NULL }, *const listing[] = { lists, NULL };
	char library[INSIDE_PATH_BYTES + 16];
	struct sys_limits before;

	CHECK(inside_execve("/none", argv, with_sanitizer) == -1);
	/* Nobody wants the library in the list. */
	CHECK(inside_execve("/none", argv, listing) == -1);
	before = sys_limits;
	sys_limits.is_limited = true;
	sys_limits.permitted = ~0ULL;
	CHECK(inside_execve("/none", argv, environment) == -1);
	sys_limits = before;
	snprintf(library, sizeof(library), "%s/" INSIDE_LIBRARY, process__directory());
	CHECK(!unlink(library));
	CHECK(inside_execve("/none", argv, environment) == -1);
	CHECK(!inside_system("exit 0"));
}

static void test_other_reasons(void **state)
{
	static const enum inside_refusal reasons[] = { INSIDE_REFUSES_SANITIZER,
						       INSIDE_REFUSES_CONFINED,
						       INSIDE_REFUSES_HIDDEN,
						       INSIDE_REFUSES_HIDDEN };
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .follow = 1 };
	struct measured measured;

	measure(&settings, refuse_for_other_reasons, &measured);
	assert_int_equal(measured.results.n_refused, ARRAY_SIZE(reasons));
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		assert_int_equal(measured.results.refused[i].reason, reasons[i]);
	measured__finish(&measured);
}

static bool take(void *context, const struct preload_refused *refused)
{
	const char *path = refused->path;

	return strlen(path) > 4 && !strcmp(path + strlen(path) - 4, "/own");
}

struct answering {
	struct preload *preload;
	bool ends;
};

static void *answer(void *context)
{
	struct answering *answering = context;

	while (!__atomic_load_n(&answering->ends, __ATOMIC_ACQUIRE)) {
		preload__take_refused(answering->preload, take, NULL);
		preload__wait(answering->preload, 5);
	}
	return NULL;
}

static void execute_both(void)
{
	char path[PATH_MAX];

	path_of("own", path);
	CHECK(inside_execve(path, argv, environment) == -1);
	path_of("static", path);
	CHECK(inside_execve(path, argv, environment) == -1);
}

/* Another engine may count the calls of a program that has an allocator of its own. */
static void test_handed_over(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT,
						  .follow = 1,
						  .wait_ms = 10000 };
	struct answering answering = { 0 };
	struct measured measured;
	pthread_t thread;

	measured__new(&settings, &measured);
	answering.preload = measured.preload;
	assert_int_equal(preload__hand_over(measured.preload, true), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer, &answering), 0);
	measured__run(&measured, execute_both);
	__atomic_store_n(&answering.ends, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	measured__read(&measured);
	assert_int_equal(measured.results.n_refused, 2);
	assert_int_equal(measured.results.refused[0].reason, INSIDE_REFUSES_ALLOCATOR);
	assert_true(measured.results.refused[0].by_other_engine);
	assert_int_equal(measured.results.refused[1].reason, INSIDE_REFUSES_STATIC);
	assert_false(measured.results.refused[1].by_other_engine);
	assert_true(measured.results.waits <= 2);
	measured__finish(&measured);
}

/* allocprof does not answer. */
static void test_no_answer(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT,
						  .follow = 1,
						  .wait_ms = 60 };
	struct measured measured;

	measured__new(&settings, &measured);
	assert_int_equal(preload__hand_over(measured.preload, true), 0);
	measured__run(&measured, execute_both);
	measured__read(&measured);
	assert_int_equal(measured.results.n_refused, 2);
	assert_int_equal(measured.results.waits, 1);
	assert_true(measured.results.waits_ns >= 60000000);
	measured__finish(&measured);
}

static bool is_shown(void)
{
	const char *value = getenv("LD_PRELOAD");

	return value && strstr(value, "/" INSIDE_LIBRARY);
}

static bool show(void)
{
	return shown__begin(process__directory(), INSIDE_LIBRARY);
}

/* While a thread is in system(3), others change the environment. */
static void change_environment(void)
{
	CHECK(show() && is_shown() && show());
	shown__end();
	CHECK(is_shown());
	shown__end();
	CHECK(!is_shown() && !strcmp(getenv("LD_PRELOAD"), "libc.so.6"));
	CHECK(show() && !setenv("UNIT_NEW", "1", 1));
	shown__end();
	CHECK(!strcmp(getenv("LD_PRELOAD"), "libc.so.6") && getenv("UNIT_NEW"));
	CHECK(show() && !setenv("UNIT_NEW", "2", 1));
	shown__end();
	CHECK(!strcmp(getenv("LD_PRELOAD"), "libc.so.6") && !strcmp(getenv("UNIT_NEW"), "2"));
	CHECK(show() && !unsetenv("LD_PRELOAD"));
	shown__end();
	CHECK(!getenv("LD_PRELOAD") && show() && is_shown());
	shown__forked();
	CHECK(!getenv("LD_PRELOAD"));
	shown__end();
	CHECK(show() && !clearenv());
	shown__end();
	CHECK(!getenv("LD_PRELOAD") && show() && is_shown());
	shown__end();
	CHECK(!is_shown());
}

static void test_environment_that_changes(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .follow = 1 };
	struct measured measured;

	measure(&settings, change_environment, &measured);
	measured__finish(&measured);
}

static void *run_shell(void *unused)
{
	for (int i = 0; i < 20; i++)
		CHECK(!inside_system("exit 0"));
	return NULL;
}

static void run_shells(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, run_shell, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!is_shown());
}

static void test_threads_in_system(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_COUNT, .follow = 1 };
	struct measured measured;

	measure(&settings, run_shells, &measured);
	assert_int_equal(measured.results.n_programs, 81);
	measured__finish(&measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_other_reasons),
		cmocka_unit_test(test_handed_over),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_environment_that_changes),
		cmocka_unit_test(test_threads_in_system),
	};

	return cmocka_run_group_tests(tests, make_programs, remove_programs);
}
