// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The parts of call frame information that are particular to arm64. */

#include <dwarf.h>
#include <elf.h>

#include "cfi_rules.h"

/* DWARF for the Arm 64-bit Architecture, 4.1. */
enum {
	X29 = 29,
	X30 = 30,
	SP = 31
};

/* The second form, of GCC 15 and LLVM 20, has no name in dwarf.h yet. */
#define NEGATE_RA_STATE_WITH_PC 0x2c

/* These say that the return address is signed from here on, or no longer. Who follows a stack clears the signature
 * of each return address, signed or not. */
static bool is_ignored(__u8 op)
{
	return op == DW_CFA_AARCH64_negate_ra_state || op == NEGATE_RA_STATE_WITH_PC;
}

const struct cfi_arch cfi_arch_host = {
	.machine = EM_AARCH64,
	.registers = { [CFI_COLUMN_SP] = SP, [CFI_COLUMN_FP] = X29, [CFI_COLUMN_RA] = X30 },
	.ra_in_register = true,
	.is_ignored = is_ignored,
};
