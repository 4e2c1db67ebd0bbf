// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbols.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* bfd.h insists on a config.h. */
#define PACKAGE		"allocprof"
#define PACKAGE_VERSION ALLOCPROF_VERSION
#include <bfd.h>

#include "cleanup.h"
#include "hash_table.h"
#include "profile.h"

/* Longer names are of no use to anyone. */
#define MAX_NAME_SIZE 8192

/* [start, start of the next range) belongs to @name, or to nobody where that is NULL. */
struct range {
	__u64 start;
	char *name; /* as linked; points into the module's symbols */
};

struct symbol {
	__u64 start, end; /* end == start: without a size */
	__u64 limit;	  /* the end of its section */
	int rank;	  /* of names for one place the lowest is taken */
	char *name;
};

struct module {
	__u32 id;
	int fd;
	char *path;
	bool loaded;
	struct symbol *symbols;
	size_t n_symbols;
	struct range *ranges;
	size_t n_ranges;
};

struct symbols {
	struct module *modules;
	size_t n_modules;
	struct hash_table index;
};

struct symbols *symbols__new(void)
{
	return calloc(1, sizeof(struct symbols));
}

static void free_symbols(struct module *module)
{
	for (size_t i = 0; i < module->n_symbols; i++)
		free(module->symbols[i].name);
	free(module->symbols);
	module->symbols = NULL;
	module->n_symbols = 0;
}

void symbols__free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->n_modules; i++) {
		free_symbols(&symbols->modules[i]);
		free(symbols->modules[i].ranges);
		free(symbols->modules[i].path);
		close_fd(&symbols->modules[i].fd);
	}
	free(symbols->modules);
	hash_table__release(&symbols->index);
	free(symbols);
}

static bool match_module(const void *owner, __u32 at, const void *key)
{
	return ((const struct symbols *)owner)->modules[at - 1].id == *(const __u32 *)key;
}

static struct module *find_module(const struct symbols *symbols, __u32 id)
{
	__u32 at = hash_table__find(&symbols->index, hash_mix(0, id), match_module, symbols, &id);

	return at ? &symbols->modules[at - 1] : NULL;
}

