// SPDX-License-Identifier: GPL-3.0-or-later
/* Constants of ELF files. */
#include "elf_host.h"

#include <elf.h>

const struct elf_host elf_host = {
	.machine = EM_AARCH64,
	.glob_dat = R_AARCH64_GLOB_DAT,
	.jump_slot = R_AARCH64_JUMP_SLOT,
	.relative = R_AARCH64_RELATIVE,
	.breakpoint = { 0xa0, 0x00, 0x20, 0xd4 }, /* brk #5 */
	.breakpoint_bytes = 4,
};
