// SPDX-License-Identifier: GPL-3.0-or-later
#include "cfi.h"
#include "cfi_internal.h"
#include "cleanup.h"
#include "error.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <cmocka.h>

#define TEXT	   0x10000ull
#define TEXT_SIZE  0x1000ull
#define TEXT_FILE  0x3000ull
#define EH_VADDR   0x20000ull
#define OPS(...)   ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })
#define RBP	   6
#define RSP	   7
#define RIP	   16
#define MAX_CHECKS 4

/* ---- hand-assembled sections ---- */

struct bytes {
	uint8_t *data;
	size_t size;
	size_t room;
	size_t entry; /* where the open entry's length is */
	bool wide;
	bool debug_frame;
};

static void put(struct bytes *b, const void *data, size_t size)
{
	if (b->size + size > b->room) {
		b->room = (b->size + size) * 2;
		b->data = realloc(b->data, b->room);
		assert_non_null(b->data);
	}
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void put_int(struct bytes *b, uint64_t value, size_t size)
{
	put(b, &value, size);
}

static void put_uleb(struct bytes *b, uint64_t value)
{
	do {
		put_int(b, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

static void begin_entry(struct bytes *b)
{
	b->entry = b->size;
	if (b->wide) {
		put_int(b, 0xffffffff, 4);
		put_int(b, 0, 8);
	} else {
		put_int(b, 0, 4);
	}
}

static void end_entry(struct bytes *b)
{
	size_t head = b->wide ? 12 : 4;
	uint64_t length;

	while (b->size % 4)
		put_int(b, DW_CFA_nop, 1);
	length = b->size - b->entry - head;
	memcpy(b->data + b->entry + (b->wide ? 4 : 0), &length, b->wide ? 8 : 4);
}

static size_t id_size(const struct bytes *b)
{
	return b->wide && b->debug_frame ? 8 : 4;
}

struct cie {
	const char *augmentation;
	const void *augmentation_data;
	size_t augmentation_size;
	uint8_t version; /* 0: 1 */
	uint8_t code_align;
	uint8_t address_size;
	uint8_t ra;
	const uint8_t *ops; /* NULL: CFA = rsp + 8, return address at CFA - 8 */
	size_t ops_size;
};

static size_t put_cie(struct bytes *b, const struct cie *cie)
{
	size_t at = b->size;

	begin_entry(b);
	put_int(b, b->debug_frame ? ~0ull : 0, id_size(b));
	put_int(b, cie->version ? cie->version : 1, 1);
	put(b, cie->augmentation, strlen(cie->augmentation) + 1);
	if (!strcmp(cie->augmentation, "eh"))
		put_int(b, 0x1234, 8);
	if (cie->version == 4) {
		put_int(b, cie->address_size ? cie->address_size : 8, 1);
		put_int(b, 0, 1);
	}
	put_uleb(b, cie->code_align ? cie->code_align : 1);
	put_int(b, 0x78, 1); /* -8 */
	put_int(b, cie->ra ? cie->ra : RIP, 1);
	if (cie->augmentation[0] == 'z') {
		put_uleb(b, cie->augmentation_size);
		put(b, cie->augmentation_data, cie->augmentation_size);
	}
	if (cie->ops) {
		put(b, cie->ops, cie->ops_size);
	} else {
		put(b, OPS(DW_CFA_def_cfa, RSP, 8));
		put(b, OPS(DW_CFA_offset + RIP, 1));
	}
	end_entry(b);
	return at;
}

static void begin_fde(struct bytes *b, size_t cie)
{
	begin_entry(b);
	put_int(b, b->debug_frame ? cie : b->size - cie, id_size(b));
}

/* absptr pointers */
static void put_fde(struct bytes *b, size_t cie, uint64_t lo, uint64_t size, const uint8_t *ops,
		    size_t ops_size)
{
	begin_fde(b, cie);
	put_int(b, lo, 8);
	put_int(b, size, 8);
	put(b, ops, ops_size);
	end_entry(b);
}

static const struct cie plain_cie = { .augmentation = "" };

static struct cfi_section section_of(const struct bytes *b)
{
	return (struct cfi_section){ .data = b->data,
				     .size = b->size,
				     .vaddr = b->debug_frame ? 0 : EH_VADDR,
				     .debug_frame = b->debug_frame };
}

static const struct cfi_text plain_text = { TEXT, TEXT_FILE, TEXT_SIZE };

static struct cfi_table *compile_section(const struct cfi_section *section)
{
	struct cfi_table *table = NULL;

	assert_int_equal(cfi_table__compile(&cfi_arch_host, section, 1, &plain_text, 1, &table), 0);
	return table;
}

static struct cfi_table *compile(const struct bytes *b)
{
	struct cfi_section section = section_of(b);

	return compile_section(&section);
}

static int compile_error(const struct bytes *b)
{
	struct cfi_section section = section_of(b);
	struct cfi_table *table = NULL;
	int err;

	err = cfi_table__compile(&cfi_arch_host, &section, 1, &plain_text, 1, &table);
	assert_null(table);
	return err;
}

/* ---- rules ---- */

static struct unwind_rule sp_rule(int offset)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_SP,
				     .cfa_offset = offset,
				     .ra_where = UNWIND_AT_CFA,
				     .ra_offset = -8 };
}

static struct unwind_rule unsupported_rule(enum unwind_unsupported kind, int reg)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED,
				     .cfa_offset = kind,
				     .cfa_add = (int16_t)reg };
}

static void check_rule(const char *what, const struct cfi_table *table, uint64_t pc,
		       const struct unwind_rule *expected)
{
	struct unwind_rule got = { 0 };

	cfi_table__lookup(table, pc, &got);
	if (memcmp(&got, expected, sizeof(got)))
		fail_msg("%s at 0x%llx: expected cfa %u %d %d fp %u %d ra %u %d flags %u, got cfa "
			 "%u %d %d fp %u %d ra %u %d flags %u",
			 what, (unsigned long long)pc, expected->cfa, expected->cfa_offset,
			 expected->cfa_add, expected->fp_where, expected->fp_offset,
			 expected->ra_where, expected->ra_offset, expected->flags, got.cfa,
			 got.cfa_offset, got.cfa_add, got.fp_where, got.fp_offset, got.ra_where,
			 got.ra_offset, got.flags);
}

static void check_sp(const struct cfi_table *table, uint64_t pc, int offset)
{
	struct unwind_rule rule = sp_rule(offset);

	check_rule("row", table, pc, &rule);
}

static void check_none(const struct cfi_table *table, uint64_t pc)
{
	struct unwind_rule rule;

	assert_false(cfi_table__lookup(table, pc, &rule));
}

/* What holds for every table, whatever it was made of. */
static void check_table(const struct cfi_table *table)
{
	uint32_t rows = 0;

	for (uint32_t i = 0; i < table->segment_count; i++) {
		uint64_t pc = table->segments[i].vaddr, end = pc + table->segments[i].size;
		struct cfi_range range;

		assert_true(table->segments[i].size);
		while (pc < end) {
			struct unwind_rule rule = { 0 };

			assert_true(cfi_table__range(table, pc, &range));
			assert_int_equal(range.lo, pc);
			assert_true(range.hi > range.lo && range.hi <= end);
			cfi_table__lookup(table, range.hi - 1, &rule);
			assert_memory_equal(&rule, &range.rule, sizeof(rule));
			pc = range.hi;
			rows++;
		}
		assert_false(cfi_table__range(table, end, &range) && range.lo < end);
	}
	assert_int_equal(rows, table->row_count);
	assert_true(table->rule_count <= UNWIND_MAX_RULES);
	assert_true(table->rules[0].cfa == UNWIND_CFA_NONE);
	assert_true(cfi_table__is_sound(table));
}

/* ---- instructions ---- */

struct check {
	unsigned int at; /* offset in the FDE */
	struct unwind_rule rule;
};

