// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs the instructions of call frame information (DWARF 5, 6.4). */
#include "cfi_rules.h"

#include <dwarf.h>
#include <stdint.h>

enum cfi_column cfi_arch__column(const struct cfi_arch *arch, __u64 reg)
{
	unsigned int column;

	for (column = 0; column < CFI_COLUMNS; column++)
		if (arch->registers[column] == reg)
			break;
	return column;
}

static struct cfi_value reg_value(__u16 reg, __s64 add)
{
	return (struct cfi_value){ .kind = CFI_VALUE_REG, .reg = reg, .add = add };
}

static void save(struct cfi_machine *m, __u64 reg, enum cfi_saved_how how, struct cfi_value value)
{
	enum cfi_column column = cfi_arch__column(m->arch, reg);

	if (column < CFI_COLUMNS)
		m->state->columns[column] = (struct cfi_saved){ .how = how, .value = value };
}

/* Returns a value at an offset. No rule can express an offset that overflows, but the rest of the
 * FDE remains valid. */
static struct cfi_value factored(struct cfi_machine *m, __u16 reg, bool overflow, __s64 factor)
{
	__s64 offset;

	if (overflow || __builtin_mul_overflow(factor, m->cie->data_align, &offset))
		return (struct cfi_value){ .kind = CFI_VALUE_UNKNOWN };
	return reg_value(reg, offset);
}

static void save_at_cfa(struct cfi_machine *m, __u64 reg, enum cfi_saved_how how, __u64 factor)
{
	save(m, reg, how, factored(m, CFI_REG_CFA, factor > INT64_MAX, (__s64)factor));
}

static void save_at_cfa_signed(struct cfi_machine *m, __u64 reg, enum cfi_saved_how how,
			       __s64 factor)
{
	save(m, reg, how, factored(m, CFI_REG_CFA, false, factor));
}

static void save_expression(struct cfi_machine *m, __u64 reg, enum cfi_saved_how how)
{
	__u64 size = dwarf_cursor__uleb128(&m->c);
	const __u8 *ops = dwarf_cursor__skip(&m->c, size);
	struct cfi_value cfa = reg_value(CFI_REG_CFA, 0);

	if (!m->c.bad && cfi_arch__column(m->arch, reg) < CFI_COLUMNS)
		save(m, reg, how, cfi_expression__value(ops, size, &cfa));
}

static void define_cfa_expression(struct cfi_machine *m)
{
	__u64 size = dwarf_cursor__uleb128(&m->c);
	const __u8 *ops = dwarf_cursor__skip(&m->c, size);

	if (m->c.bad)
		return;
	if (!m->arch->match_cfa || !m->arch->match_cfa(ops, size, &m->state->cfa))
		m->state->cfa = cfi_expression__value(ops, size, NULL);
}

/* Restores a register's initial rule. A CIE with DW_CFA_restore (CUDA's libraries have some) has
 * nothing to restore; then the register counts as never saved, as in libgcc. */
static void restore(struct cfi_machine *m, __u64 reg)
{
	enum cfi_column column = cfi_arch__column(m->arch, reg);

	if (column < CFI_COLUMNS)
		m->state->columns[column] =
			m->fde ? m->cie->initial.columns[column] : (struct cfi_saved){ 0 };
}

static int move_to(struct cfi_machine *m, __u64 pc)
{
	int err;

	if (!m->fde || pc < m->pc)
		return CFI_REJECT_PROGRAM;
	if (pc == m->pc || m->pc >= m->fde->hi)
		return CFI_OK;
	err = m->row(m->ctx, m->pc, m->state);
	if (err)
		return err;
	m->pc = pc;
	return CFI_OK;
}

static int advance(struct cfi_machine *m, __u64 delta)
{
	__u64 pc;

	if (__builtin_mul_overflow(delta, m->cie->code_align, &delta) ||
	    __builtin_add_overflow(m->pc, delta, &pc))
		return CFI_REJECT_PROGRAM;
	return move_to(m, pc);
}

static int set_loc(struct cfi_machine *m)
{
	enum cfi_reject reject;
	__u64 pc;

	reject = cfi_pointer__read(&m->c, m->cie->fde_encoding, m->section, 0, &pc);
	return reject ? (int)reject : move_to(m, pc);
}

/*
 * Returns whether the CFA has a register and an offset. Changing either of a CFA that is an
 * expression is invalid (DWARF 5, 6.4.2.2). libgcrypt does it in epilogues of functions whose
 * bodies are described correctly, so only the CFA becomes unknown.
 */
static bool cfa_has_halves(struct cfi_machine *m)
{
	if (m->state->cfa.kind == CFI_VALUE_REG)
		return true;
	m->state->cfa = (struct cfi_value){ .kind = CFI_VALUE_UNKNOWN };
	return false;
}

static void define_cfa_offset(struct cfi_machine *m, __s64 offset)
{
	if (cfa_has_halves(m))
		m->state->cfa.add = offset;
}

/* Reads register and factor; one function, so that they are read in order. */
static __u64 two_uleb128(struct dwarf_cursor *c, __u64 *second)
{
	__u64 first = dwarf_cursor__uleb128(c);

	*second = dwarf_cursor__uleb128(c);
	return first;
}

