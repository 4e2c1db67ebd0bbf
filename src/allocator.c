// SPDX-License-Identifier: GPL-3.0-or-later
#include "allocator.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "disasm.h"
#include "elf_file.h"
#include "flow.h"
#include "profile.h"

#define MAX_ALIASES	64
#define MAX_SYMBOL_NAME 256
#define MAX_TEXTS	64
/* Return instructions of one allocator at the most that are probed. */
#define MAX_ENDS 64

/* jemalloc has 528. */
#define MAX_RETURNS (1u << 16)

/* The code of glibc's malloc.o has 12 KiB. */
#define MAX_CORE (64u << 10)

struct addresses {
	__u64 *at;
	size_t n;
	size_t room;
};

/* The symbol chosen for a function. */
struct choice {
	bool found;
	bool is_default;
	bool is_ifunc;
	__u64 vaddr;
	__u64 size;
};

/* A GOT slot that leads to probed functions. */
struct slot {
	__u64 vaddr;
	__u32 names;
};

struct reader {
	struct allocator *allocator;
	struct elf_file *elf;
	struct disasm *disasm;
	struct elf_text texts[MAX_TEXTS];
	size_t n_texts;
	struct choice choices[AP_FUNCTIONS];
	struct addresses starts;
	struct addresses returns;
	struct slot *slots;
	size_t n_slots;
	size_t room_slots;
	/* For each site the distances from its entry, less one, that a direct branch leads to. */
	__u64 branched_to[AP_FUNCTIONS];
	__u64 lowest_entry;
	__u64 highest_entry;
	/* Direct calls from here are the allocator's own. */
	__u64 core_start;
	__u64 core_end;
	size_t current;	       /* the site whose flow is walked */
	struct addresses ends; /* return instructions of the allocating functions */
	bool leaves_unseen;    /* one of them may return by other means too */
	int err;	       /* of a callback that cannot return one */
};

static int addresses__add(struct addresses *addresses, __u64 vaddr)
{
	if (array__reserve(&addresses->at, &addresses->room, addresses->n + 1,
			   sizeof(*addresses->at)))
		return -ENOMEM;
	addresses->at[addresses->n++] = vaddr;
	return 0;
}

static int compare_addresses(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a;
	__u64 y = *(const __u64 *)b;

	return x < y ? -1 : x > y;
}

static void addresses__sort(struct addresses *addresses)
{
	size_t n = 0;

	if (addresses->n == 0)
		return;
	qsort(addresses->at, addresses->n, sizeof(*addresses->at), compare_addresses);
	for (size_t i = 0; i < addresses->n; i++)
		if (n == 0 || addresses->at[n - 1] != addresses->at[i])
			addresses->at[n++] = addresses->at[i];
	addresses->n = n;
}

static enum ap_function function_of(const char *name)
{
	int function;

	for (function = 0; function < AP_FUNCTIONS; function++)
		if (strcmp(profile__function_name(function), name) == 0)
			break;
	return (enum ap_function)function;
}

static int choose_symbol(const struct elf_symbol *symbol, void *arg)
{
	struct reader *reader = arg;
	enum ap_function function = function_of(symbol->name);
	struct choice *choice;
	int err = 0;

	if (symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC)
		return 0;
	err = addresses__add(&reader->starts, symbol->value);
	if (err || function == AP_FUNCTIONS)
		return err;
	choice = &reader->choices[function];
	/* Programs linked today call the default version; an older one at another address is a
	 * function of its own that only old programs call. */
	if (choice->found && (choice->is_default || !symbol->is_default))
		return 0;
	choice->found = true;
	choice->is_default = symbol->is_default;
	choice->is_ifunc = symbol->type == STT_GNU_IFUNC;
	choice->vaddr = symbol->value;
	choice->size = symbol->size;
	return addresses__add(&reader->starts, symbol->value + symbol->size);
}

static struct site *site_at(struct allocator *allocator, __u64 vaddr)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].entry_vaddr == vaddr)
			return &allocator->sites[i];
	return NULL;
}

