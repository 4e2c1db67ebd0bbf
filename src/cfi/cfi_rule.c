// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns rows of call frame information, and the expressions in them, into rules of the table, or says why there is none.
 */
#include <dwarf.h>
#include <limits.h>

#include "cfi_rules.h"

/* Evaluates DWARF expressions in call frame information as far as a rule of the table can express them. */

/* Depth of the stack; expressions of compilers and libc need three. */
#define STACK_DEPTH 8

static struct cfi_value value_const(__s64 value)
{
	return (struct cfi_value){ .kind = CFI_VALUE_CONST, .add = value };
}

static struct cfi_value value_reg(__u64 reg, __s64 add)
{
	return (struct cfi_value){ .kind = CFI_VALUE_REG, .reg = cfi_reg(reg), .add = add };
}

static struct cfi_value value_deref(struct cfi_value address)
{
	if (address.kind != CFI_VALUE_REG)
		return (struct cfi_value){ .kind = CFI_VALUE_UNKNOWN };
	return (struct cfi_value){ .kind = CFI_VALUE_MEM,
				   .reg = address.reg,
				   .offset = address.add };
}

/* Adds two values; DWARF arithmetic wraps at the address size. */
static struct cfi_value value_plus(struct cfi_value a, struct cfi_value b)
{
	struct cfi_value sum = b.kind == CFI_VALUE_CONST ? a : b;

	if ((a.kind != CFI_VALUE_CONST && b.kind != CFI_VALUE_CONST) || sum.kind == CFI_VALUE_PLT)
		return (struct cfi_value){ .kind = CFI_VALUE_UNKNOWN };
	sum.add = (__s64)((__u64)a.add + (__u64)b.add);
	return sum;
}

static struct cfi_value value_minus(struct cfi_value a, struct cfi_value b)
{
	if (b.kind != CFI_VALUE_CONST)
		return (struct cfi_value){ .kind = CFI_VALUE_UNKNOWN };
	b.add = (__s64) - (__u64)b.add;
	return value_plus(a, b);
}

/* Evaluates an @op that pushes a value, reading its operands from @c. Returns false if it is
 * another one. */
static bool push_operand(struct dwarf_cursor *c, __u8 op, struct cfi_value *out)
{
	__u64 reg;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		*out = value_const(op - DW_OP_lit0);
		return true;
	}
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		*out = value_reg(op - DW_OP_breg0, dwarf_cursor__sleb128(c));
		return true;
	}
	switch (op) {
	case DW_OP_const1u:
		*out = value_const(dwarf_cursor__u8(c));
		return true;
	case DW_OP_const1s:
		*out = value_const((__s8)dwarf_cursor__u8(c));
		return true;
	case DW_OP_const2u:
		*out = value_const(dwarf_cursor__u16(c));
		return true;
	case DW_OP_const2s:
		*out = value_const((__s16)dwarf_cursor__u16(c));
		return true;
	case DW_OP_const4u:
		*out = value_const(dwarf_cursor__u32(c));
		return true;
	case DW_OP_const4s:
		*out = value_const((__s32)dwarf_cursor__u32(c));
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		*out = value_const((__s64)dwarf_cursor__u64(c));
		return true;
	case DW_OP_constu:
		*out = value_const((__s64)dwarf_cursor__uleb128(c));
		return true;
	case DW_OP_consts:
		*out = value_const(dwarf_cursor__sleb128(c));
		return true;
	case DW_OP_bregx:
		reg = dwarf_cursor__uleb128(c);
		*out = value_reg(reg, dwarf_cursor__sleb128(c));
		return true;
	default:
		return false;
	}
}

struct cfi_value cfi_expression__value(const __u8 *ops, size_t size,
				       const struct cfi_value *initial)
{
	struct cfi_value unknown = { .kind = CFI_VALUE_UNKNOWN };
	struct cfi_value stack[STACK_DEPTH];
	struct dwarf_cursor c = { ops, ops + size, false };
	unsigned int depth = 0;

	if (initial)
		stack[depth++] = *initial;
	while (c.pos != c.end) {
		__u8 op = dwarf_cursor__u8(&c);
		struct cfi_value value;

		if (push_operand(&c, op, &value)) {
			if (depth == STACK_DEPTH)
				return unknown;
			stack[depth++] = value;
			continue;
		}
		switch (op) {
		case DW_OP_nop:
			break;
		case DW_OP_plus_uconst:
			if (depth < 1)
				return unknown;
			value = value_const((__s64)dwarf_cursor__uleb128(&c));
			stack[depth - 1] = value_plus(stack[depth - 1], value);
			break;
		case DW_OP_deref:
			if (depth < 1)
				return unknown;
			stack[depth - 1] = value_deref(stack[depth - 1]);
			break;
		case DW_OP_plus:
		case DW_OP_minus:
			if (depth < 2)
				return unknown;
			depth--;
			stack[depth - 1] = op == DW_OP_plus
						   ? value_plus(stack[depth - 1], stack[depth])
						   : value_minus(stack[depth - 1], stack[depth]);
			break;
		default:
			return unknown;
		}
	}
	if (c.bad || !depth)
		return unknown;
	return stack[depth - 1];
}

