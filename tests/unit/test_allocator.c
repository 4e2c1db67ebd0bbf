// SPDX-License-Identifier: GPL-3.0-or-later
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "allocator.h"
#include "array.h"
#include "cleanup.h"
#include "elf_file.h"
#include "flow.h"
#include "interface.h"
#include "profile.h"

#define BIT(function) (1u << (function))

static char *data_path(const char *name)
{
	const char *dir = getenv("ALLOCPROF_UNIT_DATA");
	char *path;

	if (!dir)
		fail_msg("ALLOCPROF_UNIT_DATA is not set; run: meson test -C build allocator");
	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	return path;
}

static struct allocator *read_path(const char *path, enum site_policy policy)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct allocator *allocator = NULL;
	struct error error = { "" };

	if (fd < 0 || allocator__read(fd, path, policy, &allocator, &error))
		fail_msg("%s: %s", path, error.text);
	return allocator;
}

static struct allocator *read_data(const char *name)
{
	_cleanup_(free_ptr) char *path = data_path(name);

	return read_path(path, SITE_BEST);
}

static const char *libc_path(void)
{
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
	return info.dli_fname;
}

static void read_bytes(const char *path, __u64 offset, unsigned char *bytes, size_t size)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, size, (off_t)offset), size);
}

/* As arch/x86/kernel/uprobes.c, told a second time and by the bytes alone. */
static bool is_emulated(const unsigned char *code)
{
	if (code[0] == 0x41)
		return code[1] >= 0x50 && code[1] <= 0x57;
	if (code[0] == 0x66)
		return code[1] == 0x90;
	if (code[0] == 0x0f)
		return code[1] >= 0x80 && code[1] <= 0x8f;
	return code[0] == 0x90 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb ||
	       (code[0] >= 0x50 && code[0] <= 0x57) || (code[0] >= 0x70 && code[0] <= 0x7f);
}

static void check_sites(const struct allocator *allocator)
{
	__u32 names = 0;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];
		unsigned char bytes[16];

		print_message("%llx+%llu %s `%s` %s tail calls %llx, %zu aliases\n",
			      (unsigned long long)site->entry_vaddr,
			      (unsigned long long)(site->probe_vaddr - site->entry_vaddr),
			      site->emulated ? "emulated" : "stepped", site->instruction,
			      site->reason, site->tail_calls, site->n_aliases);
		read_bytes(allocator->path, site->probe_offset, bytes, sizeof(bytes));
		assert_int_equal(site->emulated, is_emulated(bytes));
		assert_int_equal(site->emulated, site->reason[0] == '\0');
		assert_true(site->instruction[0] != '\0');
		assert_in_range(site->probe_vaddr - site->entry_vaddr, 0, SITE_MAX_DISTANCE);
		assert_int_equal(site->probe_vaddr - site->entry_vaddr,
				 site->probe_offset - site->entry_offset);
		assert_in_range(site->entry_vaddr, allocator->text_start, allocator->text_end - 1);
		assert_int_equal(site->tail_calls & site->names, 0);
		assert_int_equal(site->names & names, 0);
		assert_true(site->names & BIT(site->function));
		assert_int_equal(site->names & (BIT(site->function) - 1), 0);
		if (i > 0)
			assert_true(site[-1].function < site->function);
		for (size_t j = 1; j < site->n_aliases; j++)
			assert_true(strcmp(site->aliases[j - 1], site->aliases[j]) < 0);
		names |= site->names;
	}
	for (size_t i = 1; i < allocator->n_internal_returns; i++)
		assert_true(allocator->internal_returns[i - 1] < allocator->internal_returns[i]);
}

struct symbol {
	const char *name;
	__u64 value;
};

static int find_symbol(const struct elf_symbol *symbol, void *arg)
{
	struct symbol *wanted = arg;

	if (!symbol->is_default || strcmp(symbol->name, wanted->name) != 0)
		return 0;
	wanted->value = symbol->value;
	return 1;
}

