// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The parts of call frame information that are particular to x86-64: registers, and the PLT's
 * expression. */

#include <dwarf.h>
#include <elf.h>

#include "cfi_rules.h"

/* System V ABI, AMD64 supplement, figure 3.36. */
enum {
	RBP = 6,
	RSP = 7,
	RIP = 16
};

/* Matches ld's expression for .plt, whose 16-byte entries push a word at a fixed offset: rsp + 8 +
 * (((rip & 15) >= n) << 3). n is 11, or 10 if entries start with endbr64. */
static bool match_plt(const __u8 *ops, size_t size, struct cfi_value *out)
{
	struct dwarf_cursor c = { ops, ops + size, false };
	__s64 offset, rip_offset;
	__u8 threshold;

	if (dwarf_cursor__u8(&c) != DW_OP_breg0 + RSP)
		return false;
	offset = dwarf_cursor__sleb128(&c);
	if (dwarf_cursor__u8(&c) != DW_OP_breg0 + RIP)
		return false;
	rip_offset = dwarf_cursor__sleb128(&c);
	if (rip_offset != 0 || dwarf_cursor__u8(&c) != DW_OP_lit15 ||
	    dwarf_cursor__u8(&c) != DW_OP_and)
		return false;
	threshold = dwarf_cursor__u8(&c) - DW_OP_lit0;
	if (threshold > 15 || dwarf_cursor__u8(&c) != DW_OP_ge ||
	    dwarf_cursor__u8(&c) != DW_OP_lit3 || dwarf_cursor__u8(&c) != DW_OP_shl ||
	    dwarf_cursor__u8(&c) != DW_OP_plus || c.bad || c.pos != c.end)
		return false;
	*out = (struct cfi_value){ .kind = CFI_VALUE_PLT, .offset = offset, .add = threshold };
	return true;
}

const struct cfi_arch cfi_arch_host = {
	.machine = EM_X86_64,
	.registers = { [CFI_COLUMN_SP] = RSP, [CFI_COLUMN_FP] = RBP, [CFI_COLUMN_RA] = RIP },
	.ra_in_register = false,
	.match_cfa = match_plt,
};
