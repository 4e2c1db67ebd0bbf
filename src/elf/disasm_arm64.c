// SPDX-License-Identifier: GPL-3.0-or-later
/* Decodes instructions of arm64, each of which has four bytes: as far as probes and stacks need them, which are few
 * of its many. */
#include "disasm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define INSN_BYTES 4

/* Numbers of registers. In some operands 31 is sp, in others it is zero. */
#define FP 29
#define LR 30
#define SP 31

#define BITS(insn, low, n) ((insn) >> (low) & ((1u << (n)) - 1))

static __u32 word_at(const void *code)
{
	const unsigned char *bytes = code;

	return (__u32)bytes[0] | (__u32)bytes[1] << 8 | (__u32)bytes[2] << 16 |
	       (__u32)bytes[3] << 24;
}

/* Returns @n bits of the instruction, from @low on, with their sign. */
static __s64 signed_bits(__u32 insn, unsigned int low, unsigned int n)
{
	return (__s64)((__u64)BITS(insn, low, n) << (64 - n)) >> (64 - n);
}

/* Kinds of instructions, in the order in which their patterns are tried. */
enum kind {
	KIND_B,
	KIND_BL,
	KIND_B_COND,
	KIND_CBZ,
	KIND_TBZ,
	KIND_BR,
	KIND_BLR,
	KIND_RET,
	KIND_BR_AUTH,
	KIND_BLR_AUTH,
	KIND_RET_AUTH,
	KIND_ERET,
	KIND_SVC,
	KIND_EXCEPTION,
	KIND_UDF,
	KIND_NOP,
	KIND_BTI,
	KIND_PAC_LR,
	KIND_PAC_OTHER,
	KIND_HINT,
	KIND_MRS,
	KIND_MSR,
	KIND_MSR_PSTATE,
	KIND_ADR,
	KIND_ADD_IMMEDIATE,
	KIND_LOGICAL_IMMEDIATE,
	KIND_IMMEDIATE,
	KIND_ADD_EXTENDED,
	KIND_COMPARE,
	KIND_FLAGS,
	KIND_REGISTER,
	KIND_EXCLUSIVE,
	KIND_LITERAL,
	KIND_PAIR,
	KIND_LOAD_STORE_OFFSET,
	KIND_LOAD_STORE_REGISTER,
	KIND_LOAD_STORE_INDEXED,
	KIND_OTHER,
};

/* arm64's kernel handles a probed instruction in one of these ways: arm_probe_decode_insn() in
 * arch/arm64/kernel/probes/decode-insn.c. */
enum probing {
	STEPPED,
	SIMULATED, /* in every kernel since 4.10, when arm64 got uprobes */
	REFUSED,
};

