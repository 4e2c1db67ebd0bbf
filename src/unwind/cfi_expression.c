// SPDX-License-Identifier: GPL-3.0-or-later
/* Evaluates DWARF expressions in call frame information as far as a rule of the table can express them. */
#include "cfi_internal.h"

#include <dwarf.h>

/* Expressions of compilers and libc need three. */
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

/* DWARF arithmetic wraps at the address size. */
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

/* Evaluates an @op that pushes a value, reading its operands from @c; false if it is none. */
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
