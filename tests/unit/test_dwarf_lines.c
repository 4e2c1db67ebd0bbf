// SPDX-License-Identifier: GPL-3.0-or-later
/* Headers of line tables, before libdw reads them. Each case spoils one thing of a header that is sound. */
#include "unit.h"

#include <dwarf.h>
#include <string.h>

#include "dwarf_internal.h"

static char line_strings[] = "/src\0main.c";
static char strings[] = "string";

struct table {
	unsigned char bytes[256];
	size_t n, length_at, header_length_at;
	bool is_64;
};

static void put(struct table *table, const void *bytes, size_t n)
{
	assert_true(table->n + n <= sizeof(table->bytes));
	memcpy(table->bytes + table->n, bytes, n);
	table->n += n;
}

static void put_byte(struct table *table, unsigned char byte)
{
	put(table, &byte, 1);
}

static void put_offset(struct table *table, __u64 offset)
{
	put(table, &offset, table->is_64 ? 8 : 4);
}

/* To the first entry. Lengths come when the table ends. */
static void begin(struct table *table, __u16 version, bool is_64)
{
	static const unsigned char opcode_bytes[12] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

	*table = (struct table){ .is_64 = is_64 };
	if (is_64)
		put(table, &(__u32){ 0xffffffff }, 4);
	table->length_at = table->n;
	put_offset(table, 0);
	put(table, &version, 2);
	if (version >= 5)
		put(table, (unsigned char[]){ 8, 0 }, 2);
	table->header_length_at = table->n;
	put_offset(table, 0);
	put_byte(table, 1);
	if (version >= 4)
		put_byte(table, 1);
	put(table, (unsigned char[]){ 1, 0xfb, 14, sizeof(opcode_bytes) + 1 }, 4);
	put(table, opcode_bytes, sizeof(opcode_bytes));
}

static void end(struct table *table)
{
	size_t bytes = table->is_64 ? 8 : 4;
	__u64 header = table->n - table->header_length_at - bytes, all;

	memcpy(table->bytes + table->header_length_at, &header, bytes);
	/* A program of one instruction. */
	put_byte(table, DW_LNS_copy);
	all = table->n - table->length_at - bytes;
	memcpy(table->bytes + table->length_at, &all, bytes);
}

static bool is_sound(const struct table *table)
{
	const struct dwarf_sections sections = { {
		[DWARF_STRINGS] = &(Elf_Data){ .d_buf = strings, .d_size = sizeof(strings) },
		[DWARF_LINE_STRINGS] =
			&(Elf_Data){ .d_buf = line_strings, .d_size = sizeof(line_strings) },
		[DWARF_LINES] = &(Elf_Data){ .d_buf = (void *)table->bytes, .d_size = table->n },
	} };
	__u64 size;

	if (!dwarf_lines__are_sound(&sections, 0, &size))
		return false;
	assert_int_equal(size, table->n - table->length_at - (table->is_64 ? 8 : 4));
	return true;
}

/* Puts the entries that gcc and clang write: paths, and of files directories, MD5 sums and, by clang, sources. */
static void put_entries(struct table *table, unsigned char form, __u64 offset)
{
	put(table, (unsigned char[]){ 1, DW_LNCT_path, form, 2 }, 4);
	put_offset(table, 0);
	put_offset(table, offset);
	put(table,
	    (unsigned char[]){ 4, DW_LNCT_path, DW_FORM_line_strp, DW_LNCT_directory_index,
			       DW_FORM_udata, DW_LNCT_MD5, DW_FORM_data16, 0x81, 0x40,
			       DW_FORM_string, 1 },
	    11);
	put_offset(table, 5);
	put_byte(table, 0);
	put(table, "0123456789abcdef", 16);
	put(table, "int", 4);
}

static void test_version_5(void **state)
{
	struct table table;

	for (int is_64 = 0; is_64 < 2; is_64++) {
		begin(&table, 5, is_64);
		put_entries(&table, DW_FORM_line_strp, 5);
		end(&table);
		assert_true(is_sound(&table));
	}
}

