// SPDX-License-Identifier: GPL-3.0-or-later
/* DWARF's numbers of registers (System V ABI, AMD64 supplement, figure 3.36). */
#include "cfi_frames.h"

const struct dwarf_registers dwarf_registers = {
	.sp = 7,
	.pc = 16,
	.return_address = 16,
	.kept = 1U << 3 | 1U << 6 | 0xf000, /* rbx, rbp, r12 to r15 */
	.address = ~0ULL,
};