static const struct pattern {
	__u32 mask, bits;
	enum kind kind;
	enum probing probing;
} patterns[] = {
	{ 0xfc000000, 0x14000000, KIND_B, SIMULATED },
	{ 0xfc000000, 0x94000000, KIND_BL, SIMULATED },
	{ 0xff000010, 0x54000000, KIND_B_COND, SIMULATED },
	{ 0x7e000000, 0x34000000, KIND_CBZ, SIMULATED },
	{ 0x7e000000, 0x36000000, KIND_TBZ, SIMULATED },
	{ 0xfffffc1f, 0xd61f0000, KIND_BR, SIMULATED },
	{ 0xfffffc1f, 0xd63f0000, KIND_BLR, SIMULATED },
	{ 0xfffffc1f, 0xd65f0000, KIND_RET, SIMULATED },
	{ 0xfefff800, 0xd61f0800, KIND_BR_AUTH, REFUSED },
	{ 0xfefff800, 0xd63f0800, KIND_BLR_AUTH, REFUSED },
	{ 0xfffffbff, 0xd65f0bff, KIND_RET_AUTH, REFUSED },
	{ 0xfffff3ff, 0xd69f03e0, KIND_ERET, REFUSED },
	{ 0xffe0001f, 0xd4000001, KIND_SVC, REFUSED },
	{ 0xff000000, 0xd4000000, KIND_EXCEPTION, REFUSED }, /* brk, hlt and others */
	{ 0xffff0000, 0x00000000, KIND_UDF, STEPPED },
	/* Hints by their number, of which older processors do nothing. */
	{ 0xffffffff, 0xd503201f, KIND_NOP, STEPPED },
	{ 0xffffff3f, 0xd503241f, KIND_BTI, STEPPED },
	{ 0xffffff9f, 0xd503231f, KIND_PAC_LR, STEPPED },    /* paciaz, paciasp, pacibz, pacibsp */
	{ 0xffffffff, 0xd50320ff, KIND_PAC_LR, STEPPED },    /* xpaclri */
	{ 0xffffffbf, 0xd503211f, KIND_PAC_OTHER, STEPPED }, /* pacia1716, pacib1716 */
	{ 0xffffff1f, 0xd503231f, KIND_PAC_LR, REFUSED },    /* autiaz, autiasp, autibz, autibsp */
	{ 0xffffff1f, 0xd503211f, KIND_PAC_OTHER, REFUSED }, /* autia1716, autib1716 */
	{ 0xfffff01f, 0xd503201f, KIND_HINT, REFUSED },
	{ 0xfff00000, 0xd5300000, KIND_MRS, STEPPED },
	{ 0xfff00000, 0xd5100000, KIND_MSR, REFUSED },
	{ 0xfff8f01f, 0xd500401f, KIND_MSR_PSTATE, REFUSED },
	{ 0x1f000000, 0x10000000, KIND_ADR, SIMULATED },
	{ 0x1f800000, 0x11000000, KIND_ADD_IMMEDIATE, STEPPED },
	{ 0x1f800000, 0x12000000, KIND_LOGICAL_IMMEDIATE, STEPPED },
	{ 0x1f000000, 0x12000000, KIND_IMMEDIATE, STEPPED }, /* moves of constants */
	{ 0x1f000000, 0x13000000, KIND_IMMEDIATE, STEPPED }, /* bits of a register */
	{ 0x1fe00000, 0x0b200000, KIND_ADD_EXTENDED, STEPPED },
	{ 0x1fe00000, 0x1a400000, KIND_COMPARE, STEPPED },
	{ 0x1fe0fc00, 0x1a000000, KIND_REGISTER, STEPPED }, /* additions with carry */
	{ 0x1fe00000, 0x1a000000, KIND_FLAGS, STEPPED },
	{ 0x0e000000, 0x0a000000, KIND_REGISTER, STEPPED },
	{ 0x3f800000, 0x08000000, KIND_EXCLUSIVE, REFUSED },
	/* The kernel refuses those of general registers since 6.12, whose simulation was wrong before, and would step the others
	 * elsewhere than where their operand is. */
	{ 0x3b000000, 0x18000000, KIND_LITERAL, REFUSED },
	{ 0x3a000000, 0x28000000, KIND_PAIR, STEPPED },
	{ 0x3b000000, 0x39000000, KIND_LOAD_STORE_OFFSET, STEPPED },
	{ 0x3b200c00, 0x38200800, KIND_LOAD_STORE_REGISTER, STEPPED },
	{ 0x3b200000, 0x38000000, KIND_LOAD_STORE_INDEXED, STEPPED },
	{ 0x00000000, 0x00000000, KIND_OTHER, STEPPED },
};

static const struct pattern *pattern_of(__u32 insn)
{
	const struct pattern *pattern = patterns;

	while ((insn & pattern->mask) != pattern->bits)
		pattern++;
	return pattern;
}