static int add_sites(struct reader *reader, struct error *error)
{
	struct allocator *allocator = reader->allocator;

	for (int function = 0; function < AP_FUNCTIONS; function++) {
		const struct choice *choice = &reader->choices[function];
		struct site *site;

		if (!choice->found)
			continue;
		if (choice->is_ifunc)
			return error__set(
				error, -ENOTSUP,
				"%s chooses its %s when it is loaded (STT_GNU_IFUNC), which "
				"cannot be probed: use a build of it without that",
				allocator->path, profile__function_name(function));
		site = site_at(allocator, choice->vaddr);
		if (!site) {
			site = &allocator->sites[allocator->n_sites++];
			site->function = (enum ap_function)function;
			site->entry_vaddr = choice->vaddr;
			site->size = choice->size;
			if (elf_file__vaddr_to_offset(reader->elf, choice->vaddr,
						      &site->entry_offset))
				return error__set(
					error, -ENOEXEC,
					"%s has its %s outside of the file (0x%llx): it is "
					"damaged",
					allocator->path, profile__function_name(function),
					(unsigned long long)choice->vaddr);
			if (choice->vaddr < reader->lowest_entry)
				reader->lowest_entry = choice->vaddr;
			if (choice->vaddr > reader->highest_entry)
				reader->highest_entry = choice->vaddr;
		}
		site->names |= 1u << function;
	}
	return 0;
}

static bool site__has_alias(const struct site *site, const char *name)
{
	for (size_t i = 0; i < site->n_aliases; i++)
		if (strcmp(site->aliases[i], name) == 0)
			return true;
	return false;
}

static int add_alias(const struct elf_symbol *symbol, void *arg)
{
	struct reader *reader = arg;
	struct site *site = site_at(reader->allocator, symbol->value);
	char *name;

	if (!site || symbol->type != STT_FUNC || site->n_aliases == MAX_ALIASES ||
	    strlen(symbol->name) > MAX_SYMBOL_NAME ||
	    strcmp(symbol->name, profile__function_name(site->function)) == 0 ||
	    site__has_alias(site, symbol->name))
		return 0;
	name = strdup(symbol->name);
	if (!name)
		return -ENOMEM;
	site->aliases[site->n_aliases++] = name;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_aliases(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;
	int err;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		allocator->sites[i].aliases = calloc(MAX_ALIASES, sizeof(char *));
		if (!allocator->sites[i].aliases)
			return -ENOMEM;
	}
	err = elf_file__for_each_symbol(reader->elf, add_alias, reader);
	if (err)
		return err;
	for (size_t i = 0; i < allocator->n_sites; i++)
		qsort(allocator->sites[i].aliases, allocator->sites[i].n_aliases, sizeof(char *),
		      compare_names);
	return 0;
}

/* The functions that a call by @name reaches, as far as this file tells. */
static __u32 names_of(const struct allocator *allocator, const char *name)
{
	enum ap_function function = function_of(name);
	const struct site *site;

	if (function < AP_FUNCTIONS) {
		site = allocator__find(allocator, function);
		return site ? site->names : 1u << function;
	}
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (site__has_alias(&allocator->sites[i], name))
			return allocator->sites[i].names;
	return 0;
}

static int add_slot(const struct elf_slot *elf_slot, void *arg)
{
	struct reader *reader = arg;
	struct slot slot = {
		.vaddr = elf_slot->vaddr,
		.names = names_of(reader->allocator, elf_slot->name),
	};

	if (!slot.names)
		return 0;
	if (array__reserve(&reader->slots, &reader->room_slots, reader->n_slots + 1,
			   sizeof(*reader->slots)))
		return -ENOMEM;
	reader->slots[reader->n_slots++] = slot;
	return 0;
}

static __u32 names_of_slot(const struct reader *reader, __u64 vaddr)
{
	for (size_t i = 0; i < reader->n_slots; i++)
		if (reader->slots[i].vaddr == vaddr)
			return reader->slots[i].names;
	return 0;
}

static const struct elf_text *text_at(const struct reader *reader, __u64 vaddr)
{
	for (size_t i = 0; i < reader->n_texts; i++)
		if (vaddr - reader->texts[i].vaddr < reader->texts[i].size)
			return &reader->texts[i];
	return NULL;
}

static int decode_at(const struct reader *reader, __u64 vaddr, struct disasm_insn *out)
{
	const struct elf_text *text = text_at(reader, vaddr);
	__u64 at;

	if (!text)
		return -ENOENT;
	at = vaddr - text->vaddr;
	return disasm__decode(reader->disasm, text->code + at, text->size - at, vaddr, out);
}

