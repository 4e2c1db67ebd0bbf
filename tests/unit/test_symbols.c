// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile.h"
#include "symbols.h"

int symbols_test_target(int x);

/* Something of a known name in this executable; its address less the load bias is its vaddr. */
__attribute__((noinline)) int symbols_test_target(int x)
{
	return x * 3 + 1;
}

extern const char __ehdr_start[];

/* This test is a PIE, whose first segment is linked at 0. */
static __u64 target_vaddr(void)
{
	return (const char *)symbols_test_target - __ehdr_start;
}

static int take_name(void *context, const struct symbols_query *query,
		     const struct symbols_line *lines, size_t n_lines)
{
	char **name = context;

	assert_false(lines[n_lines - 1].inlined);
	if (lines[n_lines - 1].symbol)
		*name = strdup(lines[n_lines - 1].symbol);
	return 0;
}

/* The function whose code is at @vaddr. */
static int name_of(struct symbols *symbols, __u32 module, __u64 vaddr, char **name)
{
	struct symbols_query query = { module, vaddr };

	*name = NULL;
	assert_int_equal(symbols__look_up(symbols, &query, 1, take_name, name), 0);
	return *name ? 0 : -ENOENT;
}

static void test_names_functions_of_a_file(void **state)
{
	struct symbols *symbols = symbols__new(NULL);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *name = NULL;

	assert_int_equal(symbols__add_module(symbols, 7, fd, "/nowhere/else", ""), 0);
	assert_int_equal(symbols__add_module(symbols, 7, fd, "/x", ""), -EEXIST);
	assert_int_equal(symbols__add_module(symbols, 0, fd, "/x", ""), -EINVAL);
	close(fd);
	assert_int_equal(name_of(symbols, 7, target_vaddr() + 1, &name), 0);
	assert_string_equal(name, "symbols_test_target");
	free(name);
	assert_int_equal(name_of(symbols, 7, 0, &name), -ENOENT);
	assert_int_equal(name_of(symbols, 7, UINT64_MAX, &name), -ENOENT);
	assert_int_equal(name_of(symbols, 8, target_vaddr(), &name), -ENOENT);
	symbols__free(symbols);
}

static void test_return_address_belongs_to_the_caller(void **state)
{
	struct symbols *symbols = symbols__new(NULL);
	struct profile *profile = profile__new();
	const struct profile_function *function;
	char path[4096] = { 0 };
	__u32 module, inside, first, unknown;

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_int_equal(profile__add_module(profile, path, "", &module), 0);
	assert_int_equal(symbols__add_module(symbols, module, -1, path, ""), 0);
	profile__add_frame(profile, module, target_vaddr() + 1, false, &inside);
	profile__add_frame(profile, module, target_vaddr(), false, &first);
	profile__add_frame(profile, 0, target_vaddr() + 1, false, &unknown);
	assert_int_equal(profile__symbolize(profile, symbols), 0);
	function = profile__frame_function(profile, &profile->frames[inside - 1]);
	assert_non_null(function);
	assert_string_equal(function->name, "symbols_test_target");
	function = profile__frame_function(profile, &profile->frames[first - 1]);
	if (function)
		assert_string_not_equal(function->name, "symbols_test_target");
	assert_null(profile__frame_function(profile, &profile->frames[unknown - 1]));
	profile__free(profile);
	symbols__free(symbols);
}

static void test_files_without_names(void **state)
{
	static const char *const paths[] = { "/nowhere", "/dev/null", "/etc/passwd",
					     "/tmp",	 "[vdso]",    "/dev/tty",
					     "" };
	struct symbols *symbols = symbols__new(NULL);
	char *name;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(symbols__add_module(symbols, i + 1, -1, paths[i], ""), 0);
		assert_int_equal(name_of(symbols, i + 1, 4096, &name), -ENOENT);
		assert_int_equal(name_of(symbols, i + 1, 4096, &name), -ENOENT);
	}
	symbols__free(symbols);
}

