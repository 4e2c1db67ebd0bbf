// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol_table.h"
#include "symbols.h"

int addresses_test_outer(int x);

static inline __attribute__((always_inline)) int addresses_test_inner(int x)
{
	return x * 7 + (x >> 3);
}

/* Something of a known shape in this executable. */
__attribute__((noinline)) int addresses_test_outer(int x)
{
	asm volatile("" : "+r"(x));
	x = addresses_test_inner(x);
	asm volatile("" : "+r"(x));
	return x;
}

extern const char __ehdr_start[];

/* This test is a PIE, whose first segment is linked at 0. */
static __u64 target_vaddr(void)
{
	return (const char *)addresses_test_outer - __ehdr_start;
}

struct found {
	size_t n_addresses;
	char last_symbol[256];
	size_t n_lines; /* of the last address */
	bool has_inner;
};

static int take(void *context, const struct symbols_query *query, const struct symbols_line *lines,
		size_t n_lines)
{
	struct found *found = context;
	size_t sum = 0;

	found->n_addresses++;
	found->n_lines = n_lines;
	for (size_t i = 0; i < n_lines; i++) {
		assert_int_equal(lines[i].inlined, i + 1 < n_lines);
		/* All of it can be read. */
		sum += lines[i].symbol ? strlen(lines[i].symbol) : 0;
		sum += lines[i].file ? strlen(lines[i].file) : 0;
		found->has_inner |=
			lines[i].symbol && !strcmp(lines[i].symbol, "addresses_test_inner");
	}
	snprintf(found->last_symbol, sizeof(found->last_symbol), "%s",
		 lines[n_lines - 1].symbol ? lines[n_lines - 1].symbol : "");
	return sum == SIZE_MAX ? -1 : 0;
}

static struct found look_up(int fd, __u64 start, size_t n, __u64 step, char text[2048])
{
	struct symbols *symbols = symbols__new(NULL);
	struct symbols_query *queries = calloc(n, sizeof(*queries));
	struct found found = { 0 };

	assert_int_equal(symbols__add_module(symbols, 1, fd, "/nowhere/test", ""), 0);
	for (size_t i = 0; i < n; i++)
		queries[i] = (struct symbols_query){ 1, start + i * step };
	assert_int_equal(symbols__look_up(symbols, queries, n, take, &found), 0);
	if (text)
		snprintf(text, 2048, "%s", symbols__module_text(symbols, 1));
	free(queries);
	symbols__free(symbols);
	return found;
}

static char *read_self(off_t *size)
{
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *bytes;

	assert_int_equal(fstat(exe, &st), 0);
	bytes = malloc(st.st_size);
	assert_int_equal(read(exe, bytes, st.st_size), st.st_size);
	close(exe);
	*size = st.st_size;
	return bytes;
}

static void test_inlined(void **state)
{
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_string_equal(look_up(exe, target_vaddr(), 1, 1, NULL).last_symbol,
			    "addresses_test_outer");
	/* Checks of a sanitizer may come first. */
	assert_true(look_up(exe, target_vaddr(), 256, 1, NULL).has_inner);
	close(exe);
}

struct part {
	off_t offset, size;
};

/* Where the bytes of the sections are that are read. */
static size_t find_parts(const char *bytes, off_t size, struct part *parts, size_t n)
{
	static const char *const names[] = { ".debug_info",	".debug_abbrev",
					     ".debug_line",	".debug_str",
					     ".debug_line_str", ".debug_rnglists",
					     ".debug_ranges",	".debug_addr",
					     ".symtab",		".debug_str_offsets" };
	Elf *elf;
	Elf_Scn *section = NULL;
	size_t strings, found = 0;
	GElf_Shdr header;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)bytes, size);
	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((section = elf_nextscn(elf, section))) {
		const char *name;

		gelf_getshdr(section, &header);
		name = elf_strptr(elf, strings, header.sh_name);
		for (size_t i = 0; i < ARRAY_SIZE(names) && found < n; i++)
			if (!strcmp(name, names[i]) && header.sh_size)
				parts[found++] = (struct part){ header.sh_offset, header.sh_size };
	}
	elf_end(elf);
	/* The headers themselves. */
	if (found < n) {
		Elf64_Ehdr elf_header;

		memcpy(&elf_header, bytes, sizeof(elf_header));
		parts[found++] = (struct part){ elf_header.e_shoff,
						elf_header.e_shnum * elf_header.e_shentsize };
	}
	return found;
}

