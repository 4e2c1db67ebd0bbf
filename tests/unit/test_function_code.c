// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "error.h"
#include "function_code.h"

/* Of a file as make_file() makes it. */
#define TEXT_OFFSET 0x1000
#define TEXT_VADDR  0x401000
#define TEXT_SIZE   0x8000
#define AT(address) ((address)-TEXT_VADDR + TEXT_OFFSET)
/* Where a symbol says that it is in no section of the file. */
#define NOWHERE (-1)

#ifdef __x86_64__
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

enum {
	SECTION_TEXT = 1,
	SECTION_SYMBOLS,
	SECTION_STRINGS,
	SECTION_NAMES,
	SECTION_LINK,
	SECTIONS,
};

struct symbol {
	const char *name;
	__u64 vaddr, size;
	int type;    /* 0: a function */
	int section; /* 0: .text */
};

/* A file in the making; what is odd about it is changed before it is written. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym *symbols;
	char *strings;
	size_t n_symbols, strings_size;
	unsigned char text[TEXT_SIZE];
	char link[64]; /* name of a debug file and its checksum */
	size_t link_size;
};

static const char section_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab\0.gnu_debuglink";

static Elf64_Shdr section(const char *name, __u32 type, __u64 offset, __u64 size)
{
	const char *at = memmem(section_names, sizeof(section_names), name, strlen(name) + 1);

	return (Elf64_Shdr){
		.sh_name = at - section_names,
		.sh_type = type,
		.sh_offset = offset,
		.sh_size = size,
		.sh_addralign = 1,
	};
}

static void lay_out(struct file *file)
{
	__u64 at = TEXT_OFFSET + TEXT_SIZE;
	Elf64_Shdr *s = file->sections;

	s[SECTION_TEXT] = section(".text", SHT_PROGBITS, TEXT_OFFSET, TEXT_SIZE);
	s[SECTION_TEXT].sh_addr = TEXT_VADDR;
	s[SECTION_TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s[SECTION_SYMBOLS] =
		section(".symtab", SHT_SYMTAB, at, file->n_symbols * sizeof(*file->symbols));
	s[SECTION_SYMBOLS].sh_link = SECTION_STRINGS;
	s[SECTION_SYMBOLS].sh_entsize = sizeof(*file->symbols);
	at += s[SECTION_SYMBOLS].sh_size;
	s[SECTION_STRINGS] = section(".strtab", SHT_STRTAB, at, file->strings_size);
	at += file->strings_size;
	s[SECTION_NAMES] = section(".shstrtab", SHT_STRTAB, at, sizeof(section_names));
	at += sizeof(section_names);
	s[SECTION_LINK] = section(".gnu_debuglink", SHT_PROGBITS, at, file->link_size);
	at += file->link_size;
	file->header.e_shoff = (at + 7) & ~7ULL;
}

static struct file *make_file(const struct symbol *symbols, size_t n)
{
	struct file *file = calloc(1, sizeof(*file));
	size_t size = 1;

	assert_non_null(file);
	file->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTION_NAMES,
	};
	file->segment = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = TEXT_OFFSET,
		.p_vaddr = TEXT_VADDR,
		.p_filesz = TEXT_SIZE,
		.p_memsz = TEXT_SIZE,
		.p_align = 0x1000,
	};
	/* Each byte an instruction that the kernel emulates. */
	memset(file->text, 0x90, TEXT_SIZE);
	for (size_t i = 0; i < n; i++)
		size += strlen(symbols[i].name) + 1;
	file->symbols = calloc(n + 1, sizeof(*file->symbols));
	file->strings = calloc(1, size);
	assert_true(file->symbols && file->strings);
	file->n_symbols = n + 1;
	file->strings_size = 1;
	for (size_t i = 0; i < n; i++) {
		const struct symbol *from = &symbols[i];
		Elf64_Sym *to = &file->symbols[i + 1];

		to->st_name = file->strings_size;
		to->st_info = ELF64_ST_INFO(STB_LOCAL, from->type ? from->type : STT_FUNC);
		to->st_value = from->vaddr;
		to->st_size = from->size;
		to->st_shndx = from->section == NOWHERE ? SHN_UNDEF
			       : from->section		? from->section
							: SECTION_TEXT;
		strcpy(file->strings + file->strings_size, from->name);
		file->strings_size += strlen(from->name) + 1;
	}
	lay_out(file);
	return file;
}