struct program {
	const char *name;
	const uint8_t *ops;
	size_t size;
	struct check checks[MAX_CHECKS]; /* ends at the first with cfa 0 */
};

#define SP(n)	   .cfa = UNWIND_CFA_SP, .cfa_offset = (n)
#define FP(n)	   .cfa = UNWIND_CFA_FP, .cfa_offset = (n)
#define RA	   .ra_where = UNWIND_AT_CFA, .ra_offset = -8
#define SAVED(n)   .fp_where = UNWIND_AT_CFA, .fp_offset = (n)
#define UNSUP(why) .cfa = UNWIND_CFA_UNSUPPORTED, .cfa_offset = UNWIND_UNSUPPORTED_##why
#define ADVANCE(n) (DW_CFA_advance_loc | (n))
#define BREG(r)	   (DW_OP_breg0 + (r))

static const struct program programs[] = {
	{ "nothing", OPS(DW_CFA_nop), { { 0, { SP(8), RA } }, { 99, { SP(8), RA } } } },
	{ "advance_loc",
	  OPS(ADVANCE(1), DW_CFA_def_cfa_offset, 16, ADVANCE(3), DW_CFA_def_cfa_offset, 24),
	  { { 0, { SP(8), RA } },
	    { 1, { SP(16), RA } },
	    { 3, { SP(16), RA } },
	    { 4, { SP(24), RA } } } },
	{ "advance_loc1, 2, 4",
	  OPS(DW_CFA_advance_loc1, 10, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc2, 10, 0,
	      DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc4, 10, 0, 0, 0, DW_CFA_def_cfa_offset,
	      32),
	  { { 9, { SP(8), RA } },
	    { 10, { SP(16), RA } },
	    { 29, { SP(24), RA } },
	    { 30, { SP(32), RA } } } },
	{ "set_loc",
	  OPS(DW_CFA_set_loc, 0x08, 0x00, 0x01, 0, 0, 0, 0, 0, DW_CFA_def_cfa_offset, 16),
	  { { 7, { SP(8), RA } }, { 8, { SP(16), RA } } } },
	{ "set_loc backwards",
	  OPS(ADVANCE(9), DW_CFA_set_loc, 0x08, 0x00, 0x01, 0, 0, 0, 0, 0),
	  { { 0, { UNSUP(BAD_FDE) } }, { 50, { UNSUP(BAD_FDE) } } } },
	{ "advance past the end",
	  OPS(DW_CFA_advance_loc2, 0xff, 0xff, DW_CFA_def_cfa_offset, 16),
	  { { 0, { SP(8), RA } }, { 99, { SP(8), RA } } } },
	{ "def_cfa", OPS(DW_CFA_def_cfa, RBP, 16), { { 0, { FP(16), RA } } } },
	{ "def_cfa_sf", OPS(DW_CFA_def_cfa_sf, RBP, 0x7e), { { 0, { FP(16), RA } } } },
	{ "def_cfa_register", OPS(DW_CFA_def_cfa_register, RBP), { { 0, { FP(8), RA } } } },
	{ "def_cfa_offset_sf", OPS(DW_CFA_def_cfa_offset_sf, 0x7d), { { 0, { SP(24), RA } } } },
	{ "def_cfa of another register",
	  OPS(DW_CFA_def_cfa, 10, 0),
	  { { 0, { UNSUP(CFA_REGISTER), .cfa_add = 10 } } } },
	{ "register number that would pass for the CFA",
	  OPS(DW_CFA_def_cfa, 0xff, 0xff, 0x03, 0),
	  { { 0, { UNSUP(CFA_REGISTER), .cfa_add = (int16_t)CFI_REG_OTHER } } } },
	{ "offset", OPS(DW_CFA_offset + RBP, 2), { { 0, { SP(8), RA, SAVED(-16) } } } },
	{ "offset of a register of no interest",
	  OPS(DW_CFA_offset + 3, 2),
	  { { 0, { SP(8), RA } } } },
	{ "offset_extended",
	  OPS(DW_CFA_offset_extended, RBP, 2),
	  { { 0, { SP(8), RA, SAVED(-16) } } } },
	{ "offset_extended_sf",
	  OPS(DW_CFA_offset_extended_sf, RBP, 0x7e),
	  { { 0, { SP(8), RA, SAVED(16) } } } },
	{ "GNU_negative_offset_extended",
	  OPS(DW_CFA_GNU_negative_offset_extended, RBP, 2),
	  { { 0, { SP(8), RA, SAVED(16) } } } },
	{ "restore",
	  OPS(DW_CFA_offset + RBP, 2, ADVANCE(1), DW_CFA_restore + RBP),
	  { { 0, { SP(8), RA, SAVED(-16) } }, { 1, { SP(8), RA } } } },
	{ "restore_extended to what the CIE says",
	  OPS(DW_CFA_undefined, RIP, ADVANCE(1), DW_CFA_restore_extended, RIP),
	  { { 0, { SP(8), .ra_where = UNWIND_UNDEFINED } }, { 1, { SP(8), RA } } } },
	{ "undefined",
	  OPS(DW_CFA_undefined, RBP),
	  { { 0, { SP(8), RA, .fp_where = UNWIND_UNDEFINED } } } },
	{ "same_value",
	  OPS(DW_CFA_offset + RBP, 2, ADVANCE(1), DW_CFA_same_value, RBP),
	  { { 0, { SP(8), RA, SAVED(-16) } }, { 1, { SP(8), RA } } } },
	{ "return address with same_value",
	  OPS(DW_CFA_same_value, RIP),
	  { { 0, { UNSUP(RA_UNKNOWN) } } } },
	{ "register",
	  OPS(DW_CFA_register, RIP, 5, ADVANCE(1), DW_CFA_offset + RIP, 1, DW_CFA_register, RBP, 3,
	      ADVANCE(1), DW_CFA_register, RBP, RBP),
	  { { 0, { UNSUP(RA_REGISTER), .cfa_add = 5 } },
	    { 1, { UNSUP(FP_REGISTER), .cfa_add = 3 } },
	    { 2, { SP(8), RA } } } },
	{ "val_offset",
	  OPS(DW_CFA_val_offset, RSP, 0, ADVANCE(1), DW_CFA_val_offset, RSP, 1, ADVANCE(1),
	      DW_CFA_val_offset_sf, RSP, 0, DW_CFA_val_offset, RBP, 2),
	  { { 0, { SP(8), RA } }, { 1, { UNSUP(SP) } }, { 2, { UNSUP(FP_EXPRESSION) } } } },
	{ "remember_state, restore_state with the CFA",
	  OPS(DW_CFA_remember_state, DW_CFA_remember_state, DW_CFA_def_cfa, RBP, 16,
	      DW_CFA_offset + RBP, 2, ADVANCE(1), DW_CFA_restore_state, ADVANCE(1),
	      DW_CFA_def_cfa_offset, 32, ADVANCE(1), DW_CFA_restore_state),
	  { { 0, { FP(16), RA, SAVED(-16) } },
	    { 1, { SP(8), RA } },
	    { 2, { SP(32), RA } },
	    { 3, { SP(8), RA } } } },
	{ "restore_state without remember_state",
	  OPS(ADVANCE(1), DW_CFA_restore_state),
	  { { 0, { UNSUP(BAD_FDE) } } } },
	{ "GNU_args_size",
	  OPS(DW_CFA_GNU_args_size, 0x80, 1, DW_CFA_def_cfa_offset, 16),
	  { { 0, { SP(16), RA } } } },
	{ "unknown instruction", OPS(ADVANCE(1), 0x3b), { { 0, { UNSUP(BAD_FDE) } } } },
	{ "truncated operand",
	  OPS(ADVANCE(1), DW_CFA_nop, DW_CFA_def_cfa, RSP, 0x80, 0x80, 0x80, 0x80),
	  { { 0, { UNSUP(BAD_FDE) } } } },
	{ "largest offset",
	  OPS(DW_CFA_def_cfa_offset, 0xff, 0xff, 0xff, 0xff, 0x07),
	  { { 0, { SP(INT32_MAX), RA } } } },
	{ "offset too large",
	  OPS(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 0x08),
	  { { 0, { UNSUP(OFFSET) } } } },
	{ "offset that overflows",
	  OPS(DW_CFA_offset_extended_sf, RBP, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	      0x7f),
	  { { 0, { UNSUP(FP_EXPRESSION) } } } },
	{ "return address at the far end of a large frame",
	  OPS(DW_CFA_def_cfa_offset, 0xd0, 0xb8, 0x02, DW_CFA_offset_extended, RIP, 0x8a, 0x27,
	      ADVANCE(1), DW_CFA_def_cfa_register, RBP, ADVANCE(1), DW_CFA_def_cfa, RBP, 16),
	  { { 0, { SP(40016), .ra_where = UNWIND_AT_SP } },
	    { 1, { FP(40016), .ra_where = UNWIND_AT_FP } },
	    { 2, { UNSUP(OFFSET) } } } },
	{ "return address at the far end, a word above sp and below it",
	  OPS(DW_CFA_def_cfa_offset, 0xd0, 0xb8, 0x02, DW_CFA_offset_extended, RIP, 0x89, 0x27,
	      ADVANCE(1), DW_CFA_offset_extended, RIP, 0x8b, 0x27),
	  { { 0, { SP(40016), .ra_where = UNWIND_AT_SP, .ra_offset = 8 } },
	    { 1, { SP(40016), .ra_where = UNWIND_AT_SP, .ra_offset = -8 } } } },
	{ "offset of the return address too large",
	  OPS(DW_CFA_offset_extended, RIP, 0x82, 0x20),
	  { { 0, { UNSUP(OFFSET) } } } },

	{ "CFA = *(rbp - 8), rbp at *rbp: a realigned stack",
	  OPS(DW_CFA_expression, RBP, 2, BREG(RBP), 0, DW_CFA_def_cfa_expression, 3, BREG(RBP),
	      0x78, DW_OP_deref),
	  { { 0, { .cfa = UNWIND_CFA_AT_FP, .cfa_offset = -8, RA, .fp_where = UNWIND_AT_FP } } } },
	{ "CFA = *(rsp + 64) + 8",
	  OPS(DW_CFA_def_cfa_expression, 6, BREG(RSP), 0xc0, 0, DW_OP_deref, DW_OP_plus_uconst, 8),
	  { { 0, { .cfa = UNWIND_CFA_AT_SP, .cfa_offset = 64, .cfa_add = 8, RA } } } },
	{ "CFA = rsp + 4 - 1 + 3 + 2 in several operations",
	  OPS(DW_CFA_def_cfa_expression, 11, DW_OP_const1u, 4, BREG(RSP), 0, DW_OP_plus, DW_OP_lit1,
	      DW_OP_minus, DW_OP_nop, DW_OP_lit3, DW_OP_plus, DW_OP_nop, DW_CFA_nop),
	  { { 0, { SP(6), RA } } } },
	{ "CFA by bregx",
	  OPS(DW_CFA_def_cfa_expression, 3, DW_OP_bregx, RSP, 16),
	  { { 0, { SP(16), RA } } } },
	{ "CFA of .plt",
	  OPS(DW_CFA_def_cfa_expression, 11, BREG(RSP), 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
	      DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
	  { { 0, { .cfa = UNWIND_CFA_PLT, .cfa_offset = 8, .cfa_add = 11, RA } } } },
	{ "CFA of .plt with endbr64",
	  OPS(DW_CFA_def_cfa_expression, 11, BREG(RSP), 16, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
	      DW_OP_lit10, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
	  { { 0, { .cfa = UNWIND_CFA_PLT, .cfa_offset = 16, .cfa_add = 10, RA } } } },
	{ "CFA nearly of .plt",
	  OPS(DW_CFA_def_cfa_expression, 11, BREG(RSP), 8, DW_OP_breg16, 0, DW_OP_lit7, DW_OP_and,
	      DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
	  { { 0, { UNSUP(CFA_EXPRESSION) } } } },
	{ "CFA = **rsp",
	  OPS(DW_CFA_def_cfa_expression, 4, BREG(RSP), 0, DW_OP_deref, DW_OP_deref),
	  { { 0, { UNSUP(CFA_EXPRESSION) } } } },
	{ "CFA = *(rax)",
	  OPS(DW_CFA_def_cfa_expression, 3, BREG(0), 0, DW_OP_deref),
	  { { 0, { UNSUP(CFA_REGISTER) } } } },
	{ "CFA = constant",
	  OPS(DW_CFA_def_cfa_expression, 1, DW_OP_lit1),
	  { { 0, { UNSUP(CFA_EXPRESSION) } } } },
	{ "empty CFA expression",
	  OPS(DW_CFA_def_cfa_expression, 0),
	  { { 0, { UNSUP(CFA_EXPRESSION) } } } },
	{ "expression that underflows",
	  OPS(DW_CFA_def_cfa_expression, 2, DW_OP_plus, DW_OP_deref),
	  { { 0, { UNSUP(CFA_EXPRESSION) } } } },
	{ "expression that overflows",
	  OPS(DW_CFA_def_cfa_expression, 9, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1,
	      DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1),
	  { { 0, { UNSUP(CFA_EXPRESSION) } } } },
	{ "expression with a truncated operand",
	  OPS(DW_CFA_def_cfa_expression, 2, BREG(RSP), 0x80),
	  { { 0, { UNSUP(CFA_EXPRESSION) } } } },
	{ "expression longer than its FDE",
	  OPS(DW_CFA_def_cfa_expression, 0xff, 0x7f, BREG(RSP)),
	  { { 0, { UNSUP(BAD_FDE) } } } },
	{ "expression starts from the CFA",
	  OPS(DW_CFA_expression, RBP, 2, DW_OP_plus_uconst, 8),
	  { { 0, { SP(8), RA, SAVED(8) } } } },
	{ "val_expression of what is in memory",
	  OPS(DW_CFA_val_expression, RBP, 3, BREG(RSP), 24, DW_OP_deref, DW_CFA_val_expression, RIP,
	      3, BREG(RSP), 32, DW_OP_deref),
	  { { 0,
	      { SP(8), .fp_where = UNWIND_AT_SP, .fp_offset = 24, .ra_where = UNWIND_AT_SP,
		.ra_offset = 32 } } } },
	{ "expressions over other registers",
	  OPS(DW_CFA_expression, RBP, 2, BREG(0), 0, ADVANCE(1), DW_CFA_same_value, RBP,
	      DW_CFA_expression, RIP, 2, BREG(0), 0),
	  { { 0, { UNSUP(FP_EXPRESSION) } }, { 1, { UNSUP(RA_EXPRESSION) } } } },
	{ "sp said to be the CFA, as the expression that the CFA is",
	  OPS(DW_CFA_def_cfa_expression, 3, BREG(RSP), 16, DW_OP_deref, DW_CFA_expression, RSP, 2,
	      BREG(RSP), 16),
	  { { 0, { .cfa = UNWIND_CFA_AT_SP, .cfa_offset = 16, RA } } } },
	{ "half of a CFA that is an expression",
	  OPS(DW_CFA_def_cfa_expression, 3, BREG(RSP), 16, DW_OP_deref, ADVANCE(1),
	      DW_CFA_def_cfa_register, RSP, DW_CFA_def_cfa_offset, 8, ADVANCE(1), DW_CFA_def_cfa,
	      RSP, 8),
	  { { 0, { .cfa = UNWIND_CFA_AT_SP, .cfa_offset = 16, RA } },
	    { 1, { UNSUP(CFA_EXPRESSION) } },
	    { 2, { SP(8), RA } } } },
};

static void test_programs(void **state)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *program = &programs[i];
		struct cfi_table *table;
		struct bytes b = { 0 };

		put_fde(&b, put_cie(&b, &plain_cie), TEXT, 100, program->ops, program->size);
		table = compile(&b);
		check_table(table);
		for (int j = 0; j < MAX_CHECKS && program->checks[j].rule.cfa; j++)
			check_rule(program->name, table, TEXT + program->checks[j].at,
				   &program->checks[j].rule);
		cfi_table__free(table);
		free(b.data);
	}
}

static void test_code_alignment(void **state)
{
	struct cie cie = { .augmentation = "", .code_align = 4 };
	struct cfi_table *table;
	struct bytes b = { 0 };

	put_fde(&b, put_cie(&b, &cie), TEXT, 100, OPS(ADVANCE(2), DW_CFA_def_cfa_offset, 16));
	table = compile(&b);
	check_sp(table, TEXT + 7, 8);
	check_sp(table, TEXT + 8, 16);
	cfi_table__free(table);
	free(b.data);
}

/* What glibc's __restore_rt has: every register in the kernel's sigcontext. */
static void test_signal_frame(void **state)
{
	const uint8_t encoding = DW_EH_PE_absptr;
	struct cie cie = { .augmentation = "zRS",
			   .augmentation_data = &encoding,
			   .augmentation_size = 1 };
	struct unwind_rule expected = { .cfa = UNWIND_CFA_AT_SP,
					.cfa_offset = 160,
					.fp_where = UNWIND_AT_SP,
					.fp_offset = 120,
					.ra_where = UNWIND_AT_SP,
					.ra_offset = 168,
					.flags = UNWIND_SIGNAL_FRAME };
	struct cfi_table *table;
	struct bytes b = { 0 };

	begin_fde(&b, put_cie(&b, &cie));
	put_int(&b, TEXT, 8);
	put_int(&b, 10, 8);
	put_uleb(&b, 0); /* augmentation data */
	put(&b, OPS(DW_CFA_def_cfa_expression, 4, BREG(RSP), 0xa0, 1, DW_OP_deref));
	put(&b, OPS(DW_CFA_expression, RBP, 3, BREG(RSP), 0xf8, 0));
	put(&b, OPS(DW_CFA_expression, RSP, 3, BREG(RSP), 0xa0, 1));
	put(&b, OPS(DW_CFA_expression, RIP, 3, BREG(RSP), 0xa8, 1));
	end_entry(&b);
	table = compile(&b);
	check_rule("signal frame", table, TEXT, &expected);
	cfi_table__free(table);
	free(b.data);
}

/* ---- CIEs ---- */

static void test_cie_versions(void **state)
{
	const uint8_t versions[] = { 1, 3, 4 };

	for (int wide = 0; wide < 2; wide++) {
		for (int debug_frame = 0; debug_frame < 2; debug_frame++) {
			for (size_t i = 0; i < sizeof(versions); i++) {
				struct cie cie = { .augmentation = "", .version = versions[i] };
				struct bytes b = { .wide = wide, .debug_frame = debug_frame };
				struct cfi_table *table;

				/* So that the CIE's offset is not the 0 that an id may have. */
				put_cie(&b, &cie);
				put_fde(&b, put_cie(&b, &cie), TEXT, 16, OPS(DW_CFA_nop));
				table = compile(&b);
				check_sp(table, TEXT, 8);
				assert_int_equal(table->stats.cies, 2);
				assert_int_equal(table->stats.fdes, 1);
				cfi_table__free(table);
				free(b.data);
			}
		}
	}
}

static void check_rejected(const struct cie *bad, enum cfi_reject reason, bool readable)
{
	struct unwind_rule broken = unsupported_rule(UNWIND_UNSUPPORTED_BAD_FDE, 0);
	struct cfi_table *table;
	struct bytes b = { 0 };

	put_fde(&b, put_cie(&b, bad), TEXT, 16, OPS(DW_CFA_nop));
	put_fde(&b, put_cie(&b, &plain_cie), TEXT + 16, 16, OPS(DW_CFA_nop));
	table = compile(&b);
	assert_true(table->stats.rejected[reason] >= 1);
	assert_true(table->stats.rejected[CFI_REJECT_CIE] >= 1);
	if (readable)
		check_rule("FDE of a broken CIE", table, TEXT, &broken);
	else
		check_none(table, TEXT);
	check_sp(table, TEXT + 16, 8);
	cfi_table__free(table);
	free(b.data);
}

static void test_bad_cies(void **state)
{
	struct cie version = { .augmentation = "", .version = 2 };
	struct cie address_size = { .augmentation = "", .version = 4, .address_size = 4 };
	struct cie letter = { .augmentation = "zQ" };
	struct cie unsized_letter = { .augmentation = "S" };
	struct cie no_data = { .augmentation = "zR" };
	struct cie return_column = { .augmentation = "", .ra = 15 };
	const uint8_t unknown = 0x3b, advance = ADVANCE(1);
	struct cie opcode = { .augmentation = "", .ops = &unknown, .ops_size = 1 };
	struct cie advances = { .augmentation = "", .ops = &advance, .ops_size = 1 };

	check_rejected(&version, CFI_REJECT_VERSION, false);
	check_rejected(&address_size, CFI_REJECT_VERSION, false);
	check_rejected(&letter, CFI_REJECT_AUGMENTATION, false);
	check_rejected(&unsized_letter, CFI_REJECT_AUGMENTATION, false);
	check_rejected(&no_data, CFI_REJECT_TRUNCATED, false);
	check_rejected(&return_column, CFI_REJECT_CIE, true);
	check_rejected(&opcode, CFI_REJECT_OPCODE, true);
	check_rejected(&advances, CFI_REJECT_PROGRAM, true);
}

static void test_cie_without_rules(void **state)
{
	struct unwind_rule no_cfa = unsupported_rule(UNWIND_UNSUPPORTED_CFA_MISSING, 0);
	struct unwind_rule no_ra = unsupported_rule(UNWIND_UNSUPPORTED_RA_UNKNOWN, 0);
	const uint8_t nop = DW_CFA_nop;
	struct cie cie = { .augmentation = "", .ops = &nop, .ops_size = 1 };
	struct cfi_table *table;
	struct bytes b = { 0 };

	put_fde(&b, put_cie(&b, &cie), TEXT, 16, OPS(ADVANCE(1), DW_CFA_def_cfa, RSP, 8));
	table = compile(&b);
	check_rule("no CFA", table, TEXT, &no_cfa);
	check_rule("no return address", table, TEXT + 1, &no_ra);
	cfi_table__free(table);
	free(b.data);
}

static void test_old_eh_augmentation(void **state)
{
	struct cie cie = { .augmentation = "eh" };
	struct cfi_table *table;
	struct bytes b = { 0 };

	put_fde(&b, put_cie(&b, &cie), TEXT, 16, OPS(DW_CFA_nop));
	table = compile(&b);
	check_sp(table, TEXT, 8);
	cfi_table__free(table);
	free(b.data);
}

/* Personality routine and language-specific data are stepped over. */
static void test_personality(void **state)
{
	const uint8_t data[] = { DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4,
				 1,
				 2,
				 3,
				 4,
				 DW_EH_PE_pcrel | DW_EH_PE_sdata4,
				 DW_EH_PE_absptr | DW_EH_PE_udata4 };
	struct cie cie = { .augmentation = "zPLR",
			   .augmentation_data = data,
			   .augmentation_size = sizeof(data) };
	struct cfi_table *table;
	struct bytes b = { 0 };

	begin_fde(&b, put_cie(&b, &cie));
	put_int(&b, TEXT, 4);
	put_int(&b, 16, 4);
	put_uleb(&b, 4);
	put_int(&b, 0x0e0e0e0e, 4);
	put(&b, OPS(DW_CFA_def_cfa_offset, 16));
	end_entry(&b);
	table = compile(&b);
	check_sp(table, TEXT, 16);
	cfi_table__free(table);
	free(b.data);
}

/* ---- pointer encodings ---- */

static struct cfi_table *compile_encoded(uint8_t encoding, size_t size, bool leb)
{
	struct cie cie = { .augmentation = "zR",
			   .augmentation_data = &encoding,
			   .augmentation_size = 1 };
	struct cfi_table *table;
	struct bytes b = { 0 };
	uint64_t lo = TEXT;

	begin_fde(&b, put_cie(&b, &cie));
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		lo -= EH_VADDR + b.size;
	while (encoding == DW_EH_PE_aligned && (EH_VADDR + b.size) % 8)
		put_int(&b, 0xee, 1);
	if (leb) {
		/* Positive, and with bit 6 of the last byte clear: the same signed or not. */
		put_int(&b, (lo & 0x7f) | 0x80, 1);
		put_int(&b, (lo >> 7 & 0x7f) | 0x80, 1);
		put_int(&b, lo >> 14, 1);
		put_uleb(&b, 16);
	} else {
		put_int(&b, lo, size);
		put_int(&b, 16, size);
	}
	put_uleb(&b, 0);
	end_entry(&b);
	put_fde(&b, put_cie(&b, &plain_cie), TEXT + 0x100, 16, OPS(DW_CFA_nop));
	table = compile(&b);
	free(b.data);
	return table;
}

static void test_encodings(void **state)
{
	static const struct {
		uint8_t encoding;
		size_t size;
		bool leb;
	} good[] = {
		{ DW_EH_PE_absptr, 8, false },
		{ DW_EH_PE_udata4, 4, false },
		{ DW_EH_PE_udata8, 8, false },
		{ DW_EH_PE_sdata4, 4, false },
		{ DW_EH_PE_sdata8, 8, false },
		{ DW_EH_PE_uleb128, 0, true },
		{ DW_EH_PE_sleb128, 0, true },
		{ DW_EH_PE_aligned, 8, false },
		{ DW_EH_PE_textrel | DW_EH_PE_udata4, 4, false },
		{ DW_EH_PE_datarel | DW_EH_PE_sdata4, 4, false },
		{ DW_EH_PE_pcrel | DW_EH_PE_absptr, 8, false },
		{ DW_EH_PE_pcrel | DW_EH_PE_sdata4, 4, false },
		{ DW_EH_PE_pcrel | DW_EH_PE_sdata8, 8, false },
	};
	static const uint8_t bad[] = {
		DW_EH_PE_omit,
		DW_EH_PE_indirect | DW_EH_PE_sdata4,
		DW_EH_PE_funcrel | DW_EH_PE_sdata4,
		DW_EH_PE_aligned | DW_EH_PE_sdata4,
		0x05,
		0x60,
	};
	struct cfi_table *table;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		table = compile_encoded(good[i].encoding, good[i].size, good[i].leb);
		check_sp(table, TEXT, 8);
		check_sp(table, TEXT + 15, 8);
		check_none(table, TEXT + 16);
		cfi_table__free(table);
	}
	for (size_t i = 0; i < sizeof(bad); i++) {
		table = compile_encoded(bad[i], 4, false);
		assert_int_equal(table->stats.rejected[CFI_REJECT_ENCODING], 1);
		check_none(table, TEXT);
		check_sp(table, TEXT + 0x100, 8);
		cfi_table__free(table);
	}
}