/* Turns a row of call frame information into a rule of the table, or says why it has none. */

static bool fits_s16(__s64 value)
{
	return value >= SHRT_MIN && value <= SHRT_MAX;
}

static bool fits_s32(__s64 value)
{
	return value >= INT_MIN && value <= INT_MAX;
}

static struct unwind_rule unsupported(enum unwind_unsupported kind, __u16 reg)
{
	return (struct unwind_rule){ .cfa = UNWIND_CFA_UNSUPPORTED,
				     .cfa_offset = kind,
				     .cfa_add = (__s16)reg };
}

static bool same_value(const struct cfi_value *a, const struct cfi_value *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->offset == b->offset && a->add == b->add;
}

/* Sets the CFA fields of @rule, or marks it unsupported and returns false. */
static bool set_cfa(const struct cfi_arch *arch, const struct cfi_value *cfa,
		    struct unwind_rule *rule)
{
	enum cfi_column column = cfi_arch__column(arch, cfa->reg);
	bool known = column == CFI_COLUMN_SP || column == CFI_COLUMN_FP;
	__s64 offset = cfa->offset, add = cfa->add;

	switch (cfa->kind) {
	case CFI_VALUE_UNSET:
		*rule = unsupported(UNWIND_UNSUPPORTED_CFA_MISSING, 0);
		return false;
	case CFI_VALUE_REG:
		rule->cfa = column == CFI_COLUMN_SP ? UNWIND_CFA_SP : UNWIND_CFA_FP;
		offset = cfa->add;
		add = 0;
		break;
	case CFI_VALUE_MEM:
		rule->cfa = column == CFI_COLUMN_SP ? UNWIND_CFA_AT_SP : UNWIND_CFA_AT_FP;
		break;
	case CFI_VALUE_PLT:
		rule->cfa = UNWIND_CFA_PLT;
		known = true;
		break;
	default:
		*rule = unsupported(UNWIND_UNSUPPORTED_CFA_EXPRESSION, 0);
		return false;
	}
	if (!known) {
		*rule = unsupported(UNWIND_UNSUPPORTED_CFA_REGISTER, cfa->reg);
		return false;
	}
	if (!fits_s32(offset) || !fits_s16(add)) {
		*rule = unsupported(UNWIND_UNSUPPORTED_OFFSET, 0);
		return false;
	}
	rule->cfa_offset = (__s32)offset;
	rule->cfa_add = (__s16)add;
	return true;
}

/* "Saved at address in memory" and "is the value in memory" have the same form. */
static struct cfi_saved normalize(const struct cfi_saved *saved)
{
	struct cfi_saved out = *saved;

	if (out.how == CFI_SAVED_IS && out.value.kind == CFI_VALUE_MEM && out.value.add == 0) {
		out.how = CFI_SAVED_AT;
		out.value.kind = CFI_VALUE_REG;
		out.value.add = out.value.offset;
		out.value.offset = 0;
	}
	return out;
}

/* Returns whether the row agrees that sp becomes the CFA, as unwinding assumes. */
static bool sp_is_cfa(const struct cfi_saved *sp, const struct cfi_value *cfa)
{
	struct cfi_value value = sp->value;

	if (sp->how == CFI_SAVED_UNSPECIFIED)
		return true;
	if (sp->how == CFI_SAVED_AT && value.kind == CFI_VALUE_REG) {
		value.kind = CFI_VALUE_MEM;
		value.offset = value.add;
		value.add = 0;
	} else if (sp->how != CFI_SAVED_IS) {
		return false;
	}
	if (value.kind == CFI_VALUE_REG && value.reg == CFI_REG_CFA && value.add == 0)
		return true;
	return value.kind != CFI_VALUE_UNKNOWN && same_value(&value, cfa);
}