int symbols__add_module(struct symbols *symbols, __u32 id, int fd, const char *path)
{
	struct module module = { .id = id, .fd = -1 };
	struct module *grown;
	int err;

	if (!id)
		return -EINVAL;
	if (find_module(symbols, id))
		return -EEXIST;
	grown = reallocarray(symbols->modules, symbols->n_modules + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	symbols->modules = grown;
	module.path = strdup(path);
	if (!module.path)
		return -ENOMEM;
	if (fd >= 0) {
		module.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (module.fd < 0) {
			err = -errno;
			free(module.path);
			return err;
		}
	}
	symbols->modules[symbols->n_modules] = module;
	err = hash_table__insert(&symbols->index, hash_mix(0, id), symbols->n_modules + 1);
	if (err) {
		close_fd(&module.fd);
		free(module.path);
		return err;
	}
	symbols->n_modules++;
	return 0;
}

/* Opens what can only be a file: no FIFO that waits, no terminal that becomes ours. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool crc_matches(int fd, GElf_Word wanted)
{
	unsigned char buffer[65536];
	unsigned long crc = 0;
	off_t at = 0;
	ssize_t len;

	while ((len = pread(fd, buffer, sizeof(buffer), at)) > 0) {
		crc = bfd_calc_gnu_debuglink_crc32(crc, buffer, len);
		at += len;
	}
	return !len && (GElf_Word)crc == wanted;
}

/* @format with the directory of @module_path and @link filled in. */
static int try_debuglink(const char *format, const char *module_path, const char *link,
			 GElf_Word crc, char **debug_path)
{
	const char *slash = strrchr(module_path, '/');
	char *path;
	int fd;

	if (asprintf(&path, format, slash ? (int)(slash - module_path) : 1,
		     slash ? module_path : ".", link) < 0)
		return -1;
	fd = open_regular(path);
	if (fd >= 0 && !crc_matches(fd, crc)) {
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		*debug_path = path;
	else
		free(path);
	return fd;
}

/*
 * dwfl_standard_find_debuginfo() without its last resort: that one asks the servers of
 * DEBUGINFOD_URLS, and nobody asked us to use the network.
 */
static int find_debuginfo(Dwfl_Module *dwfl_module, void **user_data, const char *name,
			  Dwarf_Addr base, const char *path, const char *link, GElf_Word crc,
			  char **debug_path)
{
	static const char *const formats[] = {
		"%.*s/%s",
		"%.*s/.debug/%s",
		"/usr/lib/debug%.*s/%s",
	};
	int fd = dwfl_build_id_find_debuginfo(dwfl_module, user_data, name, base, path, link, crc,
					      debug_path);

	if (fd >= 0 || !link || strchr(link, '/') || !path)
		return fd;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && fd < 0; i++)
		fd = try_debuglink(formats[i], path, link, crc, debug_path);
	return fd;
}

static const Dwfl_Callbacks callbacks = {
	.section_address = dwfl_offline_section_address,
	.find_debuginfo = find_debuginfo,
};

/* Public names before aliases that a library keeps for itself, then fewer underscores. */
static int name_rank(const GElf_Sym *symbol, const char *name)
{
	int binding = GELF_ST_BIND(symbol->st_info);
	size_t underscores = strspn(name, "_");

	return (binding == STB_LOCAL ? 1000 : 0) +
	       (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE ? 500 : 0) +
	       (int)(underscores < 100 ? underscores : 100);
}

/* Takes symbol @at of @dwfl_module if it is code. 0 or -ENOMEM. */
static int add_symbol(struct module *module, Dwfl_Module *dwfl_module, int at, GElf_Addr bias)
{
	struct symbol *to = &module->symbols[module->n_symbols];
	GElf_Addr address;
	GElf_Shdr header;
	GElf_Word index;
	GElf_Sym symbol;
	const char *name;
	Elf *elf = NULL;
	int type;

	name = dwfl_module_getsym_info(dwfl_module, at, &symbol, &address, &index, &elf, NULL);
	if (!name || !*name || !elf || index == SHN_UNDEF || index == SHN_ABS)
		return 0;
	type = GELF_ST_TYPE(symbol.st_info);
	/* '$' begins the mapping symbols of ARM and RISC-V, and the functions of Swift. */
	if (type == STT_NOTYPE && *name == '$')
		return 0;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	if (!gelf_getshdr(elf_getscn(elf, index), &header) || !(header.sh_flags & SHF_EXECINSTR) ||
	    symbol.st_value < header.sh_addr || symbol.st_value - header.sh_addr >= header.sh_size)
		return 0;
	to->start = address - bias;
	to->limit = to->start + (header.sh_size - (symbol.st_value - header.sh_addr));
	if (to->limit < to->start)
		return 0;
	to->end = symbol.st_size > to->limit - to->start ? to->limit : to->start + symbol.st_size;
	to->rank = name_rank(&symbol, name);
	to->name = strndup(name, MAX_NAME_SIZE);
	if (!to->name)
		return -ENOMEM;
	module->n_symbols++;
	return 0;
}

static int read_symbols(struct module *module, Dwfl_Module *dwfl_module)
{
	GElf_Addr bias;
	int n_symbols;

	if (!dwfl_module_getelf(dwfl_module, &bias))
		return -ENOENT;
	n_symbols = dwfl_module_getsymtab(dwfl_module);
	if (n_symbols <= 0)
		return -ENOENT;
	module->symbols = calloc(n_symbols, sizeof(*module->symbols));
	if (!module->symbols)
		return -ENOMEM;
	for (int i = 0; i < n_symbols; i++) {
		int err = add_symbol(module, dwfl_module, i, bias);

		if (err)
			return err;
	}
	return 0;
}

/* By start; of several at one place the outer comes first and the name to be taken last. */
static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if ((a->end == a->start) != (b->end == b->start))
		return a->end == a->start ? 1 : -1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	return -strcmp(a->name, b->name);
}

static void add_range(struct module *module, __u64 start, char *name)
{
	if (module->n_ranges && module->ranges[module->n_ranges - 1].start == start)
		module->n_ranges--;
	module->ranges[module->n_ranges++] = (struct range){ start, name };
}

/* Ends what is open on the stack and ends by @until; what lies beneath takes over. */
static void close_ranges(struct module *module, const struct symbol **open, size_t *n_open,
			 __u64 until)
{
	while (*n_open && open[*n_open - 1]->end <= until) {
		__u64 end = open[--*n_open]->end;

		while (*n_open && open[*n_open - 1]->end <= end)
			--*n_open;
		add_range(module, end, *n_open ? open[*n_open - 1]->name : NULL);
	}
}