/* The functions that a PLT stub at @vaddr jumps to, 0 if there is no such stub. */
static __u32 names_of_stub(const struct reader *reader, __u64 vaddr)
{
	struct disasm_insn insn;

	if (reader->n_slots == 0 || decode_at(reader, vaddr, &insn))
		return 0;
	/* endbr64, with branch protection */
	if (insn.class == DISASM_OTHER && insn.effects == 0 &&
	    decode_at(reader, vaddr + insn.length, &insn))
		return 0;
	if (insn.class != DISASM_JUMP_INDIRECT || !insn.has_slot)
		return 0;
	return names_of_slot(reader, insn.slot);
}

static void note_branch(struct reader *reader, __u64 target)
{
	const struct allocator *allocator = reader->allocator;

	if (target <= reader->lowest_entry || target > reader->highest_entry + SITE_MAX_DISTANCE)
		return;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		__u64 distance = target - allocator->sites[i].entry_vaddr;

		if (distance - 1 < SITE_MAX_DISTANCE)
			reader->branched_to[i] |= 1ULL << (distance - 1);
	}
}

static void note_return(struct reader *reader, __u64 vaddr)
{
	if (reader->err)
		return;
	/* A hostile file can have one at each byte. */
	if (reader->returns.n >= MAX_RETURNS)
		reader->err = -EFBIG;
	else
		reader->err = addresses__add(&reader->returns, vaddr);
}

/* How the function may be left. A jump to another function is followed if that is in the same text; what
 * it jumps to through a table or a stub is not known, unless it is a function that is probed too. */
static void note_end(struct reader *reader, const struct disasm_insn *insn)
{
	__u64 target;

	if (reader->allocator->sites[reader->current].function == AP_FREE || reader->err)
		return;
	if (insn->class == DISASM_RET) {
		if (reader->ends.n >= MAX_ENDS)
			reader->leaves_unseen = true;
		else
			reader->err = addresses__add(&reader->ends, insn->vaddr);
	} else if (insn->class == DISASM_JUMP_INDIRECT) {
		if (!insn->has_slot || !names_of_slot(reader, insn->slot))
			reader->leaves_unseen = true;
	} else if (insn->class == DISASM_JUMP || insn->class == DISASM_JUMP_CONDITIONAL) {
		target = insn->target;
		if (!insn->has_target || text_at(reader, target) != text_at(reader, insn->vaddr))
			reader->leaves_unseen |=
				!insn->has_target || !names_of_stub(reader, target);
	}
}

static bool visit(const struct disasm_insn *insn, void *arg)
{
	struct reader *reader = arg;
	struct site *site = &reader->allocator->sites[reader->current];
	const struct site *other;
	__u32 names = 0;

	note_end(reader, insn);
	switch (insn->class) {
	case DISASM_CALL:
	case DISASM_CALL_INDIRECT:
		note_return(reader, insn->vaddr + insn->length);
		if (insn->has_target)
			note_branch(reader, insn->target);
		return false;
	case DISASM_JUMP:
	case DISASM_JUMP_CONDITIONAL:
		if (!insn->has_target)
			return false;
		note_branch(reader, insn->target);
		other = site_at(reader->allocator, insn->target);
		names = other ? other->names : names_of_stub(reader, insn->target);
		break;
	case DISASM_JUMP_INDIRECT:
		if (insn->has_slot)
			names = names_of_slot(reader, insn->slot);
		break;
	default:
		return false;
	}
	/* Not to itself. */
	site->tail_calls |= names & ~site->names;
	return names == 0;
}

static int walk_flows(struct reader *reader)
{
	const struct allocator *allocator = reader->allocator;

	for (size_t i = 0; i < allocator->n_sites; i++) {
		__u64 entry = allocator->sites[i].entry_vaddr;
		const struct elf_text *text = text_at(reader, entry);
		int err;

		if (!text)
			return -ENOENT;
		reader->current = i;
		err = flow__walk(reader->disasm, text, reader->starts.at, reader->starts.n, entry,
				 visit, reader);
		if (err || reader->err)
			return err ? err : reader->err;
	}
	return 0;
}

