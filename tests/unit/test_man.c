// SPDX-License-Identifier: GPL-3.0-or-later
/* Each command has a manual page, and both know the same options; so it is with the ledger. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "reasons.h"
#include "where.h"

#define MAX_OPTIONS 128

struct list {
	char names[MAX_OPTIONS][64]; /* as typed: "-i", "--input" */
	size_t n;
};

static void add(struct list *list, const char *dashes, const char *name, size_t len)
{
	if (list->n == MAX_OPTIONS)
		fail_msg("more than %d options", MAX_OPTIONS);
	snprintf(list->names[list->n++], sizeof(list->names[0]), "%s%.*s", dashes, (int)len, name);
}

static int has(const struct list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++) {
		if (!strcmp(list->names[i], name))
			return 1;
	}
	return 0;
}

static void add_table(struct list *list, const struct argp_option *option)
{
	for (; option->name || option->key || option->doc || option->group; option++) {
		char letter = option->key;

		if (option->flags & (OPTION_DOC | OPTION_HIDDEN))
			continue;
		if (option->name)
			add(list, "--", option->name, strlen(option->name));
		if (option->key > ' ' && option->key < 0x7f)
			add(list, "-", &letter, 1);
	}
}

static FILE *open_manual(const char *name, const char *section)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", getenv("ALLOCPROF_MAN"), name, section);
	file = fopen(path, "r");
	if (!file)
		fail_msg("no manual page %s", path);
	return file;
}

/* The options of a page are its `.It Fl` lines. */
static void add_manual(struct list *list, const char *name)
{
	FILE *file = open_manual(name, "1");
	char line[1024];

	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, ".It Fl ", 7))
			continue;
		for (char *at = strstr(line, "Fl "); at; at = strstr(at + 1, "Fl ")) {
			const char *option = at + 3;

			add(list, "-", option, strcspn(option, " \n"));
		}
	}
	fclose(file);
}

static void assert_within(const struct list *some, const struct list *all, const char *what,
			  const char *page)
{
	for (size_t i = 0; i < some->n; i++) {
		if (!has(all, some->names[i]))
			fail_msg("%s: %s %s", page, some->names[i], what);
	}
}

static void test_commands(void **state)
{
	for (size_t i = 0; commands[i]; i++) {
		struct list table = { .n = 0 }, manual = { .n = 0 };
		char page[128];

		snprintf(page, sizeof(page), "allocprof-%s", commands[i]->name);
		add_table(&table, commands[i]->options);
		add_table(&table, options_common);
		add_manual(&manual, page);
		assert_within(&table, &manual, "is not in the manual page", page);
		assert_within(&manual, &table, "is no option of the command", page);
	}
}

static void test_main_page_names_every_command(void **state)
{
	for (size_t i = 0; commands[i]; i++) {
		FILE *file = open_manual("allocprof", "1");
		char line[1024], wanted[128], reference[128];
		int found = 0, referred = 0;

		snprintf(wanted, sizeof(wanted), ".It Cm %s\n", commands[i]->name);
		snprintf(reference, sizeof(reference), ".Xr allocprof-%s 1 ,\n", commands[i]->name);
		while (fgets(line, sizeof(line), file)) {
			found |= !strcmp(line, wanted);
			/* Each section ends what was seen in another. */
			referred &= !!strncmp(line, ".Sh ", 4);
			referred |= !strcmp(line, reference);
		}
		fclose(file);
		if (!found)
			fail_msg("allocprof.1 has no '%s' under COMMANDS", commands[i]->name);
		if (!referred)
			fail_msg("allocprof.1 has no allocprof-%s(1) under SEE ALSO",
				 commands[i]->name);
	}
}

/* Pages say of each entry of the ledger what it means, in fewer words than the manual. */
static void test_entries_of_the_ledger_have_meanings(void **state)
{
	FILE *file = open_manual("allocprof-data", "5");
	char line[1024];
	int inside = 0, found = 0;

	while (fgets(line, sizeof(line), file) && strncmp(line, ".It Cm modules ", 15)) {
		inside |= !strncmp(line, ".It Cm ledger ", 14);
		if (!inside || strncmp(line, ".It Cm ", 7) || strstr(line, " Ns "))
			continue;
		for (char *name = strtok(line + 7, " ,\n"); name; name = strtok(NULL, " ,\n")) {
			if (!reason__ledger_meaning(name))
				fail_msg("nothing says what '%s' means", name);
			found++;
		}
	}
	fclose(file);
	assert_true(found > 20);
	assert_string_equal(reason__ledger_meaning("lost_ring_full"),
			    reason__lost(AP_LOST_RING_FULL)->sentence);
	assert_null(reason__ledger_meaning("lost_"));
	assert_null(reason__ledger_meaning("of a later version"));
}

/* The page has the columns and functions of expressions, in their order, and no others. */
static void assert_listed(const char *macro, const char *const *names)
{
	FILE *file = open_manual("allocprof-where", "7");
	char line[1024], name[64];

	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, macro, strlen(macro)))
			continue;
		assert_int_equal(sscanf(line + strlen(macro), "%63s", name), 1);
		if (!*names || strcmp(*names, name))
			fail_msg("allocprof-where.7 has '%s' where '%s' is expected", name,
				 *names ?: "the end");
		names++;
	}
	fclose(file);
	if (*names)
		fail_msg("allocprof-where.7 lacks '%s'", *names);
}

static void test_names_of_expressions(void **state)
{
	assert_listed(".It Va ", where_columns);
	assert_listed(".It Fn ", where_functions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_main_page_names_every_command),
		cmocka_unit_test(test_entries_of_the_ledger_have_meanings),
		cmocka_unit_test(test_names_of_expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
