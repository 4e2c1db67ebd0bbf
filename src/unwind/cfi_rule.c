// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns a row of call frame information into a rule of the table, or says why it has none. */
#include "cfi_internal.h"

#include <limits.h>
#include <string.h>

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

/* Unwinding sets sp to the CFA; checks that the row agrees. */
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
	if (!fits_s32(fp_offset) || !fits_s16(ra_offset))
		return unsupported(UNWIND_UNSUPPORTED_OFFSET, 0);
	rule.fp_offset = (__s32)fp_offset;
	rule.ra_offset = (__s16)ra_offset;
	return rule;
}
