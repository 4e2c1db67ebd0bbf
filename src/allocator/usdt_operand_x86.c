// SPDX-License-Identifier: GPL-3.0-or-later
/* Parses where the argument of a USDT probe is, in the assembler's notation for x86-64. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "array.h"
#include "usdt_operand.h"

/* Names of the 8-, 4-, 2- and 1-byte registers, in the order of struct pt_regs, which ptrace's ABI
 * fixes. */
static const struct register_names {
	const char *names[4];
	const char *second; /* name of the register's second-lowest byte (%ah) */
	__u16 word;
} registers[] = {
	{ { "r15", "r15d", "r15w", "r15b" }, NULL, 0 },
	{ { "r14", "r14d", "r14w", "r14b" }, NULL, 1 },
	{ { "r13", "r13d", "r13w", "r13b" }, NULL, 2 },
	{ { "r12", "r12d", "r12w", "r12b" }, NULL, 3 },
	{ { "rbp", "ebp", "bp", "bpl" }, NULL, 4 },
	{ { "rbx", "ebx", "bx", "bl" }, "bh", 5 },
	{ { "r11", "r11d", "r11w", "r11b" }, NULL, 6 },
	{ { "r10", "r10d", "r10w", "r10b" }, NULL, 7 },
	{ { "r9", "r9d", "r9w", "r9b" }, NULL, 8 },
	{ { "r8", "r8d", "r8w", "r8b" }, NULL, 9 },
	{ { "rax", "eax", "ax", "al" }, "ah", 10 },
	{ { "rcx", "ecx", "cx", "cl" }, "ch", 11 },
	{ { "rdx", "edx", "dx", "dl" }, "dh", 12 },
	{ { "rsi", "esi", "si", "sil" }, NULL, 13 },
	{ { "rdi", "edi", "di", "dil" }, NULL, 14 },
	{ { "rsp", "esp", "sp", "spl" }, NULL, 19 },
};

/* Parses the register at *@text and moves *@text behind it. */
static bool take_register(const char **text, __u16 *offset, __u8 *is_second)
{
	size_t len;

	if (**text != '%')
		return false;
	(*text)++;
	len = strspn(*text, "abcdefghijklmnopqrstuvwxyz0123456789");
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		const struct register_names *reg = &registers[i];

		for (int j = 0; j < 5; j++) {
			const char *name = j < 4 ? reg->names[j] : reg->second;

			if (!name || strlen(name) != len || strncmp(name, *text, len) != 0)
				continue;
			*text += len;
			*offset = reg->word * sizeof(__u64);
			*is_second = j == 4;
			return true;
		}
	}
	return false;
}

/* Parses an operand in memory, such as "(%rax)", "(%rax,%rbx)", "(,%rbx,8)" or "(%rax,%rbx,8)". */
static int take_memory_operand(const char *text, struct ap_operand *operand)
{
	__s64 scale = 1;
	__u8 is_second = 0;

	text++;
	if (*text == '%' && !take_register(&text, &operand->base, &is_second))
		return -ENOTSUP; /* another register, such as %rip or %fs */
	if (*text == ',') {
		text++;
		if (!take_register(&text, &operand->index, &is_second))
			return -EINVAL;
		if (*text == ',') {
			text++;
			if (!usdt_number__take(&text, &scale))
				return -EINVAL;
		}
	}
	if (strcmp(text, ")") != 0 || scale < 1 || scale > 8 || (scale & (scale - 1)) || is_second)
		return -EINVAL;
	operand->shift = __builtin_ctz(scale);
	return 0;
}

int usdt_operand__place(const char *text, struct ap_operand *operand)
{
	if (*text == '$') {
		text++;
		operand->kind = AP_OPERAND_CONSTANT;
		return usdt_number__take(&text, &operand->value) && !*text ? 0 : -ENOTSUP;
	}
	if (*text == '%') {
		operand->kind = AP_OPERAND_REGISTER;
		return take_register(&text, &operand->base, &operand->is_second) && !*text
			       ? 0
			       : -ENOTSUP;
	}
	operand->kind = AP_OPERAND_MEMORY;
	usdt_number__take(&text, &operand->value);
	/* Any other text is an absolute address, or the address of a symbol. */
	return *text == '(' ? take_memory_operand(text, operand) : -ENOTSUP;
}