static void free_file(struct file *file)
{
	free(file->symbols);
	free(file->strings);
	free(file);
}

static void put(int fd, const void *bytes, size_t size, __u64 at)
{
	assert_int_equal(pwrite(fd, bytes, size, at), size);
}

static void write_file(const struct file *file, int fd)
{
	const Elf64_Shdr *s = file->sections;

	put(fd, &file->header, sizeof(file->header), 0);
	put(fd, &file->segment, sizeof(file->segment), sizeof(file->header));
	put(fd, file->text, TEXT_SIZE, TEXT_OFFSET);
	put(fd, file->symbols, file->n_symbols * sizeof(*file->symbols), TEXT_OFFSET + TEXT_SIZE);
	/* Where it was laid out, whatever its header says by now. */
	put(fd, file->strings, file->strings_size,
	    TEXT_OFFSET + TEXT_SIZE + file->n_symbols * sizeof(*file->symbols));
	put(fd, section_names, sizeof(section_names), s[SECTION_NAMES].sh_offset);
	put(fd, file->link, file->link_size, s[SECTION_LINK].sh_offset);
	put(fd, s, sizeof(file->sections), file->header.e_shoff);
}

static int find_in(const struct file *file, const char *name, struct function_code *out,
		   struct error *error)
{
	_cleanup_(close_fd) int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	write_file(file, fd);
	error->text[0] = '\0';
	return function_code__find(fd, "some/file", name, out, error);
}

/* Looks for @name among @symbols. */
static int find(const struct symbol *symbols, size_t n, const char *name, struct function_code *out,
		struct error *error)
{
	struct file *file = make_file(symbols, n);
	int err = find_in(file, name, out, error);

	free_file(file);
	return err;
}

#define FIND(symbols, name, out, error) find(symbols, ARRAY_SIZE(symbols), name, out, error)

static void assert_says(const struct error *error, const char *what)
{
	if (!strstr(error->text, what) || !strstr(error->text, "some/file") ||
	    strchr(error->text, '\n'))
		fail_msg("'%s' does not say '%s'", error->text, what);
}

static void assert_range(const struct function_code *code, __u64 vaddr, __u64 size)
{
	for (__u32 i = 0; i < code->within.n; i++)
		if (code->within.ranges[i].start == AT(vaddr) &&
		    code->within.ranges[i].size == size)
			return;
	fail_msg("no range of 0x%llx bytes at 0x%llx", size, vaddr);
}

static void assert_entries(const struct function_code *code, const __u64 *vaddrs, size_t n)
{
	assert_int_equal(code->n_entries, n);
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		for (size_t j = 0; j < n; j++)
			found |= code->entries[j] == AT(vaddrs[i]);
		if (!found)
			fail_msg("no entry at 0x%llx", vaddrs[i]);
	}
}

static void test_one(void **state)
{
	static const struct symbol symbols[] = {
		{ "before", 0x401000, 0x10, 0, 0 },
		{ "wanted@@VERSION_1", 0x401010, 0x20, 0, 0 },
		{ "unwanted", 0x401030, 0x20, 0, 0 },
	};
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(FIND(symbols, "wanted", &code, &error), 0);
	assert_int_equal(code.within.n, 1);
	assert_range(&code, 0x401010, 0x20);
	assert_entries(&code, (const __u64[]){ 0x401010 }, 1);
	assert_int_equal(FIND(symbols, "0x401030", &code, &error), 0);
	assert_range(&code, 0x401030, 0x20);
}