/* Two bytes reach only what is near: code right behind the section. */
static void test_short_encodings(void **state)
{
	const uint8_t encodings[] = { DW_EH_PE_pcrel | DW_EH_PE_udata2,
				      DW_EH_PE_pcrel | DW_EH_PE_sdata2 };

	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct cie cie = { .augmentation = "zR",
				   .augmentation_data = &encodings[i],
				   .augmentation_size = 1 };
		struct cfi_table *table;
		struct cfi_section section;
		struct bytes b = { 0 };

		begin_fde(&b, put_cie(&b, &cie));
		put_int(&b, 0x1000 - b.size, 2);
		put_int(&b, 16, 2);
		put_uleb(&b, 0);
		end_entry(&b);
		section = section_of(&b);
		section.vaddr = TEXT - 0x1000;
		table = compile_section(&section);
		check_sp(table, TEXT, 8);
		check_none(table, TEXT + 16);
		cfi_table__free(table);
		free(b.data);
	}
}

/* ---- sections ---- */

static void test_gaps_and_merging(void **state)
{
	struct cfi_table *table;
	struct bytes b = { 0 };
	struct cfi_range range;
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	/* Not in order of addresses. */
	put_fde(&b, cie, TEXT + 32, 16, OPS(DW_CFA_nop));
	put_fde(&b, cie, TEXT + 16, 16, OPS(DW_CFA_nop));
	put_fde(&b, cie, TEXT + 64, 16, OPS(ADVANCE(4), DW_CFA_def_cfa_offset, 8));
	table = compile(&b);
	check_table(table);
	assert_int_equal(table->segment_count, 1);
	assert_int_equal(table->segments[0].vaddr, TEXT + 16);
	assert_int_equal(table->segments[0].file_offset, TEXT_FILE + 16);
	assert_int_equal(table->segments[0].size, 64);
	assert_int_equal(table->row_count, 3);
	assert_int_equal(table->stats.rows_none, 1);
	check_none(table, TEXT + 15);
	check_sp(table, TEXT + 16, 8);
	check_sp(table, TEXT + 47, 8);
	check_none(table, TEXT + 48);
	check_none(table, TEXT + 63);
	check_sp(table, TEXT + 64, 8);
	check_none(table, TEXT + 80);
	assert_true(cfi_table__range(table, TEXT + 40, &range));
	assert_int_equal(range.lo, TEXT + 16);
	assert_int_equal(range.hi, TEXT + 48);
	assert_true(cfi_table__range(table, TEXT + 50, &range));
	assert_int_equal(range.rule.cfa, UNWIND_CFA_NONE);
	assert_false(cfi_table__range(table, TEXT + 80, &range));
	assert_false(cfi_table__range(table, 0, &range));
	assert_false(cfi_table__range(table, UINT64_MAX, &range));
	cfi_table__free(table);
	free(b.data);
}

