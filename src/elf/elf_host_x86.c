// SPDX-License-Identifier: GPL-3.0-or-later
/* Constants of ELF files. */
#include "elf_host.h"

#include <elf.h>

const struct elf_host elf_host = {
	.machine = EM_X86_64,
	.glob_dat = R_X86_64_GLOB_DAT,
	.jump_slot = R_X86_64_JUMP_SLOT,
	.relative = R_X86_64_RELATIVE,
	.breakpoint = { 0xcc }, /* int3 */
	.breakpoint_bytes = 1,
};
