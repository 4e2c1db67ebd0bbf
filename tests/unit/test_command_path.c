// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "cleanup.h"
#include "command_path.h"

/* A new directory, which is also the current one. */
static int enter_directory(void **state)
{
	char dir[] = "/tmp/allocprof-unit-XXXXXX";

	if (!mkdtemp(dir) || chdir(dir))
		return -1;
	*state = strdup(dir);
	return *state ? 0 : -1;
}

static int leave_directory(void **state)
{
	_cleanup_(free_ptr) char *command = NULL;

	if (chdir("/") || asprintf(&command, "rm -rf '%s'", (char *)*state) < 0)
		return -1;
	free(*state);
	return system(command);
}

static void put(const char *path, const char *text, mode_t mode)
{
	_cleanup_(close_file) FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_find(void **state)
{
	char *found = NULL;

	assert_int_equal(mkdir("a", 0755), 0);
	assert_int_equal(mkdir("b", 0755), 0);
	assert_int_equal(mkdir("a/directory", 0755), 0);
	put("a/plain", "", 0644);
	put("a/both", "", 0644);
	put("b/both", "", 0755);
	put("here", "", 0755);

	assert_int_equal(command_path__find("both", "a:b", &found), 0);
	assert_string_equal(found, "b/both");
	free(found);
	found = NULL;
	assert_int_equal(command_path__find("plain", "a:b", &found), -EACCES);
	assert_int_equal(command_path__find("directory", "a:b", &found), -EACCES);
	assert_int_equal(command_path__find("missing", "a:b:/nowhere:here", &found), -ENOENT);
	assert_int_equal(command_path__find("", "a:b", &found), -ENOENT);
	assert_int_equal(command_path__find("a/plain", "b", &found), -EACCES);
	assert_int_equal(command_path__find("./missing", "a", &found), -ENOENT);
	assert_int_equal(command_path__find("here/missing", "a", &found), -ENOENT);
	assert_null(found);

	assert_int_equal(command_path__find("here", "a::b", &found), 0);
	assert_string_equal(found, "here");
	free(found);
	assert_int_equal(command_path__find("here", "", &found), 0);
	free(found);
	assert_int_equal(command_path__find("./b/both", NULL, &found), 0);
	assert_string_equal(found, "./b/both");
	free(found);
	assert_int_equal(command_path__find("sh", NULL, &found), 0);
	free(found);
}

static void assert_elf(const char *script, const char *expected)
{
	_cleanup_(free_ptr) char *elf = NULL;

	put("script", script, 0755);
	assert_int_equal(command_path__elf("script", "bin", &elf), 0);
	assert_string_equal(elf, expected);
}

static void assert_no_elf(const char *script, int err)
{
	char *elf = NULL;

	put("script", script, 0755);
	assert_int_equal(command_path__elf("script", "bin", &elf), err);
	assert_null(elf);
}

static void test_elf(void **state)
{
	char line[400];

	assert_int_equal(mkdir("bin", 0755), 0);
	put("bin/prog", "\177ELF", 0755);
	put("bin/env", "\177ELF", 0755);
	put("chained", "#!bin/prog\n", 0755);
	put("self", "#!./self\n", 0755);

	assert_elf("\177ELF", "script");
	assert_elf("#!bin/prog\n", "bin/prog");
	assert_elf("#! \tbin/prog  -x y\nrest", "bin/prog");
	assert_elf("#!bin/prog", "bin/prog");
	assert_elf("#!./chained\n", "bin/prog");
	assert_elf("#!bin/env prog\n", "bin/prog");
	assert_elf("#!bin/env -S A=1 prog -x\n", "bin/prog");
	assert_elf("#!bin/env\n", "bin/env");
	assert_no_elf("", -ENOEXEC);
	assert_no_elf("#!\n", -ENOEXEC);
	assert_no_elf("echo hello\n", -ENOEXEC);
	assert_no_elf("#!/nowhere/prog\n", -ENOENT);
	assert_no_elf("#!prog\n", -ENOENT);
	assert_no_elf("#!bin/env missing\n", -ENOENT);
	assert_no_elf("#!./self\n", -ELOOP);

	/* A name that does not end in what the kernel reads is no name. */
	memset(line, 'x', sizeof(line));
	memcpy(line, "#!/", 3);
	line[sizeof(line) - 1] = '\0';
	assert_no_elf(line, -ENOEXEC);
	memcpy(line, "#!bin/prog ", 11);
	assert_elf(line, "bin/prog");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, enter_directory, leave_directory),
		cmocka_unit_test_setup_teardown(test_elf, enter_directory, leave_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
