// SPDX-License-Identifier: GPL-3.0-or-later
#include "cfi_frames.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cfi_internal.h"

static int read_register(const struct dwarf_machine *machine, unsigned int number, __u64 *value)
{
	if (!(machine->known & 1ULL << number))
		return -ENODATA;
	*value = machine->registers[number];
	return 0;
}

/* Returns the operand of a constant. */
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

/* Combines two values; @b was pushed before @a. Fails with -EOPNOTSUPP if @op does not combine two
 * values. */
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

/*
 * Runs the operations. *@is_location: *@result is the address of the value, not the value.
 * @initial, or NULL, is on the stack at the start. Fails with -ENODATA if a register or word is
 * unknown; -EINVAL if the expression is invalid; -EOPNOTSUPP if an operation or register is not
 * supported.
 */
static int dwarf_ops__run(const struct dwarf_machine *machine, const __u8 *ops, size_t size,
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

/*
 * libdw makes room for as many registers as an instruction names, up to 2^28, and copies them for
 * each remembered state: thirteen kilobytes made it use ten gigabytes. This code skips registers
 * beyond those of the processor.
 */

/* How deep states may be remembered; compilers nest one level. */
#define REMEMBER_DEPTH 32

#define MAX_SECTIONS 2

struct cfi_frames {
	struct cfi_file *file;
	/* The entries have been read; the first look-up of an address reads them. */
	bool has_entries;
	struct cfi_section sections[MAX_SECTIONS];
	struct cfi_entries entries[MAX_SECTIONS];
	__u32 n_sections;
};

int cfi_frames__open(int fd, struct cfi_frames **out)
{
	struct cfi_frames *frames = calloc(1, sizeof(*frames));
	int err;

	if (!frames)
		return -ENOMEM;
	err = cfi_file__open(fd, &frames->file);
	if (err)
		cfi_frames__free(frames);
	else
		*out = frames;
	return err;
}

/* Reads the entries. A section for which there is no memory has no rules. */
static void read_entries(struct cfi_frames *frames)
{
	const struct cfi_file *file = frames->file;
	struct cfi_stats stats = { 0 };
	bool is_go = false;

	frames->has_entries = true;
	for (__u32 i = 0; i < file->section_count; i++)
		is_go |= file->sections[i].go != NULL;
	for (__u32 i = 0; i < file->section_count && frames->n_sections < MAX_SECTIONS; i++) {
		const struct cfi_section *section = &file->sections[i];
		__u32 at = frames->n_sections;

		/* Go's .debug_frame does not describe the runtime's stack switches. */
		if (section->go || section->bare || (is_go && section->debug_frame) ||
		    cfi_entries__read(file->arch, section, file->texts, file->text_count, &stats,
				      &frames->entries[at]))
			continue;
		frames->sections[at] = *section;
		frames->n_sections++;
	}
}

static bool has_code(const struct cfi_file *file, __u64 vaddr)
{
	for (__u32 i = 0; i < file->text_count; i++)
		if (vaddr - file->texts[i].vaddr < file->texts[i].size)
			return true;
	return false;
}

void cfi_frames__free(struct cfi_frames *frames)
{
	if (!frames)
		return;
	for (__u32 i = 0; i < frames->n_sections; i++)
		cfi_entries__free(&frames->entries[i]);
	cfi_file__close(frames->file);
	free(frames);
}

struct machine {
	const struct cfi_cie *cie;
	const struct cfi_section *section;
	struct dwarf_cursor c;
	struct frame_rules *rules;
	struct frame_rules initial, remembered[REMEMBER_DEPTH];
	unsigned int depth;
	__u64 pc, wanted;
};

static void set(struct machine *m, __u64 reg, struct frame_rule rule)
{
	if (reg < DWARF_REGISTERS)
		m->rules->registers[reg] = rule;
}

static __s64 factored(const struct machine *m, __s64 factor)
{
	return (__s64)((__u64)factor * (__u64)m->cie->data_align);
}

static void set_at_cfa(struct machine *m, __u64 reg, enum frame_how how, __s64 factor)
{
	set(m, reg, (struct frame_rule){ .how = how, .value = factored(m, factor) });
}

static struct frame_rule read_expression(struct machine *m, enum frame_how how)
{
	__u64 size = dwarf_cursor__uleb128(&m->c);
	const __u8 *ops = dwarf_cursor__skip(&m->c, size);

	return (struct frame_rule){ .how = how, .ops = ops, .n_bytes = m->c.bad ? 0 : size };
}

static void restore(struct machine *m, __u64 reg)
{
	if (reg < DWARF_REGISTERS)
		m->rules->registers[reg] = m->initial.registers[reg];
}

/* Advances the address. Returns false if the rules do not go on to the wanted address. */
static bool advance(struct machine *m, __u64 delta)
{
	m->pc += delta * m->cie->code_align;
	return m->pc <= m->wanted;
}

static void define_cfa(struct machine *m, __u64 reg, __s64 offset)
{
	m->rules->cfa = (struct frame_rule){
		.how = reg < DWARF_REGISTERS ? FRAME_REGISTER : FRAME_UNDEFINED,
		.value = (__s64)reg,
		.offset = offset,
	};
}

/* Handles instructions that define the CFA, go on to another row or state, or change no rule and have
 * no operands. Returns 1: done, 0: it is none of these, -1: the end. */
static int step_row(struct machine *m, __u8 op)
{
	__u64 reg, operand;

	switch (op) {
	case DW_CFA_nop:
		return 1;
	case DW_CFA_set_loc:
		if (cfi_pointer__read(&m->c, m->cie->fde_encoding, m->section, 0, &m->pc))
			m->c.bad = true;
		return m->pc <= m->wanted ? 1 : -1;
	case DW_CFA_advance_loc1:
		return advance(m, dwarf_cursor__u8(&m->c)) ? 1 : -1;
	case DW_CFA_advance_loc2:
		return advance(m, dwarf_cursor__u16(&m->c)) ? 1 : -1;
	case DW_CFA_advance_loc4:
		return advance(m, dwarf_cursor__u32(&m->c)) ? 1 : -1;
	case DW_CFA_def_cfa:
		reg = dwarf_cursor__uleb128(&m->c);
		define_cfa(m, reg, (__s64)dwarf_cursor__uleb128(&m->c));
		return 1;
	case DW_CFA_def_cfa_sf:
		reg = dwarf_cursor__uleb128(&m->c);
		define_cfa(m, reg, factored(m, dwarf_cursor__sleb128(&m->c)));
		return 1;
	case DW_CFA_def_cfa_register:
		define_cfa(m, dwarf_cursor__uleb128(&m->c), m->rules->cfa.offset);
		return 1;
	case DW_CFA_def_cfa_offset:
		m->rules->cfa.offset = (__s64)dwarf_cursor__uleb128(&m->c);
		return 1;
	case DW_CFA_def_cfa_offset_sf:
		m->rules->cfa.offset = factored(m, dwarf_cursor__sleb128(&m->c));
		return 1;
	case DW_CFA_def_cfa_expression:
		m->rules->cfa = read_expression(m, FRAME_IS_EXPRESSION);
		return 1;
	case DW_CFA_remember_state:
		m->c.bad |= m->depth == REMEMBER_DEPTH;
		if (!m->c.bad)
			m->remembered[m->depth++] = *m->rules;
		return 1;
	case DW_CFA_restore_state:
		m->c.bad |= !m->depth;
		if (!m->c.bad)
			*m->rules = m->remembered[--m->depth];
		return 1;
	case DW_CFA_GNU_args_size:
		operand = dwarf_cursor__uleb128(&m->c);
		(void)operand;
		return 1;
	}
	return cfi_arch_host.is_ignored && cfi_arch_host.is_ignored(op);
}

/* Handles instructions that define a register's rule. */
static void step_register(struct machine *m, __u8 op)
{
	__u64 reg = dwarf_cursor__uleb128(&m->c);

	switch (op) {
	case DW_CFA_offset_extended:
		set_at_cfa(m, reg, FRAME_AT_CFA, (__s64)dwarf_cursor__uleb128(&m->c));
		return;
	case DW_CFA_offset_extended_sf:
		set_at_cfa(m, reg, FRAME_AT_CFA, dwarf_cursor__sleb128(&m->c));
		return;
	case DW_CFA_GNU_negative_offset_extended:
		set_at_cfa(m, reg, FRAME_AT_CFA, -(__s64)dwarf_cursor__uleb128(&m->c));
		return;
	case DW_CFA_val_offset:
		set_at_cfa(m, reg, FRAME_IS_CFA, (__s64)dwarf_cursor__uleb128(&m->c));
		return;
	case DW_CFA_val_offset_sf:
		set_at_cfa(m, reg, FRAME_IS_CFA, dwarf_cursor__sleb128(&m->c));
		return;
	case DW_CFA_expression:
		set(m, reg, read_expression(m, FRAME_AT_EXPRESSION));
		return;
	case DW_CFA_val_expression:
		set(m, reg, read_expression(m, FRAME_IS_EXPRESSION));
		return;
	case DW_CFA_register:
		set(m, reg,
		    (struct frame_rule){ .how = FRAME_REGISTER,
					 .value = (__s64)dwarf_cursor__uleb128(&m->c) });
		return;
	case DW_CFA_undefined:
		set(m, reg, (struct frame_rule){ .how = FRAME_UNDEFINED });
		return;
	case DW_CFA_same_value:
		set(m, reg, (struct frame_rule){ .how = FRAME_SAME });
		return;
	case DW_CFA_restore_extended:
		restore(m, reg);
		return;
	default:
		m->c.bad = true;
	}
}

/* Runs the instructions up to the wanted address. Returns false if they are damaged. */
static bool run(struct machine *m, const __u8 *program, __u32 size)
{
	m->c = (struct dwarf_cursor){ program, program + size, false };
	while (m->c.pos != m->c.end && !m->c.bad) {
		__u8 op = dwarf_cursor__u8(&m->c);
		int done = 1;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			done = advance(m, op & 0x3f) ? 1 : -1;
			break;
		case DW_CFA_offset:
			set_at_cfa(m, op & 0x3f, FRAME_AT_CFA, (__s64)dwarf_cursor__uleb128(&m->c));
			break;
		case DW_CFA_restore:
			restore(m, op & 0x3f);
			break;
		default:
			done = step_row(m, op);
		}
		if (done < 0)
			break;
		if (!done)
			step_register(m, op);
	}
	return !m->c.bad;
}

