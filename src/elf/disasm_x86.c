// SPDX-License-Identifier: GPL-3.0-or-later
/* Decodes instructions of x86-64 by Zydis. */
#include "disasm.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "array.h"

/* A bit in masks of enum disasm_effect: bit 16 + n stands for general register n. */
#define WRITES_REGISTER(n)   (1u << (16 + (n)))
#define WRITTEN_REGISTERS(m) ((m) >> 16)
#define WRITES_FP	     WRITES_REGISTER(5)

struct decoded {
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static int decode(const void *code, size_t size, struct decoded *decoded)
{
	ZydisDecoder decoder;

	/* With prefix 66, AMD's processors read 16 bits of a branch's displacement: classify() knows
	 * such a branch by that. */
	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_AMD_BRANCHES, true)) ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, size, &decoded->insn,
					       decoded->operands)))
		return -EILSEQ;
	return 0;
}

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegister reg)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == reg;
}

static enum disasm_class classify(const struct decoded *decoded)
{
	const ZydisDecodedOperand *operand = &decoded->operands[0];
	bool is_direct = operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative;

	/* Prefix 66 makes the operand 16 bits wide for AMD's processors; Intel's ignore it. */
	if (is_direct && operand->size == 16)
		return DISASM_TRAP;
	switch (decoded->insn.meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return is_direct ? DISASM_CALL : DISASM_CALL_INDIRECT;
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		return DISASM_RET;
	case ZYDIS_CATEGORY_INTERRUPT:
		return DISASM_TRAP;
	case ZYDIS_CATEGORY_COND_BR:
		return is_direct ? DISASM_JUMP_CONDITIONAL : DISASM_OTHER; /* xend */
	default:
		break;
	}
	switch (decoded->insn.mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return is_direct ? DISASM_JUMP : DISASM_JUMP_INDIRECT;
	case ZYDIS_MNEMONIC_NOP:
		return DISASM_NOP;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
		return DISASM_TRAP;
	default:
		return DISASM_OTHER;
	}
}

static void set_target(const struct decoded *decoded, struct disasm_insn *insn)
{
	const ZydisDecodedOperand *operand = &decoded->operands[0];

	switch (insn->class) {
	case DISASM_CALL:
	case DISASM_JUMP:
	case DISASM_JUMP_CONDITIONAL:
		insn->has_target = true;
		insn->target = insn->vaddr + insn->length + (__u64)operand->imm.value.s;
		break;
	case DISASM_CALL_INDIRECT:
	case DISASM_JUMP_INDIRECT:
		/* A far branch reads a segment, too. */
		insn->has_slot = operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
				 operand->size == 64 && operand->mem.base == ZYDIS_REGISTER_RIP &&
				 operand->mem.segment == ZYDIS_REGISTER_DS;
		if (insn->has_slot)
			insn->slot = insn->vaddr + insn->length + (__u64)operand->mem.disp.value;
		break;
	default:
		break;
	}
}

/*
 * Returns whether branch_setup_xol_ops() and push_setup_xol_ops() in arch/x86/kernel/uprobes.c
 * emulate the instruction in every kernel since 4.14. Newer kernels emulate more forms of nop.
 * They refuse branches with prefix 66; those with a segment prefix cannot be probed at all.
 */
static bool is_emulated(const ZydisDecodedInstruction *zydis, const struct disasm_insn *insn)
{
	const unsigned char *code = insn->code;
	unsigned char opcode = zydis->opcode;

	if (zydis->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT &&
	    (zydis->opcode_map != ZYDIS_OPCODE_MAP_0F || (opcode & 0xf0) != 0x80))
		return false;
	if (opcode == 0x90)
		return insn->length == 1 || (insn->length == 2 && code[0] == 0x66);
	if ((opcode & 0xf8) == 0x50)
		return insn->length == 1 || (insn->length == 2 && code[0] == 0x41);
	for (size_t i = 0; i < zydis->raw.prefix_count; i++)
		if (zydis->raw.prefixes[i].value != 0xf2 &&
		    (zydis->raw.prefixes[i].value & 0xf0) != 0x40)
			return false;
	/* loop, jrcxz and xbegin are not emulated. */
	return insn->has_target && (opcode & 0xfc) != 0xe0 && opcode != 0xc7;
}

/* Returns the number, in the processor's encoding, of the general register that is or contains
 * @reg; -1: it is another register. */
static int general_register(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? ZydisRegisterGetId(whole)
								    : -1;
}