/* Sets *@where and *@offset. Returns UNWIND_UNSUPPORTED_KINDS, or the reason why it cannot. */
static enum unwind_unsupported set_where(const struct cfi_arch *arch, enum cfi_column column,
					 const struct cfi_saved *column_saved, __u8 *where,
					 __s64 *offset, __u16 *reg)
{
	bool is_ra = column == CFI_COLUMN_RA;
	enum unwind_unsupported expression =
		is_ra ? UNWIND_UNSUPPORTED_RA_EXPRESSION : UNWIND_UNSUPPORTED_FP_EXPRESSION;
	struct cfi_saved saved = normalize(column_saved);

	*offset = 0;
	*where = UNWIND_SAME;
	if (saved.how == CFI_SAVED_IS && saved.value.kind == CFI_VALUE_REG &&
	    saved.value.add == 0 && saved.value.reg != CFI_REG_CFA) {
		if (saved.value.reg != arch->registers[column]) {
			*reg = saved.value.reg;
			return is_ra ? UNWIND_UNSUPPORTED_RA_REGISTER
				     : UNWIND_UNSUPPORTED_FP_REGISTER;
		}
		saved.how = CFI_SAVED_SAME;
	}

	switch (saved.how) {
	case CFI_SAVED_UNSPECIFIED:
	case CFI_SAVED_SAME:
		return is_ra && !arch->ra_in_register ? UNWIND_UNSUPPORTED_RA_UNKNOWN
						      : UNWIND_UNSUPPORTED_KINDS;
	case CFI_SAVED_UNDEFINED:
		*where = UNWIND_UNDEFINED;
		return UNWIND_UNSUPPORTED_KINDS;
	case CFI_SAVED_AT:
		if (saved.value.kind != CFI_VALUE_REG)
			return expression;
		if (saved.value.reg == CFI_REG_CFA)
			*where = UNWIND_AT_CFA;
		else if (saved.value.reg == arch->registers[CFI_COLUMN_SP])
			*where = UNWIND_AT_SP;
		else if (saved.value.reg == arch->registers[CFI_COLUMN_FP])
			*where = UNWIND_AT_FP;
		else
			return expression;
		*offset = saved.value.add;
		return UNWIND_UNSUPPORTED_KINDS;
	default:
		return expression;
	}
}

/* A return address at the far end of a large frame, where arm64's compilers put it, is counted from the register that the CFA
 * is counted from, since the distance from the CFA may not fit its field. */
static void count_from_register(struct unwind_rule *rule, __s64 *ra_offset)
{
	if (rule->ra_where != UNWIND_AT_CFA || fits_s16(*ra_offset) ||
	    (rule->cfa != UNWIND_CFA_SP && rule->cfa != UNWIND_CFA_FP))
		return;
	rule->ra_where = rule->cfa == UNWIND_CFA_SP ? UNWIND_AT_SP : UNWIND_AT_FP;
	*ra_offset = (__s64)((__u64)*ra_offset + (__u64)rule->cfa_offset);
}

struct unwind_rule cfi_state__rule(const struct cfi_arch *arch, const struct cfi_state *state,
				   bool signal_frame)
{
	struct unwind_rule rule = { .flags = signal_frame ? UNWIND_SIGNAL_FRAME : 0 };
	enum unwind_unsupported kind;
	__s64 fp_offset, ra_offset;
	__u16 reg = 0;

	if (!set_cfa(arch, &state->cfa, &rule))
		return rule;
	if (!sp_is_cfa(&state->columns[CFI_COLUMN_SP], &state->cfa))
		return unsupported(UNWIND_UNSUPPORTED_SP, 0);
	kind = set_where(arch, CFI_COLUMN_FP, &state->columns[CFI_COLUMN_FP], &rule.fp_where,
			 &fp_offset, &reg);
	if (kind != UNWIND_UNSUPPORTED_KINDS)
		return unsupported(kind, reg);
	kind = set_where(arch, CFI_COLUMN_RA, &state->columns[CFI_COLUMN_RA], &rule.ra_where,
			 &ra_offset, &reg);
	if (kind != UNWIND_UNSUPPORTED_KINDS)
		return unsupported(kind, reg);
	count_from_register(&rule, &ra_offset);
	if (!fits_s32(fp_offset) || !fits_s16(ra_offset))
		return unsupported(UNWIND_UNSUPPORTED_OFFSET, 0);
	rule.fp_offset = (__s32)fp_offset;
	rule.ra_offset = (__s16)ra_offset;
	return rule;
}
