/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions that lower the stack pointer before the first instruction that the kernel emulates; test_allocator.c knows
 * them by name. */
.macro function name
	.p2align 4
	.globl \name
	.type \name, @function
\name:
.endm
.macro end name
	.size \name, . - \name
.endm
	.section .note.GNU-stack, "", @progbits
	.text

/* +7, 24 bytes below. */
function malloc
	sub $24, %rsp
	test %rdi, %rdi
	je 1f
1:	add $24, %rsp
	ret
end malloc

/* +5, 16 bytes below: lea lowers it as sub does. */
function free
	lea -16(%rsp), %rsp
	push %rbx
	pop %rbx
	add $16, %rsp
	ret
end free

/* +11, 8 and 2032 bytes below. */
function realloc
	sub $8, %rsp
	sub $2032, %rsp
	push %rbx
	pop %rbx
	add $2040, %rsp
	ret
end realloc

/* +4, 128 bytes below: a number of 8 bits is -128, and not 128. */
function posix_memalign
	add $-128, %rsp
	push %rbx
	pop %rbx
	sub $-128, %rsp
	ret
end posix_memalign

/* Entry: half of what is written is the return address. */
function mi_posix_memalign
	sub $24, %rsp
	mov %rdi, 20(%rsp)
	push %rbx
	pop %rbx
	add $24, %rsp
	ret
end mi_posix_memalign

/* Entry: no number of words. */
function mi_malloc
	sub $12, %rsp
	push %rbx
	pop %rbx
	add $12, %rsp
	ret
end mi_malloc

/* Entry: it is not known by how much. */
function mi_zalloc
	and $-16, %rsp
	push %rbx
	pop %rbx
	ret
end mi_zalloc

/* Entry: it is not known by how much. */
function mi_malloc_small
	sub %rax, %rsp
	push %rbx
	pop %rbx
	ret
end mi_malloc_small

/* Entry: it is raised. */
function mi_zalloc_small
	add $8, %rsp
	push %rbx
	pop %rbx
	sub $8, %rsp
	ret
end mi_zalloc_small

/* Entry: 2048 bytes are too many. */
function mi_calloc
	sub $8, %rsp
	sub $2040, %rsp
	push %rbx
	pop %rbx
	add $2048, %rsp
	ret
end mi_calloc

/* Entry: the end leads back to the je, where the stack pointer is another one. */
function mi_realloc
	sub $8, %rsp
	test %rdi, %rdi
1:	je 2f
	add $8, %rsp
	xor %edi, %edi
	jmp 1b
2:	ret
end mi_realloc

/* +14: what is written is in the frame, and below it. */
function mi_mallocn
	sub $24, %rsp
	mov %r12, 16(%rsp)
	mov %r12, -8(%rsp)
	push %rbx
	pop %rbx
	add $24, %rsp
	ret
end mi_mallocn

/* Entry: it is not known where it is written. */
function mi_umalloc
	sub $24, %rsp
	mov %r12, 8(%rsp, %rax)
	push %rbx
	pop %rbx
	add $24, %rsp
	ret
end mi_umalloc

/* Entry: it is another's memory. */
function mi_recalloc
	sub $24, %rsp
	mov %r12, 8(%rbp)
	push %rbx
	pop %rbx
	add $24, %rsp
	ret
end mi_recalloc

/* +4: the bytes in elsewhere() that look like a jump to here are a number. */
function mi_uzalloc
	sub $8, %rsp
	push %rbx
	pop %rbx
	add $8, %rsp
	ret
end mi_uzalloc

	.type elsewhere, @function
elsewhere:
	.cfi_startproc
	.byte 0x48, 0xb8, 0xe9 /* movabs $…, %rax */
	.long mi_uzalloc + 4 - . - 4
	.byte 0, 0, 0
	ret
	.cfi_endproc
end elsewhere

/* Entry: the frame pointer is no longer the caller's. */
function mi_free
	mov %rbp, %rax
	xor %ebp, %ebp
	push %rbx
	pop %rbx
	mov %rax, %rbp
	ret
end mi_free

/* Entry: half of the stack pointer. */
function mi_cfree
	sub $8, %esp
	push %rbx
	pop %rbx
	ret
end mi_cfree
