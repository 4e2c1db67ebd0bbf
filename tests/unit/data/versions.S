/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two versions of realloc at two addresses, of free at one, and only an old pvalloc. */
.macro function name
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	push %rbx
	pop %rbx
	ret
	.size \name, . - \name
.endm
	.section .note.GNU-stack, "", @progbits
	.text
	function malloc
	function realloc_old
	function realloc_new
	function free_any
	function pvalloc_old
	.globl free_too
	.type free_too, @function
	.set free_too, free_any
	.symver realloc_old, realloc@V1
	.symver realloc_new, realloc@@V2
	.symver free_any, free@@V2
	.symver free_too, free@V1
	.symver pvalloc_old, pvalloc@V1
