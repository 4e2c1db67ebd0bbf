// SPDX-License-Identifier: GPL-3.0-or-later
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "cleanup.h"
#include "elf_file.h"
#include "elf_headers.h"
#include "file.h"

static struct elf_file *open_path(const char *path)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *file = NULL;
	struct error error = { "" };

	if (fd < 0 || elf_file__open(fd, path, &file, &error))
		fail_msg("%s: %s", path, error.text);
	return file;
}

static struct elf_file *open_data(const char *name)
{
	_cleanup_(free_ptr) char *path = NULL;
	const char *dir = getenv("ALLOCPROF_UNIT_DATA");

	if (!dir)
		fail_msg("ALLOCPROF_UNIT_DATA is not set; run: meson test -C build elf_file");
	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	return open_path(path);
}

/* What both say of a file; false where libelf cannot read it. */
static bool agree(const char *path)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_headers *headers = NULL;
	struct elf_file *file = NULL;
	Elf64_Ehdr header;
	__u64 step, vaddr, back, by_file = 0, by_headers = 0;

	if (fd < 0 || elf_file__open(fd, path, &file, NULL))
		return false;
	if (elf_headers__read(fd, &headers))
		fail_msg("%s cannot be read", path);
	if (strcmp(elf_file__build_id(file), elf_headers__build_id(headers)))
		fail_msg("%s: build id %s, not %s", path, elf_headers__build_id(headers),
			 elf_file__build_id(file));
	assert_int_equal(fd__read_all_at(fd, &header, sizeof(header), 0), 0);
	assert_int_equal(elf_headers__entry(headers), header.e_entry);
	step = (__u64)lseek(fd, 0, SEEK_END) / 1000 + 1;
	for (__u64 place = 0; place < 1100 * step; place += step) {
		assert_int_equal(elf_file__vaddr_to_offset(file, place, &by_file),
				 elf_headers__vaddr_to_offset(headers, place, &by_headers));
		assert_int_equal(by_file, by_headers);
		if (elf_headers__offset_to_vaddr(headers, place, &vaddr))
			continue;
		assert_int_equal(elf_file__vaddr_to_offset(file, vaddr, &back), 0);
		assert_int_equal(back, place);
	}
	assert_int_equal(elf_headers__offset_to_vaddr(headers, UINT64_MAX - 1, &vaddr), -ENOENT);
	elf_headers__free(headers);
	elf_file__free(file);
	return true;
}

/* The headers that are read without libelf, of programs and libraries of this system. */
static void test_headers(void **state)
{
	static const char *const patterns[] = { "/proc/self/exe", "/usr/bin/[a-g]*",
						"/usr/lib/x86_64-linux-gnu/lib[a-g]*.so*" };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		glob_t found = { 0 };

		if (!glob(patterns[i], 0, NULL, &found))
			for (size_t j = 0; j < found.gl_pathc; j++)
				n += agree(found.gl_pathv[j]);
		globfree(&found);
	}
	assert_true(n > 1);
}

/* Each word of a file's first page is made hostile: nothing that is read is beyond its bounds (ASan). */
static void test_hostile_headers(void **state)
{
	static const __u64 words[] = { 0, 1, 0xffff, 0x7fffffff, 0xffffffff, ~0ULL, 1ULL << 63 };
	_cleanup_(close_fd) int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(close_fd) int fd = memfd_create("headers", MFD_CLOEXEC);
	char page[4096];

	assert_int_equal(pread(own, page, sizeof(page), 0), sizeof(page));
	for (size_t at = 0; at + 8 <= sizeof(page); at += 2) {
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			struct elf_headers *headers = NULL;
			char hostile[sizeof(page)];
			__u64 place;

			memcpy(hostile, page, sizeof(page));
			memcpy(hostile + at, &words[i], at % 8 ? 4 : 8);
			assert_int_equal(pwrite(fd, hostile, sizeof(hostile), 0), sizeof(hostile));
			if (elf_headers__read(fd, &headers))
				continue;
			assert_true(strlen(elf_headers__build_id(headers)) <= 128);
			if (!elf_headers__vaddr_to_offset(headers, 0, &place))
				assert_true(place < sizeof(page));
			elf_headers__free(headers);
		}
	}
	/* The end of the file comes early. */
	for (off_t size = 0; size < 256; size++) {
		struct elf_headers *headers = NULL;

		assert_int_equal(ftruncate(fd, size), 0);
		if (!elf_headers__read(fd, &headers))
			elf_headers__free(headers);
	}
}

/* As dwz writes its common files: not linked, and with a build id in a section alone. And a checksum, as strip writes it. */
struct unlinked {
	Elf64_Ehdr header;
	struct {
		Elf64_Nhdr header;
		char name[4];
		unsigned char id[8];
	} note;
	char link[8];
	__u32 checksum;
	char names[24];
	Elf64_Shdr sections[4];
};

