/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program with a dynamic linker that defines one function, DEFINED. */
	.section .note.GNU-stack, "", @progbits
	.text
	.globl _start, DEFINED
	.type _start, @function
_start:
	call DEFINED
	hlt
	.size _start, . - _start
	.type DEFINED, @function
DEFINED:
	ret
	.size DEFINED, . - DEFINED
