// SPDX-License-Identifier: GPL-3.0-or-later
/* Files that a worker reads for a recording: what it costs if that goes wrong, and what nonsense comes to. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cfi.h"
#include "error.h"
#include "parser.h"
#include "random.h"

struct fixture {
	struct parser *parser;
	int roots, others[2]; /* a file that only root may write to, two that others may, too */
	struct error error;
	struct wire_reader result;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	assert_int_equal(parser__new(&fixture->parser, NULL), 0);
	fixture->roots = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	assert_true(fixture->roots >= 0);
	for (int i = 0; i < 2; i++) {
		fixture->others[i] = memfd_create("file", MFD_CLOEXEC);
		assert_true(fixture->others[i] >= 0);
	}
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	parser__free(fixture->parser);
	close(fixture->roots);
	for (int i = 0; i < 2; i++)
		close(fixture->others[i]);
	free(fixture);
	return 0;
}

static int ask(struct fixture *fixture, parser_fn run, int fd, const struct wire_writer *parameters)
{
	const struct parser_call call = {
		.run = run,
		.fd = fd,
		.path = "/a/file",
		.parameters = parameters,
	};

	fixture->error.text[0] = '\0';
	return parser__call(fixture->parser, &call, &fixture->result, &fixture->error);
}

/* The process that serves, and how many calls it has served. */
static int count(struct parser_task *task)
{
	static __u32 n;

	wire__put_u32(task->result, getpid());
	wire__put_u32(task->result, ++n);
	return 0;
}

static pid_t counted(struct fixture *fixture, int fd, __u32 *n)
{
	pid_t pid;

	assert_int_equal(ask(fixture, count, fd, NULL), 0);
	pid = wire__get_u32(&fixture->result);
	*n = wire__get_u32(&fixture->result);
	assert_true(wire__is_read(&fixture->result));
	return pid;
}

static void test_who_has_read_what(void **state)
{
	struct fixture *fixture = *state;
	pid_t pid, other;
	__u32 n;

	pid = counted(fixture, fixture->roots, &n);
	assert_int_equal(n, 1);
	assert_int_equal(counted(fixture, fixture->roots, &n), pid);
	assert_int_equal(n, 2);
	/* A file that others may write to is read by a process that has read only root's, */
	assert_int_equal(counted(fixture, fixture->others[0], &n), pid);
	assert_int_equal(counted(fixture, fixture->others[0], &n), pid);
	assert_int_equal(n, 4);
	/* and is the last one that it reads. */
	other = counted(fixture, fixture->others[1], &n);
	assert_int_not_equal(other, pid);
	assert_int_equal(n, 1);
	assert_int_not_equal(counted(fixture, fixture->roots, &n), other);
	assert_int_equal(n, 1);
}

static int look(struct parser_task *task)
{
	char magic[4];

	if (pread(task->fd, magic, sizeof(magic), 0) != sizeof(magic))
		return -EIO;
	wire__put_bytes(task->result, magic, sizeof(magic));
	wire__put_string(task->result, task->path);
	wire__put_bytes(task->result, task->parameters.at, task->parameters.left);
	return 0;
}

static void test_what_comes_and_goes(void **state)
{
	struct wire_writer parameters = { 0 };
	struct fixture *fixture = *state;

	wire__put_u64(&parameters, 42);
	assert_int_equal(ask(fixture, look, fixture->roots, &parameters), 0);
	assert_memory_equal(wire__get_bytes(&fixture->result, 4), "\177ELF", 4);
	assert_string_equal(wire__get_string(&fixture->result, 100), "/a/file");
	assert_int_equal(wire__get_u64(&fixture->result), 42);
	assert_true(wire__is_read(&fixture->result));
	wire__release(&parameters);
}

static int explain(struct parser_task *task)
{
	wire__put_u64(task->result, 1);
	return error__set(task->error, -ENOTSUP, "%s is a file", task->path);
}

static int explain_nothing(struct parser_task *task)
{
	return -ENOENT;
}

static void test_errors(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(ask(fixture, explain, fixture->roots, NULL), -ENOTSUP);
	assert_string_equal(fixture->error.text, "/a/file is a file");
	assert_int_equal(ask(fixture, explain_nothing, fixture->roots, NULL), -ENOENT);
	assert_string_equal(fixture->error.text, "cannot read /a/file: No such file or directory");
}

static int crash(struct parser_task *task)
{
	raise(SIGKILL);
	return 0;
}

static int execute(struct parser_task *task)
{
	execl("/bin/sh", "sh", "-c", "true", (char *)NULL);
	return 0;
}

static int claim_success(struct parser_task *task)
{
	task->result->size = 0;
	return 0;
}

static int fail_strangely(struct parser_task *task)
{
	return -100000;
}

static int open_another(struct parser_task *task)
{
	return open("/bin/sh", O_RDONLY | O_CLOEXEC) >= 0 ? 0 : -errno;
}

static void test_nothing_else_is_opened(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(ask(fixture, open_another, fixture->roots, NULL), -EACCES);
}