static void test_overlaps(void **state)
{
	struct cfi_table *table;
	struct bytes b = { 0 };
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	put_fde(&b, cie, TEXT, 100, OPS(DW_CFA_def_cfa_offset, 16));
	put_fde(&b, cie, TEXT + 10, 10, OPS(DW_CFA_def_cfa_offset, 24));
	put_fde(&b, cie, TEXT + 10, 50, OPS(DW_CFA_def_cfa_offset, 32));
	table = compile(&b);
	check_table(table);
	check_sp(table, TEXT + 9, 16);
	check_sp(table, TEXT + 10, 24);
	check_sp(table, TEXT + 19, 24);
	check_none(table, TEXT + 20);
	assert_int_equal(table->stats.rejected[CFI_REJECT_OVERLAP], 2);
	cfi_table__free(table);
	free(b.data);
}

static void test_bad_ranges(void **state)
{
	struct cfi_table *table;
	struct bytes b = { 0 };
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	put_fde(&b, cie, TEXT, 0, OPS(DW_CFA_nop));
	put_fde(&b, cie, TEXT, UINT64_MAX, OPS(DW_CFA_nop));
	put_fde(&b, cie, 0, 16, OPS(DW_CFA_nop));
	put_fde(&b, cie, TEXT + TEXT_SIZE, 16, OPS(DW_CFA_nop));
	assert_int_equal(compile_error(&b), -ENODATA);
	put_fde(&b, cie, TEXT + TEXT_SIZE - 16, 1 << 20, OPS(DW_CFA_nop));
	table = compile(&b);
	assert_int_equal(table->stats.rejected[CFI_REJECT_RANGE], 2);
	assert_int_equal(table->stats.rejected[CFI_REJECT_OUTSIDE], 2);
	assert_int_equal(table->segments[0].size, 16);
	check_sp(table, TEXT + TEXT_SIZE - 1, 8);
	check_none(table, TEXT + TEXT_SIZE);
	cfi_table__free(table);
	free(b.data);
}

