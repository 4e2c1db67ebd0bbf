// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Finds out whether a program's own code does without the functions of the allocator in it: a compiler that sees both, as with
 * LTO, puts their code into the callers, or calls clones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "array.h"
#include "profile.h"

/* Functions that the allocator's lead to; what leads to more is not looked at. */
#define MAX_INNER 4096

struct bypass {
	struct allocator_reader *reader;
	struct addresses inner;	 /* the sites, and what they lead to */
	struct addresses called; /* what the sites call themselves */
	struct addresses clones;
	__u64 from;	 /* the function whose branches are visited */
	bool is_reached; /* code of others calls a site */
	bool is_passed;	 /* it calls what the sites call */
	int err;
};

static bool has(const struct addresses *addresses, __u64 vaddr)
{
	for (size_t i = 0; i < addresses->n; i++)
		if (addresses->at[i] == vaddr)
			return true;
	return false;
}

/* The function that has @vaddr, or 0. */
static __u64 function_at(const struct allocator_reader *reader, __u64 vaddr)
{
	const struct addresses *starts = &reader->starts;
	size_t at = ARRAY_LOWER_BOUND(starts->n, i, starts->at[i] <= vaddr);

	return at ? starts->at[at - 1] : 0;
}

/* Whether a function of the file begins at @vaddr, which is no stub of the PLT. */
static bool begins_function(const struct allocator_reader *reader, __u64 vaddr)
{
	struct disasm_insn insn;

	if (function_at(reader, vaddr) != vaddr || reader__decode_at(reader, vaddr, &insn))
		return false;
	if (insn.class == DISASM_OTHER && insn.effects == 0 &&
	    reader__decode_at(reader, vaddr + insn.length, &insn))
		return false;
	return insn.class != DISASM_JUMP_INDIRECT;
}

static void note_inner(const struct disasm_branch *branch, void *arg)
{
	struct bypass *bypass = arg;
	const struct allocator_reader *reader = bypass->reader;

	if (bypass->err || function_at(reader, branch->target) == bypass->from ||
	    !begins_function(reader, branch->target))
		return;
	if (allocator__site_at(reader->allocator, bypass->from) &&
	    !allocator__site_at(reader->allocator, branch->target) &&
	    !has(&bypass->called, branch->target))
		bypass->err = addresses__add(&bypass->called, branch->target);
	if (!bypass->err && !has(&bypass->inner, branch->target))
		bypass->err = bypass->inner.n < MAX_INNER
				      ? addresses__add(&bypass->inner, branch->target)
				      : -EFBIG;
}

/* Adds what the function at @vaddr leads to. */
static void follow(struct bypass *bypass, __u64 vaddr)
{
	const struct allocator_reader *reader = bypass->reader;
	const struct elf_text *text = reader__text_at(reader, vaddr);
	const struct addresses *starts = &reader->starts;
	size_t next = ARRAY_LOWER_BOUND(starts->n, i, starts->at[i] <= vaddr);
	__u64 at, size;

	if (!text)
		return;
	at = vaddr - text->vaddr;
	size = text->size - at;
	if (next < starts->n && starts->at[next] - vaddr < size)
		size = starts->at[next] - vaddr;
	bypass->from = vaddr;
	disasm__scan_branches(text->code + at, size, vaddr, note_inner, bypass);
}

/* Whether @name is that of a copy of a C library function for some of its callers. */
static bool is_clone(const char *name)
{
	static const char *const kinds[] = { ".constprop.", ".isra.", ".part.", ".specialized." };
	const char *dot = strchr(name, '.');
	bool is_of_function = false;

	for (int i = 0; dot && i < AP_C_FUNCTIONS; i++) {
		const char *function = profile__function_name(i);

		is_of_function |= strlen(function) == (size_t)(dot - name) &&
				  !strncmp(function, name, dot - name);
	}
	if (!is_of_function)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strstr(dot, kinds[i]))
			return true;
	return false;
}

static int add_clone(const struct elf_symbol *symbol, void *arg)
{
	return is_clone(symbol->name)
		       ? addresses__add(&((struct bypass *)arg)->clones, symbol->value)
		       : 0;
}

/* Functions that the program exports and that hand out memory by other names call what malloc calls. */
static int add_alike(const struct elf_symbol *symbol, void *arg)
{
	enum interface_family family;

	if (!interface__looks_alike(symbol->name) && !interface__find(symbol->name, &family))
		return 0;
	return addresses__add(&((struct bypass *)arg)->inner, symbol->value);
}

static void look_at(const struct disasm_branch *branch, void *arg)
{
	struct bypass *bypass = arg;
	const struct allocator_reader *reader = bypass->reader;
	bool is_site = allocator__site_at(reader->allocator, branch->target),
	     is_called = !is_site && has(&bypass->called, branch->target),
	     is_clone = !is_site && has(&bypass->clones, branch->target);

	if (!(is_site || is_called || is_clone) ||
	    has(&bypass->inner, function_at(reader, branch->next - 1)))
		return;
	bypass->is_reached |= is_site;
	bypass->is_passed |= is_called;
	/* A clone is called in place of the function, whoever calls that. */
	if (is_clone)
		bypass->reader->allocator->is_bypassed = true;
}

static int look(struct bypass *bypass)
{
	struct allocator_reader *reader = bypass->reader;
	const struct allocator *allocator = reader->allocator;
	int err = elf_file__for_each_further_symbol(reader->elf, add_clone, bypass);

	if (!err)
		err = elf_file__for_each_symbol(reader->elf, add_alike, bypass);
	for (size_t i = 0; i < allocator->n_sites && !err; i++)
		err = addresses__add(&bypass->inner, allocator->sites[i].entry_vaddr);
	for (size_t i = 0; i < bypass->inner.n && !err; i++) {
		follow(bypass, bypass->inner.at[i]);
		err = bypass->err;
	}
	if (err)
		return err;
	for (size_t i = 0; i < reader->n_texts; i++)
		disasm__scan_branches(reader->texts[i].code, reader->texts[i].size,
				      reader->texts[i].vaddr, look_at, bypass);
	for (size_t i = 0; i < reader->n_slots; i++)
		bypass->is_reached |= reader->slots[i].site >= 0;
	reader->allocator->is_bypassed |= bypass->is_passed && !bypass->is_reached;
	return 0;
}

int reader__find_bypass(struct allocator_reader *reader)
{
	struct bypass bypass = { .reader = reader };
	int err;

	if (!elf_file__is_program(reader->elf) || !reader__has_family(reader, INTERFACE_C))
		return 0;
	addresses__sort(&reader->starts);
	err = look(&bypass);
	free(bypass.inner.at);
	free(bypass.called.at);
	free(bypass.clones.at);
	/* What leads to too much is not judged. */
	return err == -EFBIG ? 0 : err;
}