/* No calls begin in what was split off; in clones they do. */
static void test_parts(void **state)
{
	static const struct symbol symbols[] = {
		{ "f", 0x401000, 0x10, 0, 0 },
		{ "f.cold", 0x401100, 8, 0, 0 },
		{ "f.part.0", 0x401200, 0x18, 0, 0 },
		{ "f.constprop.0", 0x401300, 0x20, 0, 0 },
		{ "f.constprop.0.isra.0", 0x401400, 0x28, 0, 0 },
		{ "f.constprop.0.cold", 0x401500, 4, 0, 0 },
		{ "f.llvm.123", 0x401600, 0x30, 0, 0 },
		{ "f.localalias", 0x401a00, 0x30, 0, 0 },
		{ "f.localalias.1", 0x401b00, 0x30, 0, 0 },
		{ "f.clone.3", 0x401c00, 0x30, 0, 0 },
		{ "f.lto_priv.0", 0x401d00, 0x30, 0, 0 },
		{ "ff", 0x401700, 0x30, 0, 0 },
		{ ".cold", 0x401800, 0x30, 0, 0 },
		{ "f.other", 0x401900, 0x30, 0, 0 },
	};
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(FIND(symbols, "f", &code, &error), 0);
	assert_int_equal(code.within.n, 11);
	for (size_t i = 0; i < 11; i++)
		assert_range(&code, symbols[i].vaddr, symbols[i].size);
	assert_entries(&code,
		       (const __u64[]){ 0x401000, 0x401300, 0x401400, 0x401600, 0x401a00, 0x401b00,
					0x401c00, 0x401d00 },
		       8);
	/* Only what was split off is left of it. */
	assert_int_equal(find(symbols + 1, 2, "f", &code, &error), -ENOENT);
	assert_says(&error, "no code");
}

static void test_several(void **state)
{
	static const struct symbol symbols[] = {
		{ "_ZN1a1fEi", 0x401000, 0x10, 0, 0 },	    { "_ZN1a1fEc", 0x401100, 0x10, 0, 0 },
		{ "_ZN1a1fEc.cold", 0x401180, 0x10, 0, 0 }, { "local", 0x401200, 0x10, 0, 0 },
		{ "local", 0x401300, 0x10, 0, 0 },
	};
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(FIND(symbols, "a::f", &code, &error), -ENOTUNIQ);
	assert_says(&error, "a::f(int) at 0x401000, a::f(char) at 0x401100");
	assert_null(strstr(error.text, "0x401180"));
	assert_int_equal(FIND(symbols, "a::f(char)", &code, &error), 0);
	assert_int_equal(code.within.n, 2);
	assert_entries(&code, (const __u64[]){ 0x401100 }, 1);
	assert_int_equal(FIND(symbols, "_ZN1a1fEi", &code, &error), 0);
	assert_range(&code, 0x401000, 0x10);
	/* Of one name, each in its own file of the source. */
	assert_int_equal(FIND(symbols, "local", &code, &error), -ENOTUNIQ);
	assert_says(&error, "local at 0x401200, local at 0x401300");
	assert_int_equal(FIND(symbols, "0x401300", &code, &error), 0);
	assert_entries(&code, (const __u64[]){ 0x401300 }, 1);
}

/* The complete and the base object's constructor are one; and so are two names of one place. */
static void test_one_by_several_names(void **state)
{
	static const struct symbol symbols[] = {
		{ "_ZN1AC1Ev", 0x401000, 0x10, 0, 0 }, { "_ZN1AC2Ev", 0x401100, 0x18, 0, 0 },
		{ "twice", 0x401200, 0x10, 0, 0 },     { "twice", 0x401200, 0x10, 0, 0 },
		{ "alias", 0x401300, 0, 0, 0 },	       { "alias.isra.0", 0x401300, 0x20, 0, 0 },
	};
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(FIND(symbols, "A::A()", &code, &error), 0);
	assert_int_equal(code.within.n, 2);
	assert_entries(&code, (const __u64[]){ 0x401000, 0x401100 }, 2);
	assert_int_equal(FIND(symbols, "twice", &code, &error), 0);
	assert_int_equal(code.within.n, 1);
	/* Of unknown size, and known by the other name. */
	assert_int_equal(FIND(symbols, "alias", &code, &error), 0);
	assert_int_equal(code.within.n, 1);
	assert_range(&code, 0x401300, 0x20);
}