static void test_one_file_each(void **state)
{
	struct fixture *fixture = *state;
	const parser_fn bad[] = { crash, execute, claim_success, fail_strangely };
	__u32 n;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(ask(fixture, bad[i], fixture->roots, NULL), -ECHILD);
		assert_non_null(
			strstr(fixture->error.text,
			       "/a/file could not be read safely: the process that read it "));
		counted(fixture, fixture->roots, &n);
		assert_int_equal(n, 1);
	}
	counted(fixture, fixture->roots, &n);
	assert_int_equal(parser__refuse(fixture->parser, "/b", &fixture->error), -ECHILD);
	assert_string_equal(fixture->error.text,
			    "/b could not be read safely: the process that read it gave no valid "
			    "answer");
	counted(fixture, fixture->roots, &n);
	assert_int_equal(n, 1);
}

static void test_not_for_ever(void **state)
{
	struct fixture *fixture = *state;
	int n = 0;

	do {
		assert_int_equal(ask(fixture, crash, fixture->roots, NULL), -ECHILD);
	} while (!strstr(fixture->error.text, "64 other files") && ++n < 100);
	assert_int_equal(n, 64);
	assert_int_equal(ask(fixture, count, fixture->roots, NULL), -ECHILD);
}

/* A fork has a process of its own, and leaves its parent's alone. */
static void test_after_a_fork(void **state)
{
	struct fixture *fixture = *state;
	int status;
	pid_t pid, child;
	__u32 n;

	pid = counted(fixture, fixture->roots, &n);
	child = fork();
	if (!child) {
		bool is_other = counted(fixture, fixture->roots, &n) != pid && n == 1;

		parser__free(fixture->parser);
		_exit(is_other ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(counted(fixture, fixture->roots, &n), pid);
	assert_int_equal(n, 2);
}

static int open_own(struct cfi_table **table)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(cfi_table__build(fd, "exe", table, NULL), 0);
	return fd;
}

static void assert_same_table(const struct cfi_table *a, const struct cfi_table *b)
{
	assert_int_equal(a->segment_count, b->segment_count);
	assert_int_equal(a->block_count, b->block_count);
	assert_int_equal(a->row_count, b->row_count);
	assert_int_equal(a->rule_count, b->rule_count);
	assert_memory_equal(a->segments, b->segments, a->segment_count * sizeof(*a->segments));
	assert_memory_equal(a->blocks, b->blocks, a->block_count * sizeof(*a->blocks));
	assert_memory_equal(a->rows, b->rows, a->row_count * sizeof(*a->rows));
	assert_memory_equal(a->rules, b->rules, a->rule_count * sizeof(*a->rules));
}

static void test_table(void **state)
{
	struct fixture *fixture = *state;
	struct cfi_table *here, *there;
	int fd = open_own(&here);

	assert_int_equal(cfi_table__build_by(fixture->parser, fd, "exe", &there, NULL), 0);
	assert_same_table(here, there);
	cfi_table__free(here);
	cfi_table__free(there);
	close(fd);
	assert_int_equal(cfi_table__build_by(fixture->parser, fixture->others[0], "empty", &there,
					     &fixture->error),
			 -ENOEXEC);
	assert_string_equal(fixture->error.text, "empty is no ELF file");
}

static bool read_table(const struct wire_writer *bytes, size_t size, __u64 file_bytes)
{
	struct wire_reader reader = wire__reader(bytes->bytes, size);
	struct cfi_table *table;

	if (cfi_table__read(&reader, file_bytes, &table))
		return false;
	/* What is accepted is as good as a table that was built here. */
	assert_true(cfi_table__is_sound(table));
	for (__u32 i = 0; i < table->segment_count; i++) {
		const struct unwind_segment *segment = &table->segments[i];
		struct cfi_range range;

		assert_true(segment->file_offset + segment->size <= file_bytes);
		for (int j = 0; j < 10; j++)
			assert_true(cfi_table__range(table, segment->vaddr + below(segment->size),
						     &range));
	}
	cfi_table__free(table);
	return true;
}

static void test_nonsense_for_a_table(void **state)
{
	struct wire_writer good = { 0 }, bad = { 0 };
	int accepted = 0, fd;
	struct cfi_table *table;
	__u64 most = 0;

	seed(1);
	fd = open_own(&table);
	for (__u32 i = 0; i < table->segment_count; i++)
		most = table->segments[i].file_offset + table->segments[i].size;
	cfi_table__write(table, &good);
	assert_true(read_table(&good, good.size, most));
	assert_false(read_table(&good, good.size, most - 1));
	for (int i = 0; i < 1000; i++)
		assert_false(read_table(&good, below(good.size), most));
	for (int i = 0; i < 2000; i++) {
		bad.size = 0;
		wire__put_bytes(&bad, good.bytes, good.size);
		for (int n = 1 + below(4); n; n--) {
			/* Counts, segments and blocks are at the beginning, and matter most. */
			__u32 at = below(below(2) ? 200 : bad.size);

			bad.bytes[at] ^= below(2) ? random_u64() : 1ULL << below(8);
		}
		accepted += read_table(&bad, bad.size, most);
	}
	assert_in_range(accepted, 1, 1999);
	for (int i = 0; i < 2000; i++) {
		bad.size = 0;
		for (int n = below(64); n; n--)
			wire__put_u64(&bad, below(2) ? below(8) : random_u64());
		assert_false(read_table(&bad, bad.size, most));
	}
	wire__release(&good);
	wire__release(&bad);
	cfi_table__free(table);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_has_read_what, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_comes_and_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_else_is_opened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_file_each, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_for_ever, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_after_a_fork, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_table, set_up, tear_down),
		cmocka_unit_test(test_nonsense_for_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
