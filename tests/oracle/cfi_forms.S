/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Code that is never run, with the forms of call frame information that rules can express but that
 * a given machine's few sample files need not have. DWARF is in .cfi_escape: 0x0f is
 * DW_CFA_def_cfa_expression, 0x10 DW_CFA_expression, 0x14 DW_CFA_val_offset, 0x16
 * DW_CFA_val_expression; then 0x76 and 0x77 are DW_OP_breg6 (rbp) and DW_OP_breg7 (rsp), 6 is
 * DW_OP_deref.
 */
	.text

/* GCC's realigned stack: CFA = *(rbp - 8), rbp at *rbp. */
realigned:
	.cfi_startproc
	nop
	.cfi_escape 0x10, 6, 2, 0x76, 0
	nop
	.cfi_escape 0x0f, 3, 0x76, 0x78, 6
	nop
	nop
	.cfi_def_cfa 7, 8
	.cfi_restore 6
	nop
	.cfi_endproc

/* OpenSSL's: CFA = *(rsp + 160) + 8 and the like. */
stored_sp:
	.cfi_startproc
	nop
	.cfi_escape 0x0f, 6, 0x77, 0xa0, 1, 6, 0x23, 8
	.cfi_offset 6, -16
	nop
	.cfi_escape 0x0f, 5, 0x77, 0x78, 6, 0x23, 64
	nop
	.cfi_endproc

/* Both kinds of .plt. */
	.balign 16
plt:
	.cfi_startproc
	.cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
	.fill 32, 1, 0x90
	.cfi_endproc
ibt_plt:
	.cfi_startproc
	.cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22
	.fill 32, 1, 0x90
	.cfi_endproc

/* The sigreturn trampoline: everything is in the kernel's frame. */
signal_frame:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6
	.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0
	.cfi_escape 0x10, 7, 3, 0x77, 0xa0, 1
	.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1
	nop
	nop
	.cfi_endproc

/* Values instead of places; restore; nested remember. */
others:
	.cfi_startproc
	.cfi_escape 0x16, 6, 3, 0x77, 24, 6
	nop
	.cfi_remember_state
	.cfi_undefined 6
	nop
	.cfi_remember_state
	.cfi_undefined 16
	nop
	.cfi_restore_state
	nop
	.cfi_restore_state
	nop
	.cfi_same_value 6
	.cfi_escape 0x14, 7, 0
	nop
	.cfi_undefined 16
	.fill 300, 1, 0x90
	.cfi_restore 16
	nop
	.cfi_def_cfa_offset 0x7fffffff
	nop
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
