// SPDX-License-Identifier: GPL-3.0-or-later
#include "libdw_rules.h"

#include <dwarf.h>
#include <errno.h>

static int read_register(const struct dwarf_machine *machine, unsigned int number, __u64 *value)
{
	if (!(machine->known & 1ULL << number))
		return -ENODATA;
	*value = machine->registers[number];
	return 0;
}

static int run_ops(const struct dwarf_machine *machine, const Dwarf_Op *ops, size_t count,
		   const __u64 *cfa, bool *is_location, __u64 *result)
{
	__u64 stack[64];
	unsigned int depth = 0;

	*is_location = true;
	for (size_t i = 0; i < count; i++) {
		const Dwarf_Op *op = &ops[i];
		__u64 a = depth > 0 ? stack[depth - 1] : 0;
		__u64 b = depth > 1 ? stack[depth - 2] : 0;

		if (depth == 64)
			return -EINVAL;
		if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
			stack[depth++] = op->atom - DW_OP_lit0;
			continue;
		}
		if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
			if (read_register(machine, op->atom - DW_OP_breg0, &stack[depth]))
				return -ENODATA;
			stack[depth++] += op->number;
			continue;
		}
		if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
			if (read_register(machine, op->atom - DW_OP_reg0, &stack[depth++]))
				return -ENODATA;
			*is_location = false;
			continue;
		}
		switch (op->atom) {
		case DW_OP_bregx:
			if (op->number >= DWARF_REGISTERS)
				return -EOPNOTSUPP;
			if (read_register(machine, op->number, &stack[depth]))
				return -ENODATA;
			stack[depth++] += op->number2;
			continue;
		case DW_OP_regx:
			if (op->number >= DWARF_REGISTERS)
				return -EOPNOTSUPP;
			if (read_register(machine, op->number, &stack[depth++]))
				return -ENODATA;
			*is_location = false;
			continue;
		case DW_OP_call_frame_cfa:
			if (!cfa)
				return -EINVAL;
			stack[depth++] = *cfa;
			continue;
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
			stack[depth++] = op->number;
			continue;
		case DW_OP_nop:
			continue;
		}

		if (depth < 1)
			return -EINVAL;
		switch (op->atom) {
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
			stack[depth - 1] = a + op->number;
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
		switch (op->atom) {
		case DW_OP_plus:
			stack[depth - 1] = b + a;
			continue;
		case DW_OP_minus:
			stack[depth - 1] = b - a;
			continue;
		case DW_OP_mul:
			stack[depth - 1] = b * a;
			continue;
		case DW_OP_and:
			stack[depth - 1] = b & a;
			continue;
		case DW_OP_or:
			stack[depth - 1] = b | a;
			continue;
		case DW_OP_xor:
			stack[depth - 1] = b ^ a;
			continue;
		case DW_OP_shl:
			stack[depth - 1] = a < 64 ? b << a : 0;
			continue;
		case DW_OP_shr:
			stack[depth - 1] = a < 64 ? b >> a : 0;
			continue;
		case DW_OP_eq:
			stack[depth - 1] = b == a;
			continue;
		case DW_OP_ne:
			stack[depth - 1] = b != a;
			continue;
		case DW_OP_ge:
			stack[depth - 1] = (__s64)b >= (__s64)a;
			continue;
		case DW_OP_gt:
			stack[depth - 1] = (__s64)b > (__s64)a;
			continue;
		case DW_OP_le:
			stack[depth - 1] = (__s64)b <= (__s64)a;
			continue;
		case DW_OP_lt:
			stack[depth - 1] = (__s64)b < (__s64)a;
			continue;
		default:
			return -EOPNOTSUPP;
		}
	}
	if (!depth)
		return -EINVAL;
	*result = stack[depth - 1];
	return 0;
}

int dwarf_frame__cfa(Dwarf_Frame *frame, const struct dwarf_machine *machine, __u64 *cfa)
{
	bool is_location;
	size_t count = 0;
	Dwarf_Op *ops;

	if (dwarf_frame_cfa(frame, &ops, &count))
		return -EINVAL;
	if (!count)
		return -ENOENT;
	return run_ops(machine, ops, count, NULL, &is_location, cfa);
}

int dwarf_frame__caller_register(Dwarf_Frame *frame, const struct dwarf_machine *machine,
				 int number, __u64 cfa, __u64 *value)
{
	Dwarf_Op memory[3], *ops = NULL;
	bool is_location;
	size_t count = 0;
	__u64 result;
	int err;

	if (dwarf_frame_register(frame, number, memory, &ops, &count))
		return -EINVAL;
	/* No operations mean "undefined" or, without a location, "same value". */
	if (!count)
		return ops ? -ENOENT : read_register(machine, number, value);
	err = run_ops(machine, ops, count, &cfa, &is_location, &result);
	if (err)
		return err;
	if (!is_location)
		*value = result;
	else if (!machine->load(machine->context, result, value))
		return -ENODATA;
	return 0;
}
