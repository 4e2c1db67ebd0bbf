// SPDX-License-Identifier: GPL-3.0-or-later
#include "function_code.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "array.h"
#include "cleanup.h"
#include "clone_suffix.h"
#include "debug_file.h"
#include "demangle.h"
#include "disasm.h"
#include "dynamic_section.h"
#include "elf_file.h"
#include "elf_headers.h"
#include "error.h"
#include "file.h"
#include "parser.h"
#include "path.h"
#include "usdt.h"

/* Maximum number of functions named in a message. */
#define MAX_NAMED 10

/* Maximum number of symbols with one name; if there are more, the function has too many parts, or
 * there are too many functions. */
#define MAX_PARTS 1024

/* Maximum number of symbols searched for similar names. */
#define MAX_LOOKED_AT 500000

/* Maximum distance in bytes from the entry to an instruction that the kernel emulates. */
#define MAX_DISTANCE 32

struct function_part {
	char *linkage; /* linkage name with the suffix of a clone or part, without a version */
	char *full;    /* demangled name without that suffix */
	__u64 vaddr;
	__u64 size;    /* in bytes; 0: unknown */
	bool is_exact; /* the linkage or full name equals the requested one */
};

struct search {
	const char *name;
	/* Identifier that the linkage name must contain; "": no such identifier is known. */
	char word[128];
	__u64 address; /* address that the user named instead of a function, else 0 */
	struct demangler *demangler;
	struct function_part *parts;
	size_t n_parts, parts_room, n_exact;
	/* Similar names, for the message if no function is found. */
	bool looks_for_near;
	char *near[MAX_NAMED];
	size_t n_near, n_looked_at;
	int err;
};

/* Returns whether the code is a part that only the rest of the function jumps to, and that is not
 * called. */
static bool is_split_off(const char *linkage)
{
	return strstr(linkage, ".cold") || strstr(linkage, ".part.");
}