static enum disasm_class classify(enum kind kind)
{
	switch (kind) {
	case KIND_B:
		return DISASM_JUMP;
	case KIND_BL:
		return DISASM_CALL;
	case KIND_B_COND:
	case KIND_CBZ:
	case KIND_TBZ:
		return DISASM_JUMP_CONDITIONAL;
	case KIND_BR:
	case KIND_BR_AUTH:
		return DISASM_JUMP_INDIRECT;
	case KIND_BLR:
	case KIND_BLR_AUTH:
		return DISASM_CALL_INDIRECT;
	case KIND_RET:
	case KIND_RET_AUTH:
	case KIND_ERET:
		return DISASM_RET;
	case KIND_EXCEPTION:
	case KIND_UDF:
		return DISASM_TRAP;
	case KIND_NOP:
		return DISASM_NOP;
	default:
		return DISASM_OTHER;
	}
}

/* Returns the distance of a direct branch from its instruction, or of the address that adr makes. */
static __s64 distance_of(__u32 insn, enum kind kind)
{
	switch (kind) {
	case KIND_B:
	case KIND_BL:
		return signed_bits(insn, 0, 26) * INSN_BYTES;
	case KIND_TBZ:
		return signed_bits(insn, 5, 14) * INSN_BYTES;
	case KIND_ADR:
		return signed_bits(insn, 5, 19) * 4 + BITS(insn, 29, 2);
	default:
		return signed_bits(insn, 5, 19) * INSN_BYTES;
	}
}

static bool has_target(enum kind kind)
{
	return kind <= KIND_TBZ;
}

unsigned int disasm__argument_register(unsigned int number)
{
	return number == DISASM_RESULT ? 0 : number - 1;
}

static void write_register(struct disasm_insn *insn, unsigned int number)
{
	if (number != SP)
		insn->written |= 1u << number;
}

static void write_register_or_sp(struct disasm_insn *insn, unsigned int number)
{
	if (number != SP)
		insn->written |= 1u << number;
	else
		insn->effects |= DISASM_WRITES_SP;
}

/* Operands of an instruction that loads or stores. */
struct memory_operand {
	unsigned int base, bytes; /* @bytes of all registers */
	__s64 offset;
	bool is_load, is_vector, is_pair, has_index, writes_base,
		is_after; /* the base is written afterwards */
};

static bool read_memory_operand(__u32 insn, enum kind kind, struct memory_operand *out)
{
	unsigned int size = BITS(insn, 30, 2), opcode = BITS(insn, 22, 2);
	struct memory_operand operand = { .base = BITS(insn, 5, 5),
					  .is_vector = BITS(insn, 26, 1) };

	if (kind == KIND_PAIR) {
		unsigned int mode = BITS(insn, 23, 2), shift = 2 + (size >> 1);

		if (operand.is_vector)
			shift = 2 + size;
		else if (size == 1 && !BITS(insn, 22, 1))
			return false; /* stgp stores tags */
		operand.is_pair = true;
		operand.is_load = BITS(insn, 22, 1);
		operand.bytes = 2u << shift;
		operand.offset = signed_bits(insn, 15, 7) * (1 << shift);
		operand.writes_base = mode & 1;
		operand.is_after = mode == 1;
		*out = operand;
		return size != 3;
	}
	if (operand.is_vector && opcode >> 1) {
		if (size)
			return false;
		size = 4;
	}
	operand.bytes = 1u << size;
	operand.is_load = operand.is_vector ? opcode & 1 : opcode != 0;
	switch (kind) {
	case KIND_LOAD_STORE_OFFSET:
		operand.offset = (__s64)BITS(insn, 10, 12) << size;
		break;
	case KIND_LOAD_STORE_INDEXED:
		operand.offset = signed_bits(insn, 12, 9);
		operand.writes_base = BITS(insn, 10, 1);
		operand.is_after = BITS(insn, 10, 2) == 1;
		break;
	default:
		operand.has_index = true;
		break;
	}
	*out = operand;
	return true;
}

/* Returns whether the instruction is a prefetch, which writes no register. */
static bool is_prefetch(__u32 insn, enum kind kind)
{
	return kind != KIND_PAIR && BITS(insn, 30, 2) == 3 && !BITS(insn, 26, 1) &&
	       BITS(insn, 22, 2) == 2;
}

