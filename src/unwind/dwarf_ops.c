// SPDX-License-Identifier: GPL-3.0-or-later
#include "dwarf_ops.h"

#include <dwarf.h>
#include <errno.h>

#include "cfi_internal.h"

static int read_register(const struct dwarf_machine *machine, unsigned int number, __u64 *value)
{
	if (!(machine->known & 1U << number))
		return -ENODATA;
	*value = machine->registers[number];
	return 0;
}

/* The operand of a constant. */
static __u64 read_constant(struct dwarf_cursor *c, __u8 op)
{
	switch (op) {
	case DW_OP_const1u:
		return dwarf_cursor__u8(c);
	case DW_OP_const1s:
		return (__u64)(__s64)(__s8)dwarf_cursor__u8(c);
	case DW_OP_const2u:
		return dwarf_cursor__u16(c);
	case DW_OP_const2s:
		return (__u64)(__s64)(__s16)dwarf_cursor__u16(c);
	case DW_OP_const4u:
		return dwarf_cursor__u32(c);
	case DW_OP_const4s:
		return (__u64)(__s64)(__s32)dwarf_cursor__u32(c);
	case DW_OP_consts:
		return (__u64)dwarf_cursor__sleb128(c);
	case DW_OP_constu:
		return dwarf_cursor__uleb128(c);
	default:
		return dwarf_cursor__u64(c);
	}
}

/* Pushes the value of register @number. */
static int push_register(const struct dwarf_machine *machine, __u64 number, __s64 offset,
			 __u64 *top)
{
	if (number >= DWARF_REGISTERS)
		return -EOPNOTSUPP;
	if (read_register(machine, number, top))
		return -ENODATA;
	*top += (__u64)offset;
	return 0;
}

/* @b was pushed before @a. -EOPNOTSUPP: @op is none that combines two values. */
static int combine(__u8 op, __u64 b, __u64 a, __u64 *result)
{
	switch (op) {
	case DW_OP_plus:
		*result = b + a;
		return 0;
	case DW_OP_minus:
		*result = b - a;
		return 0;
	case DW_OP_mul:
		*result = b * a;
		return 0;
	case DW_OP_and:
		*result = b & a;
		return 0;
	case DW_OP_or:
		*result = b | a;
		return 0;
	case DW_OP_xor:
		*result = b ^ a;
		return 0;
	case DW_OP_shl:
		*result = a < 64 ? b << a : 0;
		return 0;
	case DW_OP_shr:
		*result = a < 64 ? b >> a : 0;
		return 0;
	case DW_OP_eq:
		*result = b == a;
		return 0;
	case DW_OP_ne:
		*result = b != a;
		return 0;
	case DW_OP_ge:
		*result = (__s64)b >= (__s64)a;
		return 0;
	case DW_OP_gt:
		*result = (__s64)b > (__s64)a;
		return 0;
	case DW_OP_le:
		*result = (__s64)b <= (__s64)a;
		return 0;
	case DW_OP_lt:
		*result = (__s64)b < (__s64)a;
		return 0;
	}
	return -EOPNOTSUPP;
}

int dwarf_ops__run(const struct dwarf_machine *machine, const __u8 *ops, size_t size,
		   const __u64 *initial, bool *is_location, __u64 *result)
{
	struct dwarf_cursor c = { ops, ops + size, false };
	__u64 stack[64], number;
	unsigned int depth = 0;
	int err;

	*is_location = true;
	if (initial)
		stack[depth++] = *initial;
	while (c.pos != c.end && !c.bad) {
		__u8 op = dwarf_cursor__u8(&c);
		__u64 a = depth > 0 ? stack[depth - 1] : 0;
		__u64 b = depth > 1 ? stack[depth - 2] : 0;

		if (depth == 64)
			return -EINVAL;
		if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
			stack[depth++] = op - DW_OP_lit0;
			continue;
		}
		if ((op >= DW_OP_breg0 && op <= DW_OP_breg31) || op == DW_OP_bregx) {
			number = op == DW_OP_bregx ? dwarf_cursor__uleb128(&c)
						   : (__u64)(op - DW_OP_breg0);
			err = push_register(machine, number, dwarf_cursor__sleb128(&c),
					    &stack[depth++]);
			if (err)
				return err;
			continue;
		}
		if ((op >= DW_OP_reg0 && op <= DW_OP_reg31) || op == DW_OP_regx) {
			number = op == DW_OP_regx ? dwarf_cursor__uleb128(&c)
						  : (__u64)(op - DW_OP_reg0);
			err = push_register(machine, number, 0, &stack[depth++]);
			if (err)
				return err;
			*is_location = false;
			continue;
		}
		switch (op) {
		case DW_OP_const1u:
		case DW_OP_const1s:
		case DW_OP_const2u:
		case DW_OP_const2s:
		case DW_OP_const4u:
		case DW_OP_const4s:
		case DW_OP_const8u:
		case DW_OP_const8s:
		case DW_OP_constu:
		case DW_OP_consts:
			stack[depth++] = read_constant(&c, op);
			continue;
		case DW_OP_nop:
			continue;
		}

		if (depth < 1)
			return -EINVAL;
		switch (op) {
		case DW_OP_dup:
			stack[depth++] = a;
			continue;
		case DW_OP_drop:
			depth--;
			continue;
		case DW_OP_deref:
			if (!machine->load(machine->context, a, &stack[depth - 1]))
				return -ENODATA;
			continue;
		case DW_OP_plus_uconst:
			stack[depth - 1] = a + dwarf_cursor__uleb128(&c);
			continue;
		case DW_OP_neg:
			stack[depth - 1] = -a;
			continue;
		case DW_OP_not:
			stack[depth - 1] = ~a;
			continue;
		case DW_OP_stack_value:
			*is_location = false;
			continue;
		}

		if (depth < 2)
			return -EINVAL;
		depth--;
		err = combine(op, b, a, &stack[depth - 1]);
		if (err)
			return err;
	}
	if (!depth || c.bad)
		return -EINVAL;
	*result = stack[depth - 1];
	return 0;
}
