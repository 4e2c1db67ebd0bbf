// SPDX-License-Identifier: GPL-3.0-or-later
/* Looks up functions, inlined functions, files and lines of addresses in DWARF. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "cleanup.h"
#include "debug_file.h"
#include "dwarf_internal.h"
#include "error.h"
#include "file.h"
#include "mapped_file.h"
#include "symbol_table.h"

/* Finds in DWARF the functions that contain an address, and the functions that were inlined there. */

/* Limits of nested scopes, and of nested blocks and inlined functions. */
#define MAX_SCOPES 64
#define MAX_BLOCKS 256

struct function_search {
	struct query *query;
	size_t n;
	const struct code_ranges *code;
	struct dwarf_budget *budget;
	bool bodies;
};

static void take_function(const struct function_search *search, const Dwarf_Die *die, __u64 start,
			  __u64 end)
{
	for (size_t i = query__first(search->query, search->n, start);
	     i < search->n && search->query[i].address->vaddr < end && search->budget->dies; i++) {
		struct query *query = &search->query[i];

		search->budget->dies--;
		if (query->has_function && query->function_bytes <= end - start)
			continue;
		query->has_function = true;
		query->function = *die;
		query->function_bytes = end - start;
	}
}

static void try_function(const struct function_search *search, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while (search->budget->dies && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		search->budget->dies--;
		if (end > start && code_ranges__limit(search->code, start))
			take_function(search, die, start, end);
	}
}

static void search_scope(const struct function_search *search, Dwarf_Die *scope, int depth)
{
	Dwarf_Die die;

	if (depth == MAX_SCOPES || !dwarf_die__child(scope, &die, search->budget))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			try_function(search, &die);
			if (search->bodies)
				search_scope(search, &die, depth + 1);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
			if (search->bodies)
				search_scope(search, &die, depth + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
		case DW_TAG_interface_type:
			search_scope(search, &die, depth + 1);
			break;
		}
	} while (dwarf_die__next(&die, search->budget));
}

/* Sets the function of each query of one unit that has none. @bodies: also searches functions
 * inside of functions, which is slower. */
static void dwarf_functions__find(Dwarf_Die *unit, struct query *query, size_t n,
				  const struct code_ranges *code, struct dwarf_budget *budget,
				  bool bodies)
{
	const struct function_search search = { query, n, code, budget, bodies };

	search_scope(&search, unit, 0);
}

struct inline_search {
	struct arena *arena;
	struct dwarf_budget *budget;
};

/* Adds @die as an inlining level of the query, unless a neighbouring query has already added it. */
static int add_level(const struct inline_search *search, struct query *query, const Dwarf_Die *die,
		     __u32 level)
{
	struct inlined_level *added;

	if (query->n_levels != level)
		return 0;
	added = arena__alloc(search->arena, sizeof(*added));
	if (!added)
		return -ENOMEM;
	added->die = *die;
	added->outer = query->innermost;
	query->innermost = added;
	query->n_levels++;
	return 0;
}

static int search_block(const struct inline_search *search, Dwarf_Die *block, struct query *query,
			size_t n, __u32 level, int depth);

/* Descends into @die if its ranges contain any of the queries. */
static int try_block(const struct inline_search *search, Dwarf_Die *die, struct query *query,
		     size_t n, __u32 level, int depth)
{
	bool is_inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	size_t low = n, high = 0;
	Dwarf_Addr base, start, end;
	bool has_ranges = false;
	ptrdiff_t at = 0;

	while (search->budget->dies && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		size_t i = query__first(query, n, start);

		search->budget->dies--;
		has_ranges = true;
		for (; i < n && query[i].address->vaddr < end && search->budget->dies; i++) {
			search->budget->dies--;
			low = i < low ? i : low;
			high = i + 1 > high ? i + 1 : high;
			if (is_inlined && add_level(search, &query[i], die, level))
				return -ENOMEM;
		}
	}
	/* A block without ranges may contain anything. */
	if (!has_ranges && !is_inlined) {
		low = 0;
		high = n;
	}
	if (low >= high)
		return 0;
	return search_block(search, die, query + low, high - low, level + is_inlined, depth + 1);
}