static void test_bad_lengths(void **state)
{
	const uint32_t lengths[] = { 0xfffffff0, 0xfffffffe, 0xffffffff, 0x10000, 3 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct cfi_table *table;
		struct bytes b = { 0 };
		size_t cie;

		cie = put_cie(&b, &plain_cie);
		put_fde(&b, cie, TEXT, 16, OPS(DW_CFA_nop));
		put_int(&b, lengths[i], 4);
		put_int(&b, 0xdddddddd, 3);
		table = compile(&b);
		assert_int_equal(table->stats.rejected[CFI_REJECT_LENGTH] +
					 table->stats.rejected[CFI_REJECT_TRUNCATED],
				 1);
		check_sp(table, TEXT, 8);
		cfi_table__free(table);
		free(b.data);
	}
}

/* An FDE whose CIE pointer leads nowhere, into an FDE, or to a CIE that only follows. */
static void test_cie_pointers(void **state)
{
	struct bytes b = { .debug_frame = true };
	struct cfi_table *table;
	size_t cie, later;

	cie = put_cie(&b, &plain_cie);
	put_fde(&b, cie + 1, TEXT, 16, OPS(DW_CFA_nop));
	put_fde(&b, 1 << 30, TEXT, 16, OPS(DW_CFA_nop));
	later = b.size;
	put_fde(&b, later, TEXT, 16, OPS(DW_CFA_nop));
	put_fde(&b, later + 0x2c, TEXT + 32, 16, OPS(DW_CFA_nop));
	while (b.size < later + 0x2c)
		put_int(&b, 0, 4);
	later = put_cie(&b, &plain_cie);
	put_fde(&b, later, TEXT + 64, 16, OPS(DW_CFA_nop));
	put_fde(&b, cie, TEXT + 96, 16, OPS(DW_CFA_nop));
	table = compile(&b);
	assert_true(table->stats.rejected[CFI_REJECT_CIE] >= 3);
	check_none(table, TEXT);
	check_sp(table, TEXT + 64, 8);
	check_sp(table, TEXT + 96, 8);
	cfi_table__free(table);
	free(b.data);

	b = (struct bytes){ .debug_frame = true };
	put_fde(&b, 0x1c, TEXT, 16, OPS(DW_CFA_nop));
	assert_int_equal(b.size, 0x1c);
	put_cie(&b, &plain_cie);
	table = compile(&b);
	check_sp(table, TEXT, 8);
	cfi_table__free(table);
	free(b.data);
}

