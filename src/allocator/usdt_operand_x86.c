// SPDX-License-Identifier: GPL-3.0-or-later
/* Parses an argument of a USDT probe in the assembler's notation for x86-64. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "usdt_definition.h"

/* Limit of characters that is larger than any operand that assemblers write. */
#define MAX_OPERAND 128

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

/* Parses the number at *@text, if there is one, and moves *@text behind it. */
static bool take_number(const char **text, __s64 *value)
{
	unsigned long long number;
	const char *at = *text;
	bool is_negative = *at == '-';
	char *end;

	at += *at == '-' || *at == '+';
	if (*at < '0' || *at > '9')
		return false;
	errno = 0;
	number = strtoull(at, &end, 0);
	if (errno)
		return false;
	*value = is_negative ? -number : number;
	*text = end;
	return true;
}

/* Parses "8@" or "-4@", the width in bytes, which is negative if the argument is signed. Without
 * it the argument has 8 bytes. */
static int take_size(const char **text, struct ap_operand *operand)
{
	const char *at = strchr(*text, '@');
	char *end;
	long size;

	operand->bytes = 8;
	if (!at)
		return 0;
	size = strtol(*text, &end, 10);
	if (end == *text)
		return -EINVAL;
	if (end != at)
		return *end == 'f' ? -ENOTSUP : -EINVAL;
	operand->is_signed = size < 0;
	size = labs(size);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return -ENOTSUP;
	operand->bytes = size;
	*text = at + 1;
	return 0;
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
			if (!take_number(&text, &scale))
				return -EINVAL;
		}
	}
	if (strcmp(text, ")") != 0 || scale < 1 || scale > 8 || (scale & (scale - 1)) || is_second)
		return -EINVAL;
	operand->shift = __builtin_ctz(scale);
	return 0;
}

static int parse(const char *text, struct ap_operand *operand)
{
	int err = take_size(&text, operand);

	if (err)
		return err;
	if (*text == '$') {
		text++;
		operand->kind = AP_OPERAND_CONSTANT;
		return take_number(&text, &operand->value) && !*text ? 0 : -ENOTSUP;
	}
	if (*text == '%') {
		operand->kind = AP_OPERAND_REGISTER;
		return take_register(&text, &operand->base, &operand->is_second) && !*text
			       ? 0
			       : -ENOTSUP;
	}
	operand->kind = AP_OPERAND_MEMORY;
	take_number(&text, &operand->value);
	/* Any other text is an absolute address, or the address of a symbol. */
	return *text == '(' ? take_memory_operand(text, operand) : -ENOTSUP;
}

int usdt_operand__parse(const char *arguments, unsigned int number, struct ap_operand *out)
{
	struct ap_operand operand = { .base = AP_NO_REGISTER, .index = AP_NO_REGISTER };
	char text[MAX_OPERAND];
	size_t len;
	int err;

	for (;;) {
		arguments += strspn(arguments, " ");
		len = strcspn(arguments, " ");
		if (!len)
			return -ENOENT;
		if (!number--)
			break;
		arguments += len;
	}
	if (len >= sizeof(text))
		return -EINVAL;
	snprintf(text, sizeof(text), "%.*s", (int)len, arguments);
	err = parse(text, &operand);
	if (!err)
		*out = operand;
	return err;
}