static int search_block(const struct inline_search *search, Dwarf_Die *block, struct query *query,
			size_t n, __u32 level, int depth)
{
	Dwarf_Die die;
	int err = 0;

	if (depth == MAX_BLOCKS || !dwarf_die__child(block, &die, search->budget))
		return 0;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
		case DW_TAG_with_stmt:
			err = try_block(search, &die, query, n, level, depth);
			break;
		}
	} while (!err && dwarf_die__next(&die, search->budget));
	return err;
}

/*
 * Finds the functions inlined at @n queries, which are sorted by address and all in one function.
 * Returns 0 or -ENOMEM.
 */
static int dwarf_functions__find_inlined(Dwarf_Die *function, struct query *query, size_t n,
					 struct arena *arena, struct dwarf_budget *budget)
{
	const struct inline_search search = { arena, budget };

	return search_block(&search, function, query, n, 0, 0);
}

/* libdw needs 100 bytes for each row of a line table, which has at least one byte in the file. */
#define MAX_LINE_PROGRAM_BYTES (32ULL << 20)

/* Limit of line table rows, some 100 MiB, which libdw keeps until its handle is closed. */
#define MAX_KEPT_ROWS (1UL << 20)

/* The line table of a split unit's file has only file names. */
#define MAX_SPLIT_LINE_BYTES (4ULL << 20)

/* Limit of what is unpacked of .dwo files, which libdw keeps, too. */
#define MAX_SPLIT_BYTES (128ULL << 20)

/* An open Dwarf with its files. It caches what it reads until it is closed. */
struct dwarf_handle {
	struct debug_file file, alt_file;
	Dwarf *dwarf, *alt;
	struct dwarf_sections sections;
	size_t kept_rows;
	__u64 split_bytes; /* bytes unpacked from .dwo files, which stay open */
};

struct finder {
	const struct dwarf_addresses_input *input;
	struct dwarf_handle handle;
	struct dwarf_budget budget;
	struct dwarf_names names;
	struct code_ranges code;
	bool is_damaged;
	char missing[PATH_MAX]; /* the first split file that does not exist; "": none */
};

/* The current unit. */
struct unit {
	Dwarf_Die die, functions; /* these differ if the second is in a .dwo file */
	Dwarf_Files *files;	  /* file table that DW_AT_call_file indexes; NULL: none */
	size_t n_files;
	bool has_lines;
	const char *dir; /* DW_AT_comp_dir; NULL: unknown */
};

static void close_handle(struct dwarf_handle *handle)
{
	if (handle->dwarf)
		dwarf_end(handle->dwarf);
	if (handle->alt)
		dwarf_end(handle->alt);
	debug_file__close(&handle->file);
	debug_file__close(&handle->alt_file);
	*handle = (struct dwarf_handle){ .file.fd = -1, .alt_file.fd = -1 };
}

/* Makes libdw skip the sections that names do not need: it unpacks all others when it opens a
 * file. */
static void leave_out(Elf *elf)
{
	static const char *const unneeded[] = { "aranges", "frame", "loc",     "loclists",
						"macinfo", "macro", "pubnames" };

	for (size_t i = 0; i < sizeof(unneeded) / sizeof(unneeded[0]); i++) {
		char name[32];
		GElf_Shdr header;
		Elf_Scn *section;

		snprintf(name, sizeof(name), ".debug_%s", unneeded[i]);
		section = debug_file__section(elf, name, &header);
		header.sh_type = SHT_NOBITS;
		if (section)
			gelf_update_shdr(section, &header);
	}
}

static int open_handle(struct finder *finder)
{
	struct dwarf_handle *handle = &finder->handle;
	const struct dwarf_addresses_input *input = finder->input;
	struct dwarf_sections sections;
	int err = debug_file__reopen(input->file, &handle->file);

	if (!err && input->alt)
		err = debug_file__reopen(input->alt, &handle->alt_file);
	if (err)
		return err;
	leave_out(handle->file.elf);
	handle->dwarf = dwarf_begin_elf(handle->file.elf, DWARF_C_READ, NULL);
	if (!handle->dwarf || !dwarf_sound__check(handle->file.elf, &handle->sections))
		return -ENOEXEC;
	if (input->alt) {
		leave_out(handle->alt_file.elf);
		handle->alt = dwarf_begin_elf(handle->alt_file.elf, DWARF_C_READ, NULL);
		if (!handle->alt || !dwarf_sound__check(handle->alt_file.elf, &sections))
			return -ENOEXEC;
		dwarf_setalt(handle->dwarf, handle->alt);
	}
	return 0;
}

