// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_files.h"
#include "jit_names.h"
#include "jit_query.h"
#include "perf_map.h"
#include "profile.h"

static struct perf_map *read_text(const char *text, size_t size)
{
	int fd = memfd_create("map", 0);
	struct perf_map *map = NULL;

	assert_int_equal(write(fd, text, size), size);
	assert_int_equal(perf_map__read(fd, &map), 0);
	close(fd);
	return map;
}

static void test_names(void **state)
{
	static const char text[] = "1000 100 first\n"
				   "0x2000 0x10 with spaces and (punctuation)\n"
				   "1080 40 later\n"
				   "1090 8 latest\n"
				   "7fff00000000 1 high\n"
				   "3000 10 half written";
	static const struct {
		__u64 address;
		const char *name;
	} cases[] = {
		{ 0xfff, NULL },
		{ 0x1000, "first" },
		{ 0x107f, "first" },
		{ 0x1080, "later" },
		{ 0x1090, "latest" },
		{ 0x1097, "latest" },
		{ 0x1098, "later" },
		{ 0x10bf, "later" },
		{ 0x10c0, "first" },
		{ 0x10ff, "first" },
		{ 0x1100, NULL },
		{ 0x2000, "with spaces and (punctuation)" },
		{ 0x2010, NULL },
		{ 0x3000, NULL },
		{ 0x7fff00000000, "high" },
	};
	struct perf_map *map = read_text(text, sizeof(text) - 1);
	struct jit_query queries[ARRAY_SIZE(cases)];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		queries[i].address = cases[i].address;
	assert_int_equal(perf_map__look_up(map, queries, ARRAY_SIZE(cases)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *name = queries[i].name;

		if (cases[i].name ? !name || strcmp(name, cases[i].name) : !!name)
			fail_msg("%#llx: expected %s, got %s", cases[i].address,
				 cases[i].name ? cases[i].name : "none", name ? name : "none");
	}
	perf_map__free(map);
}

/* Lines that are none are left out; what is a name is printable. */
static void test_hostile_lines(void **state)
{
	static const char text[] = "\n"
				   " \n"
				   "1000\n"
				   "1000 \n"
				   "1000 10\n"
				   "1000 10 \n"
				   "1000 0 nothing\n"
				   "-1 10 negative\n"
				   "fffffffffffffff0 100 past the end\n"
				   "11112222333344445 10 too long\n"
				   "1000 11112222333344445 too long\n"
				   "xyz 10 letters\n"
				   "1000,10,commas\n"
				   "2000 10 a\033[31mred\rname\n"
				   "3000 10 nul\0hidden\n";
	struct jit_query queries[] = {
		{ .address = 0 },      { .address = 0x1000 }, { .address = 0x2000 },
		{ .address = 0x3000 }, { .address = ~0ULL },
	};
	struct perf_map *map = read_text(text, sizeof(text) - 1);

	assert_int_equal(perf_map__look_up(map, queries, ARRAY_SIZE(queries)), 0);
	assert_null(queries[0].name);
	assert_null(queries[1].name);
	assert_string_equal(queries[2].name, "a?[31mred?name");
	assert_string_equal(queries[3].name, "nul");
	assert_null(queries[4].name);
	perf_map__free(map);
}

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 16 & 0x7fff;
}

#define N_LINES	  300
#define N_QUERIES 64

/* Lines over small addresses between lines that are none, in random order: the last line that has an address names
 * it, whatever stands between. */
