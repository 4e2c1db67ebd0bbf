// SPDX-License-Identifier: GPL-3.0-or-later
/* Data files: bytes, pages and values of SQLite's tables are mutated; what is accepted is printed by the commands that read
 * such files. */
#include <fcntl.h>
#include <json-c/json.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "command.h"
#include "fuzz.h"

static char directory[] = "/tmp/allocprof-fuzz.XXXXXX";
static char input[64], output[64];

static void make_directory(void)
{
	FUZZ_CHECK(mkdtemp(directory));
	snprintf(input, sizeof(input), "%s/in.data", directory);
	snprintf(output, sizeof(output), "%s/out", directory);
	setenv("NO_COLOR", "1", 1);
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
}

static void remove_directory(void)
{
	unlink(input);
	unlink(output);
	rmdir(directory);
}

static void write_input(const uint8_t *data, size_t size)
{
	int fd = open(input, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

/* To be freed; NULL if nothing was written. */
static char *read_output(size_t *size)
{
	int fd = open(output, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text;

	if (fd < 0)
		return NULL;
	FUZZ_CHECK(!fstat(fd, &st));
	text = malloc(st.st_size + 1);
	FUZZ_CHECK(text && read(fd, text, st.st_size) == st.st_size);
	text[st.st_size] = '\0';
	*size = st.st_size;
	close(fd);
	return text;
}

static void check_text(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = text[i];

		FUZZ_CHECK((c >= ' ' || c == '\n') && c != 0x7f);
		/* C1 controls in UTF-8. */
		FUZZ_CHECK(c != 0xc2 || (unsigned char)text[i + 1] >= 0xa0);
	}
}

static void check_json(const char *text, size_t size)
{
	struct json_tokener *tokener = json_tokener_new_ex(64);
	struct json_object *object;

	json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, size);
	FUZZ_CHECK(object || !size);
	json_object_put(object);
	json_tokener_free(tokener);
}

static void check_folded(const char *text, size_t size)
{
	check_text(text, size);
	while (*text) {
		const char *end = strchr(text, '\n'), *space;

		FUZZ_CHECK(end);
		space = memrchr(text, ' ', end - text);
		FUZZ_CHECK(space && space + 1 + strspn(space + 1, "0123456789") == end);
		text = end + 1;
	}
}

static void check_nothing(const char *text, size_t size)
{
}

static const struct reading {
	const struct command *command;
	void (*check)(const char *text, size_t size);
	const char *words[8];
} readings[] = {
	{ &cmd_report, check_text, { "--top=0" } },
	{ &cmd_report, check_text, { "--tree", "--min-share=0%", "--lines" } },
	{ &cmd_report, check_json, { "--json", "--top=0" } },
	{ &cmd_report, check_text, { "--by=process,thread", "--demangle=full", "--run=all" } },
	{ &cmd_report, check_text, { "--leaks", "--histogram", "--sort=oldest", "--raw-stacks" } },
	{ &cmd_folded, check_folded, { NULL } },
	{ &cmd_folded, check_folded, { "--cost=peak", "--addresses", "--by=process,thread" } },
	{ &cmd_export, check_json, { "--format=json" } },
	{ &cmd_export, check_nothing, { "--format=pprof" } },
	{ &cmd_export, check_nothing, { "--format=otlp" } },
	{ &cmd_export, check_json, { "--format=speedscope" } },
	{ &cmd_export, check_json, { "--format=firefox" } },
	{ &cmd_export, check_json, { "--format=dhat" } },
	{ &cmd_flamegraph, check_nothing, { NULL } },
	{ &cmd_html, check_nothing, { NULL } },
	{ &cmd_graph, check_json, { "--json" } },
};

static void read_as(const struct reading *reading)
{
	char *argv[16] = { (char *)reading->command->name, (char *)"-i", input, (char *)"-o",
			   output };
	size_t n = 5, size = 0;
	char *text;

	for (size_t i = 0; reading->words[i]; i++)
		argv[n++] = (char *)reading->words[i];
	unlink(output);
	if (reading->command->run(argv))
		return;
	text = read_output(&size);
	if (text)
		reading->check(text, size);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	__u32 hash = size;

	if (!input[0]) {
		make_directory();
		atexit(remove_directory);
	}
	/* Header of SQLite's. */
	if (size < 512)
		return 0;
	for (size_t i = 0; i < size; i += 7)
		hash = (hash ^ data[i]) * 16777619u;
	write_input(data, size);
	read_as(&readings[(hash >> 16) % ARRAY_SIZE(readings)]);
	return 0;
}

static __u32 state;

static __u32 below(__u32 n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % n;
}

/* A table, and one of its columns, by the file's own schema. */
static bool choose_column(sqlite3 *db, char *table, char *column, size_t size)
{
	sqlite3_stmt *statement;
	bool found = false;
	char sql[256];

	snprintf(sql, sizeof(sql),
		 "SELECT s.name, c.name FROM sqlite_schema s, pragma_table_info(s.name) c "
		 "WHERE s.type = 'table' LIMIT 1 OFFSET %u",
		 below(90));
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW) {
		snprintf(table, size, "%s", sqlite3_column_text(statement, 0));
		snprintf(column, size, "%s", sqlite3_column_text(statement, 1));
		found = true;
	}
	sqlite3_finalize(statement);
	return found;
}