static __u64 symbol_value(const char *path, const char *name)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol symbol = { .name = name };
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, path, &file, NULL), 0);
	if (elf_file__for_each_symbol(file, find_symbol, &symbol) != 1)
		fail_msg("%s has no symbol %s", path, name);
	elf_file__free(file);
	return symbol.value;
}

static void test_libc(void **state)
{
	struct allocator *allocator = read_path(libc_path(), SITE_BEST);
	const struct site *site;
	unsigned char bytes[16];
	size_t at = 0;

	check_sites(allocator);
	assert_false(allocator->is_wrapper);
	assert_true(allocator->build_id[0] != '\0');
	for (int function = 0; function < AP_C_FUNCTIONS; function++)
		if (!allocator__find(allocator, (enum ap_function)function))
			fail_msg("no site for function %d", function);
	for (int function = AP_MALLOC; function <= AP_REALLOC; function++)
		assert_true(allocator__find(allocator, (enum ap_function)function)->emulated);

	/* test %rdi,%rdi; je: what free begins with, wherever the compiler leaves it so. */
	site = allocator__find(allocator, AP_FREE);
	read_bytes(allocator->path, site->entry_offset, bytes, sizeof(bytes));
	if (memcmp(bytes, "\xf3\x0f\x1e\xfa", 4) == 0)
		at = 4;
	if (memcmp(bytes + at, "\x48\x85\xff", 3) == 0 && is_emulated(bytes + at + 3)) {
		assert_true(site->emulated);
		assert_int_equal(site->probe_vaddr, site->entry_vaddr + at + 3);
	}

	site = allocator__find(allocator, AP_REALLOC);
	assert_true(site->tail_calls & BIT(AP_MALLOC));
	site = allocator__find(allocator, AP_REALLOCARRAY);
	assert_true(site->tail_calls & BIT(AP_REALLOC));
	allocator__free(allocator);
}

static void test_libc_entries(void **state)
{
	struct allocator *allocator = read_path(libc_path(), SITE_ENTRY);

	for (size_t i = 0; i < allocator->n_sites; i++)
		assert_int_equal(allocator->sites[i].probe_vaddr, allocator->sites[i].entry_vaddr);
	check_sites(allocator);
	allocator__free(allocator);
}

struct returns {
	const struct allocator *allocator;
	int n;
};

static bool is_internal_return(const struct allocator *allocator, __u64 vaddr)
{
	for (size_t i = 0; i < allocator->n_internal_returns; i++)
		if (allocator->internal_returns[i] == vaddr)
			return true;
	return false;
}

static enum flow_step check_return(const struct disasm_insn *insn, void *arg)
{
	struct returns *returns = arg;

	if (insn->class != DISASM_CALL)
		return FLOW_FOLLOW;
	returns->n++;
	if (is_internal_return(returns->allocator, insn->vaddr + insn->length))
		fail_msg("the call at %llx in strdup is taken for internal",
			 (unsigned long long)insn->vaddr);
	return FLOW_FOLLOW;
}

/* strdup's malloc is the application's, although it comes from the same library. */
static void test_libc_strdup(void **state)
{
	struct allocator *allocator = read_path(libc_path(), SITE_BEST);
	_cleanup_(close_fd) int fd = open(libc_path(), O_RDONLY | O_CLOEXEC);
	__u64 strdup_vaddr = symbol_value(libc_path(), "strdup");
	struct returns returns = { .allocator = allocator };
	struct elf_file *file;
	struct elf_text text;

	assert_int_equal(elf_file__open(fd, libc_path(), &file, NULL), 0);
	assert_int_equal(elf_file__text(file, 0, &text), 0);
	assert_int_equal(flow__walk(&text, NULL, 0, strdup_vaddr, check_return, &returns), 0);
	assert_true(returns.n >= 2); /* strlen and malloc */
	elf_file__free(file);
	allocator__free(allocator);
}

struct expected_site {
	enum ap_function function;
	__u64 distance;
	bool emulated;
	const char *reason;
};