static void test_random_lines(void **state)
{
	static const char *const none[] = { "%x\n",
					    "%x 0 zero\n",
					    "%xg 10 letter\n",
					    "%x ffffffffffffffff past the end\n",
					    "%x 10 \n",
					    "%x,10,commas\n" };
	unsigned int random = 1, named = 0, unnamed = 0;

	for (int round = 0; round < 50; round++) {
		struct {
			__u64 start, size;
			char name[32];
		} lines[N_LINES] = { 0 };
		struct jit_query queries[N_QUERIES];
		char text[N_LINES * 64];
		struct perf_map *map;
		size_t len = 0;

		for (size_t i = 0; i < N_LINES; i++) {
			unsigned int start = 1 + next_random(&random);

			if (next_random(&random) % 2) {
				const char *form = none[next_random(&random) % ARRAY_SIZE(none)];

				len += snprintf(text + len, sizeof(text) - len, form, start);
				continue;
			}
			lines[i].start = start;
			lines[i].size = 1 + next_random(&random) % 200;
			snprintf(lines[i].name, sizeof(lines[i].name), "line %zu", i);
			len += snprintf(text + len, sizeof(text) - len, "%llx %llx %s\n",
					lines[i].start, lines[i].size, lines[i].name);
		}
		map = read_text(text, len);
		for (size_t i = 0; i < N_QUERIES; i++)
			queries[i].address = i * 0x8000 / N_QUERIES + round;
		assert_int_equal(perf_map__look_up(map, queries, N_QUERIES), 0);
		for (size_t i = 0; i < N_QUERIES; i++) {
			const char *expected = NULL;

			for (size_t j = 0; j < N_LINES; j++)
				if (queries[i].address >= lines[j].start &&
				    queries[i].address < lines[j].start + lines[j].size)
					expected = lines[j].name;
			if (expected) {
				assert_non_null(queries[i].name);
				assert_string_equal(queries[i].name, expected);
				named++;
			} else {
				assert_null(queries[i].name);
				unnamed++;
			}
		}
		perf_map__free(map);
	}
	assert_true(named > 500);
	assert_true(unnamed > 500);
}

/* Letters at random: what is taken for a name is printable, and not empty. */
static void test_nonsense(void **state)
{
	unsigned int random = 1, named = 0;
	char text[4096];

	for (int i = 0; i < 200; i++) {
		struct jit_query queries[64];
		struct perf_map *map;

		for (size_t j = 0; j < sizeof(text); j++)
			text[j] = "0123456789abcdefx  \n\n\t\033\177\0"[next_random(&random) % 25];
		map = read_text(text, sizeof(text));
		for (size_t j = 0; j < ARRAY_SIZE(queries); j++)
			queries[j].address = j * j * j;
		assert_int_equal(perf_map__look_up(map, queries, ARRAY_SIZE(queries)), 0);
		for (size_t j = 0; j < ARRAY_SIZE(queries); j++) {
			if (!queries[j].name)
				continue;
			named++;
			assert_true(*queries[j].name);
			for (const char *c = queries[j].name; *c; c++)
				assert_true(*c >= ' ' && *c <= '~');
		}
		perf_map__free(map);
	}
	assert_true(named > 0);
}

static void test_empty(void **state)
{
	struct perf_map *map = read_text("", 0);

	assert_int_equal(perf_map__look_up(map, NULL, 0), 0);
	perf_map__free(map);
}

