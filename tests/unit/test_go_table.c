// SPDX-License-Identifier: GPL-3.0-or-later
/* Go's table of functions: what is read from it, rules made of it, and tables that are damaged. */
#include "unit.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cfi.h"
#include "cfi_internal.h"
#include "cleanup.h"
#include "elf_file.h"
#include "error.h"
#include "go_table.h"

#define TEXT 0x401000

/* runtime.asmcgocall of Go 1.24 from where it changes the stack, in short. */
static const __u8 asmcgocall[] = {
	0x55,					  /* 0: push %rbp */
	0x48, 0x89, 0xe5,			  /* 1: mov %rsp, %rbp */
	0x48, 0x89, 0xe2,			  /* 4: mov %rsp, %rdx */
	0x48, 0x8b, 0x66, 0x38,			  /* 7: mov 0x38(%rsi), %rsp */
	0x48, 0x83, 0xec, 0x10,			  /* 11: sub $0x10, %rsp */
	0x48, 0x83, 0xe4, 0xf0,			  /* 15: and $-16, %rsp */
	0x48, 0x89, 0x7c, 0x24, 0x08,		  /* 19: mov %rdi, 8(%rsp) */
	0x48, 0x8b, 0x7f, 0x08,			  /* 24: mov 8(%rdi), %rdi */
	0x48, 0x29, 0xd7,			  /* 28: sub %rdx, %rdi */
	0x48, 0x89, 0x3c, 0x24,			  /* 31: mov %rdi, (%rsp) */
	0xff, 0xd0,				  /* 35: call *%rax */
	0x48, 0x89, 0xf4,			  /* 37: mov %rsi, %rsp */
	0x5d,					  /* 40: pop %rbp */
	0xc3,					  /* 41: ret */
	0x48, 0x83, 0xec, 0x10,			  /* 42: sub $0x10, %rsp */
	0x48, 0x83, 0xe4, 0xf0,			  /* 46: and $-16, %rsp */
	0x48, 0xc7, 0x44, 0x24, 0x08, 0, 0, 0, 0, /* 50: movq $0, 8(%rsp) */
	0x48, 0x89, 0x14, 0x24,			  /* 59: mov %rdx, (%rsp) */
	0xff, 0xd0,				  /* 63: call *%rax */
	0x48, 0x89, 0xf4,			  /* 65: mov %rsi, %rsp */
	0x5d,					  /* 68: pop %rbp */
	0xc3,					  /* 69: ret */
};

/* A function of C code: push %rbx; sub $0x18, %rsp; test %edi, %edi; je +2; int3; int3; add; pop; ret. */
static const __u8 foreign[] = { 0x53, 0x48, 0x83, 0xec, 0x18, 0x85, 0xff, 0x74, 0x02, 0x0f,
				0x0b, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0xc3, 0xcc, 0xcc };

struct function {
	const char *name;
	__u32 size; /* of code; what the program has of it is at @code, the rest is nops */
	const __u8 *code;
	__u32 code_size;
	const char *depths; /* pairs of a change and of bytes; NULL: none */
	bool outermost;
};

/* A change by n is 2 * n; the first is from -1. */
static const struct function functions[] = {
	{ "main.main", 0x40, NULL, 0, "\x02\x04\x30\x3b\x2f\x01", false }, /* 0, 24, 0 */
	{ "runtime.asmcgocall", 0x50, asmcgocall, sizeof(asmcgocall),
	  "\x02\x01\x10\x28\x0f\x01\x10\x1b\x0f\x01", false },
	{ "foreign", 0x20, foreign, sizeof(foreign), NULL, false },
	{ "runtime.goexit", 0x20, NULL, 0, "\x02\x20", true },
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* An executable that has nothing but such a table and its code. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[4];
	char section_names[64];
	__u8 text[0x200];
	__u8 table[0x300];
};

static void put_u32(__u8 *at, __u32 value)
{
	memcpy(at, &value, sizeof(value));
}

static void put_word(__u8 *table, int word, __u64 value)
{
	memcpy(table + 8 + word * 8, &value, sizeof(value));
}