static void test_sites(void **state)
{
	static const struct expected_site expected[] = {
		{ AP_MALLOC, 3, true, "" },
		{ AP_CALLOC, 0, false, "a branch leads to entry+3" },
		{ AP_REALLOC, 6, true, "" },
		{ AP_REALLOCARRAY, 16, true, "" },
		{ AP_POSIX_MEMALIGN, 4, true, "" },
		{ AP_ALIGNED_ALLOC, 0, false, "writes memory" },
		{ AP_MEMALIGN, 0, false, "no emulated instruction in the first 64 bytes" },
		{ AP_VALLOC, 0, false, "leaves the straight line" },
		{ AP_PVALLOC, 0, false, "a branch leads to entry+3" },
		{ AP_FREE, 0, false, "not known to be harmless" },
	};
	struct allocator *allocator = read_data("unit_sites.so");

	check_sites(allocator);
	assert_int_equal(allocator->n_sites, AP_C_FUNCTIONS);
	assert_int_equal(allocator->n_internal_returns, 0);
	for (size_t i = 0; i < AP_C_FUNCTIONS; i++) {
		const struct site *site = allocator__find(allocator, expected[i].function);

		assert_non_null(site);
		if (site->probe_vaddr - site->entry_vaddr != expected[i].distance ||
		    site->emulated != expected[i].emulated ||
		    !strstr(site->reason, expected[i].reason))
			fail_msg(
				"function %zu: expected +%llu, emulated %d, \"%s\"; got +%llu, %d, \"%s\"",
				i, (unsigned long long)expected[i].distance, expected[i].emulated,
				expected[i].reason,
				(unsigned long long)(site->probe_vaddr - site->entry_vaddr),
				site->emulated, site->reason);
	}
	allocator__free(allocator);
}

struct expected_move {
	const char *name;
	__u64 distance;
	const char *reason; /* "": emulated */
	__u8 size, count, pointer;
};

static void test_moves(void **state)
{
	static const char lost[] = "writes the register of an argument before any emulated";
	static const struct expected_move expected[] = {
		{ "malloc", 12, "", 2, 0, 0 },
		{ "free", 7, "", 0, 0, 1 },
		{ "realloc", 11, "", 1, 0, 2 },
		{ "posix_memalign", 6, "", 4, 0, 0 },
		{ "mi_posix_memalign", 0, lost, 3, 0, 0 },
		{ "mi_malloc", 5, "", AP_RESULT_REGISTER, 0, 0 },
		{ "mi_zalloc", 0, lost, 1, 0, 0 },
		{ "mi_malloc_small", 0, lost, 1, 0, 0 },
		{ "mi_zalloc_small", 0, lost, 1, 0, 0 },
		{ "mi_calloc", 6, "", 2, AP_RESULT_REGISTER, 0 },
		{ "mi_umalloc", 0, lost, 1, 0, 0 },
		{ "mi_mallocn", 0, lost, 2, 1, 0 },
		{ "mi_realloc", 6, "", 2, 0, 1 },
		{ "mi_free", 0, "a branch leads to entry+3", 0, 0, 1 },
		{ "mi_cfree", 4, "", 0, 0, 1 },
	};
	_cleanup_(free_ptr) char *path = data_path("unit_moves.so");
	struct allocator *allocator = read_path(path, SITE_BEST);

	assert_true(allocator->is_described);
	assert_int_equal(allocator->n_sites, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < allocator->n_sites; i++) {
		__u64 entry = symbol_value(path, expected[i].name);
		const struct site *site = allocator->sites;

		while (site->entry_vaddr != entry)
			site++;
		if (site->probe_vaddr - entry != expected[i].distance ||
		    site->emulated != !expected[i].reason[0] ||
		    !strstr(site->reason, expected[i].reason) ||
		    site__argument(site, site->interface->size) != expected[i].size ||
		    site__argument(site, site->interface->count) != expected[i].count ||
		    site__argument(site, site->interface->pointer) != expected[i].pointer)
			fail_msg("%s: expected +%llu, arguments %d %d %d, \"%s\"; "
				 "got +%llu, %d %d %d, \"%s\"",
				 expected[i].name, (unsigned long long)expected[i].distance,
				 expected[i].size, expected[i].count, expected[i].pointer,
				 expected[i].reason,
				 (unsigned long long)(site->probe_vaddr - entry),
				 site__argument(site, site->interface->size),
				 site__argument(site, site->interface->count),
				 site__argument(site, site->interface->pointer), site->reason);
	}
	allocator__free(allocator);
}

