// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * libdw makes room for as many registers as an instruction names, up to 2^28, and copies them for each state to remember:
 * thirteen kilobytes cost it ten gigabytes. Here registers beyond those of the processor are skipped.
 */
#include "cfi_frames.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cfi_internal.h"

/* Compilers nest one level. */
#define REMEMBER_DEPTH 32

#define MAX_SECTIONS 2

struct cfi_frames {
	struct cfi_file *file;
	/* Of the first address that is looked up on. */
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

/* Sections without memory for them have no rules. */
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

/* False where the rules do not go on to the wanted address. */
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

/* Instructions that define the CFA, or go on to another row or state. 1: done, 0: it is none of these, -1: the end. */
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
	return 0;
}

/* Instructions that define a register's rule. */
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

/* Runs the instructions up to the wanted address. False if they are damaged. */
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

static int read_register(const struct dwarf_machine *machine, unsigned int number, __u64 *value)
{
	if (!(machine->known & 1U << number))
		return -ENODATA;
	*value = machine->registers[number];
	return 0;
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
