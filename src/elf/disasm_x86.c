// SPDX-License-Identifier: GPL-3.0-or-later
/* Classifies x86-64 instructions. Targets and whether the kernel emulates them follow from the
 * bytes; what they write from libopcodes' AT&T text, in which only listed mnemonics are trusted. */
#include <stdint.h>
#include <string.h>

#include "array.h"
#include "disasm.h"

struct opcode {
	const unsigned char *at; /* first opcode byte */
	size_t rest;		 /* bytes from there to the end, at least 1 */
	bool operand_size;	 /* prefix 66 */
	bool other_prefix;	 /* a legacy prefix other than 66 and f2 */
	bool rex;
	unsigned char rex_byte;
};

static struct opcode find_opcode(const unsigned char *code, size_t length)
{
	struct opcode op = { .at = code, .rest = length };

	for (; op.rest > 1; op.at++, op.rest--) {
		unsigned char byte = *op.at;

		/* REX counts only directly before the opcode. */
		if ((byte & 0xf0) == 0x40) {
			op.rex = true;
			op.rex_byte = byte;
			continue;
		}
		switch (byte) {
		case 0x66:
			op.operand_size = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0x67:
		case 0xf0:
		case 0xf3:
			op.other_prefix = true;
			break;
		case 0xf2:
			break;
		default:
			return op;
		}
		op.rex = false;
		op.rex_byte = 0;
	}
	return op;
}

static int32_t read_s32(const unsigned char *at)
{
	return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
			 (uint32_t)at[3] << 24);
}

/* Sets class and target of a relative branch whose displacement is after @opcode_bytes. */
static void set_branch(struct disasm_insn *insn, const struct opcode *op, size_t opcode_bytes,
		       enum disasm_class class)
{
	size_t width = op->rest - opcode_bytes;
	const unsigned char *at = op->at + opcode_bytes;
	__u64 next = insn->vaddr + insn->length;

	insn->class = class;
	if (width == 1)
		insn->target = next + (__u64)(int64_t)(int8_t)at[0];
	else if (width == 4)
		insn->target = next + (__u64)(int64_t)read_s32(at);
	else {
		/* A 16-bit displacement, which Intel and AMD execute differently. */
		insn->class = DISASM_TRAP;
		return;
	}
	insn->has_target = true;
}

/* ModRM of an indirect branch: only the address of a (%rip) operand is known statically. */
static void set_slot(struct disasm_insn *insn, const struct opcode *op, enum disasm_class class)
{
	insn->class = class;
	if (op->rest == 6 && (op->at[1] & 0xc7) == 0x05 && !op->other_prefix) {
		insn->has_slot = true;
		insn->slot = insn->vaddr + insn->length + (__u64)(int64_t)read_s32(op->at + 2);
	}
}

static void classify_0f(struct disasm_insn *insn, const struct opcode *op)
{
	if (op->rest < 2)
		return;
	switch (op->at[1]) {
	case 0x80 ... 0x8f:
		set_branch(insn, op, 2, DISASM_JUMP_CONDITIONAL);
		break;
	case 0x0b:
	case 0xb9:
	case 0xff:
		insn->class = DISASM_TRAP;
		break;
	case 0x07: /* sysret */
	case 0x35: /* sysexit */
		insn->class = DISASM_RET;
		break;
	case 0x1f:
		insn->class = DISASM_NOP;
		break;
	}
}

static void classify_ff(struct disasm_insn *insn, const struct opcode *op)
{
	if (op->rest < 2)
		return;
	switch (op->at[1] >> 3 & 7) {
	case 2:
		set_slot(insn, op, DISASM_CALL_INDIRECT);
		break;
	case 3:
		insn->class = DISASM_CALL_INDIRECT;
		break;
	case 4:
		set_slot(insn, op, DISASM_JUMP_INDIRECT);
		break;
	case 5:
		insn->class = DISASM_JUMP_INDIRECT;
		break;
	case 6:
		/* A register operand, in the long encoding. */
		if (op->at[1] >= 0xc0)
			insn->class = DISASM_PUSH;
		break;
	}
}