struct expected_lowered {
	const char *name;
	__u64 distance;
	__u32 lowered_bytes;
	const char *reason; /* "": emulated */
};

static void check_lowered(const char *path, struct allocator *allocator,
			  const struct expected_lowered *expected)
{
	__u64 entry = symbol_value(path, expected->name);
	struct site *site = allocator->sites;

	while (site->entry_vaddr != entry)
		site++;
	if (site->probe_vaddr - entry != expected->distance ||
	    site->lowered_bytes != expected->lowered_bytes ||
	    site->emulated != !expected->reason[0] || !strstr(site->reason, expected->reason))
		fail_msg("%s: expected +%llu, %u bytes, \"%s\"; got +%llu, %u bytes, \"%s\"",
			 expected->name, (unsigned long long)expected->distance,
			 expected->lowered_bytes, expected->reason,
			 (unsigned long long)(site->probe_vaddr - entry), site->lowered_bytes,
			 site->reason);
	/* A return probe has to find the return address. */
	site__allow_return_probe(site);
	assert_int_equal(site->lowered_bytes, 0);
	if (!expected->lowered_bytes)
		return;
	assert_int_equal(site->probe_vaddr, entry);
	assert_int_equal(site->probe_offset, site->entry_offset);
	assert_false(site->emulated);
	assert_non_null(strstr(site->reason, site->instruction));
}

static void test_lowered(void **state)
{
	static const char sp[] = "writes the stack pointer before any emulated";
	static const struct expected_lowered expected[] = {
		{ "malloc", 7, 24, "" },
		{ "free", 5, 16, "" },
		{ "realloc", 11, 2040, "" },
		{ "posix_memalign", 4, 128, "" },
		{ "mi_posix_memalign", 0, 0, "writes memory before any emulated" },
		{ "mi_malloc", 0, 0, sp },
		{ "mi_zalloc", 0, 0, sp },
		{ "mi_malloc_small", 0, 0, sp },
		{ "mi_zalloc_small", 0, 0, sp },
		{ "mi_calloc", 0, 0, sp },
		{ "mi_realloc", 0, 0, "a branch leads to entry+7" },
		{ "mi_mallocn", 14, 24, "" },
		{ "mi_umalloc", 0, 0, "writes memory before any emulated" },
		{ "mi_recalloc", 0, 0, "writes memory before any emulated" },
		{ "mi_uzalloc", 4, 8, "" },
		{ "mi_free", 0, 0, "writes the frame pointer before any emulated" },
		{ "mi_cfree", 0, 0, sp },
	};
	_cleanup_(free_ptr) char *path = data_path("unit_lowered.so");
	struct allocator *allocator = read_path(path, SITE_BEST);

	assert_int_equal(allocator->n_sites, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < allocator->n_sites; i++)
		check_lowered(path, allocator, &expected[i]);
	allocator__free(allocator);
}