static const struct unlinked unlinked = {
	.header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_shoff = offsetof(struct unlinked, sections),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3,
	},
	.note = { { 4, 8, NT_GNU_BUILD_ID }, "GNU", { 1, 2, 3, 4, 5, 6, 7, 0xab } },
	.link = "a.debug",
	.checksum = 0x12345678,
	.names = "\0.gnu_debuglink\0.note",
	.sections = {
		{ 0 },
		{
			.sh_name = 16,
			.sh_type = SHT_NOTE,
			.sh_offset = offsetof(struct unlinked, note),
			.sh_size = sizeof(unlinked.note),
			.sh_addralign = 4,
		},
		{
			.sh_name = 1,
			.sh_type = SHT_PROGBITS,
			.sh_offset = offsetof(struct unlinked, link),
			.sh_size = sizeof(unlinked.link) + sizeof(unlinked.checksum),
		},
		{
			.sh_type = SHT_STRTAB,
			.sh_offset = offsetof(struct unlinked, names),
			.sh_size = sizeof(unlinked.names),
		},
	},
};

static int open_unlinked(const struct unlinked *content)
{
	int fd = memfd_create("unlinked", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, content, sizeof(*content), 0), sizeof(*content));
	return fd;
}

/* Nothing maps such a file, but it is compared. */
static void test_headers_of_unlinked_file(void **state)
{
	_cleanup_(close_fd) int fd = open_unlinked(&unlinked);
	struct elf_headers *headers;
	struct unlinked core = unlinked;
	__u64 place;

	assert_int_equal(elf_headers__read(fd, &headers), -ENOEXEC);
	assert_int_equal(elf_headers__read_any(fd, &headers), 0);
	assert_string_equal(elf_headers__build_id(headers), "01020304050607ab");
	assert_int_equal(elf_headers__entry(headers), 0);
	assert_int_equal(elf_headers__vaddr_to_offset(headers, 0, &place), -ENOENT);
	elf_headers__free(headers);
	core.header.e_type = ET_CORE;
	assert_int_equal(pwrite(fd, &core, sizeof(core), 0), sizeof(core));
	assert_int_equal(elf_headers__read_any(fd, &headers), -ENOEXEC);
}

static void test_debuglink_checksum(void **state)
{
	_cleanup_(close_fd) int fd = open_unlinked(&unlinked);
	_cleanup_(close_fd) int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct unlinked other = unlinked;
	__u32 checksum = 0;

	assert_int_equal(elf_headers__debuglink_checksum(fd, &checksum), 0);
	assert_int_equal(checksum, 0x12345678);
	assert_int_equal(elf_headers__debuglink_checksum(own, &checksum), -ENOENT);
	/* The name goes on, or the section of names ends within it. */
	other.names[15] = 's';
	assert_int_equal(pwrite(fd, &other, sizeof(other), 0), sizeof(other));
	assert_int_equal(elf_headers__debuglink_checksum(fd, &checksum), -ENOENT);
	other = unlinked;
	other.sections[3].sh_size = 15;
	assert_int_equal(pwrite(fd, &other, sizeof(other), 0), sizeof(other));
	assert_int_equal(elf_headers__debuglink_checksum(fd, &checksum), -ENOENT);
	assert_int_equal(checksum, 0x12345678);
}

/* As test_hostile_headers(), with the headers of sections. */
static void test_hostile_sections(void **state)
{
	static const __u64 words[] = { 0, 1, 0xffff, 0x7fffffff, 0xffffffff, ~0ULL, 1ULL << 63 };

	for (size_t at = 0; at + 8 <= sizeof(unlinked); at += 2) {
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			struct unlinked hostile = unlinked;
			struct elf_headers *headers;
			__u32 checksum;
			int fd;

			memcpy((char *)&hostile + at, &words[i], at % 8 ? 4 : 8);
			fd = open_unlinked(&hostile);
			elf_headers__debuglink_checksum(fd, &checksum);
			if (!elf_headers__read_any(fd, &headers)) {
				assert_true(strlen(elf_headers__build_id(headers)) <= 128);
				elf_headers__free(headers);
			}
			close(fd);
		}
	}
}

static void test_own_program(void **state)
{
	struct elf_file *file = open_path("/proc/self/exe");

	assert_true(strstr(elf_file__interpreter(file), "ld-") != NULL);
	assert_false(elf_file__is_static(file));
	assert_true(elf_file__is_program(file));
	assert_true(elf_file__imports(file, "gnu_get_libc_version"));
	assert_false(elf_file__imports(file, "no_such_function"));
	(void)gnu_get_libc_version();
	elf_file__free(file);
}

struct wanted {
	const char *name;
	struct elf_symbol found;
	int n;
};

static int want(const struct elf_symbol *symbol, void *arg)
{
	struct wanted *wanted = arg;

	if (strcmp(symbol->name, wanted->name) == 0) {
		wanted->found = *symbol;
		wanted->n++;
	}
	return 0;
}