static bool is_word_character(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Finds the last identifier of a name: foo in (anonymous namespace)::foo(int) const. */
static void find_word(const char *name, char *word, size_t size)
{
	const char *end = name + strlen(name), *begin;
	const char *close = strrchr(name, ')');
	int depth = 0;

	*word = '\0';
	if (strstr(name, "operator"))
		return;
	if (close && (!close[1] || close[1] == ' ')) {
		for (end = close; end > name; end--) {
			depth += (*end == ')') - (*end == '(');
			if (!depth)
				break;
		}
	}
	/* Skips template arguments, which are spelled in many ways. */
	depth = 0;
	while (end > name && (depth || !is_word_character(end[-1]))) {
		depth += (end[-1] == '>') - (end[-1] == '<');
		end--;
	}
	for (begin = end; begin > name && is_word_character(begin[-1]); begin--)
		;
	if ((size_t)(end - begin) < size)
		snprintf(word, size, "%.*s", (int)(end - begin), begin);
}

static int add_part(struct search *search, const char *linkage, const char *full,
		    const GElf_Sym *symbol, bool is_exact)
{
	struct function_part *part;

	if ((is_exact ? search->n_exact : search->n_parts - search->n_exact) == MAX_PARTS)
		return 0;
	for (size_t i = 0; i < search->n_parts; i++)
		if (search->parts[i].vaddr == symbol->st_value &&
		    !strcmp(search->parts[i].linkage, linkage))
			return 0;
	if (array__reserve(&search->parts, &search->parts_room, search->n_parts + 1,
			   sizeof(*search->parts)))
		return -ENOMEM;
	part = &search->parts[search->n_parts];
	*part = (struct function_part){
		.linkage = strdup(linkage),
		.full = strdup(full),
		.vaddr = symbol->st_value,
		.size = symbol->st_size,
		.is_exact = is_exact,
	};
	search->n_parts++;
	search->n_exact += is_exact;
	return part->linkage && part->full ? 0 : -ENOMEM;
}

/* Returns whether the names differ in one or two letters, or @name contains @wanted. */
static bool is_near(const char *wanted, const char *name)
{
	size_t a = strlen(wanted), b = strlen(name), head = 0, tail = 0;

	if (a >= 3 && strcasestr(name, wanted))
		return true;
	while (head < a && head < b && wanted[head] == name[head])
		head++;
	while (tail < a - head && tail < b - head && wanted[a - 1 - tail] == name[b - 1 - tail])
		tail++;
	return head + tail > 1 && a - head - tail <= 2 && b - head - tail <= 2;
}

static int note_near(struct search *search, const char *name)
{
	if (search->n_near == MAX_NAMED || !is_near(search->name, name))
		return 0;
	for (size_t i = 0; i < search->n_near; i++)
		if (!strcmp(search->near[i], name))
			return 0;
	search->near[search->n_near] = strdup(name);
	return search->near[search->n_near++] ? 0 : -ENOMEM;
}

static int consider(struct search *search, const GElf_Sym *symbol, const char *name)
{
	_cleanup_(free_ptr) char *linkage = strndup(name, 1 + strcspn(name + 1, "@"));
	_cleanup_(free_ptr) char *bare =
		linkage ? strndup(linkage, clone_suffix__start(linkage, strlen(linkage))) : NULL;
	_cleanup_(free_ptr) char *simple = NULL, *full = NULL;
	bool is_exact;
	int err;

	if (!linkage || !bare)
		return -ENOMEM;
	if (!search->looks_for_near && !search->address && search->word[0] &&
	    !strstr(bare, search->word) && strcmp(bare, search->name) != 0)
		return 0;
	err = demangler__names(search->demangler, bare, &simple, &full);
	if (err)
		return err;
	if (search->looks_for_near)
		return search->n_looked_at++ < MAX_LOOKED_AT ? note_near(search, simple) : 0;
	if (search->address)
		return symbol->st_value == search->address
			       ? add_part(search, linkage, full, symbol, true)
			       : 0;
	is_exact = !strcmp(bare, search->name) || !strcmp(full, search->name);
	if (!is_exact && strcmp(simple, search->name) != 0)
		return 0;
	return add_part(search, linkage, full, symbol, is_exact);
}

static void visit_section(struct search *search, Elf *elf, Elf_Scn *section,
			  const GElf_Shdr *header)
{
	size_t entry_size = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = data && data->d_buf && entry_size ? data->d_size / entry_size : 0;

	for (size_t i = 1; i < n && i < INT32_MAX && !search->err; i++) {
		const char *name;
		GElf_Sym symbol;

		if (!gelf_getsym(data, i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
		    symbol.st_shndx == SHN_ABS || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && *name)
			search->err = consider(search, &symbol, name);
	}
}

/* Visits all functions of the file. Returns whether the file has a full symbol table. */
static bool visit(struct search *search, Elf *elf)
{
	Elf_Scn *section = NULL;
	bool has_table = false;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) ||
		    (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
			continue;
		has_table |= header.sh_type == SHT_SYMTAB;
		visit_section(search, elf, section, &header);
	}
	return has_table;
}

/*
 * Returns whether @debug may be trusted to say where the functions of @file are. Probes are set
 * there in all processes that have mapped the file, and a probe within an instruction would crash
 * them.
 */
static bool may_say_of(const struct debug_file *debug, const struct debug_file *file)
{
	struct stat says, of;

	if (fstat(debug->fd, &says) || fstat(file->fd, &of))
		return false;
	return says.st_uid == of.st_uid || file_owner__is_only_root(&says);
}

static void visit_file(struct search *search, struct debug_file *file, const char *path)
{
	struct debug_file debug = DEBUG_FILE_NONE;
	char build_id[BUILD_ID_SIZE];
	struct debug_search where = {
		.elf = file->elf,
		.fd = file->fd,
		.path = path,
		.build_id = build_id,
	};

	if (visit(search, file->elf) || search->err)
		return;
	debug_file__build_id(file->elf, build_id);
	if (debug_file__find(&where, &debug, NULL))
		return;
	if (may_say_of(&debug, file))
		visit(search, debug.elf);
	debug_file__close(&debug);
}

static void append(char *text, size_t size, const char *item, size_t index)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s%.200s", index ? ", " : "", item);
}

static int none_found(struct search *search, struct debug_file *file, const char *path,
		      struct error *error)
{
	char near[1024] = "";

