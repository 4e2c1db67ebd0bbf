// SPDX-License-Identifier: GPL-3.0-or-later
/* Parses where the argument of a USDT probe is, in the assembler's notation for arm64. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "usdt_operand.h"

/* Number of sp in struct user_pt_regs, which ptrace's ABI fixes; x0 is the first. */
#define SP 31

/* Parses the register at *@text, a whole one or the lower half of one, and moves *@text behind it. */
static bool take_register(const char **text, bool may_be_half, __u16 *offset)
{
	const char *at = *text;
	unsigned int number = 0, n;

	if (!strncmp(at, "sp", 2)) {
		*text += 2;
		*offset = SP * sizeof(__u64);
		return true;
	}
	if (*at != 'x' && (*at != 'w' || !may_be_half))
		return false;
	at++;
	for (n = 0; n < 2 && at[n] >= '0' && at[n] <= '9'; n++)
		number = number * 10 + (unsigned int)(at[n] - '0');
	if (!n || number >= SP)
		return false;
	*text = at + n;
	*offset = (__u16)(number * sizeof(__u64));
	return true;
}

static bool take(const char **text, const char *word)
{
	const size_t len = strlen(word);

	if (strncmp(*text, word, len) != 0)
		return false;
	*text += len;
	return true;
}

/* Parses an operand in memory: [x0], [x0, 8], [x0, x1] or [x0, x1, lsl 3]. */
static int take_memory_operand(const char *text, struct ap_operand *operand)
{
	__s64 shift = 0;

	text++;
	if (!take_register(&text, false, &operand->base))
		return -EINVAL;
	if (take(&text, ", ")) {
		take(&text, "#");
		if (!usdt_number__take(&text, &operand->value)) {
			/* Half a register is extended, which nothing here expresses. */
			if (!take_register(&text, false, &operand->index))
				return *text == 'w' || !strncmp(text, ":lo12:", 6) ? -ENOTSUP
										   : -EINVAL;
			if (take(&text, ", lsl ")) {
				take(&text, "#");
				if (!usdt_number__take(&text, &shift) || shift < 0 || shift > 3)
					return -EINVAL;
			}
		}
	}
	operand->shift = (__u8)shift;
	return strcmp(text, "]") != 0 ? -EINVAL : 0;
}

int usdt_operand__place(const char *text, struct ap_operand *operand)
{
	if (*text == '[') {
		operand->kind = AP_OPERAND_MEMORY;
		return take_memory_operand(text, operand);
	}
	operand->kind = AP_OPERAND_CONSTANT;
	if (!strcmp(text, "xzr") || !strcmp(text, "wzr"))
		return 0;
	take(&text, "#");
	if (usdt_number__take(&text, &operand->value))
		return *text ? -ENOTSUP : 0;
	operand->kind = AP_OPERAND_REGISTER;
	/* Any other text is a register of vectors or the address of a symbol. */
	return take_register(&text, true, &operand->base) && !*text ? 0 : -ENOTSUP;
}