static void classify(struct disasm_insn *insn, const struct opcode *op)
{
	switch (op->at[0]) {
	case 0x0f:
		classify_0f(insn, op);
		break;
	case 0xff:
		classify_ff(insn, op);
		break;
	case 0x50 ... 0x57:
		insn->class = DISASM_PUSH;
		break;
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3: /* loop, jrcxz */
		set_branch(insn, op, 1, DISASM_JUMP_CONDITIONAL);
		break;
	case 0xe8:
		set_branch(insn, op, 1, DISASM_CALL);
		break;
	case 0xe9:
	case 0xeb:
		set_branch(insn, op, 1, DISASM_JUMP);
		break;
	case 0xc7: /* xbegin: an abort continues at its target */
		if (op->rest > 2 && op->at[1] == 0xf8)
			set_branch(insn, op, 2, DISASM_JUMP_CONDITIONAL);
		break;
	case 0x90:
		/* With REX.B it is xchg %r8,%rax. */
		if (!op->rex && !op->other_prefix)
			insn->class = DISASM_NOP;
		break;
	case 0xc2:
	case 0xc3:
	case 0xca:
	case 0xcb:
	case 0xcf:
		insn->class = DISASM_RET;
		break;
	case 0xcc: /* int3 */
	case 0xcd: /* int */
	case 0xf1: /* int1 */
	case 0xf4: /* hlt */
		insn->class = DISASM_TRAP;
		break;
	}
}

/*
 * The instructions that branch_setup_xol_ops() and push_setup_xol_ops() in
 * arch/x86/kernel/uprobes.c emulate in every kernel since 4.14. Newer kernels know more forms of
 * nop. They reject branches with prefix 66; those with a segment prefix cannot be probed at all.
 */
static bool is_emulated(const struct disasm_insn *insn, const unsigned char *code,
			const struct opcode *op)
{
	switch (op->at[0]) {
	case 0x90:
		return insn->length == 1 || (insn->length == 2 && code[0] == 0x66);
	case 0x50 ... 0x57:
		return insn->length == 1 || (insn->length == 2 && code[0] == 0x41);
	case 0xeb:
	case 0xe9:
	case 0xe8:
	case 0x70 ... 0x7f:
		break;
	case 0x0f:
		if (op->rest < 2 || op->at[1] < 0x80 || op->at[1] > 0x8f)
			return false;
		break;
	default:
		return false;
	}
	return insn->has_target && !op->operand_size && !op->other_prefix;
}

/* An operand of the text, or the mnemonic. */
struct word {
	const char *at;
	size_t len;
};

static bool word__is(struct word word, const char *name)
{
	return strlen(name) == word.len && memcmp(word.at, name, word.len) == 0;
}

static bool word__in(struct word word, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word__is(word, names[i]))
			return true;
	return false;
}

/* Whether @word is one of @names, with or without the AT&T suffix of an operand size. */
static bool word__is_sized(struct word word, const char *const *names, size_t n)
{
	if (word__in(word, names, n))
		return true;
	if (word.len < 2 || !memchr("bwlq", word.at[word.len - 1], 4))
		return false;
	word.len--;
	return word__in(word, names, n);
}

/* Splits operands at commas outside of parentheses; returns their number, or 0 if over @max. */
static size_t split_operands(const char *text, struct word *operands, size_t max)
{
	size_t n = 0;
	int depth = 0;
	const char *start = text;

	if (!*text)
		return 0;
	for (;; text++) {
		if (*text == '(')
			depth++;
		else if (*text == ')')
			depth--;
		if (*text && (*text != ',' || depth != 0))
			continue;
		if (n == max)
			return 0;
		operands[n++] = (struct word){ start, (size_t)(text - start) };
		if (!*text)
			return n;
		start = text + 1;
	}
}

static unsigned int written_operand(struct word operand)
{
	static const char *const arguments[] = {
		"%rdi", "%edi", "%di",	"%dil", "%rsi", "%esi", "%si",	"%sil", "%rdx",
		"%edx", "%dx",	"%dl",	"%dh",	"%rcx", "%ecx", "%cx",	"%cl",	"%ch",
		"%r8",	"%r8d", "%r8w", "%r8b", "%r9",	"%r9d", "%r9w", "%r9b",
	};
	static const char *const harmless[] = {
		"%rax",	 "%eax",  "%ax",  "%al",   "%ah",   "%rbx",  "%ebx", "%bx",
		"%bl",	 "%bh",	  "%rbp", "%ebp",  "%bp",   "%bpl",  "%r10", "%r10d",
		"%r10w", "%r10b", "%r11", "%r11d", "%r11w", "%r11b", "%r12", "%r12d",
		"%r12w", "%r12b", "%r13", "%r13d", "%r13w", "%r13b", "%r14", "%r14d",
		"%r14w", "%r14b", "%r15", "%r15d", "%r15w", "%r15b",
	};
	static const char *const stack[] = { "%rsp", "%esp", "%sp", "%spl" };

	if (word__in(operand, harmless, ARRAY_SIZE(harmless)))
		return 0;
	if (word__in(operand, arguments, ARRAY_SIZE(arguments)))
		return DISASM_WRITES_ARGUMENT;
	if (word__in(operand, stack, ARRAY_SIZE(stack)))
		return DISASM_WRITES_SP;
	if (operand.len > 0 && operand.at[operand.len - 1] == ')')
		return DISASM_WRITES_MEMORY;
	/* A segment or vector register, or memory without a base: %fs:0x28. */
	return DISASM_UNKNOWN_EFFECT;
}