/* No byte of an ELF file may bring the reader down. */
static void test_damaged_elf(void **state)
{
	char path[] = "/tmp/allocprof-test.XXXXXX";
	int exe = open("/proc/self/exe", O_RDONLY), fd = mkstemp(path);
	unsigned int random = 1;
	struct stat st;
	char *bytes;

	assert_int_equal(fstat(exe, &st), 0);
	bytes = malloc(st.st_size);
	assert_int_equal(read(exe, bytes, st.st_size), st.st_size);
	for (int i = 0; i < 200; i++) {
		struct symbols *symbols = symbols__new(NULL);
		off_t at;
		char was, *name;
		off_t size = i % 4 ? st.st_size : (off_t)(random >> 8) % st.st_size;

		random = random * 1103515245 + 12345;
		/* Half of the hits go to the headers. */
		at = i % 2 ? (random >> 8) % st.st_size : (random >> 8) % 64;
		was = bytes[at];
		bytes[at] = random >> 24;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, size, 0), size);
		assert_int_equal(symbols__add_module(symbols, 1, fd, path, ""), 0);
		if (!name_of(symbols, 1, target_vaddr(), &name))
			free(name);
		symbols__free(symbols);
		bytes[at] = was;
	}
	free(bytes);
	close(exe);
	close(fd);
	unlink(path);
}

struct wanted_symbol {
	const char *name;
	__u64 start, size;
	unsigned char info;
};

/* A shared object of one .text of 4 KiB at 0x1000 and the symbols given. */
static int make_elf(const struct wanted_symbol *wanted, size_t n)
{
	static const char section_names[] = "\0.text\0.symtab\0.strtab";
	char strings[512] = "", path[] = "/tmp/allocprof-test.XXXXXX";
	GElf_Sym symbols[17] = { { 0 } };
	size_t len = 1;
	int fd = mkstemp(path);
	Elf *elf;

	unlink(path);
	for (size_t i = 0; i < n; i++) {
		symbols[i + 1] = (GElf_Sym){ .st_name = len,
					     .st_info = wanted[i].info,
					     .st_shndx = 1,
					     .st_value = wanted[i].start,
					     .st_size = wanted[i].size };
		strcpy(strings + len, wanted[i].name);
		len += strlen(wanted[i].name) + 1;
	}
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_WRITE, NULL);
	gelf_newehdr(elf, ELFCLASS64);
	{
		static char code[4096];
		const struct {
			GElf_Shdr header;
			void *bytes;
			size_t size;
			Elf_Type type;
		} sections[] = {
			{ { .sh_name = 1,
			    .sh_type = SHT_PROGBITS,
			    .sh_addr = 0x1000,
			    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			    .sh_addralign = 4096 },
			  code,
			  sizeof(code),
			  ELF_T_BYTE },
			{ { .sh_name = 7,
			    .sh_type = SHT_SYMTAB,
			    .sh_link = 3,
			    .sh_info = 1,
			    .sh_entsize = sizeof(GElf_Sym),
			    .sh_addralign = 8 },
			  symbols,
			  (n + 1) * sizeof(*symbols),
			  ELF_T_SYM },
			{ { .sh_name = 15, .sh_type = SHT_STRTAB, .sh_addralign = 1 },
			  strings,
			  len,
			  ELF_T_BYTE },
			{ { .sh_name = 0, .sh_type = SHT_STRTAB, .sh_addralign = 1 },
			  (void *)section_names,
			  sizeof(section_names),
			  ELF_T_BYTE },
		};
		GElf_Ehdr header;
		GElf_Phdr segment = { .p_type = PT_LOAD,
				      .p_flags = PF_R | PF_X,
				      .p_offset = 0x1000,
				      .p_vaddr = 0x1000,
				      .p_filesz = 4096,
				      .p_memsz = 4096,
				      .p_align = 4096 };

		gelf_newphdr(elf, 1);
		for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
			Elf_Scn *section = elf_newscn(elf);
			Elf_Data *data = elf_newdata(section);
			GElf_Shdr section_header = sections[i].header;

			data->d_buf = sections[i].bytes;
			data->d_size = sections[i].size;
			data->d_type = sections[i].type;
			data->d_align = section_header.sh_addralign;
			data->d_version = EV_CURRENT;
			gelf_update_shdr(section, &section_header);
		}
		gelf_getehdr(elf, &header);
		header.e_type = ET_DYN;
		header.e_machine = EM_X86_64;
		header.e_ident[EI_DATA] = ELFDATA2LSB;
		header.e_version = EV_CURRENT;
		header.e_shstrndx = 4;
		gelf_update_ehdr(elf, &header);
		gelf_update_phdr(elf, 0, &segment);
		assert_true(elf_update(elf, ELF_C_WRITE) > 0);
	}
	elf_end(elf);
	return fd;
}