static void test_zero_lengths(void **state)
{
	struct cfi_section section;
	struct cfi_table *table;
	struct bytes b = { 0 };
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	put_fde(&b, cie, TEXT, 16, OPS(DW_CFA_nop));
	put_int(&b, 0, 4);
	put_fde(&b, cie, TEXT + 16, 16, OPS(DW_CFA_def_cfa_offset, 16));
	put_int(&b, 0, 4);
	put_fde(&b, cie, TEXT + 32, 16, OPS(DW_CFA_def_cfa_offset, 24));

	table = compile(&b);
	assert_int_equal(table->stats.fdes, 3);
	cfi_table__free(table);

	section = section_of(&b);
	section.ends_at_zero = true;
	table = compile_section(&section);
	assert_int_equal(table->stats.fdes, 1);
	cfi_table__free(table);

	section.fdes_expected = 2;
	table = compile_section(&section);
	assert_int_equal(table->stats.fdes, 2);
	check_sp(table, TEXT + 16, 16);
	cfi_table__free(table);
	free(b.data);
}

static void test_debug_frame_fills_gaps(void **state)
{
	struct bytes eh = { 0 }, debug = { .debug_frame = true };
	struct cfi_section sections[2];
	struct cfi_table *table;
	size_t cie;

	cie = put_cie(&eh, &plain_cie);
	put_fde(&eh, cie, TEXT + 16, 16, OPS(DW_CFA_def_cfa_offset, 16));
	put_fde(&eh, cie, TEXT + 64, 16, OPS(DW_CFA_def_cfa_offset, 24));
	cie = put_cie(&debug, &plain_cie);
	put_fde(&debug, cie, TEXT, 16, OPS(DW_CFA_def_cfa_offset, 32));
	put_fde(&debug, cie, TEXT + 16, 16, OPS(DW_CFA_def_cfa_offset, 40));
	put_fde(&debug, cie, TEXT + 40, 16, OPS(DW_CFA_def_cfa_offset, 48));
	put_fde(&debug, cie, TEXT + 60, 8, OPS(DW_CFA_def_cfa_offset, 56));
	put_fde(&debug, cie, TEXT + 96, 16, OPS(DW_CFA_def_cfa_offset, 64));
	sections[0] = section_of(&eh);
	sections[1] = section_of(&debug);
	assert_int_equal(cfi_table__compile(&cfi_arch_host, sections, 2, &plain_text, 1, &table),
			 0);
	check_table(table);
	check_sp(table, TEXT, 32);
	check_sp(table, TEXT + 16, 16);
	check_none(table, TEXT + 32);
	check_sp(table, TEXT + 40, 48);
	check_none(table, TEXT + 60);
	check_sp(table, TEXT + 64, 24);
	check_sp(table, TEXT + 96, 64);
	assert_int_equal(table->stats.rejected[CFI_REJECT_OVERLAP], 2);
	cfi_table__free(table);
	free(eh.data);
	free(debug.data);
}

static void test_segments(void **state)
{
	const struct cfi_text texts[] = {
		{ 0x1000, 0x1000, 0x100 },
		{ 0x2000, 0x5000, 0x100 },
		{ 0x200000, 0x8000, 0x10000 },
	};
	struct cfi_section section;
	struct cfi_table *table;
	struct bytes b = { 0 };
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	put_fde(&b, cie, 0x200800, 0x100, OPS(DW_CFA_def_cfa_offset, 16));
	put_fde(&b, cie, 0x10f0, 0x800, OPS(DW_CFA_nop));
	section = section_of(&b);
	assert_int_equal(cfi_table__compile(&cfi_arch_host, &section, 1, texts, 3, &table), 0);
	check_table(table);
	assert_int_equal(table->segment_count, 2);
	assert_int_equal(table->segments[0].size, 0x10);
	assert_int_equal(table->segments[1].file_offset, 0x8800);
	check_sp(table, 0x10ff, 8);
	check_none(table, 0x1100);
	check_none(table, 0x2000);
	check_sp(table, 0x2008ff, 16);
	cfi_table__free(table);
	free(b.data);
}

/* A row at every byte, then none for long, over more than the 64 KiB that pc_lo tells apart. */
static void test_look_up(void **state)
{
	const struct cfi_text text = { TEXT, 0, 0x100000 };
	struct cfi_section section;
	struct cfi_table *table;
	struct bytes b = { 0 };
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	begin_fde(&b, cie);
	put_int(&b, TEXT, 8);
	put_int(&b, 0x100000, 8);
	for (int i = 1; i < 1000; i++) {
		put_int(&b, ADVANCE(1), 1);
		put_int(&b, DW_CFA_def_cfa_offset, 1);
		put_uleb(&b, (uint64_t)(8 + i % 50));
	}
	put_int(&b, DW_CFA_advance_loc4, 1);
	put_int(&b, 0x2ff00 - 999, 4);
	for (int i = 0x2ff00; i < 0x30100; i++) {
		put_int(&b, DW_CFA_def_cfa_offset, 1);
		put_uleb(&b, (uint64_t)(8 + i % 50));
		put_int(&b, ADVANCE(1), 1);
	}
	end_entry(&b);
	section = section_of(&b);
	assert_int_equal(cfi_table__compile(&cfi_arch_host, &section, 1, &text, 1, &table), 0);
	check_table(table);
	for (int i = 0; i < 1000; i++)
		check_sp(table, TEXT + (uint64_t)i, 8 + i % 50);
	for (int i = 1000; i < 0x2ff00; i += 111)
		check_sp(table, TEXT + (uint64_t)i, 8 + 999 % 50);
	for (int i = 0x2ff00; i < 0x30100; i++)
		check_sp(table, TEXT + (uint64_t)i, 8 + i % 50);
	for (int i = 0x30100; i < 0x100000; i += 1111)
		check_sp(table, TEXT + (uint64_t)i, 8 + 0x300ff % 50);
	cfi_table__free(table);
	free(b.data);
}

