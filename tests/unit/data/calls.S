/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls and tail calls, through the PLT and direct; the exported labels are return addresses. */
.macro function name
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
.endm
.macro end name
	.cfi_endproc
	.size \name, . - \name
.endm
.macro label name
	.globl \name
	.type \name, @notype
\name:
.endm
	.section .note.GNU-stack, "", @progbits
	.text

function malloc
	push %rbx
	call mmap@PLT
label internal_mmap
	pop %rbx
	ret
end malloc

/* As musl's: through the PLT, so that a program's own malloc is used. */
function calloc
	push %rbx
	call malloc@PLT
label internal_calloc
	test %rax, %rax
	je 1f
	call *%rbx
label internal_indirect
1:	pop %rbx
	ret
end calloc

function realloc
	push %rbx
	test %rdi, %rdi
	pop %rbx
	je 1f
	jmp realloc
1:	jmp malloc@PLT
end realloc

function reallocarray
	jmp *realloc@GOTPCREL(%rip)
end reallocarray

/* A local piece of code between the two. */
function aligned_alloc
	push %rbx
	pop %rbx
	jmp middle
end aligned_alloc

	.globl memalign
	.type memalign, @function
	.set memalign, aligned_alloc
	.globl __libc_memalign
	.type __libc_memalign, @function
	.set __libc_memalign, aligned_alloc

	.type middle, @function
middle:
	.cfi_startproc
	cmp $16, %rdi
	ja 1f
	jmp direct_malloc
1:	push %rbx
	call abort@PLT
label internal_abort
end middle

/* Behind a call that does not return: foreign code. */
	.type foreign, @function
foreign:
	.cfi_startproc
	call strlen@PLT
label outside_foreign
	ret
end foreign

/* By an alias's slot. */
function valloc
	push %rbx
	pop %rbx
	jmp *__libc_memalign@GOTPCREL(%rip)
end valloc

function strdup
	push %rbx
	call malloc@PLT
label outside_strdup
	pop %rbx
	ret
end strdup

function free
	push %rbx
	pop %rbx
	ret
end free

function thread_exit
	push %rbx
	call direct_free
label internal_thread_exit
	pop %rbx
	ret
end thread_exit

	.set direct_malloc, malloc
	.set direct_free, free