/* No byte of a debug file may bring the reader down, or make it wait. */
static void test_damaged_dwarf(void **state)
{
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	struct part parts[16];
	unsigned int random = 1;
	off_t size;
	char *bytes = read_self(&size);
	size_t n_parts = find_parts(bytes, size, parts, ARRAY_SIZE(parts));

	assert_true(n_parts > 4);
	for (int i = 0; i < 360; i++) {
		const struct part *part = &parts[i % n_parts];
		int n_flips = 1 + i % 5;
		off_t at[5];
		char was[5];

		for (int j = 0; j < n_flips; j++) {
			random = random * 1103515245 + 12345;
			/* Half of them are near the beginning, where the headers are. */
			at[j] = part->offset +
				(random >> 8) % (j % 2 && part->size > 256 ? 256 : part->size);
			was[j] = bytes[at[j]];
			random = random * 1103515245 + 12345;
			bytes[at[j]] = random >> 16;
		}
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, size, 0), size);
		look_up(fd, target_vaddr() & ~0xfffULL, 64, 97, NULL);
		for (int j = n_flips; j--;)
			bytes[at[j]] = was[j];
	}
	for (int i = 0; i < 60; i++) {
		assert_int_equal(pwrite(fd, bytes, size, 0), size);
		assert_int_equal(ftruncate(fd, size / 61 * (i + 1)), 0);
		look_up(fd, target_vaddr(), 16, 31, NULL);
	}
	free(bytes);
	close(fd);
}

/* A file of one .text at 0x1000 and the DWARF given. */
static int make_file(const void *abbrev, size_t abbrev_size, const void *info, size_t info_size)
{
	static const char section_names[] = "\0.text\0.debug_abbrev\0.debug_info\0.shstrtab";
	static const char code[4096];
	const struct {
		const char *name;
		const void *bytes;
		size_t size;
		Elf64_Xword flags;
	} sections[] = {
		{ ".text", code, sizeof(code), SHF_ALLOC | SHF_EXECINSTR },
		{ ".debug_abbrev", abbrev, abbrev_size, 0 },
		{ ".debug_info", info, info_size, 0 },
		{ ".shstrtab", section_names, sizeof(section_names), 0 },
	};
	Elf64_Shdr headers[5] = { { 0 } };
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5,
		.e_shstrndx = 4,
	};
	int fd = memfd_create("made", MFD_CLOEXEC);
	off_t at = 4096;

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		size_t name = 0;

		while (strcmp(section_names + name, sections[i].name))
			name++;
		headers[i + 1] = (Elf64_Shdr){
			.sh_name = name,
			.sh_type = i == 3 ? SHT_STRTAB : SHT_PROGBITS,
			.sh_flags = sections[i].flags,
			.sh_addr = i ? 0 : 0x1000,
			.sh_offset = at,
			.sh_size = sections[i].size,
			.sh_addralign = 1,
		};
		assert_int_equal(pwrite(fd, sections[i].bytes, sections[i].size, at),
				 sections[i].size);
		at += sections[i].size;
	}
	header.e_shoff = at;
	assert_int_equal(pwrite(fd, headers, sizeof(headers), at), sizeof(headers));
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	return fd;
}

struct bytes {
	unsigned char *at;
	size_t size, room;
};

static void put(struct bytes *bytes, const void *what, size_t size)
{
	while (bytes->size + size > bytes->room) {
		bytes->room = bytes->room ? 2 * bytes->room : 4096;
		bytes->at = realloc(bytes->at, bytes->room);
	}
	memcpy(bytes->at + bytes->size, what, size);
	bytes->size += size;
}

static void put_byte(struct bytes *bytes, unsigned char byte)
{
	put(bytes, &byte, 1);
}