/*
 * Symbols overlap: aliases, labels inside functions, cold parts. Ranges do not; each place belongs
 * to the symbol with a size that starts last before it, else to the one without.
 */
static int make_ranges(struct module *module)
{
	const struct symbol **open;
	size_t n_open = 0;

	qsort(module->symbols, module->n_symbols, sizeof(*module->symbols), compare_symbols);
	open = calloc(module->n_symbols + 1, sizeof(*open));
	module->ranges = calloc(2 * module->n_symbols + 1, sizeof(*module->ranges));
	if (!open || !module->ranges) {
		free(open);
		return -ENOMEM;
	}
	for (size_t i = 0; i < module->n_symbols; i++) {
		struct symbol *symbol = &module->symbols[i];

		close_ranges(module, open, &n_open, symbol->start);
		if (symbol->end == symbol->start) {
			size_t follower = i + 1;

			if (n_open)
				continue;
			while (follower < module->n_symbols &&
			       module->symbols[follower].start == symbol->start)
				follower++;
			symbol = &module->symbols[follower - 1];
			symbol->end = symbol->limit;
			if (follower < module->n_symbols &&
			    module->symbols[follower].start < symbol->end)
				symbol->end = module->symbols[follower].start;
			i = follower - 1;
		}
		open[n_open++] = symbol;
		add_range(module, symbol->start, symbol->name);
	}
	close_ranges(module, open, &n_open, UINT64_MAX);
	free(open);
	return 0;
}

/* -ENOENT where the file is no ELF file or has no symbols. */
static int load(struct module *module)
{
	Dwfl_Module *dwfl_module;
	char magic[SELFMAG];
	Dwfl *dwfl;
	int err;

	/* A mapping without a file, such as [vdso], has no path from the root. */
	if (module->fd < 0 && *module->path == '/')
		module->fd = open_regular(module->path);
	if (module->fd < 0 || pread(module->fd, magic, SELFMAG, 0) != SELFMAG ||
	    memcmp(magic, ELFMAG, SELFMAG))
		return -ENOENT;
	dwfl = dwfl_begin(&callbacks);
	if (!dwfl)
		return -ENOMEM;
	dwfl_report_begin(dwfl);
	dwfl_module = dwfl_report_offline(dwfl, module->path, module->path, module->fd);
	if (dwfl_module)
		module->fd = -1;
	dwfl_report_end(dwfl, NULL, NULL);
	err = dwfl_module ? read_symbols(module, dwfl_module) : -ENOENT;
	dwfl_end(dwfl);
	close_fd(&module->fd);
	module->fd = -1;
	if (!err)
		err = make_ranges(module);
	if (err) {
		free_symbols(module);
		free(module->ranges);
		module->ranges = NULL;
		module->n_ranges = 0;
	}
	return err;
}

int symbols__name(struct symbols *symbols, __u32 id, __u64 vaddr, char **name)
{
	struct module *module = find_module(symbols, id);
	size_t low = 0, high;
	char *found;

	if (!module)
		return -ENOENT;
	if (!module->loaded) {
		int err = load(module);

		if (err == -ENOMEM)
			return err;
		module->loaded = true;
	}
	high = module->n_ranges;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (module->ranges[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !module->ranges[low - 1].name)
		return -ENOENT;
	found = strdup(module->ranges[low - 1].name);
	if (!found)
		return -ENOMEM;
	*name = found;
	return 0;
}

int profile__symbolize(struct profile *profile, struct symbols *symbols)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		struct profile_line line = { 0 };
		char *name;
		int err;

		if (frame->n_lines || !frame->module || !frame->offset)
			continue;
		/* A return address may be the first byte of the next function. */
		err = symbols__name(symbols, frame->module, frame->offset - !frame->interrupted,
				    &name);
		if (err == -ENOENT)
			continue;
		if (err)
			return err;
		err = profile__add_function(profile, name, name, name, &line.function);
		free(name);
		if (!err)
			err = profile__set_frame_lines(profile, frame->id, &line, 1);
		if (err)
			return err;
	}
	return 0;
}