/* Only a file that the process's user alone may write to is believed. */
static void test_which_file(void **state)
{
	char dir[] = "/tmp/allocprof-test.XXXXXX", command[256], path[64];
	int root, fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tmp", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	root = open(dir, O_PATH | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/tmp/perf-7.map", dir);
	assert_int_equal(jit_file__open(root, "perf-7.map", getuid()), -ENOENT);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	assert_true(fd >= 0);
	close(fd);
	fd = jit_file__open(root, "perf-7.map", getuid());
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(jit_file__open(root, "perf-8.map", getuid()), -ENOENT);
	assert_int_equal(jit_file__open(root, "perf-7.map", getuid() + 1), -EPERM);
	chmod(path, 0664);
	assert_int_equal(jit_file__open(root, "perf-7.map", getuid()), -EPERM);
	chmod(path, 0646);
	assert_int_equal(jit_file__open(root, "perf-7.map", getuid()), -EPERM);
	snprintf(command, sizeof(command),
		 "cd %s/tmp && chmod 644 *.map && ln -s perf-7.map "
		 "perf-9.map && mkfifo perf-10.map && mkdir perf-11.map",
		 dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(jit_file__open(root, "perf-9.map", getuid()), -EPERM);
	assert_int_equal(jit_file__open(root, "perf-10.map", getuid()), -EPERM);
	assert_int_equal(jit_file__open(root, "perf-11.map", getuid()), -EPERM);
	close(root);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static int add_frame(struct jit_names *names, __u32 frame)
{
	return jit_names__add(
		names,
		&(struct jit_place){ .program = 1, .pid = getpid(), .frame = frame, .time_ns = 1 });
}

/* No process has this number. */
#define ENDED (1 << 23)

static size_t n_found(const struct timespec *since)
{
	struct jit_files files;
	size_t n;

	jit_files__init(&files, ENDED);
	jit_files__open_last(&files, since);
	n = files.n_dumps;
	jit_files__close(&files);
	return n;
}

static void write_dump(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	close(fd);
}

/* Dumps of a process that has ended are where compilers leave them, and must be of that process. */
static void test_dumps_of_ended_processes(void **state)
{
	static const struct timespec ever = { 0 }, never = { .tv_sec = 1LL << 40 };
	char dir[] = "/tmp/allocprof-test.XXXXXX", command[256], name[64], path[128];
	char *home = getenv("HOME"), *before = getcwd(NULL, 0);

	home = home ? strdup(home) : NULL;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	setenv("HOME", dir, 1);
	snprintf(name, sizeof(name), "jit-%d.dump", ENDED);
	assert_int_equal(n_found(&ever), 0);
	write_dump(name, 0644);
	assert_int_equal(n_found(&ever), 1);
	assert_int_equal(n_found(&never), 0);
	assert_int_equal(chmod(name, 0664), 0);
	assert_int_equal(n_found(&ever), 0);
	assert_int_equal(mkdir(".debug", 0755), 0);
	assert_int_equal(mkdir(".debug/jit", 0755), 0);
	assert_int_equal(mkdir(".debug/jit/llvm-IR-jit-1", 0755), 0);
	snprintf(path, sizeof(path), ".debug/jit/llvm-IR-jit-1/%s", name);
	write_dump(path, 0644);
	assert_int_equal(n_found(&ever), 1);
	assert_int_equal(n_found(&never), 0);
	assert_int_equal(chmod(name, 0644), 0);
	assert_int_equal(n_found(&ever), 2);
	/* Links lead elsewhere. */
	assert_int_equal(rename(".debug/jit/llvm-IR-jit-1", "elsewhere"), 0);
	assert_int_equal(symlink("../../elsewhere", ".debug/jit/link"), 0);
	assert_int_equal(n_found(&ever), 1);
	if (home)
		setenv("HOME", home, 1);
	assert_int_equal(chdir(before), 0);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	free(home);
	free(before);
}

/* This process's own map, and a frame of it. */
static void test_frames_get_names(void **state)
{
	struct jit_names *names = jit_names__new(&(struct jit_names_options){ 0 });
	struct profile *profile = profile__new();
	__u32 called, interrupted, other;
	char path[64];
	FILE *file;

	profile__add_frame(profile, 0, 0x1010, false, &called);
	profile__add_frame(profile, 0, 0x1010, true, &interrupted);
	profile__add_frame(profile, 0, 0x5000, false, &other);
	assert_int_equal(add_frame(names, called), 0);
	assert_int_equal(add_frame(names, interrupted), 0);
	assert_int_equal(add_frame(names, interrupted), 0);
	assert_int_equal(add_frame(names, other), 0);
	/* It may be written when all frames are known. */
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	file = fopen(path, "we");
	assert_non_null(file);
	fchmod(fileno(file), 0644);
	fputs("1000 10 before\n1010 10 after\n", file);
	fclose(file);
	assert_int_equal(jit_names__apply(names, profile), 0);
	unlink(path);
	assert_string_equal(profile__frame_function(profile, &profile->frames[called - 1])->name,
			    "before");
	assert_string_equal(
		profile__frame_function(profile, &profile->frames[interrupted - 1])->name, "after");
	assert_null(profile__frame_function(profile, &profile->frames[other - 1]));
	jit_names__free(names);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_hostile_lines),
		cmocka_unit_test(test_random_lines),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_which_file),
		cmocka_unit_test(test_dumps_of_ended_processes),
		cmocka_unit_test(test_frames_get_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