static const struct cfi_fde *find_fde(const struct cfi_entries *entries, __u64 vaddr)
{
	size_t after = ARRAY_LOWER_BOUND(entries->fde_count, i, entries->fdes[i].lo <= vaddr);

	return after && vaddr < entries->fdes[after - 1].hi ? &entries->fdes[after - 1] : NULL;
}

static bool find_in(const struct cfi_section *section, const struct cfi_entries *entries,
		    __u64 vaddr, struct frame_rules *rules)
{
	const struct cfi_fde *fde = find_fde(entries, vaddr);
	struct machine m;

	if (!fde)
		return false;
	m.cie = &entries->cies[fde->cie];
	m.section = section;
	m.rules = rules;
	m.depth = 0;
	m.wanted = ~0ULL;
	m.pc = 0;
	*rules = (struct frame_rules){ 0 };
	m.initial = *rules;
	if (m.cie->reject || !run(&m, m.cie->program, m.cie->program_size))
		return false;
	m.initial = *rules;
	m.pc = fde->lo;
	m.wanted = vaddr;
	rules->is_signal = m.cie->signal_frame;
	return run(&m, fde->program, fde->program_size);
}

bool cfi_frames__find(struct cfi_frames *frames, __u64 vaddr, struct frame_rules *out)
{
	if (!has_code(frames->file, vaddr))
		return false;
	if (!frames->has_entries)
		read_entries(frames);
	for (__u32 i = 0; i < frames->n_sections; i++)
		if (find_in(&frames->sections[i], &frames->entries[i], vaddr, out))
			return true;
	return false;
}

