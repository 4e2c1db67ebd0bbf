/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For truth_shapes. cfi_functions call their argument out of frames whose CFI is right, and which
 * count from other registers than sp and x29 or keep what they save in odd places. trap_functions are
 * interrupted by udf, which the handler steps over, at places where the row of the instruction before
 * is another than that of the instruction.
 */

#define DW_OP_deref	  0x06
#define DW_OP_plus_uconst 0x23
#define DW_OP_breg_sp	  0x8f
#define DW_CFA_def_cfa_expression 0x0f
#define DW_CFA_expression	  0x10
#define DW_CFA_val_expression	  0x16

	.macro begin name
	.p2align 4
	.globl \name
	.hidden \name
	.type \name, %function
\name:
	.cfi_startproc
	hint #34 /* bti c */
	.endm

	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

	.macro save first, second, bytes=16
	stp \first, \second, [sp, #-\bytes]!
	.cfi_adjust_cfa_offset \bytes
	.cfi_rel_offset \first, 0
	.cfi_rel_offset \second, 8
	.endm

	.macro restore first, second, bytes=16
	ldp \first, \second, [sp], #\bytes
	.cfi_adjust_cfa_offset -\bytes
	.cfi_restore \first
	.cfi_restore \second
	.endm

	.macro lower bytes
	sub sp, sp, #\bytes
	.cfi_adjust_cfa_offset \bytes
	.endm

	.macro raise bytes
	add sp, sp, #\bytes
	.cfi_adjust_cfa_offset -\bytes
	.endm

	.text

/* A register keeps the frame, the stack is realigned; x29 is no pointer. */
begin cfi_cfa_from_x19
	save x29, x30
	save x19, x20
	mov x29, #1
	mov x19, sp
	.cfi_def_cfa_register x19
	sub x9, x19, #192
	and sp, x9, #-64
	blr x0
	mov sp, x19
	.cfi_def_cfa_register sp
	restore x19, x20
	restore x29, x30
	ret
end cfi_cfa_from_x19

/* x29 is another function's and a wild pointer; who follows frame pointers would believe it. */
begin cfi_fp_spoiled
	save x29, x30
	sub x29, sp, #64
	lower 96
	str x29, [sp, #16]
	blr x0
	raise 96
	restore x29, x30
	ret
end cfi_fp_spoiled

/* Both are saved far from where they would be put, and not side by side. */
begin cfi_elsewhere
	lower 4096
	str x29, [sp, #24]
	.cfi_rel_offset x29, 24
	str x30, [sp, #88]
	.cfi_rel_offset x30, 88
	mov x29, #0
	blr x0
	ldr x29, [sp, #24]
	.cfi_restore x29
	ldr x30, [sp, #88]
	.cfi_restore x30
	raise 4096
	ret
end cfi_elsewhere

/* The CFA is found in memory. */
begin cfi_cfa_in_memory
	mov x9, sp
	save x29, x30, 48
	str x9, [sp, #24]
	.cfi_remember_state
	.cfi_escape DW_CFA_def_cfa_expression, 3, DW_OP_breg_sp, 24, DW_OP_deref
	blr x0
	.cfi_restore_state
	restore x29, x30, 48
	ret
end cfi_cfa_in_memory

/* It is kept there at an odd distance. */
begin cfi_cfa_in_memory_plus
	sub x9, sp, #1008
	save x29, x30, 48
	str x9, [sp, #24]
	.cfi_remember_state
	/* 1008 as ULEB128. */
	.cfi_escape DW_CFA_def_cfa_expression, 6, DW_OP_breg_sp, 24, DW_OP_deref, \
		DW_OP_plus_uconst, 0xf0, 0x07
	blr x0
	.cfi_restore_state
	restore x29, x30, 48
	ret
end cfi_cfa_in_memory_plus

/* x29 is in another register while the callee runs. */
begin cfi_fp_in_register
	save x19, x30
	mov x19, x29
	.cfi_register x29, x19
	mov x29, #3
	blr x0
	mov x29, x19
	.cfi_restore x29
	restore x19, x30
	ret
end cfi_fp_in_register

/* The return address is. */
	.macro ra_in register
begin cfi_ra_in_\register
	str \register, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset \register, 0
	mov \register, x30
	.cfi_register x30, \register
	blr x0
	mov x30, \register
	.cfi_restore x30
	ldr \register, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore \register
	ret
end cfi_ra_in_\register
	.endm

ra_in x19
ra_in x26

/* Expressions say where x29 and the return address are saved. */
begin cfi_expressions
	lower 64
	str x29, [sp, #32]
	.cfi_escape DW_CFA_expression, 29, 2, DW_OP_breg_sp, 32
	str x30, [sp, #56]
	.cfi_escape DW_CFA_expression, 30, 2, DW_OP_breg_sp, 56
	mov x29, #5
	blr x0
	ldr x29, [sp, #32]
	.cfi_restore x29
	ldr x30, [sp, #56]
	.cfi_restore x30
	raise 64
	ret
end cfi_expressions

/* An expression says what x29 was. */
begin cfi_fp_is_value
	lower 32
	str x30, [sp, #24]
	.cfi_rel_offset x30, 24
	mvn x9, x29
	str x9, [sp, #8]
	/* not */
	.cfi_escape DW_CFA_val_expression, 29, 4, DW_OP_breg_sp, 8, DW_OP_deref, 0x20
	str x29, [sp]
	mov x29, #7
	blr x0
	ldr x29, [sp]
	.cfi_restore x29
	ldr x30, [sp, #24]
	.cfi_restore x30
	raise 32
	ret
end cfi_fp_is_value

/* Arguments on the stack move the CFA within the function. */
begin cfi_pushes
	save x29, x30
	str x0, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	lower 16
	blr x0
	lower 32
	ldr x0, [sp, #48]
	blr x0
	raise 64
	restore x29, x30
	ret
end cfi_pushes

/* A part of it is elsewhere in the file, with an FDE that starts with the frame in place. */
begin cfi_parted
	save x29, x30
	mov x29, sp
	.cfi_def_cfa_register x29
	sub sp, sp, #32
	b cfi_parted_cold
1:	mov sp, x29
	.cfi_def_cfa_register sp
	restore x29, x30
	ret
end cfi_parted

	.section .text.unlikely, "ax", %progbits
	.p2align 4
	.type cfi_parted_cold, %function
cfi_parted_cold:
	.cfi_startproc
	.cfi_def_cfa x29, 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	blr x0
	b 1b
end cfi_parted_cold
	.text

/* The return address is signed while the callee runs. */
begin cfi_signed
	hint #25 /* paciasp */
	.cfi_negate_ra_state
	save x29, x30, 32
	mov x29, sp
	blr x0
	restore x29, x30, 32
	hint #29 /* autiasp */
	.cfi_negate_ra_state
	ret
end cfi_signed

/* Signed and with nothing else on the stack: the frame pointer is its caller's. */
begin cfi_signed_alone
	hint #25
	.cfi_negate_ra_state
	str x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_rel_offset x30, 0
	blr x0
	ldr x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore x30
	hint #29
	.cfi_negate_ra_state
	ret
end cfi_signed_alone

/* Leaves by a call, so that the next function starts at the return address. */
begin cfi_last_call
	save x29, x30, 208
	blr x0
	.cfi_endproc
	.size cfi_last_call, . - cfi_last_call
	.type cfi_last_call_return, %function
cfi_last_call_return:
	.cfi_startproc
	.cfi_def_cfa sp, 208
	.cfi_offset x29, -208
	.cfi_offset x30, -200
	restore x29, x30, 208
	ret
end cfi_last_call_return

/* Interrupted at the first instruction; the row before, which is another function's, differs. */
begin trap_before
	lower 1024
	ret
	.cfi_endproc
	.size trap_before, . - trap_before
	.globl trap_first
	.hidden trap_first
	.type trap_first, %function
trap_first:
	.cfi_startproc
	udf #0
	ret
end trap_first

begin trap_behind_push
	save x29, x30, 32
	udf #0
	mov x29, sp
	.cfi_def_cfa_register x29
	udf #0
	sub sp, sp, #48
	udf #0
	mov sp, x29
	.cfi_def_cfa_register sp
	udf #0
	restore x29, x30, 32
	udf #0
	ret
end trap_behind_push

begin trap_behind_sub
	lower 64
	udf #0
	raise 64
	udf #0
	ret
end trap_behind_sub

/* Interrupted where the return address is signed, and still in its register. */
begin trap_signed
	hint #25
	.cfi_negate_ra_state
	udf #0
	hint #29
	.cfi_negate_ra_state
	udf #0
	ret
end trap_signed

/* The last instruction of a function. */
begin trap_last
	b 1f
2:	ret
1:	lower 16
	udf #0
	b 3f
	nop
3:	raise 16
	b 2b
end trap_last

	.section .data.rel.ro, "aw", %progbits
	.p2align 3
	.globl cfi_functions
	.hidden cfi_functions
	.type cfi_functions, %object
cfi_functions:
	.quad cfi_fp_spoiled, cfi_elsewhere, cfi_cfa_in_memory, cfi_cfa_in_memory_plus
	.quad cfi_fp_in_register, cfi_ra_in_x26, cfi_expressions, cfi_fp_is_value, cfi_pushes
	.quad cfi_parted, cfi_signed, cfi_signed_alone, cfi_last_call, 0
	.size cfi_functions, . - cfi_functions

	.globl cfi_kept_functions
	.hidden cfi_kept_functions
	.type cfi_kept_functions, %object
cfi_kept_functions:
	.quad cfi_cfa_from_x19, cfi_ra_in_x19, 0
	.size cfi_kept_functions, . - cfi_kept_functions

	.globl trap_functions
	.hidden trap_functions
	.type trap_functions, %object
trap_functions:
	.quad trap_first, trap_behind_push, trap_behind_sub, trap_signed, trap_last, 0
	.size trap_functions, . - trap_functions

	.section .note.GNU-stack, "", %progbits