static unsigned int effects_of_text(const char *text)
{
	/* Write only flags. */
	static const char *const readers[] = { "test", "cmp", "bt" };
	/* Write only flags and their last operand. */
	static const char *const writers[] = {
		"mov",	  "movabs", "lea",    "movzb",	"movzw",  "movzbl", "movzbw",
		"movzbq", "movzwl", "movzwq", "movsb",	"movsw",  "movsl",  "movsbw",
		"movsbl", "movsbq", "movswl", "movswq", "movslq", "xor",    "or",
		"and",	  "add",    "sub",    "adc",	"sbb",	  "shl",    "shr",
		"sar",	  "sal",    "rol",    "ror",	"neg",	  "not",    "inc",
		"dec",	  "bsf",    "bsr",    "tzcnt",	"lzcnt",  "popcnt", "bswap",
	};
	/* Write the dx register without naming it. */
	static const char *const implicit[] = { "mul", "div", "idiv", "cqto", "cltd", "cwtd" };
	static const char *const accumulator[] = { "cltq", "cwtl", "cbtw" };
	struct word mnemonic = { text, strcspn(text, " ") };
	struct word operands[4];
	const char *rest = text + mnemonic.len;
	size_t n;

	while (*rest == ' ')
		rest++;
	/* A blank between operands: the mnemonic was a prefix. */
	if (strchr(rest, ' '))
		return DISASM_UNKNOWN_EFFECT;
	n = split_operands(rest, operands, ARRAY_SIZE(operands));

	if (word__is(mnemonic, "endbr64") ||
	    word__in(mnemonic, accumulator, ARRAY_SIZE(accumulator)))
		return n == 0 ? 0 : DISASM_UNKNOWN_EFFECT;
	if (word__is_sized(mnemonic, implicit, ARRAY_SIZE(implicit)))
		return DISASM_WRITES_ARGUMENT;
	if (n == 0)
		return DISASM_UNKNOWN_EFFECT;
	if (word__is_sized(mnemonic, readers, ARRAY_SIZE(readers)))
		return 0;
	if (word__is(mnemonic, "pop") || word__is(mnemonic, "popq"))
		return DISASM_WRITES_SP | written_operand(operands[n - 1]);
	if (word__is_sized(mnemonic, (const char *const[]){ "imul" }, 1))
		return n == 1 ? DISASM_WRITES_ARGUMENT : written_operand(operands[n - 1]);
	if (word__is_sized(mnemonic, writers, ARRAY_SIZE(writers)) ||
	    (mnemonic.len > 4 && memcmp(mnemonic.at, "cmov", 4) == 0) ||
	    (mnemonic.len > 3 && memcmp(mnemonic.at, "set", 3) == 0 && n == 1))
		return written_operand(operands[n - 1]);
	return DISASM_UNKNOWN_EFFECT;
}

static unsigned int effects_of(const struct disasm_insn *insn)
{
	switch (insn->class) {
	case DISASM_NOP:
	case DISASM_JUMP:
	case DISASM_JUMP_INDIRECT:
		return 0;
	case DISASM_JUMP_CONDITIONAL:
		/* loop counts in rcx */
		return strncmp(insn->text, "loop", 4) == 0 ? DISASM_WRITES_ARGUMENT : 0;
	case DISASM_PUSH:
		return DISASM_WRITES_MEMORY | DISASM_WRITES_SP;
	case DISASM_RET:
		return DISASM_WRITES_SP;
	case DISASM_CALL:
	case DISASM_CALL_INDIRECT:
	case DISASM_TRAP:
		return DISASM_UNKNOWN_EFFECT;
	case DISASM_OTHER:
		break;
	}
	return effects_of_text(insn->text);
}

void disasm_arch__classify(const unsigned char *code, struct disasm_insn *insn)
{
	struct opcode op = find_opcode(code, insn->length);

	classify(insn, &op);
	insn->emulated = is_emulated(insn, code, &op);
	insn->effects = effects_of(insn);
}

void disasm_arch__scan_branches(const void *code, size_t size, __u64 vaddr, disasm_branch_fn fn,
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
