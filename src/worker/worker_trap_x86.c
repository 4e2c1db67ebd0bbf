// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads a trapped system call, and answers it. */
#include "worker_trap.h"

#include <fcntl.h>
#include <sys/syscall.h>

/* Calls with a path alone, and those that have a directory before it. */
static int number_at(int number)
{
	switch (number) {
	case SYS_open:
		return SYS_openat;
	case SYS_readlink:
		return SYS_readlinkat;
	}
	return number;
}

struct trapped_call trapped_call__read(const ucontext_t *at, int number)
{
	const greg_t *registers = at->uc_mcontext.gregs;
	struct trapped_call call = { .number = number_at(number),
				     .arguments = { registers[REG_RDI], registers[REG_RSI],
						    registers[REG_RDX], registers[REG_R10] } };

	if (call.number != number)
		call = (struct trapped_call){ call.number,
					      { (__u64)AT_FDCWD, call.arguments[0],
						call.arguments[1], call.arguments[2] } };
	return call;
}

void trapped_call__answer(ucontext_t *at, long result)
{
	at->uc_mcontext.gregs[REG_RAX] = result;
}