static void test_old_versions(void **state)
{
	struct table table;

	for (__u16 version = 2; version <= 4; version++) {
		begin(&table, version, false);
		put(&table, "/src\0/usr/include\0", sizeof("/src\0/usr/include\0"));
		put(&table, "main.c\0\1\0\0stdio.h\0\2\0\0",
		    sizeof("main.c\0\1\0\0stdio.h\0\2\0\0"));
		end(&table);
		assert_true(is_sound(&table));
		/* The last name goes on beyond the header. */
		table.bytes[table.header_length_at] -= 6;
		assert_false(is_sound(&table));
	}
}

static void test_strings_end_in_their_sections(void **state)
{
	static const struct {
		unsigned char form;
		__u64 offset;
		bool is_sound;
	} cases[] = {
		{ DW_FORM_line_strp, sizeof(line_strings) - 1, true },
		{ DW_FORM_line_strp, sizeof(line_strings), false },
		{ DW_FORM_line_strp, UINT32_MAX, false },
		{ DW_FORM_strp, sizeof(strings) - 1, true },
		{ DW_FORM_strp, sizeof(strings), false },
		/* No compiler uses it here, and libdw reads the end of the section. */
		{ DW_FORM_strx4, 0, false },
	};
	struct table table;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(&table, 5, false);
		put_entries(&table, cases[i].form, cases[i].offset);
		end(&table);
		assert_int_equal(is_sound(&table), cases[i].is_sound);
	}
}

static void test_no_section_of_strings(void **state)
{
	struct dwarf_sections sections = { 0 };
	struct table table;
	__u64 size = 1;

	begin(&table, 5, false);
	put_entries(&table, DW_FORM_line_strp, 0);
	end(&table);
	assert_false(dwarf_lines__are_sound(&sections, 0, &size));
	sections.data[DWARF_LINES] = &(Elf_Data){ .d_buf = table.bytes, .d_size = table.n };
	assert_false(dwarf_lines__are_sound(&sections, 0, &size));
	assert_int_equal(size, 1);
}

/* Wherever the section ends, and whatever the header's lengths are. */
static void test_cut_off(void **state)
{
	struct table table;

	for (__u16 version = 4; version <= 5; version++) {
		begin(&table, version, false);
		if (version == 5)
			put_entries(&table, DW_FORM_line_strp, 5);
		else
			put(&table, "/src\0\0main.c\0\1\0\0", sizeof("/src\0\0main.c\0\1\0\0"));
		end(&table);
		assert_true(is_sound(&table));
		while (table.n--)
			assert_false(is_sound(&table));
	}
}

static void test_lengths(void **state)
{
	struct table table, spoilt;

	begin(&table, 5, false);
	put_entries(&table, DW_FORM_line_strp, 5);
	end(&table);
	/* The header reaches the end of the table, and one byte beyond. */
	spoilt = table;
	spoilt.bytes[spoilt.header_length_at] += 1;
	assert_true(is_sound(&spoilt));
	spoilt.bytes[spoilt.header_length_at] += 1;
	assert_false(is_sound(&spoilt));
	/* The table ends behind the section. */
	spoilt = table;
	spoilt.bytes[spoilt.length_at] += 1;
	assert_false(is_sound(&spoilt));
	spoilt = table;
	memset(spoilt.bytes + spoilt.length_at, 0xff, 4);
	assert_false(is_sound(&spoilt));
}

static void test_versions_that_are_none(void **state)
{
	struct table table;

	for (__u16 version = 0; version < 8; version++) {
		begin(&table, version, false);
		if (version >= 5)
			put_entries(&table, DW_FORM_line_strp, 5);
		else
			put(&table, "\0", 2);
		end(&table);
		assert_int_equal(is_sound(&table), version >= 2 && version <= 5);
	}
}

/* A billion of entries of no bytes. */
static void test_entries_without_forms(void **state)
{
	struct table table;

	begin(&table, 5, false);
	put(&table, (unsigned char[]){ 0, 0xff, 0xff, 0xff, 0xff, 7 }, 6);
	put(&table, (unsigned char[]){ 0, 0 }, 2);
	end(&table);
	assert_false(is_sound(&table));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_5),
		cmocka_unit_test(test_old_versions),
		cmocka_unit_test(test_strings_end_in_their_sections),
		cmocka_unit_test(test_no_section_of_strings),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_versions_that_are_none),
		cmocka_unit_test(test_entries_without_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