/* Returns whether libdw may read the line table of @unit. An unsound table counts as damage. */
static bool may_read_lines(struct finder *finder, Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	__u64 size;

	if (!finder->handle.sections.data[DWARF_LINES] ||
	    !dwarf_attr(unit, DW_AT_stmt_list, &attribute))
		return false;
	if (dwarf_formudata(&attribute, &offset) ||
	    !dwarf_lines__are_sound(&finder->handle.sections, offset, &size) ||
	    !dwarf_sound__may_read(unit, DW_AT_comp_dir)) {
		finder->is_damaged = true;
		return false;
	}
	return size <= MAX_LINE_PROGRAM_BYTES;
}

/* Returns whether libdw can open the file. Adds to *@bytes what libdw unpacks then. */
static bool is_fit(int fd, const char *path, __u64 *bytes)
{
	struct debug_file file = DEBUG_FILE_NONE;
	GElf_Shdr header;
	Elf_Scn *section;
	bool fit;

	if (debug_file__open(fd, path, &file, NULL))
		return false;
	section = debug_file__section(file.elf, ".debug_line.dwo", &header);
	fit = !section ||
	      (!(header.sh_flags & SHF_COMPRESSED) && header.sh_size <= MAX_SPLIT_LINE_BYTES);
	*bytes += debug_file__memory_bytes(&file);
	debug_file__close(&file);
	return fit;
}

/* Returns 1 if the file is safe to open, 0 if not, or -ENOENT. libdw maps the file: if it shrinks
 * meanwhile, SIGBUS kills this worker. */
static int check_split_file(struct finder *finder, const char *path)
{
	int fd = regular_file__open(path);

	if (fd < 0)
		return fd == -ENOENT ? fd : 0;
	return is_fit(fd, path, &finder->handle.split_bytes);
}

static bool check_whole_path(struct finder *finder, const char *name)
{
	int answer = check_split_file(finder, name);

	if (answer < 0 && !finder->missing[0])
		snprintf(finder->missing, sizeof(finder->missing), "%s", name);
	return answer == 1;
}

/* Returns whether the .dwo file of the skeleton unit is safe to open; libdw opens it unchecked. */
static bool split_file_is_fit(struct finder *finder, Dwarf_Die *skeleton)
{
	char dirs[2][PATH_MAX] = { "", "" };
	const char *name, *dir;
	char *slash;
	bool fit = false;

	/* libdw reads these attributes itself, too. */
	if (!dwarf_sound__may_read(skeleton, DW_AT_dwo_name) ||
	    !dwarf_sound__may_read(skeleton, DW_AT_GNU_dwo_name) ||
	    !dwarf_sound__may_read(skeleton, DW_AT_comp_dir))
		return false;
	name = dwarf_sound__string(skeleton, DW_AT_dwo_name);
	if (!name)
		name = dwarf_sound__string(skeleton, DW_AT_GNU_dwo_name);
	if (!name || !*name)
		return false;
	if (*name == '/')
		return check_whole_path(finder, name);
	/* libdw looks in the file's directory, then in DW_AT_comp_dir, so both are checked. */
	mapped_file__path(finder->handle.file.fd, dirs[0], sizeof(dirs[0]));
	slash = strrchr(dirs[0], '/');
	if (slash)
		*slash = '\0';
	dir = dwarf_sound__string(skeleton, DW_AT_comp_dir);
	if (dir && *dir == '/')
		snprintf(dirs[1], sizeof(dirs[1]), "%s", dir);
	for (int i = 0; i < 2; i++) {
		_cleanup_(free_ptr) char *path = NULL;
		int answer;

		if (!*dirs[i])
			continue;
		if (asprintf(&path, "%s/%s", dirs[i], name) < 0)
			path = NULL;
		answer = path ? check_split_file(finder, path) : 0;
		if (!answer)
			return false;
		fit |= answer > 0;
	}
	if (!fit && !finder->missing[0])
		snprintf(finder->missing, sizeof(finder->missing), "%s", name);
	return fit;
}

/* Stores the unit of the .dwo file to which @skeleton refers, which libdw opens. Returns false if
 * there is none that it may read. */
static bool open_split(struct finder *finder, Dwarf_Die *skeleton, Dwarf_Die *split)
{
	struct dwarf_sections sections;
	__u64 size;

	if (!split_file_is_fit(finder, skeleton) ||
	    dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, split, NULL, NULL, NULL) || !split->addr)
		return false;
	if (!dwarf_sound__check(dwarf_getelf(dwarf_cu_getdwarf(split->cu)), &sections))
		return false;
	return !sections.data[DWARF_LINES] || dwarf_lines__are_sound(&sections, 0, &size);
}

