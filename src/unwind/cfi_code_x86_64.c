// SPDX-License-Identifier: GPL-3.0-or-later
#include "cfi_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "disasm.h"

#define UNKNOWN (-1)

/* Known state before an instruction. */
struct code_place {
	__s32 depth;	/* bytes from the return address down to sp; UNKNOWN */
	__s32 fp_base;	/* @depth when sp was copied to the frame pointer; UNKNOWN: it was not */
	__s32 fp_saved; /* @depth after the caller's frame pointer was pushed; UNKNOWN: still in
			 * its register */
	bool is_met;
	bool is_pending;
	__u8 length; /* of the instruction */
};

struct code {
	__u64 lo;
	const __u8 *bytes;
	size_t size;
	struct code_place *places; /* by offset */
	__u32 *pending;		   /* worklist of instruction offsets, each at most once */
	size_t n_pending;
};

static bool is_same(const struct code_place *a, const struct code_place *b)
{
	return a->depth == b->depth && a->fp_base == b->fp_base && a->fp_saved == b->fp_saved;
}

/* If two paths disagree, the value is UNKNOWN from there on; so a state changes at most twice. */
static void reach(struct code *code, __u64 vaddr, const struct code_place *from)
{
	static const struct code_place none = { UNKNOWN, UNKNOWN, UNKNOWN, false, false, 0 };
	__u64 at = vaddr - code->lo;
	struct code_place *place;

	if (at >= code->size)
		return;
	place = &code->places[at];
	if (place->is_met && (is_same(place, from) || is_same(place, &none)))
		return;
	if (place->is_met)
		from = &none;
	place->depth = from->depth;
	place->fp_base = from->fp_base;
	place->fp_saved = from->fp_saved;
	place->is_met = true;
	if (!place->is_pending)
		code->pending[code->n_pending++] = (__u32)at;
	place->is_pending = true;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Parses the number in `sub $0x18,%rsp`, or in `lea -0x18(%rbp),%rsp` with @prefix "lea " and the
 * register's name as @suffix. */
static bool number_in(const char *text, const char *prefix, const char *suffix, __s32 *number)
{
	char *end;
	long value;

	if (!begins(text, prefix))
		return false;
	value = strtol(text + strlen(prefix), &end, 16);
	if (end == text + strlen(prefix) || strcmp(end, suffix) != 0 || value < -(1 << 24) ||
	    value > 1 << 24)
		return false;
	*number = (__s32)value;
	return true;
}

static bool writes(const char *text, const char *reg)
{
	size_t size = strlen(text), n = strlen(reg);

	return size > n && !strcmp(text + size - n, reg) &&
	       (text[size - n - 1] == ',' || text[size - n - 1] == ' ') && !begins(text, "cmp") &&
	       !begins(text, "test") && !begins(text, "push");
}

/* Sets sp to @depth bytes below the return address; may be UNKNOWN. */
static void set_depth(struct code_place *place, __s32 depth)
{
	place->depth = depth >= 0 ? depth : UNKNOWN;
}

/* Applies the instruction's effect on sp and the frame pointer. */
static void step(const struct disasm_insn *insn, struct code_place *place)
{
	const char *text = insn->text;
	bool is_known = place->depth != UNKNOWN;
	__s32 n;

	if (begins(text, "push")) {
		if (is_known)
			place->depth += 8;
		if (is_known && !strcmp(text, "push %rbp") && place->fp_saved == UNKNOWN)
			place->fp_saved = place->depth;
	} else if (begins(text, "pop")) {
		if (!strcmp(text, "pop %rbp")) {
			if (place->depth == place->fp_saved)
				place->fp_saved = UNKNOWN;
			place->fp_base = UNKNOWN;
		}
		set_depth(place, is_known ? place->depth - 8 : UNKNOWN);
	} else if (!strcmp(text, "mov %rsp,%rbp")) {
		place->fp_base = place->depth;
	} else if (begins(text, "leave")) {
		set_depth(place, place->fp_base == UNKNOWN ? UNKNOWN : place->fp_base - 8);
		place->fp_base = place->fp_saved = UNKNOWN;
	} else if (!strcmp(text, "mov %rbp,%rsp")) {
		set_depth(place, place->fp_base);
	} else if (number_in(text, "sub $", ",%rsp", &n)) {
		set_depth(place, is_known ? place->depth + n : UNKNOWN);
	} else if (number_in(text, "add $", ",%rsp", &n)) {
		set_depth(place, is_known ? place->depth - n : UNKNOWN);
	} else if (number_in(text, "lea ", "(%rsp),%rsp", &n)) {
		set_depth(place, is_known ? place->depth - n : UNKNOWN);
	} else if (number_in(text, "lea ", "(%rbp),%rsp", &n)) {
		set_depth(place, place->fp_base == UNKNOWN ? UNKNOWN : place->fp_base - n);
	} else if (writes(text, "%rsp") || writes(text, "%esp")) {
		place->depth = UNKNOWN;
	} else if (writes(text, "%rbp") || writes(text, "%ebp")) {
		place->fp_base = UNKNOWN;
	}
}

static bool continues(enum disasm_class class)
{
	return class != DISASM_JUMP && class != DISASM_JUMP_INDIRECT && class != DISASM_RET &&
	       class != DISASM_TRAP;
}

static void follow(struct code *code, struct disasm *disasm)
{
	while (code->n_pending) {
		__u32 at = code->pending[--code->n_pending];
		struct code_place place = code->places[at];
		struct disasm_insn insn;

		code->places[at].is_pending = false;
		if (disasm__decode(disasm, code->bytes + at, code->size - at, code->lo + at, &insn))
			continue;
		code->places[at].length = (__u8)insn.length;
		step(&insn, &place);
		if (insn.has_target &&
		    (insn.class == DISASM_JUMP || insn.class == DISASM_JUMP_CONDITIONAL))
			reach(code, insn.target, &place);
		if (continues(insn.class))
			reach(code, insn.vaddr + insn.length, &place);
	}
}

static struct unwind_rule rule_of(const struct code_place *place)
{
	struct unwind_rule rule = { .flags = UNWIND_OF_GO,
				    .ra_where = UNWIND_AT_CFA,
				    .ra_offset = -8 };

	if (place->depth == UNKNOWN && place->fp_base == UNKNOWN)
		return (struct unwind_rule){ 0 };
	rule.cfa = place->depth == UNKNOWN ? UNWIND_CFA_FP : UNWIND_CFA_SP;
	rule.cfa_offset = (place->depth == UNKNOWN ? place->fp_base : place->depth) + 8;
	if (place->fp_saved != UNKNOWN) {
		rule.fp_where = UNWIND_AT_CFA;
		rule.fp_offset = -8 - place->fp_saved;
	}
	return rule;
}

static void free_disasm(struct disasm **disasm)
{
	disasm__free(*disasm);
}

int cfi_code__run(__u64 lo, const __u8 *bytes, size_t size, cfi_rule_fn take, void *ctx)
{
	static const struct code_place entry = { 0, UNKNOWN, UNKNOWN, false, false, 0 };
	static const struct unwind_rule none = { 0 };
	_cleanup_(free_ptr) struct code_place *places = calloc(size, sizeof(*places));
	_cleanup_(free_ptr) __u32 *pending = calloc(size, sizeof(*pending));
	_cleanup_(free_disasm) struct disasm *disasm = NULL;
	struct code code = {
		.lo = lo, .bytes = bytes, .size = size, .places = places, .pending = pending
	};
	int err;

	if (!places || !pending)
		return -ENOMEM;
	if (disasm__new(&disasm))
		return take(ctx, lo, &none);
	reach(&code, lo, &entry);
	follow(&code, disasm);
	err = places[0].is_met ? 0 : take(ctx, lo, &none);
	for (size_t at = 0, end = 0; at < size && !err; at++) {
		struct unwind_rule rule = rule_of(&places[at]);

		if (places[at].is_met) {
			err = take(ctx, lo + at, &rule);
			end = at + places[at].length;
		} else if (at == end) {
			err = take(ctx, lo + at, &none); /* unreachable code */
		}
	}
	return err;
}
