// SPDX-License-Identifier: GPL-3.0-or-later
// Frames of arm64, for test_cfi_arm64.c.
	.text
	.globl	signs
	.type	signs, %function
signs:
	.cfi_startproc
	.cfi_b_key_frame
	pacibsp
	.cfi_negate_ra_state
	stp	x29, x30, [sp, #-32]!
	.cfi_def_cfa_offset 32
	.cfi_offset 29, -32
	.cfi_offset 30, -24
	mov	x29, sp
	.cfi_def_cfa_register 29
	nop
	ldp	x29, x30, [sp], #32
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa 31, 0
	autibsp
	.cfi_negate_ra_state
	ret
	.cfi_endproc
	.size	signs, . - signs

	// Larger than the 16 bits that a rule has for the return address.
	.globl	large
	.type	large, %function
large:
	.cfi_startproc
	sub	sp, sp, #10, lsl #12
	.cfi_def_cfa_offset 40960
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 40976
	.cfi_offset 29, -40976
	.cfi_offset 30, -40968
	mov	x29, sp
	.cfi_def_cfa_register 29
	nop
	ret
	.cfi_endproc
	.size	large, . - large

	.globl	begins
	.type	begins, %function
begins:
	.cfi_startproc
	.cfi_undefined 30
	nop
	brk	#0
	.cfi_endproc
	.size	begins, . - begins

	// As in the vDSO, which has no call frame information of it.
	nop
	.globl	returns
returns:
	mov	x8, #139
	svc	#0

	.globl	bare
	.type	bare, %function
bare:
	ret
	.size	bare, . - bare
	.section .note.GNU-stack, "", %progbits