static void test_which_symbol_covers(void **state)
{
	enum {
		GLOBAL = GELF_ST_INFO(STB_GLOBAL, STT_FUNC),
		LOCAL = GELF_ST_INFO(STB_LOCAL, STT_FUNC),
		LABEL = GELF_ST_INFO(STB_LOCAL, STT_NOTYPE),
		DATA = GELF_ST_INFO(STB_GLOBAL, STT_OBJECT),
	};
	static const struct wanted_symbol wanted[] = {
		{ "outer", 0x1000, 0x100, GLOBAL },
		{ "inner", 0x1040, 0x10, LOCAL },
		{ "label", 0x1080, 0, LABEL },
		{ "__alias", 0x1200, 0x20, GLOBAL },
		{ "alias", 0x1200, 0x20, GLOBAL },
		{ "alias_local", 0x1200, 0x20, LOCAL },
		{ "no_size", 0x1300, 0, GLOBAL },
		{ "next", 0x1400, 0x10, GLOBAL },
		{ "across", 0x1408, 0x10, GLOBAL },
		{ "data", 0x1500, 0x10, DATA },
		{ "last@@VERSION_1", 0x1f00, 0, GLOBAL },
		{ "huge", 0x1e00, 0xffffffffffffff00, LOCAL },
	};
	static const struct {
		__u64 vaddr;
		const char *name;
	} cases[] = {
		{ 0xfff, NULL },       { 0x1000, "outer" },   { 0x103f, "outer" },
		{ 0x1040, "inner" },   { 0x104f, "inner" },   { 0x1050, "outer" },
		{ 0x1080, "outer" },   { 0x10ff, "outer" },   { 0x1100, NULL },
		{ 0x1200, "alias" },   { 0x121f, "alias" },   { 0x1220, NULL },
		{ 0x1300, "no_size" }, { 0x13ff, "no_size" }, { 0x1400, "next" },
		{ 0x1408, "across" },  { 0x1417, "across" },  { 0x1418, NULL },
		{ 0x1500, NULL },      { 0x1e00, "huge" },    { 0x1fff, "huge" },
		{ 0x2000, NULL },
	};
	struct symbols *symbols = symbols__new(NULL);
	int fd = make_elf(wanted, ARRAY_SIZE(wanted));

	assert_int_equal(symbols__add_module(symbols, 1, fd, "/none/made", ""), 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *name = NULL;
		int err = name_of(symbols, 1, cases[i].vaddr, &name);

		if (cases[i].name ? err || strcmp(name, cases[i].name) : err != -ENOENT)
			fail_msg("%#llx: expected %s, got %s", cases[i].vaddr,
				 cases[i].name ? cases[i].name : "none", err ? "none" : name);
		free(name);
	}
	symbols__free(symbols);
}

static int name_of_target(const char *path, char **name)
{
	struct symbols *symbols = symbols__new(NULL);
	int err;

	assert_int_equal(symbols__add_module(symbols, 1, -1, path, ""), 0);
	err = name_of(symbols, 1, target_vaddr() + 1, name);
	symbols__free(symbols);
	return err;
}

