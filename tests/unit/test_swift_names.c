// SPDX-License-Identifier: GPL-3.0-or-later
/* Stacks of tests/swift/shapes.swift, recorded with the linker's names, made readable by a filter that
 * knows what Swift's own demangler said of these names. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "demangle.h"
#include "error.h"

#define FILTER                                                                                     \
	"awk -F'\\t' 'NR == FNR { name[$1] = $2; next } { print $0 in name ? name[$0] : $0 }' "    \
	"\"$ALLOCPROF_SWIFT/names.tsv\" -"

static FILE *open_file(const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", getenv("ALLOCPROF_SWIFT"), name);
	file = fopen(path, "re");
	if (!file)
		fail_msg("cannot open %s", path);
	return file;
}

/* Calls @fn for each function of a folded stack, and returns what is behind the last. */
static const char *for_each_name(char *line, void (*fn)(const char *name, void *context),
				 void *context)
{
	char *cost = strrchr(line, ' '), *rest = line, *name;

	assert_non_null(cost);
	*cost++ = '\0';
	while ((name = strsep(&rest, ";")))
		fn(name, context);
	return cost;
}

static void add_name(const char *name, void *demangler)
{
	assert_int_equal(demangler__add(demangler, name), 0);
}

struct readable {
	const struct demangler *demangler;
	FILE *text;
	const char *separator;
};

static void write_name(const char *symbol, void *context)
{
	struct readable *readable = context;
	_cleanup_(free_ptr) char *name = NULL;
	_cleanup_(free_ptr) char *full_name = NULL;

	assert_int_equal(demangler__names(readable->demangler, symbol, &name, &full_name), 0);
	fprintf(readable->text, "%s%s", readable->separator, name);
	readable->separator = ";";
}

static char *make_readable(const struct demangler *demangler, char *line)
{
	struct readable readable = { .demangler = demangler, .separator = "" };
	const char *cost;
	size_t size;
	char *text;

	readable.text = open_memstream(&text, &size);
	assert_non_null(readable.text);
	cost = for_each_name(line, write_name, &readable);
	fprintf(readable.text, " %s", cost);
	assert_int_equal(fclose(readable.text), 0);
	return text;
}

static void test_recorded_stacks(void **state)
{
	struct demangle_options options = { .command = FILTER };
	_cleanup_(free_ptr) char *line = NULL;
	_cleanup_(free_ptr) char *wanted = NULL;
	_cleanup_(close_file) FILE *stacks = open_file("shapes.folded");
	_cleanup_(close_file) FILE *expected = open_file("shapes.readable");
	size_t size = 0, wanted_size = 0, n = 0;
	struct demangler *demangler;
	struct error error = { 0 };

	assert_int_equal(demangler__new(&options, &demangler, &error), 0);
	while (getline(&line, &size, stacks) > 0)
		for_each_name(line, add_name, demangler);
	if (demangler__run(demangler, &error))
		fail_msg("%s", error.text);
	rewind(stacks);
	while (getline(&line, &size, stacks) > 0) {
		_cleanup_(free_ptr) char *text = make_readable(demangler, line);

		n++;
		assert_true(getline(&wanted, &wanted_size, expected) > 0);
		assert_string_equal(text, wanted);
	}
	assert_true(n > 10);
	assert_true(getline(&wanted, &wanted_size, expected) < 0);
	demangler__free(demangler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
