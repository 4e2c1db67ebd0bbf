// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds where a function's caller is from its instructions, where there is no call frame information. */
#include "cfi_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "disasm.h"

#define UNKNOWN	  (-1)
#define MAX_DEPTH (1 << 30)

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

struct code_scan {
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
static void reach(struct code_scan *code, __u64 vaddr, const struct code_place *from)
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

/* Applies the instruction's effect on sp and the frame pointer. */
static void step(const struct disasm_insn *insn, struct code_place *place)
{
	__s64 depth = insn->sp == DISASM_SP_FROM_FP ? place->fp_base : place->depth;

	if (insn->fp == DISASM_FP_POPPED && depth == place->fp_saved)
		place->fp_saved = UNKNOWN;
	if (depth != UNKNOWN)
		depth -= insn->sp_offset;
	if (insn->sp == DISASM_SP_UNKNOWN || depth < 0 || depth > MAX_DEPTH)
		depth = UNKNOWN;
	place->depth = (__s32)depth;
	if (insn->fp == DISASM_FP_PUSHED && place->fp_saved == UNKNOWN)
		place->fp_saved = place->depth;
	else if (insn->fp == DISASM_FP_FROM_SP)
		place->fp_base = place->depth;
	else if (insn->fp == DISASM_FP_POPPED || insn->fp == DISASM_FP_UNKNOWN)
		place->fp_base = UNKNOWN;
}

static void follow(struct code_scan *code)
{
	while (code->n_pending) {
		__u32 at = code->pending[--code->n_pending];
		struct code_place place = code->places[at];
		struct disasm_insn insn;

		code->places[at].is_pending = false;
		if (disasm__decode(code->bytes + at, code->size - at, code->lo + at, &insn))
			continue;
		code->places[at].length = (__u8)insn.length;
		step(&insn, &place);
		if (insn.has_target &&
		    (insn.class == DISASM_JUMP || insn.class == DISASM_JUMP_CONDITIONAL))
			reach(code, insn.target, &place);
		if (disasm_insn__continues(&insn))
			reach(code, insn.vaddr + insn.length, &place);
	}
}

static struct unwind_rule rule_of(const struct code_place *place)
{
	struct unwind_rule rule = { .flags = UNWIND_OF_CODE,
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

int cfi_code__run(__u64 lo, const __u8 *bytes, size_t size, cfi_rule_fn take, void *ctx)
{
	static const struct code_place entry = { 0, UNKNOWN, UNKNOWN, false, false, 0 };
	static const struct unwind_rule none = { 0 };
	_cleanup_(free_ptr) struct code_place *places = calloc(size, sizeof(*places));
	_cleanup_(free_ptr) __u32 *pending = calloc(size, sizeof(*pending));
	struct code_scan code = {
		.lo = lo, .bytes = bytes, .size = size, .places = places, .pending = pending
	};
	int err;

	if (!places || !pending)
		return -ENOMEM;
	reach(&code, lo, &entry);
	follow(&code);
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
