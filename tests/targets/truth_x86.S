// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * For truth_shapes. cfi_functions call their argument out of frames whose CFI is right, and which
 * count from other registers than rsp and rbp or keep what they save in odd places; most of that
 * occurs in libraries. trap_functions are interrupted by ud2, which the handler steps over, at
 * places where the row of the byte before is another than that of the instruction.
 */

#define DW_OP_deref	  0x06
#define DW_OP_plus_uconst 0x23
#define DW_OP_breg_rsp	  0x77
#define DW_CFA_def_cfa_expression 0x0f
#define DW_CFA_expression	  0x10
#define DW_CFA_val_expression	  0x16
#define RBP			  6
#define RIP			  16

	.macro begin name
	.p2align 4
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm

	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

	.macro save register
	push %\register
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \register, 0
	.endm

	.macro restore register
	pop %\register
	.cfi_adjust_cfa_offset -8
	.cfi_restore \register
	.endm

	.text

/* As ld.so's _dl_runtime_resolve: a register keeps the frame, the stack is realigned; rbp is no
 * pointer. */
	.macro cfa_from register
begin cfi_cfa_from_\register
	save rbp
	save \register
	mov $1, %ebp
	mov %rsp, %\register
	.cfi_def_cfa_register \register
	sub $192, %rsp
	and $-64, %rsp
	call *%rdi
	mov %\register, %rsp
	.cfi_def_cfa_register rsp
	restore \register
	restore rbp
	ret
end cfi_cfa_from_\register
	.endm

cfa_from rbx
cfa_from r13

/* rbp is another function's and a wild pointer; an FP unwinder would believe it. */
begin cfi_rbp_spoiled
	save rbp
	lea -64(%rsp), %rbp
	sub $80, %rsp
	.cfi_adjust_cfa_offset 80
	mov %rbp, 16(%rsp)
	call *%rdi
	add $80, %rsp
	.cfi_adjust_cfa_offset -80
	restore rbp
	ret
end cfi_rbp_spoiled

/* rbp is saved far from where push would put it. */
begin cfi_rbp_elsewhere
	sub $4104, %rsp
	.cfi_adjust_cfa_offset 4104
	mov %rbp, 24(%rsp)
	.cfi_rel_offset rbp, 24
	xor %ebp, %ebp
	call *%rdi
	mov 24(%rsp), %rbp
	.cfi_restore rbp
	add $4104, %rsp
	.cfi_adjust_cfa_offset -4104
	ret
end cfi_rbp_elsewhere

/* The CFA is found in memory. */
begin cfi_cfa_in_memory
	lea 8(%rsp), %rax
	sub $24, %rsp
	.cfi_adjust_cfa_offset 24
	mov %rax, 8(%rsp)
	.cfi_escape DW_CFA_def_cfa_expression, 3, DW_OP_breg_rsp, 8, DW_OP_deref
	call *%rdi
	add $24, %rsp
	.cfi_def_cfa rsp, 8
	ret
end cfi_cfa_in_memory

/* As gcc's frames that are realigned with r10, but kept in memory at an odd distance. */
begin cfi_cfa_in_memory_plus
	lea -1000(%rsp), %rax
	sub $40, %rsp
	.cfi_adjust_cfa_offset 40
	mov %rax, 16(%rsp)
	/* 1008 as ULEB128. */
	.cfi_escape DW_CFA_def_cfa_expression, 6, DW_OP_breg_rsp, 16, DW_OP_deref, \
		DW_OP_plus_uconst, 0xf0, 0x07
	call *%rdi
	add $40, %rsp
	.cfi_def_cfa rsp, 8
	ret
end cfi_cfa_in_memory_plus

/* rbp is in another register while the callee runs. */
begin cfi_rbp_in_register
	save r12
	mov %rbp, %r12
	.cfi_register rbp, r12
	mov $3, %ebp
	call *%rdi
	mov %r12, %rbp
	.cfi_restore rbp
	restore r12
	ret
end cfi_rbp_in_register

/* The return address is, as vfork has it. */
	.macro ra_in register
begin cfi_ra_in_\register
	save \register
	mov 8(%rsp), %\register
	.cfi_register rip, \register
	movq $0, 8(%rsp)
	call *%rdi
	mov %\register, 8(%rsp)
	.cfi_offset rip, -8
	restore \register
	ret
end cfi_ra_in_\register
	.endm

ra_in rbx
ra_in r14

/* The return address is kept at another place of the stack. */
begin cfi_ra_elsewhere
	mov (%rsp), %rax
	sub $56, %rsp
	.cfi_adjust_cfa_offset 56
	mov %rax, 16(%rsp)
	.cfi_rel_offset rip, 16
	movq $0, 56(%rsp)
	call *%rdi
	mov 16(%rsp), %rax
	mov %rax, 56(%rsp)
	.cfi_offset rip, -8
	add $56, %rsp
	.cfi_adjust_cfa_offset -56
	ret
end cfi_ra_elsewhere

/* Expressions say where rbp is saved and what the return address's place is. */
begin cfi_expressions
	sub $56, %rsp
	.cfi_adjust_cfa_offset 56
	mov %rbp, 32(%rsp)
	.cfi_escape DW_CFA_expression, RBP, 2, DW_OP_breg_rsp, 32
	.cfi_escape DW_CFA_expression, RIP, 2, DW_OP_breg_rsp, 56
	mov $5, %ebp
	call *%rdi
	mov 32(%rsp), %rbp
	.cfi_restore rbp
	add $56, %rsp
	.cfi_adjust_cfa_offset -56
	ret
