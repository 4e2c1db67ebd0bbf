/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A static program with an allocator. */
	.section .note.GNU-stack, "", @progbits
	.text
	.globl _start, malloc
	.type _start, @function
_start:
	call malloc
	call between
	call free
	hlt
	.size _start, . - _start
	.type malloc, @function
malloc:
	push %rbx
	call helper
	.globl internal_malloc
internal_malloc:
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
	/* The program's, as it calls them: one of the linker's order, and what that one alone calls. */
	.type between, @function
between:
	call free
	call further
	ret
	.size between, . - between
	.type further, @function
further:
	call free
	ret
	.size further, . - further
	/* Called by a pointer, if at all. */
	.type callback, @function
callback:
	call free
	ret
	.size callback, . - callback
	/* Local, as gcc -static-pie leaves some of them. */
	.type free, @function
free:
	push %rbx
	pop %rbx
	ret
	.size free, . - free