static void test_too_many_rules(void **state)
{
	const struct cfi_text text = { TEXT, 0, 0x100000 };
	struct unwind_rule full = unsupported_rule(UNWIND_UNSUPPORTED_RULES, 0);
	struct cfi_section section;
	struct cfi_table *table;
	struct bytes b = { 0 };
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	begin_fde(&b, cie);
	put_int(&b, TEXT, 8);
	put_int(&b, 0x100000, 8);
	for (int i = 1; i < 70000; i++) {
		put_int(&b, ADVANCE(1), 1);
		put_int(&b, DW_CFA_def_cfa_offset, 1);
		put_uleb(&b, (uint64_t)(8 + i));
	}
	end_entry(&b);
	section = section_of(&b);
	assert_int_equal(cfi_table__compile(&cfi_arch_host, &section, 1, &text, 1, &table), 0);
	assert_int_equal(table->rule_count, UNWIND_MAX_RULES);
	check_sp(table, TEXT + 60000, 60008);
	check_rule("rule too many", table, TEXT + 69999, &full);
	cfi_table__free(table);
	free(b.data);
}

static void test_deep_remember(void **state)
{
	struct unwind_rule broken = unsupported_rule(UNWIND_UNSUPPORTED_BAD_FDE, 0);
	struct cfi_table *table;
	struct bytes b = { 0 };
	size_t cie;

	cie = put_cie(&b, &plain_cie);
	begin_fde(&b, cie);
	put_int(&b, TEXT, 8);
	put_int(&b, 16, 8);
	for (int i = 0; i < 100000; i++)
		put_int(&b, DW_CFA_remember_state, 1);
	end_entry(&b);
	put_fde(&b, cie, TEXT + 16, 16, OPS(DW_CFA_nop));
	table = compile(&b);
	check_rule("deep", table, TEXT, &broken);
	check_sp(table, TEXT + 16, 8);
	assert_int_equal(table->stats.rejected[CFI_REJECT_PROGRAM], 1);
	assert_int_equal(table->stats.rows_unsupported[UNWIND_UNSUPPORTED_BAD_FDE], 1);
	cfi_table__free(table);
	free(b.data);
}

/* ---- files ---- */

static const char *libc_path(void)
{
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)abort, &info));
	return info.dli_fname;
}

static uint8_t *read_file(const char *path, size_t *size)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *data;

	assert_true(fd >= 0 && !fstat(fd, &st));
	*size = (size_t)st.st_size;
	data = malloc(*size);
	assert_non_null(data);
	assert_int_equal(read(fd, data, *size), *size);
	return data;
}

static void check_same_table(const struct cfi_table *a, const struct cfi_table *b)
{
	assert_int_equal(a->segment_count, b->segment_count);
	assert_int_equal(a->block_count, b->block_count);
	assert_int_equal(a->row_count, b->row_count);
	assert_int_equal(a->rule_count, b->rule_count);
	assert_memory_equal(a->segments, b->segments, a->segment_count * sizeof(*a->segments));
	assert_memory_equal(a->blocks, b->blocks, a->block_count * sizeof(*a->blocks));
	assert_memory_equal(a->rows, b->rows, a->row_count * sizeof(*a->rows));
	assert_memory_equal(a->rules, b->rules, a->rule_count * sizeof(*a->rules));
}

static void test_without_section_headers(void **state)
{
	const char *paths[] = { "/proc/self/exe", libc_path() };

	for (int i = 0; i < 2; i++) {
		struct cfi_table *whole, *stripped;
		struct error error = { 0 };
		_cleanup_(close_fd) int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		uint8_t *image;
		size_t size;

		image = read_file(paths[i], &size);
		assert_int_equal(cfi_table__build(fd, paths[i], &whole, &error), 0);
		check_table(whole);
		((Elf64_Ehdr *)image)->e_shoff = 0;
		((Elf64_Ehdr *)image)->e_shnum = 0;
		((Elf64_Ehdr *)image)->e_shstrndx = 0;
		assert_int_equal(cfi_table__build_image(image, size, "image", &stripped, &error),
				 0);
		check_same_table(whole, stripped);
		cfi_table__free(whole);
		cfi_table__free(stripped);
		free(image);
	}
}

static void test_no_elf(void **state)
{
	struct cfi_table *table = NULL;
	struct error error = { 0 };
	_cleanup_(close_fd) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_S390,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_phentsize = sizeof(Elf64_Phdr) };

	assert_int_equal(cfi_table__build(fd, "/dev/null", &table, &error), -ENOEXEC);
	assert_non_null(strstr(error.text, "/dev/null"));
	assert_int_equal(cfi_table__build(-1, "nothing", &table, &error), -EBADF);
	assert_int_equal(cfi_table__build_image("text", 4, "text", &table, NULL), -ENOEXEC);
	assert_int_equal(cfi_table__build_image(&ehdr, sizeof(ehdr), "e", &table, &error),
			 -EOPNOTSUPP);
	ehdr.e_machine = EM_X86_64;
	assert_int_equal(cfi_table__build_image(&ehdr, sizeof(ehdr), "e", &table, &error),
			 -ENODATA);
	ehdr.e_type = ET_REL;
	assert_int_equal(cfi_table__build_image(&ehdr, sizeof(ehdr), "e", &table, &error),
			 -ENOEXEC);
	assert_null(table);
	cfi_table__free(NULL);
}

static Elf_Scn *add_scn(Elf *elf, Elf64_Word name, Elf64_Word type, void *data, size_t size)
{
	Elf_Scn *scn = elf_newscn(elf);
	Elf64_Shdr *shdr = elf64_getshdr(scn);
	Elf_Data *d = elf_newdata(scn);

	shdr->sh_name = name;
	shdr->sh_type = type;
	shdr->sh_addralign = 1;
	*d = (Elf_Data){ .d_buf = data,
			 .d_size = size,
			 .d_type = ELF_T_BYTE,
			 .d_align = 1,
			 .d_version = EV_CURRENT };
	return scn;
}

/* A file that has nothing but a compressed .debug_frame, as Go's linker makes them. */
static void test_compressed_debug_frame(void **state)
{
	_cleanup_(close_fd) int fd = memfd_create("elf", MFD_CLOEXEC);
	char names[] = "\0.debug_frame\0.shstrtab";
	struct bytes b = { .debug_frame = true };
	struct error error = { 0 };
	struct cfi_table *table;
	Elf64_Ehdr *ehdr;
	Elf64_Phdr *phdr;
	Elf_Scn *scn;
	size_t cie;
	Elf *elf;

	cie = put_cie(&b, &plain_cie);
	for (unsigned int i = 0; i < 100; i++)
		put_fde(&b, cie, TEXT + i * 4, 4, OPS(DW_CFA_def_cfa_offset, 16));

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_WRITE, NULL);
	assert_non_null(elf);
	ehdr = elf64_newehdr(elf);
	ehdr->e_ident[EI_DATA] = ELFDATA2LSB;
	ehdr->e_type = ET_EXEC;
	ehdr->e_machine = EM_X86_64;
	ehdr->e_version = EV_CURRENT;
	phdr = elf64_newphdr(elf, 1);
	*phdr = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_offset = 0,
			      .p_vaddr = TEXT,
			      .p_filesz = 1 << 20,
			      .p_memsz = 1 << 20 };
	scn = add_scn(elf, 1, SHT_PROGBITS, b.data, b.size);
	assert_true(elf_compress(scn, ELFCOMPRESS_ZLIB, ELF_CHF_FORCE) > 0);
	scn = add_scn(elf, 14, SHT_STRTAB, names, sizeof(names));
	ehdr->e_shstrndx = (Elf64_Half)elf_ndxscn(scn);
	assert_true(elf_update(elf, ELF_C_WRITE) > 0);
	elf_end(elf);

	assert_int_equal(cfi_table__build(fd, "memfd", &table, &error), 0);
	assert_int_equal(table->stats.debug_frame_bytes, b.size);
	assert_int_equal(table->stats.fdes, 100);
	check_sp(table, TEXT + 399, 16);
	check_none(table, TEXT + 400);
	cfi_table__free(table);
	free(b.data);
}