static void check_calls(const char *name)
{
	static const char *const internal[] = {
		"internal_mmap",  "internal_calloc",	  "internal_indirect",
		"internal_abort", "internal_thread_exit",
	};
	static const char *const outside[] = { "outside_strdup", "outside_foreign" };
	static const __u32 tail_calls[AP_FUNCTIONS] = {
		[AP_REALLOC] = BIT(AP_MALLOC),
		[AP_REALLOCARRAY] = BIT(AP_REALLOC),
		[AP_ALIGNED_ALLOC] = BIT(AP_MALLOC),
		[AP_VALLOC] = BIT(AP_ALIGNED_ALLOC) | BIT(AP_MEMALIGN),
	};
	_cleanup_(free_ptr) char *path = data_path(name);
	struct allocator *allocator = read_path(path, SITE_BEST);
	const struct site *site;

	check_sites(allocator);
	assert_false(allocator->is_wrapper);
	for (size_t i = 0; i < sizeof(internal) / sizeof(internal[0]); i++)
		if (!is_internal_return(allocator, symbol_value(path, internal[i])))
			fail_msg("%s: %s is not internal", name, internal[i]);
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		if (is_internal_return(allocator, symbol_value(path, outside[i])))
			fail_msg("%s: %s is internal", name, outside[i]);
	assert_int_equal(allocator->n_internal_returns, sizeof(internal) / sizeof(internal[0]));
	for (size_t i = 0; i < allocator->n_sites; i++)
		assert_int_equal(allocator->sites[i].tail_calls,
				 tail_calls[allocator->sites[i].function]);

	site = allocator__find(allocator, AP_MEMALIGN);
	assert_ptr_equal(site, allocator__find(allocator, AP_ALIGNED_ALLOC));
	assert_int_equal(site->names, BIT(AP_ALIGNED_ALLOC) | BIT(AP_MEMALIGN));
	assert_int_equal(site->n_aliases, 2);
	assert_string_equal(site->aliases[0], "__libc_memalign");
	assert_string_equal(site->aliases[1], "memalign");
	assert_null(allocator__find(allocator, AP_PVALLOC));
	allocator__free(allocator);
}

static void test_calls(void **state)
{
	check_calls("unit_calls.so");
	check_calls("unit_calls_ibt.so");
}

static void test_versions(void **state)
{
	_cleanup_(free_ptr) char *path = data_path("unit_versions.so");
	struct allocator *allocator = read_path(path, SITE_BEST);

	check_sites(allocator);
	assert_int_equal(allocator->n_sites, 4);
	/* find_symbol() takes default versions only */
	assert_int_equal(allocator__find(allocator, AP_REALLOC)->entry_vaddr,
			 symbol_value(path, "realloc"));
	assert_int_equal(allocator__find(allocator, AP_FREE)->n_aliases, 0);
	assert_non_null(allocator__find(allocator, AP_PVALLOC));
	allocator__free(allocator);
}

static void test_wrapper(void **state)
{
	struct allocator *allocator = read_data("unit_wrapper.so");

	assert_true(allocator->is_wrapper);
	allocator__free(allocator);
}

/* What the allocator does itself is no reference. */
static void test_references(void **state)
{
	static const struct {
		const char *next, *function;
	} expected[] = {
		{ "reference_call", "malloc" },	     { "reference_prefixed", "free" },
		{ "reference_address", "free" },     { "reference_jump", "malloc" },
		{ "reference_conditional", "free" },
	};
	_cleanup_(free_ptr) char *path = data_path("unit_references");
	struct allocator *allocator = read_path(path, SITE_BEST);

	assert_true(allocator->is_in_program);
	assert_false(allocator->has_unclear_references);
	assert_int_equal(allocator->n_references, ARRAY_SIZE(expected));
	for (size_t i = 0; i < allocator->n_references; i++) {
		assert_int_equal(allocator->references[i].next,
				 symbol_value(path, expected[i].next));
		assert_int_equal(allocator->references[i].entry,
				 symbol_value(path, expected[i].function));
	}
	allocator__free(allocator);
}

static void test_unclear_references(void **state)
{
	struct allocator *allocator = read_data("unit_unclear_references");

	assert_true(allocator->has_unclear_references);
	allocator__free(allocator);
	allocator = read_data("unit_inner_references");
	assert_true(allocator->has_unclear_references);
	allocator__free(allocator);
	allocator = read_data("unit_calls.so");
	assert_false(allocator->is_in_program);
	assert_int_equal(allocator->n_references, 0);
	allocator__free(allocator);
}