	if (search->address)
		return error__set(error, -ENOENT, "no function begins at %s in %s", search->name,
				  path);
	search->looks_for_near = true;
	visit_file(search, file, path);
	for (size_t i = 0; i < search->n_near; i++)
		append(near, sizeof(near), search->near[i], i);
	return error__set(error, -ENOENT,
			  "there is no function '%s' in %s: it is in another file (NAME@FILE), or "
			  "inlined wherever it is used, or its symbol is stripped%s%s",
			  search->name, path, near[0] ? "; similar names: " : "", near);
}

/* Returns whether the parts that were found belong to several functions, two parts of which it
 * writes to *@first and *@second. Parts of one function have the same full name. Different linkage
 * names with one full name are one function, such as a constructor; one linkage name at two
 * addresses is two functions. */
static bool is_ambiguous(const struct search *search, const struct function_part **first,
			 const struct function_part **second)
{
	for (size_t i = 0; i < search->n_parts; i++)
		for (size_t j = 0; j < i; j++) {
			const struct function_part *a = &search->parts[j], *b = &search->parts[i];

			if (!strcmp(a->full, b->full) &&
			    (strcmp(a->linkage, b->linkage) != 0 || a->vaddr == b->vaddr))
				continue;
			*first = a;
			*second = b;
			return true;
		}
	return false;
}

static int several_found(const struct search *search, const char *path, struct error *error)
{
	char named[2048] = "";
	size_t n = 0;

	for (size_t i = 0; i < search->n_parts; i++) {
		const struct function_part *part = &search->parts[i];
		char item[256];

		if (is_split_off(part->linkage))
			continue;
		snprintf(item, sizeof(item), "%.200s at 0x%llx", part->full, part->vaddr);
		if (n < MAX_NAMED)
			append(named, sizeof(named), item, n);
		n++;
	}
	return error__set(error, -ENOTUNIQ,
			  "'%s' is the name of several functions of %s; give the full name or the "
			  "address of one: %s%s",
			  search->name, path, named, n > MAX_NAMED ? ", …" : "");
}

/* Drops inexact matches if there is an exact one. */
static void prefer_exact(struct search *search)
{
	bool has_exact = false;
	size_t kept = 0;

	for (size_t i = 0; i < search->n_parts; i++)
		has_exact |= search->parts[i].is_exact;
	for (size_t i = 0; i < search->n_parts && has_exact; i++) {
		if (search->parts[i].is_exact) {
			search->parts[kept++] = search->parts[i];
			continue;
		}
		free(search->parts[i].linkage);
		free(search->parts[i].full);
	}
	if (has_exact)
		search->n_parts = kept;
}

/* Returns the address of the first instruction near the entry that the kernel can emulate, or the
 * entry. */
static __u64 probe_address(struct elf_file *elf, __u64 entry)
{
	struct disasm_insn insn;
	struct elf_text text;

	for (size_t i = 0; !elf_file__text(elf, i, &text); i++) {
		__u64 at = entry - text.vaddr;

		while (at < text.size && at - (entry - text.vaddr) <= MAX_DISTANCE) {
			if (disasm__decode(text.code + at, text.size - at, text.vaddr + at, &insn))
				return entry;
			if (insn.emulated)
				return insn.vaddr;
			if (insn.class != DISASM_OTHER && insn.class != DISASM_NOP)
				return entry;
			at += insn.length;
		}
	}
	return entry;
}

/* Returns the number of bytes of code from @vaddr to the end of its segment. */
static __u64 code_left(struct elf_file *elf, __u64 vaddr)
{
	struct elf_text text;

	for (size_t i = 0; !elf_file__text(elf, i, &text); i++)
		if (vaddr - text.vaddr < text.size)
			return text.size - (vaddr - text.vaddr);
	return 0;
}

/* Returns the range that begins at @start, or NULL. */
static struct ap_within_range *range_at(struct ap_within *within, __u64 start)
{
	for (__u32 i = 0; i < within->n; i++)
		if (within->ranges[i].start == start)
			return &within->ranges[i];
	return NULL;
}

static int describe(const struct search *search, struct elf_file *elf, const char *path,
		    struct function_code *out, struct error *error)
{
	int err = 0;