unsigned int disasm__argument_register(unsigned int number)
{
	static const ZydisRegister registers[DISASM_RESULT] = {
		ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX, ZYDIS_REGISTER_RCX,
		ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9,	ZYDIS_REGISTER_RAX,
	};

	return (unsigned int)general_register(registers[number - 1]);
}

static unsigned int written_register(ZydisRegister reg)
{
	int number = general_register(reg);

	if (number >= 0)
		return WRITES_REGISTER(number) |
		       (number == general_register(ZYDIS_REGISTER_RSP) ? DISASM_WRITES_SP : 0);
	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_FLAGS:
	case ZYDIS_REGCLASS_IP:
		return 0;
	default:
		return DISASM_UNKNOWN_EFFECT; /* registers of vectors, segments, the system */
	}
}

/* Returns what the operands write, including those that the instruction does not name. */
static unsigned int written_operands(const struct decoded *decoded)
{
	unsigned int written = 0;

	for (size_t i = 0; i < decoded->insn.operand_count; i++) {
		const ZydisDecodedOperand *operand = &decoded->operands[i];

		if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER)
			written |= written_register(operand->reg.value);
		else
			written |= DISASM_WRITES_MEMORY;
	}
	return written;
}

/* Returns whether the instruction changes nothing but its operands. */
static bool is_known(const ZydisDecodedInstruction *zydis)
{
	/* The end of a transaction may undo what was done before. */
	if (zydis->meta.isa_ext == ZYDIS_ISA_EXT_RTM)
		return false;
	switch (zydis->meta.category) {
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_BITBYTE:
	case ZYDIS_CATEGORY_BMI1:
	case ZYDIS_CATEGORY_BMI2:
	case ZYDIS_CATEGORY_CMOV:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_CONVERT:
	case ZYDIS_CATEGORY_DATAXFER:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_LZCNT:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_POP:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_ROTATE:
	case ZYDIS_CATEGORY_SETCC:
	case ZYDIS_CATEGORY_SHIFT:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_WIDENOP:
		return true;
	default:
		return zydis->mnemonic == ZYDIS_MNEMONIC_LEA ||
		       zydis->mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
		       zydis->mnemonic == ZYDIS_MNEMONIC_POPCNT;
	}
}

static void move_sp(struct disasm_insn *insn, enum disasm_sp sp, __s64 offset)
{
	insn->sp = sp;
	insn->sp_offset = offset;
}

/* Sets what compilers do to sp and the frame pointer. Other instructions that write to these have
 * an unknown effect. */