static void read_lines(struct finder *finder, struct unit *unit)
{
	Dwarf_Lines *lines;
	size_t n_lines;

	if (!may_read_lines(finder, &unit->die) || dwarf_getsrclines(&unit->die, &lines, &n_lines))
		return;
	unit->has_lines = n_lines > 0;
	finder->handle.kept_rows += n_lines;
	if (dwarf_getsrcfiles(&unit->functions, &unit->files, &unit->n_files))
		unit->files = NULL;
}

static void enter_unit(struct finder *finder, Dwarf_Off offset, struct unit *unit)
{
	Dwarf_Die split;
	uint8_t type;

	memset(unit, 0, sizeof(*unit));
	if (!dwarf_offdie(finder->handle.dwarf, offset, &unit->die)) {
		finder->is_damaged = true;
		return;
	}
	unit->functions = unit->die;
	if (!dwarf_cu_info(unit->die.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) &&
	    type == DW_UT_skeleton && open_split(finder, &unit->die, &split))
		unit->functions = split;
	read_lines(finder, unit);
	unit->dir = dwarf_sound__string(&unit->die, DW_AT_comp_dir);
}

/* Sets the file's path, as complete as possible, in the arena. */
static int set_file(struct finder *finder, const struct unit *unit, const char *file,
		    struct address_line *line)
{
	char path[PATH_MAX];

	if (!file || !*file || !strcmp(file, "???"))
		return 0;
	if (*file != '/' && unit->dir) {
		snprintf(path, sizeof(path), "%s/%s", unit->dir, file);
		file = path;
	}
	line->file = arena__string(finder->input->arena, file, PATH_MAX);
	return line->file ? 0 : -ENOMEM;
}

/* Sets the source line of the address itself. */
static int set_own_line(struct finder *finder, struct unit *unit, __u64 vaddr,
			struct address_line *line)
{
	Dwarf_Line *row = unit->has_lines ? dwarf_getsrc_die(&unit->die, vaddr) : NULL;
	int number;

	if (!row)
		return 0;
	if (!dwarf_lineno(row, &number) && number > 0)
		line->line = number;
	return set_file(finder, unit, dwarf_linesrc(row, NULL, NULL), line);
}

/* Sets the source line at which @inlined was called in the function around it. */
static int set_call_line(struct finder *finder, const struct unit *unit, Dwarf_Die *inlined,
			 struct address_line *line)
{
	Dwarf_Attribute attribute;
	const char *file = NULL;
	Dwarf_Word value;

	if (dwarf_attr(inlined, DW_AT_call_line, &attribute) &&
	    !dwarf_formudata(&attribute, &value) && value <= INT_MAX)
		line->line = value;
	if (unit->files && dwarf_attr(inlined, DW_AT_call_file, &attribute) &&
	    !dwarf_formudata(&attribute, &value) && value < unit->n_files)
		file = dwarf_filesrc(unit->files, value, NULL, NULL);
	return set_file(finder, unit, file, line);
}

static int set_symbol(struct finder *finder, Dwarf_Die *die, struct address_line *line)
{
	line->symbol = dwarf_names__symbol(&finder->names, die);
	if (!line->symbol)
		return -ENOMEM;
	if (!*line->symbol)
		line->symbol = NULL;
	return 0;
}

static int take_name(struct finder *finder, struct symbol_name name, struct address_line *line)
{
	if (!name.text)
		return 0;
	line->symbol = arena__string(finder->input->arena, name.text, name.size);
	return line->symbol ? 0 : -ENOMEM;
}

/* Sets the function that contains the machine code. */
static int set_function(struct finder *finder, struct query *query, struct address_line *line)
{
	const struct symbol_table *table = finder->input->table;
	Dwarf_Addr entry;
	int err;

	if (!query->has_function)
		return take_name(finder, symbol_table__find(table, query->address->vaddr), line);
	err = set_symbol(finder, &query->function, line);
	if (err)
		return err;
	if (!line->symbol)
		return take_name(finder, symbol_table__find(table, query->address->vaddr), line);
	if (dwarf_entrypc(&query->function, &entry))
		return 0;
	return take_name(finder, symbol_table__entry(table, entry, line->symbol), line);
}

