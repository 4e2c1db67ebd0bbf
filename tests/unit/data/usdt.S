/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions, and notes of USDT probes: good ones, and all kinds of damaged ones. */
	.text
	.globl	work
	.type	work, @function
work:
	push	%rbp
at_work:
	nop
	ret
	.size	work, . - work

	.globl	work.part.0
	.type	work.part.0, @function
work.part.0:
	nop
	ret
	.size	work.part.0, . - work.part.0

	.type	work.cold, @function
work.cold:
	nop
	ret
	.size	work.cold, . - work.cold

/* int ns::twice(int) and int ns::twice(long) */
	.globl	_ZN2ns5twiceEi
	.type	_ZN2ns5twiceEi, @function
_ZN2ns5twiceEi:
	nop
	ret
	.size	_ZN2ns5twiceEi, . - _ZN2ns5twiceEi
	.globl	_ZN2ns5twiceEl
	.type	_ZN2ns5twiceEl, @function
_ZN2ns5twiceEl:
	nop
	ret
	.size	_ZN2ns5twiceEl, . - _ZN2ns5twiceEl

	.data
at_data:
	.quad	0x9090909090909090
semaphore:
	.short	0

	.section .note.stapsdt, "", "note"
/* One note; the strings are given with their ends. */
.macro	note pc, semaphore, strings:vararg
	.balign	4
	.4byte	8, 2f - 1f, 3
	.asciz	"stapsdt"
1:	.8byte	\pc, 0, \semaphore
	.ascii	\strings
2:	.balign	4
.endm
	note	at_work, 0, "app\0begin\0\0"
	note	at_work, 0, "app\0begin\0-4@$1 8@%rax\0"
	note	at_work, semaphore, "app\0waits\0\0"
	note	at_data, 0, "app\0data\0\0"
	note	work, 0, "app\0no_nop\0\0"
	note	0xfffffffffffffff0, 0, "app\0nowhere\0\0"
	note	at_work, 0xfffffffffffffff0, "app\0no_semaphore\0\0"
/* Strings that do not end. */
	note	at_work, 0, "app\0open\0open"
	note	at_work, 0, "app\0open"
	note	at_work, 0, "app"
	note	at_work, 0, ""
	note	at_work, 0, "\0\0\0"
/* Addresses that are cut off. */
	.balign	4
	.4byte	8, 23, 3
	.asciz	"stapsdt"
	.8byte	at_work, 0
	.4byte	0
	.2byte	0
	.byte	0
	.balign	4
/* Another owner, another type, no description at all. */
	.4byte	4, 4, 3
	.asciz	"GNU"
	.4byte	0
	.4byte	8, 4, 7
	.asciz	"stapsdt"
	.4byte	0
	.4byte	8, 0, 3
	.asciz	"stapsdt"
	note	at_work, 0, "app\0last\0\0"
/* Sizes that lead far behind the end, or back to the beginning. */
	.balign	4
	.4byte	8, 0xfffffff0, 3
	.asciz	"stapsdt"
	note	at_work, 0, "app\0behind\0\0"

	.section .note.huge_name, "", "note"
	.4byte	0xfffffff4, 0, 3
	.asciz	"stapsdt"
	note	at_work, 0, "app\0behind\0\0"

	.section .note.wraps, "", "note"
	.4byte	0xffffffff, 0xffffffff, 3
	.asciz	"stapsdt"

	.section .note.short, "", "note"
	.4byte	8

	.section .note.empty, "", "note"

	.section .note.second, "", "note"
	note	at_work, 0, "other\0begin\0\0"

	.section .note.GNU-stack, "", @progbits