	*out = (struct function_code){ 0 };
	for (size_t i = 0; i < search->n_parts && !err; i++) {
		const struct function_part *part = &search->parts[i];
		struct ap_within_range *range;
		__u64 offset, left = code_left(elf, part->vaddr), size = part->size;

		/* If the size is unknown, let the range have one byte: it covers at least the
		 * beginning of the function. */
		size = size < left ? size : left;
		size = size ? size : 1;
		if (!left || elf_file__vaddr_to_offset(elf, part->vaddr, &offset))
			continue;
		range = range_at(&out->within, offset);
		if (range) {
			range->size = range->size > size ? range->size : size;
			continue;
		}
		if (out->within.n == AP_MAX_WITHIN_RANGES) {
			err = error__set(error, -E2BIG, "%s has '%s' in more than %d parts", path,
					 search->name, AP_MAX_WITHIN_RANGES);
			break;
		}
		out->within.ranges[out->within.n++] =
			(struct ap_within_range){ .start = offset, .size = size };
		if (is_split_off(part->linkage))
			continue;
		if (!elf_file__vaddr_to_offset(elf, probe_address(elf, part->vaddr), &offset))
			out->entries[out->n_entries++] = offset;
	}
	if (!err && !out->n_entries)
		return error__set(error, -ENOENT, "'%s' of %s has no code in the file",
				  search->name, path);
	return err;
}

static int find(struct search *search, struct debug_file *file, const char *path,
		struct error *error)
{
	const struct function_part *first, *second;

	visit_file(search, file, path);
	if (search->err)
		return search->err;
	prefer_exact(search);
	if (!search->n_parts)
		return none_found(search, file, path, error);
	if (!search->address && is_ambiguous(search, &first, &second))
		return several_found(search, path, error);
	return 0;
}

static void search__release(struct search *search)
{
	for (size_t i = 0; i < search->n_parts; i++) {
		free(search->parts[i].linkage);
		free(search->parts[i].full);
	}
	for (size_t i = 0; i < search->n_near; i++)
		free(search->near[i]);
	free(search->parts);
	demangler__free(search->demangler);
}

int function_code__find(int fd, const char *path, const char *name, struct function_code *out,
			struct error *error)
{
	struct demangle_options demangling = { 0 };
	struct search search = { .name = name };
	struct debug_file file = DEBUG_FILE_NONE;
	struct elf_file *elf = NULL;
	int err, own;

	if (!strncmp(name, "0x", 2))
		search.address = strtoull(name, NULL, 16);
	find_word(name, search.word, sizeof(search.word));
	err = elf_file__open(fd, path, &elf, error);
	if (err)
		return err;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	err = own < 0 ? -errno : debug_file__open(own, path, &file, error);
	if (!err) {
		err = demangler__new(&demangling, &search.demangler, error);
		if (!err)
			err = find(&search, &file, path, error);
		if (!err)
			err = describe(&search, elf, path, out, error);
		search__release(&search);
		debug_file__close(&file);
	}
	elf_file__free(elf);
	return err;
}

int function_code__nop_offset(struct elf_file *elf, __u64 vaddr, __u64 *offset)
{
	struct disasm_insn insn;
	struct elf_text text;
	int err = -ENOENT;

	for (size_t i = 0; err && !elf_file__text(elf, i, &text); i++) {
		__u64 at = vaddr - text.vaddr;

		if (at < text.size &&
		    !disasm__decode(text.code + at, text.size - at, vaddr, &insn) &&
		    insn.class == DISASM_NOP)
			err = elf_file__vaddr_to_offset(elf, vaddr, offset);
	}
	return err;
}

struct usdt_search {
	const char *provider_name;
	struct elf_file *elf;
	struct function_code *code;
	char others[512];
	size_t n_others;
	bool is_damaged, too_many;
};