static void set_frame(const struct decoded *decoded, unsigned int written, struct disasm_insn *insn)
{
	const ZydisDecodedOperand *to = &decoded->operands[0], *from = &decoded->operands[1];
	bool to_sp = is_register(to, ZYDIS_REGISTER_RSP),
	     to_fp = is_register(to, ZYDIS_REGISTER_RBP);
	__s64 width = decoded->insn.operand_width / 8;

	if (insn->class == DISASM_CALL || insn->class == DISASM_CALL_INDIRECT)
		return;
	insn->sp = written & DISASM_WRITES_SP ? DISASM_SP_UNKNOWN : DISASM_SP_MOVED;
	insn->fp = written & WRITES_FP ? DISASM_FP_UNKNOWN : DISASM_FP_KEPT;
	switch (decoded->insn.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		move_sp(insn, DISASM_SP_MOVED, -width);
		if (to_fp)
			insn->fp = DISASM_FP_PUSHED;
		break;
	case ZYDIS_MNEMONIC_POP:
		if (to_fp)
			insn->fp = DISASM_FP_POPPED;
		if (to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (written_register(to->reg.value) & DISASM_WRITES_SP))
			break;
		__attribute__((fallthrough));
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		move_sp(insn, DISASM_SP_MOVED, width);
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		move_sp(insn, DISASM_SP_FROM_FP, width);
		insn->fp = DISASM_FP_POPPED;
		break;
	case ZYDIS_MNEMONIC_MOV:
		if (to_sp && is_register(from, ZYDIS_REGISTER_RBP))
			move_sp(insn, DISASM_SP_FROM_FP, 0);
		else if (to_fp && is_register(from, ZYDIS_REGISTER_RSP))
			insn->fp = DISASM_FP_FROM_SP;
		break;
	case ZYDIS_MNEMONIC_ADD:
		if (to_sp && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			move_sp(insn, DISASM_SP_MOVED, from->imm.value.s);
		break;
	case ZYDIS_MNEMONIC_SUB:
		if (to_sp && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
			move_sp(insn, DISASM_SP_MOVED, -from->imm.value.s);
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (!to_sp || from->mem.index != ZYDIS_REGISTER_NONE)
			break;
		if (from->mem.base == ZYDIS_REGISTER_RSP)
			move_sp(insn, DISASM_SP_MOVED, from->mem.disp.value);
		else if (from->mem.base == ZYDIS_REGISTER_RBP)
			move_sp(insn, DISASM_SP_FROM_FP, from->mem.disp.value);
		break;
	default:
		break;
	}
}

static void set_copy(const struct decoded *decoded, struct disasm_insn *insn)
{
	const ZydisDecodedOperand *to = &decoded->operands[0], *from = &decoded->operands[1];

	insn->is_copy = decoded->insn.mnemonic == ZYDIS_MNEMONIC_MOV &&
			to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			ZydisRegisterGetClass(to->reg.value) == ZYDIS_REGCLASS_GPR64 &&
			ZydisRegisterGetClass(from->reg.value) == ZYDIS_REGCLASS_GPR64;
	if (insn->is_copy) {
		insn->to = (unsigned char)general_register(to->reg.value);
		insn->from = (unsigned char)general_register(from->reg.value);
	}
}

static void set_frame_write(const struct decoded *decoded, struct disasm_insn *insn)
{
	const ZydisDecodedOperand *written = NULL;
	unsigned int n = 0;

	for (size_t i = 0; i < decoded->insn.operand_count; i++) {
		const ZydisDecodedOperand *operand = &decoded->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		written = operand;
		n++;
	}
	if (n != 1 || insn->effects != DISASM_WRITES_MEMORY ||
	    written->type != ZYDIS_OPERAND_TYPE_MEMORY || written->size % 8 ||
	    written->mem.base != ZYDIS_REGISTER_RSP || written->mem.index != ZYDIS_REGISTER_NONE ||
	    written->mem.segment != ZYDIS_REGISTER_SS)
		return;
	insn->writes_frame = true;
	insn->frame_offset = written->mem.disp.value;
	insn->frame_bytes = written->size / 8;
}

int disasm__decode(const void *code, size_t size, __u64 vaddr, struct disasm_insn *out)
{
	struct disasm_insn insn = { .vaddr = vaddr, .code = code };
	struct decoded decoded;
	unsigned int written;

	if (decode(code, size, &decoded) || vaddr + decoded.insn.length < vaddr)
		return -EILSEQ;
	written = written_operands(&decoded);
	insn.length = decoded.insn.length;
	insn.class = classify(&decoded);
	set_target(&decoded, &insn);
	set_frame(&decoded, written, &insn);
	insn.emulated = is_emulated(&decoded.insn, &insn);
	insn.effects = insn.class != DISASM_TRAP && is_known(&decoded.insn)
			       ? written & ~(WRITTEN_REGISTERS(~0U) << 16)
			       : DISASM_UNKNOWN_EFFECT;
	insn.written = insn.effects & DISASM_UNKNOWN_EFFECT ? WRITTEN_REGISTERS(~0U)
							    : WRITTEN_REGISTERS(written);
	set_copy(&decoded, &insn);
	set_frame_write(&decoded, &insn);
	*out = insn;
	return 0;
}

void disasm_insn__text(const struct disasm_insn *insn, char *text, size_t size)
{
	static const struct {
		ZydisFormatterProperty property;
		ZyanUPointer value;
	} settings[] = {
		{ ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, true },
		{ ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, false },
	};
	ZydisFormatter formatter;
	struct decoded decoded;
	char whole[256];
	bool is_ready = ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT));

	for (size_t i = 0; i < ARRAY_SIZE(settings) && is_ready; i++)
		is_ready = ZYAN_SUCCESS(ZydisFormatterSetProperty(&formatter, settings[i].property,
								  settings[i].value));
	if (!is_ready || decode(insn->code, insn->length, &decoded) ||
	    ZYAN_FAILED(ZydisFormatterFormatInstruction(&formatter, &decoded.insn, decoded.operands,
							decoded.insn.operand_count_visible, whole,
							sizeof(whole), insn->vaddr, NULL)))
		strcpy(whole, "(bad)");
	snprintf(text, size, "%.*s", (int)sizeof(whole) - 1, whole);
}

static int32_t read_s32(const unsigned char *at)
{
	return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
			 (uint32_t)at[3] << 24);
}