static void set_memory(__u32 word, enum kind kind, struct disasm_insn *insn)
{
	unsigned int first = BITS(word, 0, 5), second = BITS(word, 10, 5);
	struct memory_operand operand;

	if (!read_memory_operand(word, kind, &operand)) {
		insn->effects = DISASM_UNKNOWN_EFFECT;
		return;
	}
	if (!operand.is_load) {
		insn->effects |= DISASM_WRITES_MEMORY;
		/* What stores the link register ends the part of a function in which the return address is there alone. */
		insn->writes_frame =
			operand.base == SP && !operand.has_index && !operand.writes_base &&
			(operand.is_vector || (first != LR && (!operand.is_pair || second != LR)));
		if (insn->writes_frame) {
			insn->frame_offset = operand.offset;
			insn->frame_bytes = operand.bytes;
		}
	} else if (operand.is_vector) {
		insn->effects |= DISASM_UNKNOWN_EFFECT;
	} else if (!is_prefetch(word, kind)) {
		write_register(insn, first);
		if (operand.is_pair)
			write_register(insn, second);
	}
	if (!operand.writes_base)
		return;
	write_register_or_sp(insn, operand.base);
	if (operand.base == SP)
		insn->sp_offset = operand.offset;
}

/* Stores how an addition of a constant changes sp and the frame pointer. */
static void set_addition(__u32 word, struct disasm_insn *insn)
{
	unsigned int to = BITS(word, 0, 5), from = BITS(word, 5, 5);
	__s64 value = BITS(word, 10, 12) << (BITS(word, 22, 1) ? 12 : 0);
	bool is_whole = BITS(word, 31, 1), sets_flags = BITS(word, 29, 1);

	if (BITS(word, 30, 1))
		value = -value;
	if (sets_flags) {
		write_register(insn, to);
		return;
	}
	write_register_or_sp(insn, to);
	if (to == SP && is_whole && (from == SP || from == FP)) {
		insn->sp = from == SP ? DISASM_SP_MOVED : DISASM_SP_FROM_FP;
		insn->sp_offset = value;
	} else if (to == SP) {
		insn->sp = DISASM_SP_UNKNOWN;
	} else if (to == FP && is_whole && from == SP && !value) {
		insn->fp = DISASM_FP_FROM_SP;
	}
}

/* orr of a whole register with zero, which assemblers call mov. */
static bool is_move(__u32 word)
{
	return (word & 0xffe0ffe0) == 0xaa0003e0;
}

static void set_effects(__u32 word, enum kind kind, struct disasm_insn *insn)
{
	unsigned int to = BITS(word, 0, 5);

	switch (kind) {
	case KIND_B:
	case KIND_B_COND:
	case KIND_CBZ:
	case KIND_TBZ:
	case KIND_BR:
	case KIND_RET:
	case KIND_NOP:
	case KIND_BTI:
	case KIND_COMPARE:
		break;
	case KIND_PAC_OTHER:
		write_register(insn, 17);
		break;
	case KIND_PAC_LR:
		write_register(insn, LR);
		break;
	case KIND_MRS:
	case KIND_ADR:
	case KIND_IMMEDIATE:
		write_register(insn, to);
		break;
	case KIND_REGISTER:
		write_register(insn, to);
		insn->is_copy = is_move(word) && to != SP && BITS(word, 16, 5) != SP;
		if (insn->is_copy) {
			insn->to = (unsigned char)to;
			insn->from = (unsigned char)BITS(word, 16, 5);
		}
		break;
	case KIND_ADD_IMMEDIATE:
		set_addition(word, insn);
		break;
	case KIND_LOGICAL_IMMEDIATE:
		if (BITS(word, 29, 2) == 3)
			write_register(insn, to);
		else
			write_register_or_sp(insn, to);
		if (insn->effects & DISASM_WRITES_SP)
			insn->sp = DISASM_SP_UNKNOWN;
		break;
	case KIND_ADD_EXTENDED:
		if (BITS(word, 29, 1))
			write_register(insn, to);
		else
			write_register_or_sp(insn, to);
		if (insn->effects & DISASM_WRITES_SP)
			insn->sp = DISASM_SP_UNKNOWN;
		break;
	case KIND_PAIR:
	case KIND_LOAD_STORE_OFFSET:
	case KIND_LOAD_STORE_REGISTER:
	case KIND_LOAD_STORE_INDEXED:
		set_memory(word, kind, insn);
		break;
	default:
		insn->effects = DISASM_UNKNOWN_EFFECT;
		break;
	}
	/* The link register has the return address, until it is stored. */
	if (insn->written & 1u << LR)
		insn->effects |= DISASM_UNKNOWN_EFFECT;
	if (insn->effects & DISASM_UNKNOWN_EFFECT)
		insn->written = ~(1u << SP);
	if (insn->class == DISASM_CALL || insn->class == DISASM_CALL_INDIRECT)
		return;
	if (insn->effects == DISASM_UNKNOWN_EFFECT && kind == KIND_OTHER)
		insn->sp = DISASM_SP_UNKNOWN;
	if (insn->written & 1u << FP && insn->fp == DISASM_FP_KEPT)
		insn->fp = DISASM_FP_UNKNOWN;
}

