/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the arguments of USDT probes are, as their notes say in the words of the assembler. */
#ifndef ALLOCPROF_USDT_OPERAND_H
#define ALLOCPROF_USDT_OPERAND_H

#include "abi.h"

/*
 * The argument with @number, from 0, of those that a note names ("8@%rdi -4@$1 8@-16(%rbp)"). -ENOENT: there are not so
 * many; -ENOTSUP: it is where it cannot be read (a floating-point number, a place by a symbol's name); -EINVAL: it is
 * damaged.
 */
int usdt_operand__parse(const char *arguments, unsigned int number, struct ap_operand *out);

#endif
