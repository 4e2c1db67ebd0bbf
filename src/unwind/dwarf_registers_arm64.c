// SPDX-License-Identifier: GPL-3.0-or-later
/* DWARF's numbers of registers (DWARF for the Arm 64-bit architecture, 4.1). */
#include "cfi_frames.h"

const struct dwarf_registers dwarf_registers = {
	.sp = 31,
	.pc = 32,
	.return_address = 30,
	.kept = 0x7ff80000, /* x19 to x30 */
	/* Only programs that ask for them get addresses of more than 48 bits. */
	.address = (1ULL << 48) - 1,
};