static void put_u32(struct bytes *bytes, __u32 value)
{
	put(bytes, &value, 4);
}

enum {
	UNIT = 1,	/* low and high pc */
	LINKED,		/* a function with low and high pc that refers to another DIE */
	BLOCK,		/* with children and nothing else */
	SPACE,		/* a namespace with children, named "s" */
	FUNCTION,	/* low and high pc, children, named "f" */
	SIBLING,	/* a block that says where the next one is */
	WITHOUT_RANGES, /* a unit that does not say where it is */
	INLINED,	/* low and high pc, children */
};

static const unsigned char abbrev[] = {
	UNIT,
	DW_TAG_compile_unit,
	1,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_language,
	DW_FORM_data1,
	0,
	0,
	LINKED,
	DW_TAG_subprogram,
	0,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_abstract_origin,
	DW_FORM_ref4,
	DW_AT_specification,
	DW_FORM_ref4,
	0,
	0,
	BLOCK,
	DW_TAG_lexical_block,
	1,
	0,
	0,
	SPACE,
	DW_TAG_namespace,
	1,
	DW_AT_name,
	DW_FORM_string,
	0,
	0,
	FUNCTION,
	DW_TAG_subprogram,
	1,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	DW_AT_name,
	DW_FORM_string,
	0,
	0,
	SIBLING,
	DW_TAG_namespace,
	1,
	DW_AT_sibling,
	DW_FORM_ref4,
	0,
	0,
	WITHOUT_RANGES,
	DW_TAG_compile_unit,
	1,
	DW_AT_language,
	DW_FORM_data1,
	0,
	0,
	INLINED,
	DW_TAG_inlined_subroutine,
	1,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data4,
	0,
	0,
	0,
};

static void put_position(struct bytes *bytes, int code)
{
	__u64 low = 0x1000;

	put_byte(bytes, code);
	put(bytes, &low, 8);
	put_u32(bytes, 0x1000);
}

/* Begins a unit of DWARF 4; its DIE is at 11. */
static void begin_unit(struct bytes *bytes, int code)
{
	static const unsigned char header[] = { 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8 };

	put(bytes, header, sizeof(header));
	if (code == UNIT)
		put_position(bytes, code);
	else
		put_byte(bytes, code);
	put_byte(bytes, DW_LANG_C_plus_plus);
}

static void end_unit(struct bytes *bytes, size_t start)
{
	__u32 size = bytes->size - start - 4;

	memcpy(bytes->at + start, &size, 4);
}

static void put_function(struct bytes *bytes)
{
	put_position(bytes, FUNCTION);
	put(bytes, "f", 2);
}

static struct found look_up_made(struct bytes *bytes, size_t n, char text[2048])
{
	int fd = make_file(abbrev, sizeof(abbrev), bytes->at, bytes->size);
	struct found found = look_up(fd, 0x1000, n, 1, text);

	close(fd);
	free(bytes->at);
	return found;
}

static void test_made(void **state)
{
	struct bytes bytes = { 0 };
	struct found found;
	char text[2048];

	begin_unit(&bytes, UNIT);
	put_byte(&bytes, SPACE);
	put(&bytes, "s", 2);
	put_function(&bytes);
	put(&bytes, "\0\0", 3);
	end_unit(&bytes, 0);
	found = look_up_made(&bytes, 1, text);
	assert_string_equal(found.last_symbol, "s::f");
	assert_string_equal(text, "its DWARF");
}

/* A unit without ranges is looked through for what no other has. */
static void test_unit_without_ranges(void **state)
{
	struct bytes bytes = { 0 };
	struct found found;

	begin_unit(&bytes, WITHOUT_RANGES);
	put_function(&bytes);
	put(&bytes, "\0", 2);
	end_unit(&bytes, 0);
	found = look_up_made(&bytes, 3, NULL);
	assert_int_equal(found.n_addresses, 3);
	assert_string_equal(found.last_symbol, "f");
}

