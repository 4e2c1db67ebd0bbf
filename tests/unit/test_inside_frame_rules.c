// SPDX-License-Identifier: GPL-3.0-or-later
/* The rules that a process finds by itself, in what is mapped, are those of the tables that are compiled of the files: at addresses of
 * each function of all objects of this process. */
#include "unit.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "cleanup.h"
#include "elf_headers.h"
#include "file.h"
#include "frame_rules.h"
#include "image.h"

/* So that each phase of 16 bytes is met. */
#define STEP 3

/* Copies take system calls. */
#define STEP_BY_COPIES 301

static struct frame_work work;

struct found {
	__u32 module;
	__u64 n, n_rules, n_files;
};

static bool is_same(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static void compare(const struct cfi_table *table, const struct code_range *range, __u64 load,
		    struct found *found)
{
	int step = work.may_be_unmapped ? STEP_BY_COPIES : STEP;

	for (__u64 address = range->start; address < range->end; address += step) {
		struct unwind_rule own = { 0 }, compiled = { 0 };

		if (frame_rules__find(&work, address, range, &own) != UNWIND_TABLE_READY)
			own = (struct unwind_rule){ 0 };
		if (!cfi_table__lookup(table, address - load, &compiled))
			compiled = (struct unwind_rule){ 0 };
		found->n++;
		found->n_rules += compiled.cfa != UNWIND_CFA_NONE;
		if (!is_same(&own, &compiled))
			fail_msg("at %#llx: %d%+d, not %d%+d", address - load, own.cfa,
				 own.cfa_offset, compiled.cfa, compiled.cfa_offset);
	}
}

static int compare_object(struct dl_phdr_info *info, size_t size, void *context)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct found *found = context;
	struct cfi_table *table;

	if (fd < 0 || cfi_table__build(fd, path, &table, NULL))
		return 0;
	found->module++;
	found->n_files++;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		__u64 start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			compare(table,
				&(struct code_range){ .start = start,
						      .end = start + segment->p_filesz,
						      .bias = segment->p_offset - start,
						      .module = found->module },
				info->dlpi_addr, found);
	}
	cfi_table__free(table);
	return 0;
}

static void test_as_compiled(void **state)
{
	struct found found = { 0 };

	dl_iterate_phdr(compare_object, &found);
	/* The program, its C library and its dynamic linker at least. */
	assert_true(found.n_files >= 3);
	assert_true(found.n_rules > found.n / 2);
}

static void test_copies_as_compiled(void **state)
{
	work.may_be_unmapped = true;
	test_as_compiled(state);
	work.may_be_unmapped = false;
}

/* A return address of a library that another thread has unloaded, before anybody has noticed. */
static void test_unmapped(void **state)
{
	struct code_range range = { .module = 100 };
	struct unwind_rule rule = { 0 };
	struct mapping mapping;
	char buffer[4096];
	void *library = dlopen("libresolv.so.2", RTLD_NOW), *function;

	assert_non_null(library);
	function = dlsym(library, "ns_parserr");
	assert_non_null(function);
	assert_int_equal(maps__find((__u64)function, &mapping, NULL, 0, buffer, sizeof(buffer)), 0);
	range.start = mapping.start;
	range.end = mapping.end;
	range.bias = mapping.offset - mapping.start;
	assert_int_equal(frame_rules__find(&work, (__u64)function + 1, &range, &rule),
			 UNWIND_TABLE_READY);
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(dlclose(library), 0);
	assert_null(dlopen("libresolv.so.2", RTLD_NOW | RTLD_NOLOAD));
	work.may_be_unmapped = true;
	frame_rules__find(&work, (__u64)function + 1, &range, &rule);
	assert_int_equal(rule.cfa, UNWIND_CFA_NONE);
	work.may_be_unmapped = false;
	/* The code has changed. */
	code__change();
	assert_int_equal(frame_rules__find(&work, (__u64)function + 1, &range, &rule),
			 UNWIND_TABLE_NONE);
}

static void test_build_id(void **state)
{
	_cleanup_(close_fd) int fd = regular_file__open("/proc/self/exe");
	char buffer[4096], text[2 * INSIDE_BUILD_ID_BYTES + 1] = "";
	__u8 build_id[INSIDE_BUILD_ID_BYTES];
	struct elf_headers *elf;
	struct mapping mapping;
	struct image image;
	__u32 n;

	assert_int_equal(
		maps__find((__u64)test_build_id, &mapping, NULL, 0, buffer, sizeof(buffer)), 0);
	assert_true(image__find(&mapping, &image, buffer, sizeof(buffer)));
	n = image__build_id(&image, build_id, sizeof(build_id));
	assert_true(n);
	for (__u32 i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", build_id[i]);
	assert_int_equal(elf_headers__read(fd, &elf), 0);
	assert_string_equal(text, elf_headers__build_id(elf));
	elf_headers__free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_compiled),
		cmocka_unit_test(test_copies_as_compiled),
		cmocka_unit_test(test_unmapped),
		cmocka_unit_test(test_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