static void test_none(void **state)
{
	static const struct symbol symbols[] = {
		{ "measure", 0x401000, 0x10, 0, 0 },   { "object", 0x401100, 0x10, STT_OBJECT, 0 },
		{ "undefined", 0, 0, 0, NOWHERE },     { "absolute", 0x401000, 0x10, 0, SHN_ABS },
		{ "elsewhere", 0x900000, 0x10, 0, 0 }, { "last", UINT64_MAX, 0x10, 0, 0 },
	};
	static const char *const missing[] = { "object",    "undefined", "absolute",
					       "elsewhere", "last",	 "0x401001",
					       "0x",	    "0xzz",	 "" };
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(FIND(symbols, "mesure", &code, &error), -ENOENT);
	assert_says(&error, "similar names: measure");
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		if (FIND(symbols, missing[i], &code, &error) != -ENOENT)
			fail_msg("'%s' was found", missing[i]);
		assert_says(&error, "");
	}
	assert_int_equal(find(NULL, 0, "measure", &code, &error), -ENOENT);
}

/* @n symbols called @symbol, with a number behind it where that ends with a dot. */
static int find_in_many(size_t n, const char *symbol, const char *name, struct function_code *code,
			struct error *error)
{
	struct symbol *symbols = calloc(n, sizeof(*symbols));
	char(*names)[16] = calloc(n, sizeof(*names));
	bool is_numbered = symbol[strlen(symbol) - 1] == '.';
	int err;

	assert_true(symbols && names);
	for (size_t i = 0; i < n; i++) {
		char number[8] = "";

		if (is_numbered)
			snprintf(number, sizeof(number), "%zu", i);
		snprintf(names[i], sizeof(names[i]), "%s%s", symbol, number);
		symbols[i] = (struct symbol){ names[i], TEXT_VADDR + i % TEXT_SIZE, 1, 0, 0 };
	}
	err = find(symbols, n, name, code, error);
	free(symbols);
	free(names);
	return err;
}

static void test_many(void **state)
{
	enum {
		MANY = 200000
	};
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(find_in_many(AP_MAX_WITHIN_RANGES, "f.isra.", "f", &code, &error), 0);
	assert_int_equal(code.within.n, AP_MAX_WITHIN_RANGES);
	assert_int_equal(find_in_many(AP_MAX_WITHIN_RANGES + 1, "f.isra.", "f", &code, &error),
			 -E2BIG);
	assert_says(&error, "more than 16 parts");
	assert_int_equal(find_in_many(20, "f", "f", &code, &error), -ENOTUNIQ);
	assert_says(&error, "f at 0x401009, \xe2\x80\xa6");
	/* None of these takes long, whatever has one name. */
	assert_int_equal(find_in_many(MANY, "own.", "own.199999", &code, &error), 0);
	assert_range(&code, TEXT_VADDR + 199999 % TEXT_SIZE, 1);
	assert_int_equal(find_in_many(MANY, "own.", "own.none", &code, &error), -ENOENT);
	assert_int_equal(find_in_many(MANY, "f", "f", &code, &error), -ENOTUNIQ);
	assert_int_equal(find_in_many(MANY, "f.isra.", "f", &code, &error), -E2BIG);
}

/* What is said of sizes does not lead out of the code. */
static void test_sizes(void **state)
{
	static const struct symbol symbols[] = {
		{ "huge", 0x401000, UINT64_MAX, 0, 0 },
		{ "wrapping", 0x401100, (__u64)-0x401100, 0, 0 },
		{ "empty", 0x401200, 0, 0, 0 },
		{ "last_byte", TEXT_VADDR + TEXT_SIZE - 1, 0x100, 0, 0 },
		{ "behind", TEXT_VADDR + TEXT_SIZE, 0x100, 0, 0 },
	};
	struct error error = { 0 };
	struct function_code code;

	assert_int_equal(FIND(symbols, "huge", &code, &error), 0);
	assert_range(&code, 0x401000, TEXT_SIZE);
	assert_int_equal(FIND(symbols, "wrapping", &code, &error), 0);
	assert_range(&code, 0x401100, TEXT_SIZE - 0x100);
	assert_int_equal(FIND(symbols, "empty", &code, &error), 0);
	assert_range(&code, 0x401200, 1);
	assert_int_equal(FIND(symbols, "last_byte", &code, &error), 0);
	assert_range(&code, TEXT_VADDR + TEXT_SIZE - 1, 1);
	assert_int_equal(FIND(symbols, "behind", &code, &error), -ENOENT);
}

