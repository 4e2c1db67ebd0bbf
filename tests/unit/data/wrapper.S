/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an LD_PRELOAD counter looks like. */
	.section .note.GNU-stack, "", @progbits
	.text
	.globl malloc, free
	.type malloc, @function
malloc:
	push %rbx
	call dlsym@PLT
	pop %rbx
	jmp *%rax
	.size malloc, . - malloc
	.type free, @function
free:
	push %rbx
	call dlsym@PLT
	pop %rbx
	jmp *%rax
	.size free, . - free
