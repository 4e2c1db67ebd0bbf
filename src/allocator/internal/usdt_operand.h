/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parses the argument descriptions of USDT notes, which are assembler operands. */
#ifndef ALLOCPROF_USDT_OPERAND_H
#define ALLOCPROF_USDT_OPERAND_H

#include "abi.h"

/*
 * Parses argument @number, from 0, of a note's argument string ("8@%rdi -4@$1 8@-16(%rbp)").
 * -ENOENT: there are fewer; -ENOTSUP: a location that cannot be read (floating point, a symbol);
 * -EINVAL: malformed.
 */
int usdt_operand__parse(const char *arguments, unsigned int number, struct ap_operand *out);

#endif
