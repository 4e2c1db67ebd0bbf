// SPDX-License-Identifier: GPL-3.0-or-later
/* What `allocprof query --schema` says of tables and columns is what allocprof-data(5) says. */
#include "unit.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_file_query.h"

#define MAX_TEXT 4096

/* The letters, digits and underscores of @text, without its macros if it is a line of a manual page. */
static void add_letters(char *letters, const char *text)
{
	bool is_macro_line = *text == '.';

	text += is_macro_line;
	while (*text) {
		size_t size = strcspn(text, " \n");
		bool is_macro = is_macro_line && size < 4 && strchr(" .", text[-1]) &&
				isupper((unsigned char)*text) && islower((unsigned char)text[1]);

		for (size_t i = 0; i < size && !is_macro; i++)
			if (isalnum((unsigned char)text[i]) || text[i] == '_')
				strncat(letters, &text[i], 1);
		text += size;
		text += strspn(text, " \n");
	}
}

struct entry {
	char title[MAX_TEXT], about[MAX_TEXT]; /* letters */
};

/* Reads the entry of @table: its line of name and columns, and the text below up to a list. */
static bool find_entry(const struct data_table *table, struct entry *entry)
{
	char path[4096], line[1024] = " ", name[128];
	bool within = false, is_title = false, is_view = false, found = false;
	int depth = 0;
	FILE *page;

	snprintf(path, sizeof(path), "%s/allocprof-data.5", getenv("ALLOCPROF_MAN"));
	page = fopen(path, "r");
	assert_non_null(page);
	*entry = (struct entry){ 0 };
	while (fgets(line + 1, sizeof(line) - 1, page)) {
		char *at = line + 1;

		is_view |= !strcmp(at, ".Ss Views\n");
		depth += !strncmp(at, ".Bl", 3);
		depth -= !strncmp(at, ".El", 3);
		if (depth == 2)
			within = false;
		if (depth != 1 || !strncmp(at, ".Bl", 3) || !strncmp(at, ".El", 3))
			continue;
		if (!strncmp(at, ".It ", 4)) {
			sscanf(strstr(at, "Cm ") + 3, "%127s", name);
			within = is_view == !!table->view && !strcmp(name, table->name);
			found |= within;
			is_title = strstr(at, "Xo") != NULL;
			if (within)
				add_letters(entry->title, at);
		} else if (within) {
			add_letters(is_title ? entry->title : entry->about, at);
			is_title &= strcmp(at, ".Xc\n") != 0;
		}
	}
	fclose(page);
	return found;
}

static void test_tables_and_columns_are_those_of_the_manual(void **state)
{
	for (const struct data_table *table = data_tables; table->name; table++) {
		char title[MAX_TEXT] = "", about[MAX_TEXT] = "";
		struct entry entry;
		char *columns;

		if (!find_entry(table, &entry))
			fail_msg("allocprof-data(5) has no %s", table->name);
		assert_int_equal(data_table__columns(table, &columns), 0);
		add_letters(title, table->name);
		add_letters(title, columns);
		free(columns);
		add_letters(about, table->about);
		assert_string_equal(title, entry.title);
		assert_string_equal(about, entry.about);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_and_columns_are_those_of_the_manual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