static int describe(struct finder *finder, struct unit *unit, struct query *query)
{
	struct address *address = query->address;
	const struct inlined_level *level = query->innermost;
	__u32 n = (query->n_levels < MAX_ADDRESS_LINES ? query->n_levels + 1 : MAX_ADDRESS_LINES);
	struct address_line *lines = arena__alloc(finder->input->arena, n * sizeof(*lines));
	int err;

	if (!lines)
		return -ENOMEM;
	/* If there are too many levels, the outermost matter most. */
	for (__u32 extra = query->n_levels + 1 - n; extra; extra--)
		level = level->outer;
	err = set_own_line(finder, unit, address->vaddr, &lines[0]);
	for (__u32 i = 0; i + 1 < n && !err; i++, level = level->outer) {
		Dwarf_Die die = level->die;

		lines[i].inlined = true;
		err = set_symbol(finder, &die, &lines[i]);
		if (!err)
			err = set_call_line(finder, unit, &die, &lines[i + 1]);
	}
	if (!err)
		err = set_function(finder, query, &lines[n - 1]);
	if (err)
		return err;
	if (n == 1 && !lines[0].symbol && !lines[0].file)
		return 0;
	address->lines = lines;
	address->n_lines = n;
	return 0;
}

static int compare_functions(const void *left, const void *right)
{
	const struct query *a = left, *b = right;
	uintptr_t of_a = a->has_function ? (uintptr_t)a->function.addr : 0;
	uintptr_t of_b = b->has_function ? (uintptr_t)b->function.addr : 0;

	if (of_a != of_b)
		return of_a < of_b ? -1 : 1;
	return (a->address->vaddr > b->address->vaddr) - (a->address->vaddr < b->address->vaddr);
}

static bool lacks_function(const struct query *query, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!query[i].has_function)
			return true;
	return false;
}

/* Looks up the queries of one unit. The @n queries are sorted by address; afterwards they are not. */
static int look_into_unit(struct finder *finder, Dwarf_Off offset, struct query *query, size_t n)
{
	struct unit unit;
	int err = 0;

	enter_unit(finder, offset, &unit);
	if (!unit.die.addr)
		return 0;
	dwarf_functions__find(&unit.functions, query, n, &finder->code, &finder->budget, false);
	if (lacks_function(query, n))
		dwarf_functions__find(&unit.functions, query, n, &finder->code, &finder->budget,
				      true);
	qsort(query, n, sizeof(*query), compare_functions);
	for (size_t first = 0, last; first < n && !err; first = last) {
		last = first + 1;
		while (last < n && query[last].has_function == query[first].has_function &&
		       query[last].function.addr == query[first].function.addr)
			last++;
		if (query[first].has_function)
			err = dwarf_functions__find_inlined(&query[first].function, query + first,
							    last - first, finder->input->arena,
							    &finder->budget);
	}
	for (size_t i = 0; i < n && !err; i++)
		err = describe(finder, &unit, &query[i]);
	return err;
}

static int compare_units(const void *left, const void *right)
{
	const struct query *a = left, *b = right;

	if (a->has_unit != b->has_unit)
		return a->has_unit ? -1 : 1;
	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	return (a->address->vaddr > b->address->vaddr) - (a->address->vaddr < b->address->vaddr);
}

/* Closes handles that use too much memory; they are reopened when needed. */
static int bound_memory(struct finder *finder)
{
	if (finder->handle.kept_rows < MAX_KEPT_ROWS &&
	    finder->handle.split_bytes < MAX_SPLIT_BYTES)
		return 0;
	dwarf_names__release(&finder->names);
	close_handle(&finder->handle);
	return open_handle(finder);
}

static int look_into_units(struct finder *finder, struct query *query, size_t n)
{
	const struct dwarf_addresses_input *input = finder->input;
	int err = 0;

	for (size_t first = 0, last; first < n && query[first].has_unit && !err; first = last) {
		last = first + 1;
		while (last < n && query[last].has_unit && query[last].unit == query[first].unit)
			last++;
		err = bound_memory(finder);
		if (!err)
			err = look_into_unit(finder, query[first].unit, query + first,
					     last - first);
		if (input->progress)
			input->progress(last - first);
	}
	return err;
}

