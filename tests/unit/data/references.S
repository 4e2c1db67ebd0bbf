/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program with an allocator, and what leads to it: a reference ends at each label reference_*. With UNCLEAR and INNER
 * there is what may lead to it, too, and cannot be changed. */
	.section .note.GNU-stack, "", @progbits
	.text
	.macro function name
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm
	.macro reference name
	.globl reference_\name
reference_\name:
	.endm

function malloc
	push %rbx
	call free
	pop %rbx
	ret
end malloc
function free
	push %rbx
	pop %rbx
	ret
end free
function realloc
	test %rdi, %rdi
	je malloc
	ret
end realloc
function calloc
	ret
end calloc
	/* Nearer code would have jumps of two bytes. */
	.skip 200, 0x90
function _start
	push %rbx
	call malloc
reference call
	call *%rax
	addr32 call free
reference prefixed
	lea free(%rip), %rdi
reference address
	movabs $0x1122334455667788, %rax
	test %rax, %rax
	je far
	pop %rbx
	jmp malloc
reference jump
end _start
	.skip 200, 0x90
function far
	jne free
reference conditional
	ret
end far
#ifdef INNER
	/* Not an instruction, but a part of one: or are the first two bytes data? */
function inner
	.byte 0x48, 0xb8, 0xe8
	.long malloc - . - 4
	.byte 0, 0, 0
	ret
end inner
#endif
#ifdef UNCLEAR
	.skip 200, 0x90
function near
	jmp 1f
end near
	.globl cfree
	.type cfree, @function
cfree:
	.cfi_startproc
1:	ret
	.cfi_endproc
	.size cfree, . - cfree
#endif