static int consider_probe(const struct usdt_probe *probe, void *arg)
{
	struct usdt_search *search = arg;
	struct function_code *code = search->code;
	char name[256];
	__u64 offset, semaphore = 0;

	snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	if (strcmp(name, search->provider_name) != 0) {
		if (search->n_others < MAX_NAMED && !strstr(search->others, name))
			append(search->others, sizeof(search->others), name, search->n_others++);
		return 0;
	}
	if (function_code__nop_offset(search->elf, probe->vaddr, &offset) ||
	    (probe->semaphore &&
	     elf_file__vaddr_to_offset(search->elf, probe->semaphore, &semaphore))) {
		search->is_damaged = true;
		return 0;
	}
	search->too_many |= code->n_entries == AP_MAX_WITHIN_RANGES;
	if (search->too_many)
		return 0;
	code->semaphores[code->n_entries] = semaphore;
	code->entries[code->n_entries++] = offset;
	return 0;
}

static int judge(const struct usdt_search *search, const char *path, struct error *error)
{
	if (search->is_damaged)
		return error__set(error, -ENOENT,
				  "the note of the USDT probe %s of %s is damaged: there is no nop "
				  "at its address",
				  search->provider_name, path);
	if (search->too_many)
		return error__set(error, -E2BIG,
				  "%s has the USDT probe %s at more than %d locations", path,
				  search->provider_name, AP_MAX_WITHIN_RANGES);
	if (!search->code->n_entries)
		return error__set(error, -ENOENT, "there is no USDT probe %s in %s%s%s",
				  search->provider_name, path, search->others[0] ? "; it has " : "",
				  search->others);
	return 0;
}

int function_code__find_usdt(int fd, const char *path, const char *provider_name,
			     struct function_code *out, struct error *error)
{
	struct usdt_search search = { .provider_name = provider_name };
	struct debug_file file = DEBUG_FILE_NONE;
	struct function_code code = { 0 };
	int err, own;

	search.code = &code;
	err = elf_file__open(fd, path, &search.elf, error);
	if (err)
		return err;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	err = own < 0 ? -errno : debug_file__open(own, path, &file, error);
	if (!err) {
		usdt__for_each(file.elf, consider_probe, &search);
		err = judge(&search, path, error);
		debug_file__close(&file);
	}
	elf_file__free(search.elf);
	if (!err)
		*out = code;
	return err;
}

static const char usdt_prefix[] = "sdt:";

static bool is_usdt(const char *symbol)
{
	return !strncmp(symbol, usdt_prefix, strlen(usdt_prefix));
}

/* Limit of bytes that is longer than any name that a user can give. */
#define MAX_NAME (1 << 20)

/* Checks the ranges that the BPF programs search, and the addresses that probes are set at. */
static bool code_is_sound(const void *object, const void *context)
{
	const struct executable_parts *parts = context;
	const struct function_code *code = object;

	if (!parts->n || code->within.n > AP_MAX_WITHIN_RANGES || code->within.pad ||
	    code->n_entries > AP_MAX_WITHIN_RANGES)
		return false;
	for (__u32 i = 0; i < code->within.n; i++) {
		const struct ap_within_range *range = &code->within.ranges[i];

		if (!executable_parts__have_offset(parts, range->start) ||
		    range->size > parts->file_bytes - range->start)
			return false;
	}
	for (size_t i = 0; i < code->n_entries; i++)
		if (!executable_parts__have_offset(parts, code->entries[i]) ||
		    code->semaphores[i] >= parts->file_bytes)
			return false;
	return true;
}

static const struct wire_struct code_type = {
	.is_sound = code_is_sound,
	.fields = {
		{ WIRE_NUMBER(struct function_code, within) },
		{ WIRE_NUMBER(struct function_code, entries) },
		{ WIRE_NUMBER(struct function_code, n_entries) },
		{ WIRE_NUMBER(struct function_code, semaphores) },
	},
};

static int find_function(struct parser_task *task)
{
	const char *name = wire__get_string(&task->parameters, MAX_NAME);
	bool is_usdt = wire__get_u32(&task->parameters);
	struct function_code code = { 0 };
	int err;

	if (!name)
		return -EINVAL;
	err = is_usdt ? function_code__find_usdt(task->fd, task->path, name, &code, task->error)
		      : function_code__find(task->fd, task->path, name, &code, task->error);
	if (!err)
		wire__put_struct(task->result, &code_type, &code, NULL);
	return err;
}