int disasm__decode(const void *code, size_t size, __u64 vaddr, struct disasm_insn *out)
{
	struct disasm_insn insn = { .vaddr = vaddr, .code = code, .length = INSN_BYTES };
	const struct pattern *pattern;
	__u32 word;

	if (size < INSN_BYTES || vaddr & (INSN_BYTES - 1) || vaddr + INSN_BYTES < vaddr)
		return -EILSEQ;
	word = word_at(code);
	pattern = pattern_of(word);
	insn.class = classify(pattern->kind);
	insn.emulated = pattern->probing == SIMULATED;
	insn.refused = pattern->probing == REFUSED;
	insn.has_target = has_target(pattern->kind);
	if (insn.has_target)
		insn.target = vaddr + (__u64)distance_of(word, pattern->kind);
	set_effects(word, pattern->kind, &insn);
	*out = insn;
	return 0;
}

static const char *name_of_hint(unsigned int number)
{
	static const char *const names[] = {
		[0] = "nop",	  [1] = "yield",   [7] = "xpaclri",  [24] = "paciaz",
		[25] = "paciasp", [26] = "pacibz", [27] = "pacibsp", [28] = "autiaz",
		[29] = "autiasp", [30] = "autibz", [31] = "autibsp", [32] = "bti",
		[34] = "bti c",	  [36] = "bti j",  [38] = "bti jc",
	};

	return number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

/* The most frequent instructions at the beginning and end of functions by their names, all others as numbers. */
void disasm_insn__text(const struct disasm_insn *insn, char *text, size_t size)
{
	static const char conditions[][3] = { "eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc",
					      "hi", "ls", "ge", "lt", "gt", "le", "al", "nv" };
	__u32 word = word_at(insn->code);
	enum kind kind = pattern_of(word)->kind;
	unsigned int to = BITS(word, 0, 5), from = BITS(word, 5, 5);
	char width = BITS(word, 31, 1) ? 'x' : 'w';
	__u64 target = insn->vaddr + (__u64)distance_of(word, kind);
	struct memory_operand operand;
	const char *hint;
	char registers[2][4];

	for (int i = 0; i < 2; i++)
		snprintf(registers[i], sizeof(registers[i]),
			 i ? (from == SP ? "sp" : "x%u") : (to == SP ? "sp" : "x%u"),
			 i ? from : to);
	switch (kind) {
	case KIND_B:
	case KIND_BL:
		snprintf(text, size, "%s 0x%llx", kind == KIND_B ? "b" : "bl",
			 (unsigned long long)target);
		return;
	case KIND_B_COND:
		snprintf(text, size, "b.%s 0x%llx", conditions[BITS(word, 0, 4)],
			 (unsigned long long)target);
		return;
	case KIND_CBZ:
		snprintf(text, size, "%s %c%u, 0x%llx", BITS(word, 24, 1) ? "cbnz" : "cbz", width,
			 to, (unsigned long long)target);
		return;
	case KIND_TBZ:
		snprintf(text, size, "%s %c%u, #%u, 0x%llx", BITS(word, 24, 1) ? "tbnz" : "tbz",
			 width, to, BITS(word, 31, 1) << 5 | BITS(word, 19, 5),
			 (unsigned long long)target);
		return;
	case KIND_BR:
	case KIND_BLR:
		snprintf(text, size, "%s x%u", kind == KIND_BR ? "br" : "blr", from);
		return;
	case KIND_RET:
		if (from == LR)
			snprintf(text, size, "ret");
		else
			snprintf(text, size, "ret x%u", from);
		return;
	case KIND_RET_AUTH:
		snprintf(text, size, BITS(word, 10, 1) ? "retab" : "retaa");
		return;
	case KIND_NOP:
	case KIND_BTI:
	case KIND_PAC_LR:
	case KIND_PAC_OTHER:
	case KIND_HINT:
		hint = name_of_hint(BITS(word, 5, 7));
		if (hint)
			snprintf(text, size, "%s", hint);
		else
			snprintf(text, size, "hint #%u", BITS(word, 5, 7));
		return;
	case KIND_ADR:
		if (BITS(word, 31, 1))
			target = (insn->vaddr & ~4095ULL) + ((__u64)distance_of(word, kind) << 12);
		snprintf(text, size, "%s x%u, 0x%llx", BITS(word, 31, 1) ? "adrp" : "adr", to,
			 (unsigned long long)target);
		return;
	case KIND_ADD_IMMEDIATE:
		if (!BITS(word, 31, 1) || BITS(word, 29, 1))
			break;
		snprintf(text, size, "%s %s, %s, #%u", BITS(word, 30, 1) ? "sub" : "add",
			 registers[0], registers[1],
			 BITS(word, 10, 12) << (BITS(word, 22, 1) ? 12 : 0));
		return;
	case KIND_REGISTER:
		if (!is_move(word) || to == SP || BITS(word, 16, 5) == SP)
			break;
		snprintf(text, size, "mov x%u, x%u", to, BITS(word, 16, 5));
		return;
	case KIND_PAIR:
		if (!read_memory_operand(word, kind, &operand) || operand.is_vector ||
		    operand.bytes != 16 || to == SP || BITS(word, 10, 5) == SP)
			break;
		snprintf(text, size,
			 operand.is_after      ? "%s x%u, x%u, [%s], #%lld"
			 : operand.writes_base ? "%s x%u, x%u, [%s, #%lld]!"
					       : "%s x%u, x%u, [%s, #%lld]",
			 operand.is_load ? "ldp" : "stp", to, BITS(word, 10, 5), registers[1],
			 (long long)operand.offset);
		return;
	default:
		break;
	}
	snprintf(text, size, ".inst 0x%08x", word);
}

void disasm__scan_branches(const void *code, size_t size, __u64 vaddr, disasm_branch_fn fn,
			   void *arg)
{
	const unsigned char *bytes = code;

	for (size_t i = -vaddr & (INSN_BYTES - 1); i + INSN_BYTES <= size; i += INSN_BYTES) {
		__u32 word = word_at(bytes + i);
		enum kind kind;

		/* Branches and what belongs to the system have these bits. */
		if ((word & 0x1c000000) != 0x14000000)
			continue;
		kind = pattern_of(word)->kind;
		if (has_target(kind))
			fn(
				&(struct disasm_branch){
					.next = vaddr + i + INSN_BYTES,
					.target = vaddr + i + (__u64)distance_of(word, kind),
					.is_call = kind == KIND_BL,
				},
				arg);
	}
}

/* How far behind adrp the instruction is looked for that adds the rest of the address; compilers put few between. */
#define ADDITION_INSNS 8

/* Returns the address that adr makes at @vaddr, or adrp with the addition behind it; 0: adrp alone makes no address. */
static __u64 made_address(const unsigned char *code, size_t size, __u64 vaddr)
{
	__u32 word = word_at(code), next;
	__u64 distance = (__u64)distance_of(word, KIND_ADR);

	if (!BITS(word, 31, 1))
		return vaddr + distance;
	for (size_t at = INSN_BYTES; at + INSN_BYTES <= size && at <= ADDITION_INSNS * INSN_BYTES;
	     at += INSN_BYTES) {
		next = word_at(code + at);
		/* add of 64 bits, without a shift, from adrp's register */
		if ((next & 0xffc00000) == 0x91000000 && BITS(next, 5, 5) == BITS(word, 0, 5))
			return (vaddr & ~4095ULL) + (distance << 12) + BITS(next, 10, 12);
	}
	return 0;
}

/* No instruction ends with a distance in bytes. All that may lead to a target is reported as one, and
 * disasm_insn__has_distance() says of none that it can be changed. */
void disasm__scan_operands(const void *code, size_t size, __u64 vaddr, __u64 low, __u64 high,
			   disasm_operand_fn fn, void *arg)
{
	const unsigned char *bytes = code;
	const __u64 range = high - low;

	for (size_t i = -vaddr & (INSN_BYTES - 1); i + INSN_BYTES <= size; i += INSN_BYTES) {
		__u32 word = word_at(bytes + i);
		enum kind kind = pattern_of(word)->kind;
		__u64 target = 0;

		if (has_target(kind))
			target = vaddr + i + (__u64)distance_of(word, kind);
		else if (kind == KIND_ADR)
			target = made_address(bytes + i, size - i, vaddr + i);
		if (target - low <= range)
			fn(&(struct disasm_operand){ vaddr + i + INSN_BYTES, target,
						     DISASM_DISTANCE },
			   arg);
	}
}

bool disasm_insn__has_distance(const struct disasm_insn *insn)
{
	return false;
}

/* Most instructions of a stub: bti, adrp, ldr, add, autia1716, br. */
#define STUB_INSNS 6

/* The slot's address is that of adrp and the offset of ldr. A jump through what that has loaded ends the stub. */
bool disasm__stub_slot(const void *code, size_t size, __u64 vaddr, __u64 *slot)
{
	unsigned int page = SP, loaded = SP;
	__u64 address = 0;

	for (size_t at = 0; at + INSN_BYTES <= size && at < STUB_INSNS * INSN_BYTES;
	     at += INSN_BYTES) {
		__u32 word = word_at((const unsigned char *)code + at);
		enum kind kind = pattern_of(word)->kind;

		if (kind == KIND_ADR && BITS(word, 31, 1) && page == SP) {
			page = BITS(word, 0, 5);
			address =
				((vaddr + at) & ~4095ULL) + ((__u64)distance_of(word, kind) << 12);
		} else if ((word & 0xffc00000) == 0xf9400000 && page != SP && loaded == SP &&
			   BITS(word, 5, 5) == page) {
			loaded = BITS(word, 0, 5);
			address += (__u64)BITS(word, 10, 12) << 3;
		} else if (kind == KIND_BR || kind == KIND_BR_AUTH) {
			*slot = address;
			return loaded != SP && BITS(word, 5, 5) == loaded;
		} else if (kind != KIND_BTI && kind != KIND_PAC_OTHER &&
			   (kind != KIND_ADD_IMMEDIATE || BITS(word, 0, 5) != page)) {
			return false;
		}
	}
	return false;
}

bool disasm__ends_with_call(const unsigned char code[DISASM_CALL_BYTES])
{
	struct disasm_insn insn;

	return !disasm__decode(code + DISASM_CALL_BYTES - INSN_BYTES, INSN_BYTES, 0, &insn) &&
	       (insn.class == DISASM_CALL || insn.class == DISASM_CALL_INDIRECT);
}