static void visit_anywhere(const struct disasm_branch *branch, void *arg)
{
	struct reader *reader = arg;

	if (branch->target < reader->lowest_entry ||
	    branch->target > reader->highest_entry + SITE_MAX_DISTANCE)
		return;
	note_branch(reader, branch->target);
	if (branch->is_call && branch->next > reader->core_start &&
	    branch->next <= reader->core_end && site_at(reader->allocator, branch->target))
		note_return(reader, branch->next);
}

/*
 * A library calls its own exported functions through the PLT, where it means what the program may
 * replace; a direct call is one allocator's function to another. In a program that contains its
 * allocator every call is direct, so there only the code around the basic functions is believed to
 * be the allocator.
 */
static void find_core(struct reader *reader)
{
	static const enum ap_function basic[] = { AP_MALLOC, AP_CALLOC, AP_REALLOC, AP_FREE };
	__u64 start = UINT64_MAX;
	__u64 end = 0;

	reader->core_start = 0;
	reader->core_end = UINT64_MAX;
	if (!elf_file__is_program(reader->elf))
		return;
	for (size_t i = 0; i < sizeof(basic) / sizeof(basic[0]); i++) {
		const struct choice *choice = &reader->choices[basic[i]];

		if (!choice->found)
			continue;
		if (choice->vaddr < start)
			start = choice->vaddr;
		if (choice->vaddr + choice->size > end)
			end = choice->vaddr + choice->size;
	}
	if (end - start > MAX_CORE)
		end = start;
	reader->core_start = start;
	reader->core_end = end;
}

static int scan_texts(struct reader *reader)
{
	find_core(reader);
	for (size_t i = 0; i < reader->n_texts; i++) {
		const struct elf_text *text = &reader->texts[i];

		disasm_arch__scan_branches(text->code, text->size, text->vaddr, visit_anywhere,
					   reader);
	}
	return reader->err;
}

/* What of the caller's state an instruction may have changed, for people; NULL: nothing. */
static const char *harm(const struct disasm_insn *insn)
{
	switch (insn->class) {
	case DISASM_JUMP_CONDITIONAL:
	case DISASM_JUMP:
	case DISASM_JUMP_INDIRECT:
	case DISASM_RET:
	case DISASM_TRAP:
		return "leaves the straight line";
	default:
		break;
	}
	if (insn->effects & DISASM_WRITES_ARGUMENT)
		return "writes an argument register";
	if (insn->effects & DISASM_WRITES_SP)
		return "writes the stack pointer";
	if (insn->effects & DISASM_WRITES_MEMORY)
		return "writes memory";
	return insn->effects ? "is not known to be harmless" : NULL;
}

/* The first emulated instruction that sees what the entry saw, 0; or why there is none, -ENOENT. */
static int find_emulated(const struct reader *reader, const struct site *site,
			 struct disasm_insn *out, char *reason, size_t size)
{
	__u64 vaddr = site->entry_vaddr;

	while (vaddr - site->entry_vaddr <= SITE_MAX_DISTANCE) {
		struct disasm_insn insn;
		const char *what;

		if (decode_at(reader, vaddr, &insn)) {
			snprintf(reason, size,
				 "no instruction can be decoded at 0x%llx, before any emulated one",
				 (unsigned long long)vaddr);
			return -ENOENT;
		}
		if (insn.emulated) {
			*out = insn;
			return 0;
		}
		what = harm(&insn);
		if (what) {
			snprintf(reason, size, "`%s` %s before any emulated instruction", insn.text,
				 what);
			return -ENOENT;
		}
		vaddr += insn.length;
	}
	snprintf(reason, size, "no emulated instruction in the first %d bytes", SITE_MAX_DISTANCE);
	return -ENOENT;
}

/* Whether a branch leads into (entry, @distance]: such a pass would be a hit without a call. */
static bool is_branched_into(__u64 branched_to, __u64 distance, __u64 *where)
{
	for (__u64 i = 1; i <= distance; i++) {
		if (!(branched_to >> (i - 1) & 1))
			continue;
		*where = i;
		return true;
	}
	return false;
}

static void place(const struct reader *reader, struct site *site, __u64 branched_to,
		  enum site_policy policy)
{
	char reason[sizeof(site->reason)] = "";
	struct disasm_insn insn = { 0 };
	__u64 where;