int function_code__parse(struct parser *parser, int fd, const char *path, const char *name,
			 bool is_usdt, struct function_code *out, struct error *error)
{
	struct wire_writer parameters = { 0 };
	struct parser_call call = {
		.run = find_function,
		.fd = fd,
		.path = path,
		.parameters = &parameters,
	};
	struct executable_parts parts;
	struct function_code code = { 0 };
	int err;

	wire__put_string(&parameters, name);
	wire__put_u32(&parameters, is_usdt);
	/* Code of a function outside of executable segments is refused, so without such segments
	 * all is. */
	if (executable_parts__read(fd, &parts))
		parts.n = 0;
	err = parameters.has_failed
		      ? -ENOMEM
		      : parser__call_struct(parser, &call, &code_type, &code, &parts, error);
	if (err == -ENOENT) {
		call.needs_debug_file = true;
		err = parser__call_struct(parser, &call, &code_type, &code, &parts, error);
	}
	wire__release(&parameters);
	if (!err)
		*out = code;
	return err;
}

int wanted_function__parse(struct wanted_function *wanted, const char *text, const char *option,
			   bool only_code, struct error *error)
{
	const char *at = text ? strchr(text, '@') : NULL;

	if (!text)
		return 0;
	if (!*text || at == text || (at && !at[1]))
		return error__set(error, -EINVAL,
				  "'%s' is no function; %s takes SYMBOL or SYMBOL@FILE", text,
				  option);
	if (is_usdt(text) && only_code)
		return error__set(
			error, -EINVAL,
			"'%s' is a USDT probe, which has no calls beneath it; --within takes a "
			"function, --start-on and --stop-on take USDT probes",
			text);
	wanted->symbol = at ? strndup(text, at - text) : strdup(text);
	wanted->file = at ? strdup(at + 1) : NULL;
	return wanted->symbol && (!at || wanted->file) ? 0 : -ENOMEM;
}

void wanted_function__release(struct wanted_function *wanted)
{
	free(wanted->symbol);
	free(wanted->file);
	*wanted = (struct wanted_function){ 0 };
}

bool wanted_function__is_path(const struct wanted_function *wanted)
{
	return !wanted->file || strchr(wanted->file, '/');
}

int wanted_function__open(const struct wanted_function *wanted, const char *program,
			  const char *root, char **path)
{
	bool in_root = wanted->file && wanted->file[0] == '/' && *root;

	if (!wanted->file)
		*path = strdup(program);
	else if (asprintf(path, "%s%s", wanted->file[0] == '/' ? root : "", wanted->file) < 0)
		*path = NULL;
	if (!*path)
		return -ENOMEM;
	return in_root ? regular_file__open_in(root, wanted->file) : regular_file__open(*path);
}

bool wanted_function__is_in(struct wanted_function *wanted, struct parser *parser, int fd,
			    const char *path)
{
	struct dynamic_section dynamic;
	bool is;
	int err;

	if (!wanted->symbol || wanted_function__is_path(wanted))
		return false;
	if (!strcmp(path__name(path), wanted->file))
		return true;
	err = dynamic_section__parse(parser, fd, path, &dynamic);
	if (err == -ECHILD || err == -ENOMEM)
		wanted->missed_files = true;
	if (err)
		return false;
	is = !strcmp(dynamic.name, wanted->file);
	dynamic_section__release(&dynamic);
	return is;
}

const char *wanted_function__not_found(const struct wanted_function *wanted)
{
	return wanted->missed_files ? "the target did not load the file of its function, or that "
				      "file is one that could not be read safely"
				    : "the target did not load the file of its function";
}

int wanted_function__find(struct wanted_function *wanted, struct parser *parser, int fd,
			  const char *path, const char *option, struct function_code *out,
			  struct error *error)
{
	bool of_probe = is_usdt(wanted->symbol);
	const char *name = wanted->symbol + (of_probe ? strlen(usdt_prefix) : 0);
	int err = function_code__parse(parser, fd, path, name, of_probe, out, error);

	/* -ENOENT would mean that the command does not exist. */
	if (err == -ENOENT)
		err = -ESRCH;
	if (err)
		return error && error->text[0] ? error__wrap(error, err, "%s", option) : err;
	wanted->found = true;
	return 0;
}