static int step(struct cfi_machine *m)
{
	__u8 op = dwarf_cursor__u8(&m->c);
	struct cfi_value none = { .kind = CFI_VALUE_UNKNOWN };
	__u64 reg, operand;
	__s64 factor;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(m, op & 0x3f);
	case DW_CFA_offset:
		save_at_cfa(m, op & 0x3f, CFI_SAVED_AT, dwarf_cursor__uleb128(&m->c));
		return CFI_OK;
	case DW_CFA_restore:
		restore(m, op & 0x3f);
		return CFI_OK;
	}

	switch (op) {
	case DW_CFA_nop:
		return CFI_OK;
	case DW_CFA_set_loc:
		return set_loc(m);
	case DW_CFA_advance_loc1:
		return advance(m, dwarf_cursor__u8(&m->c));
	case DW_CFA_advance_loc2:
		return advance(m, dwarf_cursor__u16(&m->c));
	case DW_CFA_advance_loc4:
		return advance(m, dwarf_cursor__u32(&m->c));

	case DW_CFA_def_cfa:
		reg = two_uleb128(&m->c, &operand);
		m->state->cfa = reg_value(cfi_reg(reg), (__s64)operand);
		return CFI_OK;
	case DW_CFA_def_cfa_sf:
		reg = dwarf_cursor__uleb128(&m->c);
		factor = dwarf_cursor__sleb128(&m->c);
		m->state->cfa = factored(m, cfi_reg(reg), false, factor);
		return CFI_OK;
	case DW_CFA_def_cfa_register:
		reg = dwarf_cursor__uleb128(&m->c);
		if (cfa_has_halves(m))
			m->state->cfa.reg = cfi_reg(reg);
		return CFI_OK;
	case DW_CFA_def_cfa_offset:
		define_cfa_offset(m, (__s64)dwarf_cursor__uleb128(&m->c));
		return CFI_OK;
	case DW_CFA_def_cfa_offset_sf:
		factor = dwarf_cursor__sleb128(&m->c);
		if (__builtin_mul_overflow(factor, m->cie->data_align, &factor))
			return CFI_REJECT_PROGRAM;
		define_cfa_offset(m, factor);
		return CFI_OK;
	case DW_CFA_def_cfa_expression:
		define_cfa_expression(m);
		return CFI_OK;

	case DW_CFA_offset_extended:
		reg = two_uleb128(&m->c, &operand);
		save_at_cfa(m, reg, CFI_SAVED_AT, operand);
		return CFI_OK;
	case DW_CFA_offset_extended_sf:
		reg = dwarf_cursor__uleb128(&m->c);
		save_at_cfa_signed(m, reg, CFI_SAVED_AT, dwarf_cursor__sleb128(&m->c));
		return CFI_OK;
	case DW_CFA_GNU_negative_offset_extended:
		reg = two_uleb128(&m->c, &operand);
		save(m, reg, CFI_SAVED_AT,
		     factored(m, CFI_REG_CFA, operand > INT64_MAX, (__s64)-operand));
		return CFI_OK;
	case DW_CFA_val_offset:
		reg = two_uleb128(&m->c, &operand);
		save_at_cfa(m, reg, CFI_SAVED_IS, operand);
		return CFI_OK;
	case DW_CFA_val_offset_sf:
		reg = dwarf_cursor__uleb128(&m->c);
		save_at_cfa_signed(m, reg, CFI_SAVED_IS, dwarf_cursor__sleb128(&m->c));
		return CFI_OK;
	case DW_CFA_expression:
		save_expression(m, dwarf_cursor__uleb128(&m->c), CFI_SAVED_AT);
		return CFI_OK;
	case DW_CFA_val_expression:
		save_expression(m, dwarf_cursor__uleb128(&m->c), CFI_SAVED_IS);
		return CFI_OK;
	case DW_CFA_register:
		reg = two_uleb128(&m->c, &operand);
		save(m, reg, CFI_SAVED_IS, reg_value(cfi_reg(operand), 0));
		return CFI_OK;
	case DW_CFA_undefined:
		save(m, dwarf_cursor__uleb128(&m->c), CFI_SAVED_UNDEFINED, none);
		return CFI_OK;
	case DW_CFA_same_value:
		save(m, dwarf_cursor__uleb128(&m->c), CFI_SAVED_SAME, none);
		return CFI_OK;
	case DW_CFA_restore_extended:
		restore(m, dwarf_cursor__uleb128(&m->c));
		return CFI_OK;

	case DW_CFA_remember_state:
		if (m->depth == CFI_REMEMBER_DEPTH)
			return CFI_REJECT_PROGRAM;
		m->remembered[m->depth++] = *m->state;
		return CFI_OK;
	case DW_CFA_restore_state:
		if (!m->depth)
			return CFI_REJECT_PROGRAM;
		*m->state = m->remembered[--m->depth];
		return CFI_OK;

	case DW_CFA_GNU_args_size:
		dwarf_cursor__uleb128(&m->c);
		return CFI_OK;
	default:
		return m->arch->is_ignored && m->arch->is_ignored(op) ? CFI_OK : CFI_REJECT_OPCODE;
	}
}

int cfi_program__run(struct cfi_machine *m, const struct cfi_arch *arch, const struct cfi_cie *cie,
		     const struct cfi_section *section, const struct cfi_fde *fde,
		     struct dwarf_cursor program, struct cfi_state *state, cfi_row_fn row,
		     void *ctx)
{
	/* The remembered states are not cleared, which would take longer than most programs. */
	m->arch = arch;
	m->cie = cie;
	m->section = section;
	m->fde = fde;
	m->c = program;
	m->state = state;
	m->row = row;
	m->ctx = ctx;
	m->pc = fde ? fde->lo : 0;
	m->depth = 0;

	if (fde)
		*state = cie->initial;
	else
		*state = (struct cfi_state){ .cfa = { .kind = CFI_VALUE_UNSET } };

	while (m->c.pos != m->c.end) {
		int err = step(m);

		if (m->c.bad)
			return CFI_REJECT_TRUNCATED;
		if (err)
			return err;
	}
	if (fde && m->pc < fde->hi)
		return row(ctx, m->pc, state);
	return CFI_OK;
}