/* As runtime/symtab.go reads it; 1.20 put a line into each function's entry. */
static void put_table(struct image *image, bool has_line)
{
	const __u32 names = 0x48, depths = 0x100, entries = 0x180, first = 0x40, entry_bytes = 48;
	__u8 *table = image->table;
	__u32 name_at = 1, depth_at = 1, code_at = 0;

	put_u32(table, has_line ? 0xfffffff1 : 0xfffffff0);
	table[6] = 1;
	table[7] = 8;
	put_word(table, 0, FUNCTIONS);
	put_word(table, 2, TEXT);
	put_word(table, 3, names);
	put_word(table, 6, depths);
	put_word(table, 7, entries);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		const struct function *function = &functions[i];
		__u8 *entry = table + entries + first + i * entry_bytes;

		put_u32(table + entries + i * 8, code_at);
		put_u32(table + entries + i * 8 + 4, (__u32)(first + i * entry_bytes));
		put_u32(entry, code_at);
		put_u32(entry + 4, name_at);
		strcpy((char *)table + names + name_at, function->name);
		name_at += strlen(function->name) + 1;
		if (function->depths) {
			put_u32(entry + 16, depth_at);
			strcpy((char *)table + depths + depth_at, function->depths);
			depth_at += strlen(function->depths) + 1;
		}
		entry[has_line ? 41 : 37] = function->outermost;
		memset(image->text + code_at, 0x90, function->size);
		if (function->code)
			memcpy(image->text + code_at, function->code, function->code_size);
		code_at += function->size;
	}
	put_u32(table + entries + FUNCTIONS * 8, code_at);
}

static Elf64_Shdr section(Elf64_Word name, Elf64_Word type, Elf64_Xword flags, size_t offset,
			  size_t size)
{
	return (Elf64_Shdr){ .sh_name = name,
			     .sh_type = type,
			     .sh_flags = flags,
			     .sh_addr = TEXT + offset,
			     .sh_offset = offset,
			     .sh_size = size,
			     .sh_addralign = 1 };
}

static struct image *make_image(bool has_line)
{
	static const char names[] = "\0.text\0.gopclntab\0.shstrtab";
	struct image *image = calloc(1, sizeof(*image));

	assert_non_null(image);
	memcpy(image->header.e_ident, ELFMAG, SELFMAG);
	image->header.e_ident[EI_CLASS] = ELFCLASS64;
	image->header.e_ident[EI_DATA] = ELFDATA2LSB;
	image->header.e_ident[EI_VERSION] = EV_CURRENT;
	image->header.e_type = ET_EXEC;
	image->header.e_machine = EM_X86_64;
	image->header.e_version = EV_CURRENT;
	image->header.e_ehsize = sizeof(image->header);
	image->header.e_phoff = offsetof(struct image, segment);
	image->header.e_phentsize = sizeof(image->segment);
	image->header.e_phnum = 1;
	image->header.e_shoff = offsetof(struct image, sections);
	image->header.e_shentsize = sizeof(image->sections[0]);
	image->header.e_shnum = 4;
	image->header.e_shstrndx = 3;
	image->segment = (Elf64_Phdr){ .p_type = PT_LOAD,
				       .p_flags = PF_R | PF_X,
				       .p_offset = offsetof(struct image, text),
				       .p_vaddr = TEXT,
				       .p_filesz = sizeof(image->text),
				       .p_memsz = sizeof(image->text) };
	memcpy(image->section_names, names, sizeof(names));
	image->sections[1] = section(1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
				     offsetof(struct image, text), sizeof(image->text));
	image->sections[2] = section(7, SHT_PROGBITS, SHF_ALLOC, offsetof(struct image, table),
				     sizeof(image->table));
	image->sections[3] = section(18, SHT_STRTAB, 0, offsetof(struct image, section_names),
				     sizeof(image->section_names));
	put_table(image, has_line);
	return image;
}

static struct cfi_table *build(const struct image *image)
{
	struct error error = { 0 };
	struct cfi_table *table;

	if (cfi_table__build_image(image, sizeof(*image), "image", &table, &error))
		fail_msg("%s", error.text);
	return table;
}

static void check_depth(const struct cfi_table *table, __u64 vaddr, __s32 depth)
{
	struct unwind_rule rule;

	assert_true(cfi_table__lookup(table, vaddr, &rule));
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.cfa_offset, depth + 8);
	assert_int_equal(rule.ra_where, UNWIND_AT_CFA);
	assert_int_equal(rule.ra_offset, -8);
}