/* What a file may say of its tables. It is not found, or found, and nothing worse. */
static void test_hostile_tables(void **state)
{
	static const struct symbol symbols[] = {
		{ "wanted", 0x401010, 0x20, 0, 0 },
		{ "other", 0x401110, 0x20, 0, 0 },
	};
	static const struct {
		int section;
		size_t field, size;
		__u64 value;
	} oddities[] = {
#define ODD(section, member, value)                                                                \
	{ section, offsetof(Elf64_Shdr, member), sizeof(((Elf64_Shdr *)0)->member), value }
		ODD(SECTION_SYMBOLS, sh_size, UINT64_MAX),
		ODD(SECTION_SYMBOLS, sh_size, 1ULL << 40),
		ODD(SECTION_SYMBOLS, sh_size, 25),
		ODD(SECTION_SYMBOLS, sh_size, 0),
		ODD(SECTION_SYMBOLS, sh_offset, UINT64_MAX),
		ODD(SECTION_SYMBOLS, sh_offset, 1ULL << 40),
		ODD(SECTION_SYMBOLS, sh_offset, 3),
		ODD(SECTION_SYMBOLS, sh_entsize, 0),
		ODD(SECTION_SYMBOLS, sh_entsize, 1),
		ODD(SECTION_SYMBOLS, sh_entsize, UINT64_MAX),
		ODD(SECTION_SYMBOLS, sh_link, 0),
		ODD(SECTION_SYMBOLS, sh_link, SECTION_SYMBOLS),
		ODD(SECTION_SYMBOLS, sh_link, 0xffff),
		ODD(SECTION_SYMBOLS, sh_type, SHT_NOBITS),
		ODD(SECTION_SYMBOLS, sh_flags, SHF_COMPRESSED),
		ODD(SECTION_STRINGS, sh_size, UINT64_MAX),
		ODD(SECTION_STRINGS, sh_size, 3),
		ODD(SECTION_STRINGS, sh_size, 0),
		ODD(SECTION_STRINGS, sh_offset, UINT64_MAX - 1),
		ODD(SECTION_STRINGS, sh_type, SHT_NULL),
		/* Names without an end. */
		ODD(SECTION_STRINGS, sh_offset, TEXT_OFFSET),
		ODD(SECTION_NAMES, sh_size, UINT64_MAX),
		ODD(SECTION_NAMES, sh_offset, 1ULL << 62),
		ODD(SECTION_LINK, sh_size, UINT64_MAX),
#undef ODD
	};

	for (size_t i = 0; i < ARRAY_SIZE(oddities); i++) {
		struct file *file = make_file(symbols, ARRAY_SIZE(symbols));
		char *header = (char *)&file->sections[oddities[i].section];
		struct error error = { 0 };
		struct function_code code;
		int err;

		memcpy(header + oddities[i].field, &oddities[i].value, oddities[i].size);
		err = find_in(file, "wanted", &code, &error);
		if (err && (err != -ENOENT && err != -ENOEXEC && err != -EFBIG))
			fail_msg("oddity %zu: %d, %s", i, err, error.text);
		if (err)
			assert_says(&error, "");
		else
			assert_range(&code, 0x401010, 0x20);
		free_file(file);
	}
}