static void test_origins_in_a_circle(void **state)
{
	struct bytes bytes = { 0 };
	size_t first, second;

	begin_unit(&bytes, UNIT);
	first = bytes.size;
	second = first + 1 + 8 + 4 + 4 + 4;
	for (int i = 0; i < 2; i++) {
		put_position(&bytes, LINKED);
		put_u32(&bytes, i ? first : second);
		put_u32(&bytes, i ? second : first);
	}
	put_byte(&bytes, 0);
	end_unit(&bytes, 0);
	assert_int_equal(look_up_made(&bytes, 1, NULL).n_addresses, 0);
}

static void test_deep_blocks(void **state)
{
	static const int codes[] = { BLOCK, SPACE, INLINED, FUNCTION };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		struct bytes bytes = { 0 };
		const int n = 20000;

		begin_unit(&bytes, UNIT);
		put_function(&bytes);
		for (int j = 0; j < n; j++) {
			if (codes[i] == INLINED)
				put_position(&bytes, codes[i]);
			else if (codes[i] == FUNCTION)
				put_function(&bytes);
			else
				put_byte(&bytes, codes[i]);
			if (codes[i] == SPACE)
				put(&bytes, "s", 2);
		}
		for (int j = 0; j < n + 2; j++)
			put_byte(&bytes, 0);
		end_unit(&bytes, 0);
		/* What is too deep is not looked at. */
		assert_string_equal(look_up_made(&bytes, 8, NULL).last_symbol, "f");
	}
}

/* A DIE that says that it is its own neighbour, and one whose neighbour was before it. */
static void test_siblings_in_a_circle(void **state)
{
	for (int back = 0; back < 2; back++) {
		struct bytes bytes = { 0 };
		size_t first;

		begin_unit(&bytes, UNIT);
		first = bytes.size;
		for (int i = 0; i < 2; i++) {
			size_t at = bytes.size;

			put_byte(&bytes, SIBLING);
			put_u32(&bytes, back ? first : at);
			put_byte(&bytes, 0);
		}
		put_function(&bytes);
		put(&bytes, "\0", 2);
		end_unit(&bytes, 0);
		look_up_made(&bytes, 8, NULL);
	}
}

/* Units without number that all claim all of the code. */
static void test_claims(void **state)
{
	struct bytes bytes = { 0 };
	char text[2048];

	for (int i = 0; i < 50000; i++) {
		size_t start = bytes.size;

		begin_unit(&bytes, UNIT);
		put_byte(&bytes, 0);
		end_unit(&bytes, start);
	}
	look_up_made(&bytes, 2000, text);
	assert_non_null(strstr(text, "damaged in part"));
}

/* What is cut off before its last chunk has no size. */
static void test_unpacked_size(void **state)
{
	/* printf 'hello hello hello hello\n' | xz -c */
	static const unsigned char packed[] = {
		0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46,
		0x02, 0x00, 0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3,
		0xe0, 0x00, 0x17, 0x00, 0x0c, 0x5d, 0x00, 0x34, 0x19, 0x49, 0xee, 0x8d,
		0xe9, 0x56, 0x0a, 0xc1, 0x21, 0xb0, 0x00, 0x00, 0x6c, 0x14, 0xed, 0x1b,
		0x3b, 0x68, 0xbb, 0x91, 0x00, 0x01, 0x28, 0x18, 0xd7, 0x83, 0xb7, 0x6e,
		0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
	};
	unsigned char bytes[sizeof(packed)];
	__u64 size = 0;

	memcpy(bytes, packed, sizeof(packed));
	assert_true(mini_debug__unpacked_size(bytes, sizeof(packed), &size));
	assert_int_equal(size, 24);
	/* The chunks' end is at 43. */
	for (size_t i = 0; i < 44; i++)
		assert_false(mini_debug__unpacked_size(bytes, i, &size));
	bytes[0] = 0;
	assert_false(mini_debug__unpacked_size(bytes, sizeof(bytes), &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_unit_without_ranges),
		cmocka_unit_test(test_origins_in_a_circle),
		cmocka_unit_test(test_deep_blocks),
		cmocka_unit_test(test_siblings_in_a_circle),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_unpacked_size),
		cmocka_unit_test(test_damaged_dwarf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