	if (policy == SITE_ENTRY) {
		snprintf(reason, sizeof(reason), "the entry was asked for");
	} else if (!find_emulated(reader, site, &insn, reason, sizeof(reason))) {
		if (!is_branched_into(branched_to, insn.vaddr - site->entry_vaddr, &where))
			goto found;
		snprintf(reason, sizeof(reason),
			 "a branch leads to entry+%llu, at or before the emulated `%s`",
			 (unsigned long long)where, insn.text);
	}
	if (decode_at(reader, site->entry_vaddr, &insn)) {
		insn.vaddr = site->entry_vaddr;
		insn.emulated = false;
		snprintf(insn.text, sizeof(insn.text), "(bad)");
	}
found:
	site->probe_vaddr = insn.vaddr;
	site->probe_offset = site->entry_offset + (insn.vaddr - site->entry_vaddr);
	site->emulated = insn.emulated;
	snprintf(site->instruction, sizeof(site->instruction), "%.*s",
		 (int)sizeof(site->instruction) - 1, insn.text);
	if (!insn.emulated)
		memcpy(site->reason, reason, sizeof(site->reason));
}

static int read_texts(struct reader *reader)
{
	while (reader->n_texts < MAX_TEXTS) {
		int err = elf_file__text(reader->elf, reader->n_texts,
					 &reader->texts[reader->n_texts]);

		if (err)
			return err == -ENOENT ? 0 : err;
		reader->n_texts++;
	}
	return 0;
}

static int read_starts(struct reader *reader)
{
	_cleanup_(free_ptr) __u64 *fdes = NULL;
	size_t n;
	int err = elf_file__fde_starts(reader->elf, &fdes, &n);

	for (size_t i = 0; !err && i < n; i++)
		err = addresses__add(&reader->starts, fdes[i]);
	addresses__sort(&reader->starts);
	return err;
}

/* What only C libraries and well-known allocators define. A program that brings a malloc of its own
 * defines none of these but __libc_start_main, where it is static. */
static int find_known(const struct elf_symbol *symbol, void *arg)
{
	static const char *const names[] = { "mallctl", "je_mallctl", "mi_version", "tc_version",
					     "__libc_malloc_impl" };
	struct reader *reader = arg;
	__u64 malloc_vaddr = reader->choices[AP_MALLOC].vaddr;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(symbol->name, names[i]))
			return 1;
	if (!strcmp(symbol->name, "__libc_start_main"))
		return !elf_file__is_program(reader->elf);
	return symbol->value == malloc_vaddr &&
	       (!strcmp(symbol->name, "__libc_malloc") || !strcmp(symbol->name, "default_malloc"));
}

/* Decides how returns are to be seen, and where. */
static int find_ends(struct reader *reader)
{
	struct allocator *allocator = reader->allocator;

	allocator->returns = RETURNS_UNKNOWN;
	if (elf_file__for_each_symbol(reader->elf, find_known, reader) > 0) {
		allocator->returns = RETURNS_PROBED;
		return 0;
	}
	if (reader->leaves_unseen || !reader->ends.n)
		return 0;
	addresses__sort(&reader->ends);
	for (size_t i = 0; i < reader->ends.n; i++)
		if (elf_file__vaddr_to_offset(reader->elf, reader->ends.at[i], &reader->ends.at[i]))
			return -ENOEXEC;
	allocator->returns = RETURNS_AT_INSTRUCTIONS;
	allocator->return_offsets = reader->ends.at;
	allocator->n_return_offsets = reader->ends.n;
	reader->ends = (struct addresses){ 0 };
	return 0;
}

static int defines_source(const struct elf_symbol *symbol, void *arg)
{
	const char *const *names = arg;

	for (; *names; names++)
		if (strcmp(*names, symbol->name) == 0)
			return 1;
	return 0;
}

static bool is_wrapper(struct elf_file *elf)
{
	/* Ways to get memory; "__morecore" was glibc's hook until 2.33. */
	const char *const sources[] = { "mmap", "mmap64",   "__mmap",	  "sbrk", "__sbrk",
					"brk",	"morecore", "__morecore", NULL };

	if (!elf_file__imports(elf, "dlsym") && !elf_file__imports(elf, "dlvsym"))
		return false;
	for (const char *const *name = sources; *name; name++)
		if (elf_file__imports(elf, *name))
			return false;
	return elf_file__for_each_symbol(elf, defines_source, (void *)(unsigned long)sources) == 0;
}

