/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A static program with an allocator. */
	.section .note.GNU-stack, "", @progbits
	.text
	.globl _start, malloc
	.type _start, @function
_start:
	call malloc
	call free
	hlt
	.size _start, . - _start
	.type malloc, @function
malloc:
	push %rbx
	pop %rbx
	ret
	.size malloc, . - malloc
	.type helper, @function
helper:
	call free
	.globl internal_helper
internal_helper:
	ret
	.size helper, . - helper
	/* Local, as gcc -static-pie leaves some of them. */
	.type free, @function
free:
	push %rbx
	pop %rbx
	ret
	.size free, . - free
