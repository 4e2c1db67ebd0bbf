/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_USDT_OPERAND_H
#define ALLOCPROF_USDT_OPERAND_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

/* Parses what follows the size of an argument, in the notation of this processor's assembler
 * (usdt_operand_<processor>.c): fills the fields of *@operand that say where its value is. Errors are
 * those of usdt_operand__parse(). */
int usdt_operand__place(const char *text, struct ap_operand *operand);

/* Parses the number at *@text, if there is one, and moves *@text behind it. */
bool usdt_number__take(const char **text, __s64 *value);

#endif