static int check_entries(const struct reader *reader, struct error *error)
{
	const struct allocator *allocator = reader->allocator;

	for (size_t i = 0; i < allocator->n_sites; i++)
		if (!text_at(reader, allocator->sites[i].entry_vaddr))
			return error__set(error, -ENOEXEC,
					  "%s has its %s outside of its code: it is damaged",
					  allocator->path,
					  profile__function_name(allocator->sites[i].function));
	return 0;
}

static int read_code(struct reader *reader, enum site_policy policy)
{
	struct allocator *allocator = reader->allocator;
	int err = add_aliases(reader);

	if (!err)
		err = elf_file__for_each_slot(reader->elf, add_slot, reader);
	if (!err)
		err = read_starts(reader);
	if (!err)
		err = disasm__new(&reader->disasm);
	if (!err)
		err = walk_flows(reader);
	if (!err)
		err = scan_texts(reader);
	if (err)
		return err;
	for (size_t i = 0; i < allocator->n_sites; i++)
		place(reader, &allocator->sites[i], reader->branched_to[i], policy);
	err = find_ends(reader);
	if (err)
		return err;
	addresses__sort(&reader->returns);
	allocator->internal_returns = reader->returns.at;
	allocator->n_internal_returns = reader->returns.n;
	reader->returns = (struct addresses){ 0 };
	return 0;
}

static int read_allocator(struct reader *reader, enum site_policy policy, struct error *error)
{
	struct allocator *allocator = reader->allocator;
	int err = elf_file__for_each_symbol(reader->elf, choose_symbol, reader);

	if (err)
		goto failed;
	if (!reader->choices[AP_MALLOC].found || !reader->choices[AP_FREE].found)
		return error__set(error, -ENOENT,
				  "%s defines no allocator: it has no malloc and free of its own",
				  allocator->path);
	err = add_sites(reader, error);
	if (err)
		return err;
	err = read_texts(reader);
	if (err)
		goto failed;
	err = check_entries(reader, error);
	if (err)
		return err;
	err = read_code(reader, policy);
	if (err)
		goto failed;
	elf_file__text_range(reader->elf, &allocator->text_start, &allocator->text_end);
	snprintf(allocator->build_id, sizeof(allocator->build_id), "%s",
		 elf_file__build_id(reader->elf));
	allocator->is_wrapper = is_wrapper(reader->elf);
	return 0;
failed:
	return error__set(error, err, "cannot read the allocator in %s: %s", allocator->path,
			  strerror(-err));
}

int allocator__read(int fd, const char *path, enum site_policy policy, struct allocator **out,
		    struct error *error)
{
	struct reader reader = { .lowest_entry = ~0ULL };
	int err;

	reader.allocator = calloc(1, sizeof(*reader.allocator));
	if (!reader.allocator)
		return error__set(error, -ENOMEM, "no memory to read %s", path);
	reader.allocator->path = strdup(path);
	if (!reader.allocator->path) {
		err = error__set(error, -ENOMEM, "no memory to read %s", path);
		goto out;
	}
	err = elf_file__open(fd, path, &reader.elf, error);
	if (!err)
		err = read_allocator(&reader, policy, error);
	if (!err) {
		*out = reader.allocator;
		reader.allocator = NULL;
	}
out:
	free(reader.slots);
	free(reader.starts.at);
	free(reader.returns.at);
	free(reader.ends.at);
	disasm__free(reader.disasm);
	elf_file__free(reader.elf);
	allocator__free(reader.allocator);
	return err;
}

void allocator__free(struct allocator *allocator)
{
	if (!allocator)
		return;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		for (size_t j = 0; j < allocator->sites[i].n_aliases; j++)
			free(allocator->sites[i].aliases[j]);
		free(allocator->sites[i].aliases);
	}
	free(allocator->internal_returns);
	free(allocator->return_offsets);
	free(allocator->path);
	free(allocator);
}

const struct site *allocator__find(const struct allocator *allocator, enum ap_function function)
{
	for (size_t i = 0; i < allocator->n_sites; i++)
		if (allocator->sites[i].names >> function & 1)
			return &allocator->sites[i];
	return NULL;
}

bool allocator__is_internal_return(const struct allocator *allocator, __u64 vaddr)
{
	if (allocator->n_internal_returns == 0)
		return false;
	return bsearch(&vaddr, allocator->internal_returns, allocator->n_internal_returns,
		       sizeof(vaddr), compare_addresses) != NULL;
}