static void test_static_program(void **state)
{
	_cleanup_(free_ptr) char *path = data_path("unit_program");
	struct allocator *allocator = read_path(path, SITE_BEST);

	check_sites(allocator);
	assert_int_equal(allocator->n_sites, 2);
	assert_false(allocator->is_wrapper);
	/* The program's own calls are direct, too, also from between the allocator's functions. */
	assert_int_equal(allocator->n_internal_returns, 2);
	assert_int_equal(allocator->internal_returns[0], symbol_value(path, "internal_malloc"));
	assert_int_equal(allocator->internal_returns[1], symbol_value(path, "internal_helper"));
	allocator__free(allocator);
}

static void assert_refused(const char *path, int err, const char *word)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct allocator *allocator = NULL;
	struct error error = { "" };

	assert_int_equal(allocator__read(fd, path, SITE_BEST, &allocator, &error), err);
	assert_null(allocator);
	if (!strstr(error.text, word))
		fail_msg("expected \"%s\" in: %s", word, error.text);
}

static void test_refused(void **state)
{
	_cleanup_(free_ptr) char *ifunc = data_path("unit_ifunc.so");

	assert_refused(ifunc, -ENOTSUP, "IFUNC");
	assert_refused("/bin/true", -ENOENT, "defines no allocator");
	assert_refused("/etc/passwd", -ENOEXEC, "not an ELF file");
}

/* Reads @size bytes of @image as a file; nothing but the absence of harm is expected. */
static int read_image(int fd, const unsigned char *image, size_t size)
{
	struct allocator *allocator = NULL;
	struct error error = { "" };
	int err;

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, image, size, 0), size);
	err = allocator__read(fd, "image", SITE_BEST, &allocator, &error);
	if (err) {
		assert_null(allocator);
		assert_true(error.text[0] != '\0');
	} else {
		for (size_t i = 0; i < allocator->n_sites; i++)
			assert_in_range(allocator->sites[i].probe_offset, 0, size - 1);
		allocator__free(allocator);
	}
	return err;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void test_damaged(void **state)
{
	static const char *const names[] = { "unit_calls.so", "unit_versions.so", "unit_program" };
	_cleanup_(close_fd) int memfd = memfd_create("damaged", MFD_CLOEXEC);
	uint32_t seed = 42;

	assert_true(memfd >= 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		_cleanup_(free_ptr) char *path = data_path(names[i]);
		_cleanup_(free_ptr) unsigned char *image = NULL;
		_cleanup_(free_ptr) unsigned char *damaged = NULL;
		struct stat st;
		size_t size;

		assert_int_equal(stat(path, &st), 0);
		size = (size_t)st.st_size;
		image = malloc(size);
		damaged = malloc(size);
		assert_true(image && damaged);
		read_bytes(path, 0, image, size);
		assert_int_equal(read_image(memfd, image, size), 0);
		for (size_t length = 0; length < size; length += 1 + length / 64)
			read_image(memfd, image, length);
		for (int round = 0; round < 1000; round++) {
			/* Headers of the file, of segments, and of sections; or anything. */
			size_t head = size < 1024 ? size : 1024;
			size_t tail = size < 2048 ? size : 2048;
			unsigned int n = 1 + next_random(&seed) % 8;

			memcpy(damaged, image, size);
			while (n--) {
				uint32_t where = next_random(&seed);
				size_t at = where % 3 == 0   ? where / 3 % head
					    : where % 3 == 1 ? size - 1 - where / 3 % tail
							     : where / 3 % size;

				damaged[at] = round & 1 ? 0xff : next_random(&seed) & 0xff;
			}
			read_image(memfd, damaged, size);
		}
	}
}

struct named {
	const char *name;
	enum interface_family family;
	int function; /* -1: there is none of that name */
	__u8 size, count, pointer;
};