static void check_version(bool has_line)
{
	_cleanup_(free_ptr) struct image *image = make_image(has_line);
	struct cfi_table *table = build(image);
	struct unwind_rule rule;

	check_depth(table, TEXT, 0);
	check_depth(table, TEXT + 3, 0);
	check_depth(table, TEXT + 4, 24);
	check_depth(table, TEXT + 0x3e, 24);
	check_depth(table, TEXT + 0x3f, 0);
	check_depth(table, TEXT + 0xb0 - 0x20 + 5, 32);
	assert_true(cfi_table__lookup(table, TEXT + 0xb1, &rule));
	assert_int_equal(rule.ra_where, UNWIND_UNDEFINED);
	assert_false(cfi_table__lookup(table, TEXT + 0xd0, &rule));
	cfi_table__free(table);
}

static void test_versions(void **state)
{
	check_version(false);
	check_version(true);
}

static void test_asmcgocall(void **state)
{
	_cleanup_(free_ptr) struct image *image = make_image(true);
	struct cfi_table *table = build(image);
	const __u64 entry = TEXT + 0x40;
	struct unwind_rule rule;

	check_depth(table, entry, 0);
	check_depth(table, entry + 10, 8);
	/* The stack is another one, and nothing is kept yet. */
	assert_true(cfi_table__lookup(table, entry + 11, &rule));
	assert_int_equal(rule.cfa, UNWIND_CFA_UNSUPPORTED);
	/* From a goroutine: g is at 8(%rsp), the distance at 0(%rsp), sp was one word below the frame's begin. */
	for (__u64 pc = entry + 35; pc < entry + 37; pc++) {
		assert_true(cfi_table__lookup(table, pc, &rule));
		assert_int_equal(rule.cfa, UNWIND_CFA_GOROUTINE);
		assert_int_equal(rule.cfa_offset, 8);
		assert_int_equal(rule.fp_offset, 0);
		assert_int_equal(rule.cfa_add, 16);
	}
	check_depth(table, entry + 40, 8);
	/* From the stack that C code runs on. */
	assert_true(cfi_table__lookup(table, entry + 64, &rule));
	assert_int_equal(rule.cfa, UNWIND_CFA_AT_SP);
	assert_int_equal(rule.cfa_offset, 0);
	assert_int_equal(rule.cfa_add, 16);
	check_depth(table, entry + 68, 8);
	cfi_table__free(table);
}

/* C code that Go's linker took in, without call frame information. */
static void test_foreign_code(void **state)
{
	_cleanup_(free_ptr) struct image *image = make_image(true);
	struct cfi_table *table = build(image);
	const __u64 entry = TEXT + 0x90;
	struct unwind_rule rule;

	check_depth(table, entry, 0);
	check_depth(table, entry + 1, 8);
	check_depth(table, entry + 5, 32);
	check_depth(table, entry + 11, 32);
	check_depth(table, entry + 15, 8);
	check_depth(table, entry + 16, 0);
	assert_false(cfi_table__lookup(table, entry + 17, &rule));
	cfi_table__free(table);
}

static void test_names(void **state)
{
	_cleanup_(free_ptr) struct image *image = make_image(true);
	struct go_function function;
	struct go_table table;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)image, sizeof(*image));
	assert_int_equal(go_table__open(elf, &table), 0);
	assert_int_equal(table.count, FUNCTIONS);
	for (__u32 i = 0; i < FUNCTIONS; i++) {
		assert_true(go_table__function(&table, i, &function));
		assert_int_equal(function.hi - function.lo, functions[i].size);
		assert_int_equal(function.name_size, strlen(functions[i].name));
		assert_memory_equal(function.name, functions[i].name, function.name_size);
		assert_int_equal(function.outermost, functions[i].outermost);
	}
	elf_end(elf);
}