/* ---- hostile input ---- */

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Copies of exactly the needed size, so that a sanitizer sees the first byte past the end. */
static void try_section(const uint8_t *data, size_t size, const struct cfi_section *like,
			const struct cfi_text *text)
{
	struct cfi_section section = *like;
	struct cfi_table *table = NULL;
	uint8_t *copy = malloc(size ? size : 1);
	int err;

	assert_non_null(copy);
	if (size)
		memcpy(copy, data, size);
	section.data = copy;
	section.size = size;
	err = cfi_table__compile(&cfi_arch_host, &section, 1, text, 1, &table);
	if (!err)
		check_table(table);
	else
		assert_true(err == -ENODATA && !table);
	cfi_table__free(table);
	free(copy);
}

/* .eh_frame of a file, and the one executable segment that it is about. */
static uint8_t *real_section(const char *path, struct cfi_section *section, struct cfi_text *text)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *copy = NULL;
	Elf_Scn *scn = NULL;
	size_t names, count;
	GElf_Phdr phdr;
	GElf_Shdr shdr;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	assert_int_equal(elf_getphdrnum(elf, &count), 0);
	for (int i = 0; i < (int)count; i++) {
		gelf_getphdr(elf, i, &phdr);
		if (phdr.p_type == PT_LOAD && (phdr.p_flags & PF_X))
			*text = (struct cfi_text){ phdr.p_vaddr, phdr.p_offset, phdr.p_filesz };
	}
	while ((scn = elf_nextscn(elf, scn))) {
		gelf_getshdr(scn, &shdr);
		if (strcmp(elf_strptr(elf, names, shdr.sh_name), ".eh_frame"))
			continue;
		*section = (struct cfi_section){ .size = shdr.sh_size, .vaddr = shdr.sh_addr };
		copy = malloc(shdr.sh_size);
		assert_non_null(copy);
		memcpy(copy, elf_rawdata(scn, NULL)->d_buf, shdr.sh_size);
	}
	elf_end(elf);
	assert_non_null(copy);
	section->data = copy;
	return copy;
}

/* A few kilobytes of a real section, since all of it would be the same many times over. */
#define HOSTILE_BYTES 6000

static void test_truncation(void **state)
{
	struct cfi_section section;
	struct cfi_text text;
	uint8_t *data = real_section(libc_path(), &section, &text);

	for (size_t size = 0; size < section.size && size < HOSTILE_BYTES; size += 3)
		try_section(data, size, &section, &text);
	free(data);
}

static void flip_bytes(const char *path, int rounds, uint64_t seed)
{
	struct cfi_section section;
	struct cfi_text text;
	uint8_t *data = real_section(path, &section, &text);
	size_t size = section.size < HOSTILE_BYTES ? section.size : HOSTILE_BYTES;
	uint8_t *copy = malloc(section.size);

	assert_non_null(copy);
	for (int round = 0; round < rounds; round++) {
		size_t start = random_next(&seed) % (section.size - size + 1) & ~3ull;
		struct cfi_section window = section;
		int flips = 1 + (int)(random_next(&seed) % 8);

		/* Windows start at the first CIE, or anywhere, which is garbage of a likely kind. */
		if (round % 4)
			start = 0;
		memcpy(copy, data + start, size);
		while (flips--)
			copy[random_next(&seed) % size] = (uint8_t)random_next(&seed);
		window.debug_frame = round % 8 == 7;
		try_section(copy, size, &window, &text);
	}
	free(copy);
	free(data);
}

static void test_flipped_bytes(void **state)
{
	flip_bytes(libc_path(), 4000, 0x1234567);
	flip_bytes("/proc/self/exe", 2000, 0x89abcdef);
}

/* Headers of the file itself. */
static void test_flipped_headers(void **state)
{
	uint64_t seed = 0x5eed;
	uint8_t *image, *copy;
	size_t size;

	image = read_file("/proc/self/exe", &size);
	copy = malloc(size);
	assert_non_null(copy);
	for (int round = 0; round < 1500; round++) {
		size_t headers = sizeof(Elf64_Ehdr) + 13 * sizeof(Elf64_Phdr);
		size_t sections = 40 * sizeof(Elf64_Shdr);
		struct cfi_table *table = NULL;
		struct error error = { 0 };

		memcpy(copy, image, size);
		for (int i = 0; i < 3; i++) {
			size_t at = EI_NIDENT + random_next(&seed) % (headers - EI_NIDENT);

			if (round % 2)
				at = size - 1 - random_next(&seed) % sections;
			copy[at] = (uint8_t)random_next(&seed);
		}
		if (!cfi_table__build_image(copy, size, "image", &table, &error))
			check_table(table);
		else
			assert_true(error.text[0] && !table);
		cfi_table__free(table);
	}
	free(copy);
	free(image);
}

/* Random instructions in an otherwise sound FDE get further than flips in headers do. */
static void test_random_programs(void **state)
{
	uint64_t seed = 0xfde;

	for (int round = 0; round < 3000; round++) {
		struct cfi_section section;
		struct bytes b = { 0 };
		size_t cie;

		cie = put_cie(&b, &plain_cie);
		for (int fde = 0; fde < 8; fde++) {
			begin_fde(&b, cie);
			put_int(&b, TEXT + random_next(&seed) % TEXT_SIZE, 8);
			put_int(&b, random_next(&seed) % 400, 8);
			for (int i = (int)(random_next(&seed) % 60); i > 0; i--)
				put_int(&b, random_next(&seed) % (i % 3 ? 0x30 : 0x100), 1);
			end_entry(&b);
		}
		section = section_of(&b);
		try_section(b.data, b.size, &section, &plain_text);
		free(b.data);
	}
}

/* As many FDEs as possible, all with the same large CIE: work must not be their product. */
static void test_large_cie(void **state)
{
	uint8_t *ops = calloc(1, 1 << 20);
	struct cie cie = { .augmentation = "", .ops = ops, .ops_size = 1 << 20 };
	struct cfi_section section;
	struct bytes b = { 0 };
	size_t at;

	assert_non_null(ops);
	at = put_cie(&b, &cie);
	for (unsigned int i = 0; i < 30000; i++)
		put_fde(&b, at, TEXT + i % TEXT_SIZE, 1 + i % 100, NULL, 0);
	section = section_of(&b);
	try_section(b.data, b.size, &section, &plain_text);
	free(b.data);
	free(ops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_code_alignment),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_cie_versions),
		cmocka_unit_test(test_bad_cies),
		cmocka_unit_test(test_cie_without_rules),
		cmocka_unit_test(test_old_eh_augmentation),
		cmocka_unit_test(test_personality),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_short_encodings),
		cmocka_unit_test(test_gaps_and_merging),
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_bad_ranges),
		cmocka_unit_test(test_bad_lengths),
		cmocka_unit_test(test_cie_pointers),
		cmocka_unit_test(test_zero_lengths),
		cmocka_unit_test(test_debug_frame_fills_gaps),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_look_up),
		cmocka_unit_test(test_too_many_rules),
		cmocka_unit_test(test_deep_remember),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_no_elf),
		cmocka_unit_test(test_compressed_debug_frame),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_flipped_bytes),
		cmocka_unit_test(test_flipped_headers),
		cmocka_unit_test(test_random_programs),
		cmocka_unit_test(test_large_cie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