static void test_interface(void **state)
{
	static const struct named names[] = {
		{ "malloc", INTERFACE_C, AP_MALLOC, 1, 0, 0 },
		{ "je_malloc", INTERFACE_JE, AP_MALLOC, 1, 0, 0 },
		{ "_rjem_sdallocx", INTERFACE_RJEM, AP_SDALLOCX, 0, 0, 1 },
		{ "tc_new_nothrow", INTERFACE_TC, AP_NEW, 1, 0, 0 },
		{ "mi_calloc", INTERFACE_MI, AP_CALLOC, 2, 1, 0 },
		{ "mi_heap_recalloc_aligned_at", INTERFACE_MI, AP_REALLOCARRAY, 4, 3, 2 },
		{ "_ZnamSt11align_val_tRKSt9nothrow_t", INTERFACE_CPLUSPLUS, AP_NEW, 1, 0, 0 },
		{ "_ZdlPvmSt11align_val_t", INTERFACE_CPLUSPLUS, AP_DELETE, 0, 0, 1 },
		/* placement new, and a class's own */
		{ "_ZnwmPv", INTERFACE_C, -1, 0, 0, 0 },
		{ "_ZN4PoolnwEm", INTERFACE_C, -1, 0, 0, 0 },
		{ "xmalloc", INTERFACE_C, -1, 0, 0, 0 },
		{ "je_", INTERFACE_C, -1, 0, 0, 0 },
		{ "", INTERFACE_C, -1, 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct named *named = &names[i];
		enum interface_family family = INTERFACE_C;
		const struct interface_function *found = interface__find(named->name, &family);

		if ((found ? (int)found->function : -1) != named->function)
			fail_msg("%s is taken for %s", named->name,
				 found ? found->name : "nothing");
		if (!found)
			continue;
		assert_int_equal(family, named->family);
		assert_int_equal(found->size, named->size);
		assert_int_equal(found->count, named->count);
		assert_int_equal(found->pointer, named->pointer);
	}
	/* The programs know these by themselves, whatever their prefix is. */
	for (int i = 0; i < AP_FUNCTIONS; i++) {
		enum interface_family family;
		const struct interface_function *found =
			interface__find(profile__function_name((enum ap_function)i), &family);

		if (i < AP_C_FUNCTIONS)
			assert_int_equal(found->function, i);
		assert_int_equal(found && interface_function__is_classic(found),
				 i < AP_C_FUNCTIONS);
	}
}

static void test_names_that_look_alike(void **state)
{
	static const char *const alike[] = {
		"foo_mallocx2", "foo_free",	    "pool_alloc", "xmalloc",
		"zalloc",	"my_newarray",	    "mallocn",	  "rfree",
		"obj_realloc",	"smallocx_54eaed1", "strdup",	  "strndup",
	};
	static const char *const others[] = {
		"",
		"malloc_usable_size",
		"foo_alloc_stats",
		"freeze",
		"freenameindex",
		"mi_register_deferred_free",
		"renew",
		"newlocale",
		"_dmalloc_chunk_malloc",
		"__asan_free_hook",
		"tc_set_new_mode",
		"mallopt",
		"fallocate",
		"allocated",
		"___",
		"x",
	};

	for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
		if (!interface__looks_alike(alike[i]))
			fail_msg("%s does not look like a request", alike[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (interface__looks_alike(others[i]))
			fail_msg("%s looks like a request", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interface),   cmocka_unit_test(test_names_that_look_alike),
		cmocka_unit_test(test_libc),	    cmocka_unit_test(test_libc_entries),
		cmocka_unit_test(test_references),  cmocka_unit_test(test_unclear_references),
		cmocka_unit_test(test_libc_strdup), cmocka_unit_test(test_sites),
		cmocka_unit_test(test_calls),	    cmocka_unit_test(test_versions),
		cmocka_unit_test(test_wrapper),	    cmocka_unit_test(test_static_program),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_moves),	    cmocka_unit_test(test_lowered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
