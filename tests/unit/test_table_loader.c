// SPDX-License-Identifier: GPL-3.0-or-later
/* Which files' unwind tables are made, in which order, and how often. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "parser.h"
#include "table_loader.h"
#include "unwind_abi.h"

#define MAX_READY 16

struct fixture {
	struct table_loader *loader;
	__u32 awaited;
	sem_t begun, go_on; /* of the first table, while the others are asked for */
	bool holds;
	__u32 ready[MAX_READY]; /* modules, as they get their tables */
	int n_ready, n_slices;
	int fd; /* of the file that all tables are of */
};

static int write_map(void *context, enum unwind_map map, __u32 index, const void *value)
{
	struct fixture *fixture = context;
	const struct unwind_table *table = value;

	if (map == UNWIND_MAP_SLICES)
		fixture->n_slices++;
	if (map != UNWIND_MAP_TABLES || table->state == UNWIND_TABLE_AWAITED)
		return 0;
	if (fixture->holds) {
		fixture->holds = false;
		sem_post(&fixture->begun);
		sem_wait(&fixture->go_on);
	}
	if (fixture->n_ready < MAX_READY)
		fixture->ready[fixture->n_ready++] = index;
	return 0;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct table_loader_options options = { 0 };

	assert_non_null(fixture);
	sem_init(&fixture->begun, 0, 0);
	sem_init(&fixture->go_on, 0, 0);
	fixture->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fixture->fd >= 0);
	options.tables = unwind_tables__new(
		&(struct unwind_writer){ .write = write_map, .context = fixture });
	options.awaited = &fixture->awaited;
	assert_int_equal(parser__new(&options.parser, NULL), 0);
	fixture->loader = table_loader__new(&options);
	assert_non_null(fixture->loader);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	table_loader__free(fixture->loader);
	close(fixture->fd);
	free(fixture);
	return 0;
}

static size_t add(struct fixture *fixture, int fd)
{
	struct table_file file = { .fd = fd, .path = "program", .build_id = "" };
	size_t number;

	assert_int_equal(table_loader__add(fixture->loader, &file, &number), 0);
	return number;
}

static void assign(struct fixture *fixture, size_t file, __u32 module, bool hit)
{
	assert_int_equal(table_loader__assign(fixture->loader, file, module, hit), 0);
}

/* Returns when the thread has made the table of module 1 and is about to hand it over. */
static void hold(struct fixture *fixture)
{
	fixture->holds = true;
	assign(fixture, add(fixture, fixture->fd), 1, false);
	sem_wait(&fixture->begun);
}

static void assert_ready(const struct fixture *fixture, const __u32 *modules, int n)
{
	assert_int_equal(fixture->n_ready, n);
	assert_memory_equal(fixture->ready, modules, n * sizeof(*modules));
}

static void test_order(void **state)
{
	struct fixture *fixture = *state;
	static const __u32 expected[] = { 1, 5, 3, 4, 2 };

	hold(fixture);
	assert_false(table_loader__progresses(fixture->loader));
	assign(fixture, add(fixture, fixture->fd), 2, false);
	assign(fixture, add(fixture, fixture->fd), 3, true);
	assign(fixture, add(fixture, -1), 4, true);
	assign(fixture, add(fixture, fixture->fd), 5, false);
	/* A hit waits for the one that was asked for last. */
	__atomic_store_n(&fixture->awaited, 5, __ATOMIC_RELAXED);
	sem_post(&fixture->go_on);
	table_loader__wait(fixture->loader);
	assert_ready(fixture, expected, 5);
	assert_true(table_loader__progresses(fixture->loader));
	assert_true(table_loader__progresses(fixture->loader));
}

static void test_made_once(void **state)
{
	struct fixture *fixture = *state;
	size_t file = add(fixture, fixture->fd);
	struct loaded_table loaded;
	int n_slices;

	assign(fixture, file, 1, false);
	table_loader__wait(fixture->loader);
	n_slices = fixture->n_slices;
	assert_true(n_slices > 0);
	assign(fixture, file, 2, true);
	table_loader__wait(fixture->loader);
	assert_int_equal(table_loader__find(fixture->loader, file, &loaded), 0);
	assert_int_equal(loaded.n_slices, n_slices);
	assert_int_equal(fixture->n_slices, n_slices);
	assert_int_equal(fixture->n_ready, 2);
}

static void test_finish(void **state)
{
	struct fixture *fixture = *state;
	size_t wanted = add(fixture, fixture->fd);
	static const __u32 expected[] = { 1 };
	struct loaded_table loaded;

	hold(fixture);
	assign(fixture, add(fixture, fixture->fd), 2, true);
	table_loader__finish(fixture->loader);
	sem_post(&fixture->go_on);
	/* What is asked for is made, and nothing else. */
	assert_int_equal(table_loader__find(fixture->loader, wanted, &loaded), 0);
	assert_true(loaded.n_slices > 0);
	assert_ready(fixture, expected, 1);
}

static void test_forked(void **state)
{
	struct fixture *fixture = *state;
	size_t known = add(fixture, fixture->fd), unknown = add(fixture, fixture->fd);
	struct loaded_table loaded;
	int status;
	pid_t pid;

	assert_int_equal(table_loader__find(fixture->loader, known, &loaded), 0);
	hold(fixture);
	pid = fork();
	if (!pid) {
		/* Whatever the thread, which the child has not, had in hand. */
		if (table_loader__find(fixture->loader, known, &loaded) || !loaded.n_slices ||
		    table_loader__find(fixture->loader, unknown, &loaded) != -EAGAIN ||
		    table_loader__assign(fixture->loader, add(fixture, -1), 9, true))
			_exit(1);
		table_loader__free(fixture->loader);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sem_post(&fixture->go_on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_made_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_finish, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_forked, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
