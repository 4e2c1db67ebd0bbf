// SPDX-License-Identifier: GPL-3.0-or-later
/* The command refuses directories with such paths before it looks for files there, so tests/live/test_offline.py cannot try them. */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "elf_headers.h"
#include "error.h"
#include "profile.h"
#include "profile_archive.h"

static void fail_missing(const char *path, const char *why, void *context)
{
	fail_msg("left out: %s", why);
}

/* A profile of one file, which has a build id and no debug file. */
static struct profile *new_profile(void)
{
	const char *dir = getenv("ALLOCPROF_UNIT_DATA");
	struct profile *profile = profile__new();
	_cleanup_(free_ptr) char *path = NULL;
	_cleanup_(close_fd) int fd = -1;
	struct elf_headers *elf;
	__u32 id;

	if (!dir)
		fail_msg(
			"ALLOCPROF_UNIT_DATA is not set; run: meson test -C build profile_archive");
	assert_true(asprintf(&path, "%s/unit_calls.so", dir) > 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_headers__read(fd, &elf), 0);
	assert_int_equal(profile__add_module(profile, path, elf_headers__build_id(elf), &id), 0);
	elf_headers__free(elf);
	return profile;
}

/* One whose own path is longer than any that can be opened has no files. The others are searched. */
static void test_too_long_debug_dir(void **state)
{
	static const size_t sizes[] = { PATH_MAX - 1, PATH_MAX, PATH_MAX + 1, 3 * PATH_MAX };
	char archive[] = "/tmp/allocprof-unit.XXXXXX";
	_cleanup_(close_fd) int fd = mkstemp(archive);
	struct profile *profile = new_profile();

	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(free_ptr) char *dir = calloc(1, sizes[i] + 1);
		const char *const dirs[] = { memset(dir, 'd', sizes[i]), "/nonexistent", NULL };
		const struct profile_archive_options options = {
			.debug_dirs = dirs,
			.n_debug_dirs = 2,
			.missing = fail_missing,
		};
		struct profile_archive_result result;
		struct error error = { "" };

		if (profile__archive(profile, &options, archive, &result, &error))
			fail_msg("a directory of %zu bytes: %s", sizes[i], error.text);
		assert_int_equal(result.files, 1);
		assert_int_equal(result.missing, 0);
	}
	unlink(archive);
	profile__free(profile);
}

/* The directory of the test, which has nothing else in it. */
static char directory[] = "/tmp/allocprof-unit.XXXXXX";

static int n_entries(void)
{
	DIR *dir = opendir(directory);
	int n = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += *entry->d_name != '.';
	closedir(dir);
	return n;
}

static void count_missing(const char *path, const char *why, void *context)
{
	/* What ends us now leaves nothing. */
	assert_int_equal(n_entries(), 0);
	++*(int *)context;
}

static void test_nothing_is_left_behind(void **state)
{
	struct profile *profile = new_profile();
	struct profile_archive_result result;
	_cleanup_(free_ptr) char *path = NULL;
	struct error error = { "" };
	int n_missing = 0;
	__u32 id;

	assert_non_null(mkdtemp(directory));
	assert_int_equal(profile__add_module(profile, "/nonexistent/file", "", &id), 0);
	assert_true(asprintf(&path, "%s/packed", directory) > 0);
	assert_int_equal(profile__archive(profile,
					  &(struct profile_archive_options){
						  .missing = count_missing, .context = &n_missing },
					  path, &result, &error),
			 0);
	assert_int_equal(n_missing, 1);
	assert_int_equal(n_entries(), 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_long_debug_dir),
		cmocka_unit_test(test_nothing_is_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