static void change_rows(sqlite3 *db)
{
	static const char *const values[] = {
		"0",
		"1",
		"-1",
		"2",
		"%2$s + 1",
		"%2$s * 1000",
		"%2$s - 1",
		"9223372036854775807",
		"4294967296",
		"NULL",
		"''",
		"'x'",
		"'1e5'",
		"1.5",
		"x'00'",
		"zeroblob(5000)",
		"%2$s || char(27, 91)",
		"%2$s || ' ;'",
		"char(10) || %2$s",
		"'/' || %2$s",
		"abs(random() %% 20)",
		"hex(%2$s)",
		"char(0x85, 0x202e)",
		"9e999",
	};
	char table[64], column[64], value[128], sql[512];

	if (!choose_column(db, table, column, sizeof(table)))
		return;
	snprintf(value, sizeof(value), values[below(ARRAY_SIZE(values))], table, column);
	if (!below(6))
		snprintf(sql, sizeof(sql),
			 "DELETE FROM %s WHERE %s >= (SELECT %s FROM %s LIMIT 1 OFFSET %u)", table,
			 column, column, table, below(6));
	else
		snprintf(
			sql, sizeof(sql),
			"UPDATE OR REPLACE %s SET %s = %s WHERE %s = (SELECT %s FROM %s LIMIT 1 OFFSET %u)",
			table, column, value, column, column, table, below(12));
	sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static size_t change_tables(uint8_t *data, size_t size, size_t max_size)
{
	unsigned char *copy = sqlite3_malloc64(size), *changed;
	sqlite3_int64 changed_size;
	sqlite3 *db;

	FUZZ_CHECK(copy && sqlite3_open(":memory:", &db) == SQLITE_OK);
	memcpy(copy, data, size);
	if (sqlite3_deserialize(db, "main", copy, size, size,
				SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) ==
	    SQLITE_OK) {
		for (int n = 1 + below(4); n; n--)
			change_rows(db);
		changed = sqlite3_serialize(db, "main", &changed_size, 0);
		if (changed && changed_size > 0 && (size_t)changed_size <= max_size) {
			memcpy(data, changed, changed_size);
			size = changed_size;
		}
		sqlite3_free(changed);
	}
	sqlite3_close(db);
	return size;
}

/* Headers of pages, and pointers to their cells. */
static size_t change_page(uint8_t *data, size_t size)
{
	size_t page_size = (size_t)data[16] << 8 | data[17], page;

	if (page_size < 512 || page_size > size)
		page_size = 512;
	page = below(size / page_size) * page_size;
	for (int n = 1 + below(4); n; n--)
		data[page + below(below(2) ? 64 : page_size)] = below(256);
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	state = seed | 1;
	below(2);
	if (size < 512)
		return LLVMFuzzerMutate(data, size, max_size);
	switch (below(8)) {
	case 0:
		return LLVMFuzzerMutate(data, size, max_size);
	case 1:
		return change_page(data, size);
	default:
		return change_tables(data, size, max_size);
	}
}