static __u64 random_next(__u64 *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Whatever the table says: nothing outside of it is read, and names end in it. */
static void test_damaged(void **state)
{
	_cleanup_(free_ptr) struct image *good = make_image(true);
	/* On the heap with nothing behind it. */
	_cleanup_(free_ptr) struct image *image = malloc(sizeof(*image));
	__u64 seed = 0x60;
	__u32 opened = 0;

	assert_non_null(image);
	elf_version(EV_CURRENT);
	for (int round = 0; round < 20000; round++) {
		struct cfi_table *table = NULL;
		struct go_table go;
		Elf *elf;

		memcpy(image, good, sizeof(*image));
		for (__u64 n = 1 + random_next(&seed) % 3; n; n--)
			image->table[random_next(&seed) % sizeof(image->table)] =
				(__u8)random_next(&seed);
		if (round % 2)
			image->text[random_next(&seed) % sizeof(image->text)] =
				(__u8)random_next(&seed);
		if (!cfi_table__build_image(image, sizeof(*image), "image", &table, NULL))
			cfi_table__free(table);
		elf = elf_memory((char *)image, sizeof(*image));
		if (!go_table__open(elf, &go)) {
			struct go_function function;

			opened++;
			for (__u32 i = 0; i < go.count; i++)
				if (go_table__function(&go, i, &function))
					assert_true((const __u8 *)function.name +
							    function.name_size <=
						    image->table + sizeof(image->table));
		}
		elf_end(elf);
	}
	assert_true(opened > 1000);
}

/* The rules of code, held to the call frame information that the compiler wrote for it. */
struct comparison {
	const struct cfi_table *table;
	struct elf_text text;
	__u64 end; /* of the function */
	__u64 equal, different, unknown;
};

static int compare_rule(void *ctx, __u64 pc, const struct unwind_rule *rule)
{
	struct comparison *comparison = ctx;
	struct unwind_rule known;

	if (!cfi_table__lookup(comparison->table, pc, &known) ||
	    known.cfa == UNWIND_CFA_UNSUPPORTED)
		return 0;
	if (rule->cfa == UNWIND_CFA_NONE || rule->cfa != known.cfa)
		comparison->unknown++;
	else if (rule->cfa_offset == known.cfa_offset)
		comparison->equal++;
	else
		comparison->different++;
	return 0;
}

static int compare_function(const struct elf_symbol *symbol, void *arg)
{
	struct comparison *comparison = arg;
	__u64 at = symbol->value - comparison->text.vaddr;

	if (symbol->type == STT_FUNC && symbol->size && at < comparison->text.size &&
	    symbol->size <= comparison->text.size - at)
		assert_int_equal(cfi_code__run(symbol->value, comparison->text.code + at,
					       symbol->size, compare_rule, comparison),
				 0);
	return 0;
}

static void test_code_against_cfi(void **state)
{
	_cleanup_(close_fd) int fd =
		open("/usr/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC);
	struct comparison comparison = { 0 };
	struct cfi_table *table;
	struct elf_file *elf;

	assert_int_equal(cfi_table__build(fd, "libc.so.6", &table, NULL), 0);
	comparison.table = table;
	assert_int_equal(elf_file__open(fd, "libc.so.6", &elf, NULL), 0);
	assert_int_equal(elf_file__text(elf, 0, &comparison.text), 0);
	assert_int_equal(elf_file__for_each_symbol(elf, compare_function, &comparison), 0);
	print_message("%llu equal, %llu different, %llu unknown\n", comparison.equal,
		      comparison.different, comparison.unknown);
	assert_true(comparison.equal > 10000);
	assert_int_equal(comparison.different, 0);
	elf_file__free(elf);
	cfi_table__free(table);
}

/* Found by fuzzing: the range of the second pair would end before it begins. */
static void test_depths_beyond_all_addresses(void **state)
{
	static const __u8 pairs[] = { 0x02, 0x10, 0x02, 0x20, 0x00 };
	struct go_function function = {
		.lo = ~0ULL - 0x1f,
		.hi = ~0ULL,
		.depths = pairs,
		.depths_end = pairs + sizeof(pairs),
	};
	struct go_depths depths = go_depths__begin(&function);

	assert_true(go_depths__next(&depths));
	assert_int_equal(depths.hi, ~0ULL - 0xf);
	assert_false(go_depths__next(&depths));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depths_beyond_all_addresses),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_asmcgocall),
		cmocka_unit_test(test_foreign_code),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_code_against_cfi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