/* Looks for addresses without a unit in units that have no ranges. */
static int look_into_bare(struct finder *finder, const Dwarf_Off *bare, size_t n_bare,
			  struct query *query, size_t n)
{
	for (size_t i = 0; i < n_bare && n; i++) {
		Dwarf_Die unit;

		if (!dwarf_offdie(finder->handle.dwarf, bare[i], &unit))
			continue;
		dwarf_functions__find(&unit, query, n, &finder->code, &finder->budget, false);
		for (size_t j = 0; j < n; j++) {
			if (!query[j].has_function || query[j].has_unit)
				continue;
			query[j].has_unit = true;
			query[j].unit = bare[i];
		}
	}
	for (size_t j = 0; j < n; j++)
		query[j].has_function = false;
	qsort(query, n, sizeof(*query), compare_units);
	return look_into_units(finder, query, n);
}

static int find_all(struct finder *finder, struct query *query, size_t n)
{
	_cleanup_(free_ptr) Dwarf_Off *bare = NULL;
	size_t n_bare, n_claimed = 0;
	int err = dwarf_units__assign(finder->handle.dwarf, &finder->code, query, n,
				      &finder->budget, &bare, &n_bare);

	if (err == -ENOMEM)
		return err;
	finder->is_damaged |= err < 0;
	qsort(query, n, sizeof(*query), compare_units);
	err = look_into_units(finder, query, n);
	while (n_claimed < n && query[n_claimed].has_unit)
		n_claimed++;
	if (!err)
		err = look_into_bare(finder, bare, n_bare, query + n_claimed, n - n_claimed);
	return err;
}

/* ELFCOMPRESS_ZSTD, which <elf.h> has since glibc 2.36.9000. elfutils before 0.189 cannot unpack such a section. */
#define COMPRESSED_BY_ZSTD 2

static bool is_compressed_by_zstd(Elf *elf)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		GElf_Chdr compressed;

		if (gelf_getshdr(section, &header) && header.sh_flags & SHF_COMPRESSED &&
		    gelf_getchdr(section, &compressed) && compressed.ch_type == COMPRESSED_BY_ZSTD)
			return true;
	}
	return false;
}

/* Sets the sentence on what the DWARF lacks, if there is one. */
static void explain(const struct finder *finder, int err, struct error *error)
{
	const char *path = finder->input->file->path;
	bool is_partly = !err && finder->is_damaged;

	if ((err == -ENOEXEC || is_partly) && is_compressed_by_zstd(finder->input->file->elf))
		error__set(
			error, 0,
			"the debug sections of %s are compressed by zstd, which this libdw may "
			"not read (link with -Wl,--compress-debug-sections=zlib): " DWARF_LACKS_LINES,
			path);
	else if (err == -ENOEXEC)
		error__set(error, 0, "the debug information of %s is damaged", path);
	else if (is_partly)
		error__set(error, 0, "the debug information of %s is damaged in part", path);
	else if (!err && finder->missing[0])
		error__set(
			error, 0,
			"%s, in which -gsplit-dwarf put the debug information, is not there (put "
			"it beside the program, or link without): " DWARF_LACKS_LINES
			", or a function has the line of one that was inlined into it",
			finder->missing);
}

int dwarf_addresses__find(const struct dwarf_addresses_input *input, struct address *addresses,
			  size_t n, struct error *error)
{
	struct finder finder = {
		.input = input,
		.handle = { .file.fd = -1, .alt_file.fd = -1 },
	};
	_cleanup_(free_ptr) struct query *query = calloc(n + 1, sizeof(*query));
	int err;

	if (!query)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		query[i].address = &addresses[i];
	finder.names.arena = input->arena;
	finder.names.budget = &finder.budget;
	err = open_handle(&finder);
	if (!err)
		err = code_ranges__read(&finder.code, finder.handle.file.elf);
	if (!err) {
		GElf_Shdr header = { 0 };

		if (!debug_file__section(finder.handle.file.elf, ".debug_info", &header))
			debug_file__section(finder.handle.file.elf, ".zdebug_info", &header);
		/* The budget follows from the size: each DIE has some bytes and is visited a few
		 * times. */
		finder.budget.dies = 10000000 + 2 * header.sh_size;
		err = find_all(&finder, query, n);
		finder.is_damaged |= !finder.budget.dies;
	}
	explain(&finder, err, error);
	dwarf_names__release(&finder.names);
	close_handle(&finder.handle);
	free(finder.code.ranges);
	return err;
}