end cfi_expressions

/* An expression says what rbp was. */
begin cfi_rbp_is_value
	sub $24, %rsp
	.cfi_adjust_cfa_offset 24
	xor $-1, %rbp
	mov %rbp, 8(%rsp)
	xor $-1, %rbp
	/* not */
	.cfi_escape DW_CFA_val_expression, RBP, 4, DW_OP_breg_rsp, 8, DW_OP_deref, 0x20
	mov %rbp, (%rsp)
	mov $7, %ebp
	call *%rdi
	mov (%rsp), %rbp
	.cfi_restore rbp
	add $24, %rsp
	.cfi_adjust_cfa_offset -24
	ret
end cfi_rbp_is_value

/* Pushes of the callee's arguments move the CFA within the function. */
begin cfi_pushes
	save rbp
	push %rdi
	.cfi_adjust_cfa_offset 8
	push $1
	.cfi_adjust_cfa_offset 8
	call *%rdi
	push $2
	.cfi_adjust_cfa_offset 8
	push $3
	.cfi_adjust_cfa_offset 8
	call *24(%rsp)
	add $24, %rsp
	.cfi_adjust_cfa_offset -24
	restore rdi
	restore rbp
	ret
end cfi_pushes

/* A part of it is elsewhere in the file, with an FDE that starts with the frame in place. */
begin cfi_parted
	save rbp
	mov %rsp, %rbp
	.cfi_def_cfa_register rbp
	sub $32, %rsp
	jmp cfi_parted_cold
1:	leave
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ret
end cfi_parted

	.section .text.unlikely, "ax", @progbits
begin cfi_parted_cold
	.cfi_def_cfa rbp, 16
	.cfi_offset rbp, -16
	call *%rdi
	jmp 1b
end cfi_parted_cold
	.text

/* Leaves by a call, so that the next function starts at the return address. The callee's caller is
 * gone when it returns here, which it must not: cfi_last_call_return is the next function. */
begin cfi_last_call
	sub $200, %rsp
	.cfi_adjust_cfa_offset 200
	call *%rdi
	.cfi_endproc
	.size cfi_last_call, . - cfi_last_call
	.type cfi_last_call_return, @function
cfi_last_call_return:
	.cfi_startproc
	.cfi_def_cfa rsp, 16
	add $200, %rsp
	.cfi_def_cfa rsp, 8
	ret
end cfi_last_call_return

/* Interrupted at the first instruction; the row before, which is another function's, differs. */
begin trap_before
	sub $1000, %rsp
	.cfi_adjust_cfa_offset 1000
	add $1000, %rsp
	/* Wrong for the last instruction on purpose, only the next function is interrupted. */
	ret
	.cfi_endproc
	.size trap_before, . - trap_before
	.globl trap_first
	.hidden trap_first
	.type trap_first, @function
trap_first:
	.cfi_startproc
	ud2
	ret
end trap_first

begin trap_behind_push
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	ud2
	mov %rsp, %rbp
	.cfi_def_cfa_register rbp
	ud2
	sub $48, %rsp
	ud2
	leave
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ud2
	ret
end trap_behind_push

begin trap_behind_sub
	sub $56, %rsp
	.cfi_adjust_cfa_offset 56
	ud2
	add $56, %rsp
	.cfi_adjust_cfa_offset -56
	ud2
	ret
end trap_behind_sub

/* A leaf that keeps what it needs below the stack pointer, in the middle of its work. */
begin trap_leaf
	mov %rdi, -8(%rsp)
	mov %rbp, -16(%rsp)
	.cfi_offset rbp, -24
	mov $11, %ebp
	ud2
	mov -16(%rsp), %rbp
	.cfi_restore rbp
	mov -8(%rsp), %rax
	ret
end trap_leaf

/* The last instruction of a function. */
begin trap_last
	jmp 1f
2:	ret
1:	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	ud2
	jmp 3f
	nop
3:	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	jmp 2b
end trap_last

	.section .data.rel.ro, "aw", @progbits
	.p2align 3
	.globl cfi_functions
	.hidden cfi_functions
	.type cfi_functions, @object
cfi_functions:
	.quad cfi_cfa_from_r13, cfi_rbp_spoiled, cfi_rbp_elsewhere, cfi_cfa_in_memory
	.quad cfi_cfa_in_memory_plus, cfi_rbp_in_register, cfi_ra_in_r14, cfi_ra_elsewhere
	.quad cfi_expressions, cfi_rbp_is_value, cfi_pushes, cfi_parted, cfi_last_call, 0
	.size cfi_functions, . - cfi_functions

	.globl cfi_kept_functions
	.hidden cfi_kept_functions
	.type cfi_kept_functions, @object
cfi_kept_functions:
	.quad cfi_cfa_from_rbx, cfi_ra_in_rbx, 0
	.size cfi_kept_functions, . - cfi_kept_functions

	.globl trap_functions
	.hidden trap_functions
	.type trap_functions, @object
trap_functions:
	.quad trap_first, trap_behind_push, trap_behind_sub, trap_leaf, trap_last, 0
	.size trap_functions, . - trap_functions

	.section .note.GNU-stack, "", @progbits