static int run_rule(const struct dwarf_machine *machine, const struct frame_rule *rule,
		    const __u64 *cfa, bool is_location, __u64 *value)
{
	bool is_memory;
	__u64 result;
	int err = dwarf_ops__run(machine, rule->ops, rule->n_bytes, cfa, &is_memory, &result);

	if (err)
		return err;
	*value = result;
	if (!is_location || !is_memory)
		return 0;
	return machine->load(machine->context, result, value) ? 0 : -ENODATA;
}

int frame_rules__cfa(const struct frame_rules *rules, const struct dwarf_machine *machine,
		     __u64 *cfa)
{
	const struct frame_rule *rule = &rules->cfa;
	int err;

	switch (rule->how) {
	case FRAME_REGISTER:
		err = read_register(machine, (unsigned int)rule->value, cfa);
		if (!err)
			*cfa += (__u64)rule->offset;
		return err;
	case FRAME_IS_EXPRESSION:
		return run_rule(machine, rule, NULL, false, cfa);
	case FRAME_UNSPECIFIED:
		return -ENOENT;
	default:
		return -EOPNOTSUPP;
	}
}

int frame_rules__caller_register(const struct frame_rules *rules,
				 const struct dwarf_machine *machine, int number, __u64 cfa,
				 __u64 *value)
{
	const struct frame_rule *rule = &rules->registers[number];

	switch (rule->how) {
	case FRAME_SAME:
		return read_register(machine, number, value);
	case FRAME_AT_CFA:
		return machine->load(machine->context, cfa + (__u64)rule->value, value) ? 0
											: -ENODATA;
	case FRAME_IS_CFA:
		*value = cfa + (__u64)rule->value;
		return 0;
	case FRAME_REGISTER:
		if ((__u64)rule->value >= DWARF_REGISTERS)
			return -EOPNOTSUPP;
		return read_register(machine, (unsigned int)rule->value, value);
	case FRAME_AT_EXPRESSION:
		return run_rule(machine, rule, &cfa, true, value);
	case FRAME_IS_EXPRESSION:
		return run_rule(machine, rule, &cfa, false, value);
	default:
		return -ENOENT;
	}
}
