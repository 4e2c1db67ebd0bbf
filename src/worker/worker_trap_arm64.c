// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads a trapped system call, and answers it. */
#include "worker_trap.h"

struct trapped_call trapped_call__read(const ucontext_t *at, int number)
{
	const unsigned long long *registers = at->uc_mcontext.regs;

	return (struct trapped_call){ number,
				      { registers[0], registers[1], registers[2], registers[3] } };
}

void trapped_call__answer(ucontext_t *at, long result)
{
	at->uc_mcontext.regs[0] = (unsigned long long)result;
}