/* A stripped file takes its names from the debug file beside it, if that is the one it names. */
static void test_separate_debug_file(void **state)
{
	char dir[] = "/tmp/allocprof-test.XXXXXX", exe[4096] = { 0 }, file[64], command[8192];
	char *name;

	if (system("objcopy --version >/dev/null 2>&1"))
		skip();
	assert_non_null(mkdtemp(dir));
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	snprintf(file, sizeof(file), "%s/stripped", dir);
	snprintf(command, sizeof(command),
		 "cd %s && mkdir .debug && objcopy --only-keep-debug '%s' x.debug && "
		 "objcopy --strip-all --remove-section=.note.gnu.build-id "
		 "--add-gnu-debuglink=x.debug '%s' stripped",
		 dir, exe, exe);
	assert_int_equal(system(command), 0);
	assert_int_equal(name_of_target(file, &name), 0);
	assert_string_equal(name, "symbols_test_target");
	free(name);
	snprintf(command, sizeof(command), "cd %s && mv x.debug .debug/", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(name_of_target(file, &name), 0);
	free(name);
	snprintf(command, sizeof(command), "cd %s && echo >>.debug/x.debug", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(name_of_target(file, &name), -ENOENT);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

struct order {
	struct symbols_query found[64];
	size_t n, last_done, total;
};

static int note_found(void *context, const struct symbols_query *query,
		      const struct symbols_line *lines, size_t n_lines)
{
	struct order *order = context;

	assert_true(order->n < ARRAY_SIZE(order->found));
	order->found[order->n++] = *query;
	return 0;
}

static void note_progress(void *context, size_t done, size_t total)
{
	struct order *order = context;

	assert_true(done >= order->last_done && done <= total);
	order->last_done = done;
	order->total = total;
}

static int fail_on_third(void *context, const struct symbols_query *query,
			 const struct symbols_line *lines, size_t n_lines)
{
	return ++*(int *)context == 3 ? -ENOMEM : 0;
}

/* However many workers there are: the largest module first, and all in order of their addresses. */
static void test_order(void **state)
{
	for (unsigned int workers = 0; workers < 3; workers++) {
		struct order order = { .n = 0 };
		struct symbols_options options = {
			.workers = workers,
			.progress = note_progress,
			.context = &order,
		};
		struct symbols *symbols = symbols__new(&options);
		int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), n = 0;
		struct symbols_query queries[32];
		size_t n_queries = 0;

		for (__u32 module = 1; module <= 4; module++)
			assert_int_equal(symbols__add_module(symbols, module, module == 4 ? -1 : fd,
							     "/nowhere/test", ""),
					 0);
		close(fd);
		assert_string_equal(symbols__module_text(symbols, 1), "");
		for (__u32 i = 0; i < 9; i++) {
			/* Module 2 has most, one place of it is there twice. */
			queries[n_queries++] =
				(struct symbols_query){ i % 3 ? 2 : 1 + 2 * (i % 2),
							target_vaddr() + (9 - i) % 8 };
		}
		queries[n_queries++] = queries[1];
		queries[n_queries++] = (struct symbols_query){ 4, target_vaddr() };
		queries[n_queries++] = (struct symbols_query){ 5, target_vaddr() };
		assert_int_equal(symbols__look_up(symbols, queries, n_queries, note_found, &order),
				 0);
		assert_int_equal(order.n, 9);
		assert_int_equal(order.total, 10);
		assert_int_equal(order.last_done, 10);
		for (size_t i = 0; i < order.n; i++) {
			if (i < 6)
				assert_int_equal(order.found[i].module, 2);
			if (i && order.found[i].module == order.found[i - 1].module)
				assert_true(order.found[i].vaddr > order.found[i - 1].vaddr);
		}
		assert_string_not_equal(symbols__module_text(symbols, 1), "");
		assert_string_equal(symbols__module_text(symbols, 4),
				    "/nowhere/test cannot be read");
		order.last_done = 0;
		assert_int_equal(symbols__look_up(symbols, queries, n_queries, fail_on_third, &n),
				 -ENOMEM);
		assert_int_equal(n, 3);
		assert_int_equal(symbols__look_up(symbols, NULL, 0, note_found, &order), 0);
		symbols__free(symbols);
	}
}

/* What is not the file that was mapped has no names for it. */
static void test_another_build_id(void **state)
{
	struct symbols *symbols = symbols__new(NULL);
	char *name;

	assert_int_equal(symbols__add_module(symbols, 1, -1, "/proc/self/exe", "0123456789abcdef"),
			 0);
	assert_int_equal(name_of(symbols, 1, target_vaddr(), &name), -ENOENT);
	assert_non_null(strstr(symbols__module_text(symbols, 1), "is another file by now"));
	symbols__free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_functions_of_a_file),
		cmocka_unit_test(test_return_address_belongs_to_the_caller),
		cmocka_unit_test(test_files_without_names),
		cmocka_unit_test(test_damaged_elf),
		cmocka_unit_test(test_which_symbol_covers),
		cmocka_unit_test(test_separate_debug_file),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_another_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