void disasm__scan_branches(const void *code, size_t size, __u64 vaddr, disasm_branch_fn fn,
			   void *arg)
{
	const unsigned char *bytes = code;

	for (size_t i = 0; i + 5 <= size; i++) {
		struct disasm_branch branch;
		size_t at = i + 1;

		if (bytes[i] == 0x0f) {
			if ((bytes[i + 1] & 0xf0) != 0x80 || i + 6 > size)
				continue;
			at = i + 2;
		} else if ((bytes[i] & 0xfe) != 0xe8) {
			continue;
		}
		branch.is_call = bytes[i] == 0xe8;
		branch.next = vaddr + at + 4;
		branch.target = branch.next + (__u64)(int64_t)read_s32(bytes + at);
		fn(&branch, arg);
	}
}

/* Bytes of lea with an address relative to the next instruction: its opcode, and which bits of the
 * byte behind that say so. */
#define LEA_OPCODE    0x8d
#define MODRM_MASK    0xc7
#define MODRM_OF_NEXT 0x05

/* Returns whether the bytes before @at look like those of an instruction whose last operand is a distance of four
 * bytes: of a call or jump, or lea. */
static bool precede_distance(const unsigned char *bytes, size_t at)
{
	return (at >= 1 && (bytes[at - 1] & 0xfe) == 0xe8) ||
	       (at >= 2 && bytes[at - 2] == 0x0f && (bytes[at - 1] & 0xf0) == 0x80) ||
	       (at >= 2 && bytes[at - 2] == LEA_OPCODE &&
		(bytes[at - 1] & MODRM_MASK) == MODRM_OF_NEXT);
}

/* Returns whether an instruction of two bytes with this first one is a jump. */
static bool is_short_jump(unsigned char opcode)
{
	return opcode == 0xeb || (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0;
}

void disasm__scan_operands(const void *code, size_t size, __u64 vaddr, __u64 low, __u64 high,
			   disasm_operand_fn fn, void *arg)
{
	const unsigned char *bytes = code;
	const __u64 range = high - low;

	for (size_t i = 0; i + 2 <= size; i++) {
		__u64 next = vaddr + i + 2, target = next + (__u64)(int64_t)(int8_t)bytes[i + 1];
		int32_t value;

		if (target - low <= range && is_short_jump(bytes[i]))
			fn(&(struct disasm_operand){ next, target, DISASM_SHORT_DISTANCE }, arg);
		if (i + 4 > size)
			continue;
		value = read_s32(bytes + i);
		next = vaddr + i + 4;
		target = next + (__u64)(int64_t)value;
		if (target - low <= range && precede_distance(bytes, i))
			fn(&(struct disasm_operand){ next, target, DISASM_DISTANCE }, arg);
		target = (uint32_t)value;
		if (target - low <= range)
			fn(&(struct disasm_operand){ next, target, DISASM_ADDRESS }, arg);
	}
}

bool disasm_insn__has_distance(const struct disasm_insn *insn)
{
	const unsigned char *end = (const unsigned char *)insn->code + insn->length;

	if (insn->has_target)
		return insn->length >= 5;
	return insn->length >= 6 && end[-6] == LEA_OPCODE &&
	       (end[-5] & MODRM_MASK) == MODRM_OF_NEXT;
}

/* -fcf-protection puts an endbr64 before the jump. */
bool disasm__stub_slot(const void *code, size_t size, __u64 vaddr, __u64 *slot)
{
	struct disasm_insn insn;

	if (disasm__decode(code, size, vaddr, &insn))
		return false;
	if ((insn.class == DISASM_NOP ||
	     (insn.class == DISASM_OTHER && !insn.effects && !insn.written)) &&
	    disasm__decode((const unsigned char *)code + insn.length, size - insn.length,
			   vaddr + insn.length, &insn))
		return false;
	if (insn.class != DISASM_JUMP_INDIRECT || !insn.has_slot)
		return false;
	*slot = insn.slot;
	return true;
}

/* Known are call rel32, and call *(register), with or without a displacement. */
bool disasm__ends_with_call(const unsigned char code[DISASM_CALL_BYTES])
{
	const unsigned char *end = code + DISASM_CALL_BYTES;

	return end[-5] == 0xe8 || (end[-2] == 0xff && (end[-1] & 0x38) == 0x10) ||
	       (end[-3] == 0xff && (end[-2] & 0xf8) == 0x50) ||
	       (end[-6] == 0xff && (end[-5] & 0x38) == 0x10);
}