static void test_hostile_names(void **state)
{
	static const struct symbol symbols[] = {
		{ "first", 0x401010, 0x20, 0, 0 },
		{ "wanted", 0x401110, 0x20, 0, 0 },
	};
	struct file *file = make_file(symbols, ARRAY_SIZE(symbols));
	struct error error = { 0 };
	struct function_code code;

	file->symbols[1].st_name = UINT32_MAX;
	assert_int_equal(find_in(file, "wanted", &code, &error), 0);
	/* The last one has no end: no linker writes such a table. */
	file->strings[--file->strings_size] = 'x';
	lay_out(file);
	assert_int_equal(find_in(file, "wanted", &code, &error), -ENOEXEC);
	free_file(file);
}

static void test_segments(void **state)
{
	static const struct symbol symbols[] = { { "wanted", 0x401010, 0x20, 0, 0 } };
	struct error error = { 0 };
	struct function_code code;

	for (int i = 0; i < 6; i++) {
		struct file *file = make_file(symbols, 1);

		switch (i) {
		case 0:
			file->segment.p_flags = PF_R | PF_W;
			break;
		case 1:
			file->segment.p_vaddr = UINT64_MAX - 0xfff;
			break;
		case 2:
			file->segment.p_filesz = 0x10;
			break;
		case 3:
			file->segment.p_offset = 1ULL << 50;
			break;
		case 4:
			file->segment.p_type = PT_NOTE;
			break;
		default:
			file->header.e_phnum = 0;
		}
		if (find_in(file, "wanted", &code, &error) >= 0)
			fail_msg("segment %d: found", i);
		assert_says(&error, "");
		free_file(file);
	}
}

static __u32 checksum(const unsigned char *bytes, size_t n)
{
	__u32 sum = 0xffffffff;

	for (size_t i = 0; i < n; i++) {
		sum ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
	}
	return ~sum;
}

static __u32 checksum_of(const char *path)
{
	static unsigned char bytes[1 << 20];
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, sizeof(bytes));

	assert_true(n > 0 && n < (ssize_t)sizeof(bytes));
	return checksum(bytes, n);
}

static void write_to(const struct file *file, const char *path)
{
	_cleanup_(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	write_file(file, fd);
}

static int find_at(const char *path, const char *name, struct function_code *code,
		   struct error *error)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return function_code__find(fd, path, name, code, error);
}

static void test_debug_file(void **state)
{
	static const struct symbol symbols[] = { { "wanted", 0x401010, 0x20, 0, 0 } };
	char dir[] = "/tmp/test_function_code.XXXXXX", path[64], debug_path[64];
	struct file *debug = make_file(symbols, 1), *file = make_file(NULL, 0);
	struct error error = { 0 };
	struct function_code code;
	__u32 sum;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/program", dir);
	snprintf(debug_path, sizeof(debug_path), "%s/program.debug", dir);
	write_to(debug, debug_path);
	sum = checksum_of(debug_path);
	file->link_size = 20;
	strcpy(file->link, "program.debug");
	memcpy(file->link + 16, &sum, sizeof(sum));
	lay_out(file);
	/* No table at all, not an empty one. */
	file->sections[SECTION_SYMBOLS].sh_type = SHT_NULL;
	write_to(file, path);
	assert_int_equal(find_at(path, "wanted", &code, &error), 0);
	assert_range(&code, 0x401010, 0x20);
	assert_entries(&code, (const __u64[]){ 0x401010 }, 1);
	/* Another file of that name is none of it. */
	debug->symbols[1].st_value++;
	write_to(debug, debug_path);
	assert_int_equal(find_at(path, "wanted", &code, &error), -ENOENT);
	assert_non_null(strstr(error.text, "stripped"));
	unlink(path);
	unlink(debug_path);
	rmdir(dir);
	free_file(debug);
	free_file(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),	      cmocka_unit_test(test_parts),
		cmocka_unit_test(test_several),	      cmocka_unit_test(test_one_by_several_names),
		cmocka_unit_test(test_none),	      cmocka_unit_test(test_many),
		cmocka_unit_test(test_sizes),	      cmocka_unit_test(test_hostile_tables),
		cmocka_unit_test(test_hostile_names), cmocka_unit_test(test_segments),
		cmocka_unit_test(test_debug_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