static void test_library(void **state)
{
	struct elf_file *file;
	struct elf_text text;
	struct wanted wanted = { .name = "gnu_get_libc_version" };
	__u64 start, end, offset;
	__u64 *starts;
	size_t n;
	bool found = false;
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
	file = open_path(info.dli_fname);
	assert_false(elf_file__is_static(file));
	assert_false(elf_file__is_program(file));
	assert_int_equal(elf_file__for_each_symbol(file, want, &wanted), 0);
	assert_int_equal(wanted.n, 1);
	assert_int_equal(wanted.found.type, STT_FUNC);
	assert_true(wanted.found.is_default);
	assert_int_equal(wanted.found.value,
			 (uintptr_t)gnu_get_libc_version - (uintptr_t)info.dli_fbase);

	assert_int_equal(elf_file__text_range(file, &start, &end), 0);
	assert_in_range(wanted.found.value, start, end - 1);
	assert_int_equal(elf_file__text(file, 0, &text), 0);
	/* What the file has there is what runs. */
	assert_memory_equal(text.code + (wanted.found.value - text.vaddr),
			    (const void *)(uintptr_t)gnu_get_libc_version, wanted.found.size);
	assert_int_equal(elf_file__text(file, 64, &text), -ENOENT);

	assert_int_equal(elf_file__vaddr_to_offset(file, wanted.found.value, &offset), 0);
	assert_int_equal(offset, text.offset + (wanted.found.value - text.vaddr));
	assert_int_equal(elf_file__vaddr_to_offset(file, UINT64_MAX - 1, &offset), -ENOENT);

	assert_int_equal(elf_file__fde_starts(file, &starts, &n), 0);
	for (size_t i = 0; i < n; i++)
		found |= starts[i] == wanted.found.value;
	assert_true(found);
	free(starts);
	elf_file__free(file);
}

static void test_versions(void **state)
{
	struct elf_file *file = open_data("unit_versions.so");
	struct wanted wanted = { .name = "pvalloc" };

	assert_int_equal(elf_file__for_each_symbol(file, want, &wanted), 0);
	assert_int_equal(wanted.n, 1);
	assert_false(wanted.found.is_default);
	wanted = (struct wanted){ .name = "realloc" };
	assert_int_equal(elf_file__for_each_symbol(file, want, &wanted), 0);
	assert_int_equal(wanted.n, 2);
	assert_int_equal(strlen(elf_file__build_id(file)), 40);
	assert_int_equal(strspn(elf_file__build_id(file), "0123456789abcdef"), 40);
	assert_string_equal(elf_file__interpreter(file), "");
	elf_file__free(file);
}

static int count_slots(const struct elf_slot *slot, void *arg)
{
	int *n = arg;

	if (strcmp(slot->name, "realloc") == 0 || strcmp(slot->name, "malloc") == 0)
		++*n;
	return 0;
}

static void test_slots(void **state)
{
	struct elf_file *file = open_data("unit_calls.so");
	int n = 0;

	assert_int_equal(elf_file__for_each_slot(file, count_slots, &n), 0);
	assert_int_equal(n, 2);
	assert_true(elf_file__imports(file, "mmap"));
	assert_false(elf_file__imports(file, "malloc"));
	elf_file__free(file);
}

static void test_static_program(void **state)
{
	struct elf_file *file = open_data("unit_program");
	struct wanted wanted = { .name = "malloc" };

	assert_true(elf_file__is_static(file));
	assert_true(elf_file__is_program(file));
	assert_int_equal(elf_file__for_each_symbol(file, want, &wanted), 0);
	assert_int_equal(wanted.n, 1);
	elf_file__free(file);
}

static void assert_refused(const void *bytes, size_t size, int err, const char *word)
{
	_cleanup_(close_fd) int fd = memfd_create("refused", MFD_CLOEXEC);
	struct elf_file *file = NULL;
	struct error error = { "" };
	int got;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	got = elf_file__open(fd, "some/file", &file, &error);
	if (got != err || file || !strstr(error.text, word) || !strstr(error.text, "some/file"))
		fail_msg("expected %d with \"%s\", got %d: %s", err, word, got, error.text);
}

static void test_refused(void **state)
{
	Elf64_Ehdr ehdr = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_AARCH64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(ehdr),
	};
	struct error error = { "" };
	struct elf_file *file = NULL;
	_cleanup_(close_fd) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_refused("", 0, -ENOEXEC, "not an ELF file");
	assert_refused("#!/bin/sh\necho hello, world\n", 28, -ENOEXEC, "not an ELF file");
	assert_refused(&ehdr, sizeof(ehdr), -ENOTSUP, "another processor");
	assert_refused(&ehdr, 40, -ENOEXEC, "some/file");
	ehdr.e_machine = EM_X86_64;
	ehdr.e_type = ET_REL;
	assert_refused(&ehdr, sizeof(ehdr), -ENOTSUP, "linked file");
	ehdr.e_ident[EI_CLASS] = ELFCLASS32;
	assert_refused(&ehdr, sizeof(ehdr), -ENOTSUP, "64-bit");
	assert_int_equal(elf_file__open(fd, "/dev/null", &file, &error), -ENOEXEC);
	assert_int_equal(elf_file__open(-1, "closed", &file, NULL), -EBADF);
	assert_null(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_hostile_headers),
		cmocka_unit_test(test_own_program),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_static_program),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_headers_of_unlinked_file),
		cmocka_unit_test(test_debuglink_checksum),
		cmocka_unit_test(test_hostile_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
