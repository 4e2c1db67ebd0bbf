// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "disasm.h"

#define VADDR 0x10000

#define MEMORY	DISASM_WRITES_MEMORY
#define SP	DISASM_WRITES_SP
#define UNKNOWN DISASM_UNKNOWN_EFFECT

struct expected {
	const char *bytes;
	unsigned int length;
	enum disasm_class class;
	unsigned int effects;
	bool emulated;
	__u64 target; /* from VADDR, 0: none */
	const char *text;
};

static const struct expected table[] = {
	{ "\x90", 1, DISASM_NOP, 0, true, 0, "nop" },
	{ "\x66\x90", 2, DISASM_NOP, 0, true, 0, "nop" },
	/* The kernel takes pause for a nop, and xchg %r8,%rax too; nothing is built on that. */
	{ "\xf3\x90", 2, DISASM_OTHER, UNKNOWN, false, 0, "pause" },
	{ "\x49\x90", 2, DISASM_OTHER, 0, false, 0, "xchg %rax, %r8" },
	{ "\x0f\x1f\x00", 3, DISASM_NOP, 0, false, 0, "nop %eax, (%rax)" },
	{ "\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 10, DISASM_NOP, 0, false, 0, NULL },
	{ "\xf3\x0f\x1e\xfa", 4, DISASM_OTHER, 0, false, 0, "endbr64" },

	{ "\x55", 1, DISASM_OTHER, MEMORY | SP, true, 0, "push %rbp" },
	{ "\x41\x54", 2, DISASM_OTHER, MEMORY | SP, true, 0, "push %r12" },
	{ "\x48\x55", 2, DISASM_OTHER, MEMORY | SP, false, 0, NULL },
	{ "\x66\x55", 2, DISASM_OTHER, MEMORY | SP, false, 0, "push %bp" },
	{ "\xff\xf0", 2, DISASM_OTHER, MEMORY | SP, false, 0, NULL },
	{ "\x6a\x01", 2, DISASM_OTHER, MEMORY | SP, false, 0, "push $0x1" },
	{ "\x5f", 1, DISASM_OTHER, SP, false, 0, "pop %rdi" },
	{ "\x5b", 1, DISASM_OTHER, SP, false, 0, "pop %rbx" },

	{ "\xeb\x10", 2, DISASM_JUMP, 0, true, 0x12, "jmp 0x10012" },
	{ "\xeb\xf0", 2, DISASM_JUMP, 0, true, -0xeULL, "jmp 0xfff2" },
	{ "\xe9\x00\x01\x00\x00", 5, DISASM_JUMP, 0, true, 0x105, "jmp 0x10105" },
	{ "\xf2\xe9\x00\x01\x00\x00", 6, DISASM_JUMP, 0, true, 0x106, NULL },
	{ "\x74\x05", 2, DISASM_JUMP_CONDITIONAL, 0, true, 7, "jz 0x10007" },
	{ "\x0f\x8f\x00\x01\x00\x00", 6, DISASM_JUMP_CONDITIONAL, 0, true, 0x106, "jnle 0x10106" },
	{ "\x66\x74\x05", 3, DISASM_JUMP_CONDITIONAL, 0, false, 8, NULL },
	{ "\x3e\x74\x05", 3, DISASM_JUMP_CONDITIONAL, 0, false, 8, NULL },
	{ "\xe2\x05", 2, DISASM_JUMP_CONDITIONAL, 0, false, 7, "loop 0x10007" },
	{ "\xe3\x05", 2, DISASM_JUMP_CONDITIONAL, 0, false, 7, "jrcxz 0x10007" },
	{ "\xe8\xfb\xff\xff\xff", 5, DISASM_CALL, UNKNOWN, true, 0, "call 0x10000" },
	/* As before __tls_get_addr. */
	{ "\x66\x66\x48\xe8\x10\0\0\0", 8, DISASM_CALL, UNKNOWN, false, 0x18, NULL },
	{ "\xff\xd0", 2, DISASM_CALL_INDIRECT, UNKNOWN, false, 0, "call %rax" },
	{ "\xff\x15\x10\0\0\0", 6, DISASM_CALL_INDIRECT, UNKNOWN, false, 0, NULL },
	{ "\xff\xe0", 2, DISASM_JUMP_INDIRECT, 0, false, 0, "jmp %rax" },
	{ "\x3e\xff\xe0", 3, DISASM_JUMP_INDIRECT, 0, false, 0, "notrack jmp %rax" },
	{ "\xc3", 1, DISASM_RET, SP, false, 0, "ret" },
	{ "\xf3\xc3", 2, DISASM_RET, SP, false, 0, NULL },
	{ "\xc2\x08\x00", 3, DISASM_RET, SP, false, 0, "ret $0x8" },
	{ "\x0f\x0b", 2, DISASM_TRAP, UNKNOWN, false, 0, "ud2" },
	{ "\xf4", 1, DISASM_TRAP, UNKNOWN, false, 0, "hlt" },
	{ "\xcc", 1, DISASM_TRAP, UNKNOWN, false, 0, "int3" },

	{ "\x48\x85\xff", 3, DISASM_OTHER, 0, false, 0, "test %rdi, %rdi" },
	{ "\x80\x3d\x46\x1b\x14\x00\x00", 7, DISASM_OTHER, 0, false, 0,
	  "cmpb $0x0, 0x141b46(%rip)" },
	{ "\x64\x48\x8b\x04\x25\x28\0\0\0", 9, DISASM_OTHER, 0, false, 0, "mov %fs:0x28, %rax" },
	{ "\x48\x89\xf8", 3, DISASM_OTHER, 0, false, 0, "mov %rdi, %rax" },
	{ "\x48\x8b\x47\xf8", 4, DISASM_OTHER, 0, false, 0, "mov -0x8(%rdi), %rax" },
	{ "\x4c\x8d\x14\x37", 4, DISASM_OTHER, 0, false, 0, "lea (%rdi,%rsi,1), %r10" },
	{ "\x0f\xb6\xc0", 3, DISASM_OTHER, 0, false, 0, "movzx %al, %eax" },
	{ "\x31\xed", 2, DISASM_OTHER, 0, false, 0, "xor %ebp, %ebp" },
	{ "\x0f\x90\xc0", 3, DISASM_OTHER, 0, false, 0, "seto %al" },
	{ "\x48\x0f\x44\xc7", 4, DISASM_OTHER, 0, false, 0, "cmovz %rdi, %rax" },
	{ "\x48\x0f\xaf\xc7", 4, DISASM_OTHER, 0, false, 0, "imul %rdi, %rax" },
	{ "\x48\x98", 2, DISASM_OTHER, 0, false, 0, "cdqe" },

	{ "\x48\x89\xf7", 3, DISASM_OTHER, 0, false, 0, "mov %rsi, %rdi" },
	{ "\x31\xd2", 2, DISASM_OTHER, 0, false, 0, "xor %edx, %edx" },
	{ "\x41\xb0\x01", 3, DISASM_OTHER, 0, false, 0, "mov $0x1, %r8b" },
	{ "\xb5\x01", 2, DISASM_OTHER, 0, false, 0, "mov $0x1, %ch" },
	{ "\x48\xf7\xe2", 3, DISASM_OTHER, 0, false, 0, "mul %rdx" },
	{ "\x48\xf7\xeb", 3, DISASM_OTHER, 0, false, 0, "imul %rbx" },
	{ "\x48\x99", 2, DISASM_OTHER, 0, false, 0, "cqo" },
	{ "\x48\x83\xec\x08", 4, DISASM_OTHER, SP, false, 0, "sub $0x8, %rsp" },
	{ "\x48\x89\x7e\x08", 4, DISASM_OTHER, MEMORY, false, 0, "mov %rdi, 0x8(%rsi)" },
	{ "\xc7\x05\x10\0\0\0\0\0\0\0", 10, DISASM_OTHER, MEMORY, false, 0, NULL },
	{ "\x64\x89\x04\x25\x28\0\0\0", 8, DISASM_OTHER, MEMORY, false, 0, "mov %eax, %fs:0x28" },
	{ "\x48\xa5", 2, DISASM_OTHER, UNKNOWN, false, 0, NULL },
	{ "\xf3\x48\xa5", 3, DISASM_OTHER, UNKNOWN, false, 0, NULL },
	{ "\x48\x87\xd8", 3, DISASM_OTHER, 0, false, 0, "xchg %rbx, %rax" },
	{ "\x48\x87\x07", 3, DISASM_OTHER, MEMORY, false, 0, "xchg %rax, (%rdi)" },
	{ "\xf0\x48\x0f\xc1\x07", 5, DISASM_OTHER, UNKNOWN, false, 0, NULL },
	{ "\x0f\x05", 2, DISASM_OTHER, UNKNOWN, false, 0, "syscall" },
	{ "\x66\x48\x0f\x6e\xc7", 5, DISASM_OTHER, UNKNOWN, false, 0, "movq %rdi, %xmm0" },
	{ "\x0f\xa2", 2, DISASM_OTHER, UNKNOWN, false, 0, "cpuid" },
	{ "\xa4", 1, DISASM_OTHER, UNKNOWN, false, 0, "movsb" },
	{ "\x0f\x01\xd5", 3, DISASM_OTHER, UNKNOWN, false, 0, "xend" },
	{ "\xc6\xf8\x01", 3, DISASM_OTHER, UNKNOWN, false, 0, "xabort $0x1" },

	/* Prefixes that change nothing of what follows. */
	{ "\x66\x48\x8d\x3d\x10\0\0\0", 8, DISASM_OTHER, 0, false, 0, "lea 0x10(%rip), %rdi" },
	{ "\xf0\xff\x07", 3, DISASM_OTHER, MEMORY, false, 0, NULL },
	/* A byte is multiplied in %ax alone. */
	{ "\xf6\xe3", 2, DISASM_OTHER, 0, false, 0, "mul %bl" },
	{ "\x66\x0f\x7e\xc3", 4, DISASM_OTHER, 0, false, 0, "movd %xmm0, %ebx" },
	{ "\x66\x0f\x7e\xc7", 4, DISASM_OTHER, 0, false, 0, "movd %xmm0, %edi" },
	{ "\x0f\x29\x04\x24", 4, DISASM_OTHER, MEMORY, false, 0, "movaps %xmm0, (%rsp)" },
	{ "\x48\x0f\xba\xf8\x01", 5, DISASM_OTHER, 0, false, 0, "btc $0x1, %rax" },
	/* Intel's processors ignore prefix 66 and take four bytes of displacement, AMD's two. */
	{ "\x66\xe8\x10\0", 4, DISASM_TRAP, UNKNOWN, false, 0, NULL },
	{ "\x66\xe9\x10\0", 4, DISASM_TRAP, UNKNOWN, false, 0, NULL },
	{ "\x66\x0f\x84\x10\0", 5, DISASM_TRAP, UNKNOWN, false, 0, NULL },
	{ "\xc7\xf8\x10\0\0\0", 6, DISASM_JUMP_CONDITIONAL, UNKNOWN, false, 0x16, NULL },
	{ "\xff\x18", 2, DISASM_CALL_INDIRECT, UNKNOWN, false, 0, NULL },
	{ "\xff\x28", 2, DISASM_JUMP_INDIRECT, 0, false, 0, NULL },
	{ "\xcd\x80", 2, DISASM_TRAP, UNKNOWN, false, 0, NULL },
	{ "\x48\xcf", 2, DISASM_RET, SP, false, 0, NULL },
};

static void test_table(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct expected *expected = &table[i];
		unsigned char code[32] = { 0 };
		struct disasm_insn insn;
		char text[64] = "";
		int err;

		memcpy(code, expected->bytes, expected->length);
		err = disasm__decode(code, sizeof(code), VADDR, &insn);
		if (!err)
			disasm_insn__text(&insn, text, sizeof(text));
		if (err || insn.length != expected->length || insn.class != expected->class ||
		    insn.effects != expected->effects || insn.emulated != expected->emulated ||
		    (expected->target && insn.target != VADDR + expected->target) ||
		    (expected->text && strcmp(text, expected->text) != 0))
			fail_msg(
				"entry %zu (%s): expected length %u class %d effects %x emulated %d, "
				"got %d, `%s` %u %d %x %d target %llx",
				i, expected->text ? expected->text : "", expected->length,
				expected->class, expected->effects, expected->emulated, err, text,
				insn.length, insn.class, insn.effects, insn.emulated,
				(unsigned long long)insn.target);
	}
}

#define REG(n) (1U << (n))

/* Registers by the processor's numbers: rax 0, rcx 1, rdx 2, rsp 4, rbp 5, rsi 6, rdi 7. */
static void test_registers(void **state)
{
	static const struct {
		const char *bytes;
		unsigned int length, written;
		int from, to; /* -1: it is no copy */
	} cases[] = {
		{ "\x48\x89\xf7", 3, REG(7), 6, 7 },   /* mov %rsi, %rdi */
		{ "\x48\x8b\xfe", 3, REG(7), 6, 7 },   /* the same, in its other encoding */
		{ "\x49\x89\xf8", 3, REG(8), 7, 8 },   /* mov %rdi, %r8 */
		{ "\x89\xf7", 2, REG(7), -1, -1 },     /* mov %esi, %edi */
		{ "\x66\x89\xf7", 3, REG(7), -1, -1 }, /* mov %si, %di */
		{ "\x48\x8b\x3e", 3, REG(7), -1, -1 }, /* mov (%rsi), %rdi */
		{ "\x48\x89\x37", 3, 0, -1, -1 },      /* mov %rsi, (%rdi) */
		{ "\x31\xd2", 2, REG(2), -1, -1 },     /* xor %edx, %edx */
		{ "\x41\xb0\x01", 3, REG(8), -1, -1 }, /* mov $0x1, %r8b */
		{ "\xb5\x01", 2, REG(1), -1, -1 },     /* mov $0x1, %ch */
		{ "\x48\xf7\xe2", 3, REG(0) | REG(2), -1, -1 }, /* mul %rdx */
		{ "\xf6\xe3", 2, REG(0), -1, -1 },		/* mul %bl */
		{ "\x48\x99", 2, REG(2), -1, -1 },		/* cqo */
		{ "\x49\x90", 2, REG(0) | REG(8), -1, -1 },	/* xchg %rax, %r8 */
		{ "\x48\x0f\x44\xf7", 4, REG(6), -1, -1 },	/* cmovz %rdi, %rsi */
		{ "\xe2\x05", 2, REG(1), -1, -1 },		/* loop */
		{ "\x5f", 1, REG(4) | REG(7), -1, -1 },		/* pop %rdi */
		{ "\x48\x83\xec\x08", 4, REG(4), -1, -1 },	/* sub $0x8, %rsp */
		{ "\x48\x89\xe5", 3, REG(5), 4, 5 },		/* mov %rsp, %rbp */
		{ "\x66\x0f\x7e\xc7", 4, REG(7), -1, -1 },	/* movd %xmm0, %edi */
		{ "\x0f\xa2", 2, 0xffff, -1, -1 },		/* cpuid */
		{ "\x48\x85\xff", 3, 0, -1, -1 },		/* test %rdi, %rdi */
	};
	static const unsigned int arguments[] = { 7, 6, 2, 1, 8, 9 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct disasm_insn insn;

		assert_int_equal(disasm__decode(cases[i].bytes, cases[i].length, VADDR, &insn), 0);
		if (insn.written != cases[i].written || insn.is_copy != (cases[i].from >= 0) ||
		    (insn.is_copy && (insn.from != cases[i].from || insn.to != cases[i].to)))
			fail_msg("case %zu: expected written %x, copy from %d to %d; got %x, "
				 "%d from %d to %d",
				 i, cases[i].written, cases[i].from, cases[i].to, insn.written,
				 insn.is_copy, insn.from, insn.to);
	}
	for (unsigned int n = 1; n <= DISASM_ARGUMENTS; n++)
		assert_int_equal(disasm__argument_register(n), arguments[n - 1]);
}

static void test_slot(void **state)
{
	struct disasm_insn insn;

	assert_int_equal(disasm__decode("\xff\x25\x10\0\0\0", 6, VADDR, &insn), 0);
	assert_int_equal(insn.class, DISASM_JUMP_INDIRECT);
	assert_true(insn.has_slot);
	assert_int_equal(insn.slot, VADDR + 6 + 0x10);
	assert_int_equal(disasm__decode("\xf2\xff\x25\xf0\xff\xff\xff", 7, VADDR, &insn), 0);
	assert_true(insn.has_slot);
	assert_int_equal(insn.slot, VADDR + 7 - 0x10);
	assert_int_equal(disasm__decode("\xff\x60\x10", 3, VADDR, &insn), 0);
	assert_int_equal(insn.class, DISASM_JUMP_INDIRECT);
	assert_false(insn.has_slot);
	/* notrack, as a switch of code that has indirect branches tracked */
	assert_int_equal(disasm__decode("\x3e\xff\x25\x10\0\0\0", 7, VADDR, &insn), 0);
	assert_true(insn.has_slot);
	assert_int_equal(insn.slot, VADDR + 7 + 0x10);
	/* of a thread, with an address of 32 bits, and with a segment */
	assert_int_equal(disasm__decode("\x64\xff\x25\x10\0\0\0", 7, VADDR, &insn), 0);
	assert_false(insn.has_slot);
	assert_int_equal(disasm__decode("\x67\xff\x25\x10\0\0\0", 7, VADDR, &insn), 0);
	assert_false(insn.has_slot);
	assert_int_equal(disasm__decode("\xff\x2d\x10\0\0\0", 6, VADDR, &insn), 0);
	assert_int_equal(insn.class, DISASM_JUMP_INDIRECT);
	assert_false(insn.has_slot);
}

static bool is_stub(const char *code, size_t size, __u64 *slot)
{
	return disasm__stub_slot(code, size, VADDR, slot);
}

static void test_stubs(void **state)
{
	__u64 slot = 0;

	assert_true(is_stub("\xff\x25\x10\0\0\0", 6, &slot));
	assert_int_equal(slot, VADDR + 6 + 0x10);
	/* endbr64 */
	assert_true(is_stub("\xf3\x0f\x1e\xfa\xff\x25\x10\0\0\0", 10, &slot));
	assert_int_equal(slot, VADDR + 10 + 0x10);
	assert_false(is_stub("\xff\x25\x10\0\0", 5, &slot));
	assert_false(is_stub("\x48\x8b\x07\xff\x60\x10", 6, &slot)); /* of a C++ object's table */
	assert_false(is_stub("\x50\xff\x25\x10\0\0\0", 7, &slot));   /* push */
}

static void test_calls_before(void **state)
{
	static const unsigned char call[] = "\x90\x90\xe8\x10\0\0\0",
				   indirect[] = "\x90\x90\x90\x90\x90\xff\xd0",
				   other[] = "\x90\x90\x90\x90\x48\x8b\x07";

	assert_true(disasm__ends_with_call(call));
	assert_true(disasm__ends_with_call(indirect));
	assert_false(disasm__ends_with_call(other));
}

/* What becomes of the stack pointer and of the frame pointer. */
static const struct expected_frame {
	const char *bytes;
	unsigned int length;
	enum disasm_sp sp;
	__s64 sp_offset;
	enum disasm_fp fp;
} frames[] = {
	{ "\x55", 1, DISASM_SP_MOVED, -8, DISASM_FP_PUSHED },		     /* push %rbp */
	{ "\x53", 1, DISASM_SP_MOVED, -8, DISASM_FP_KEPT },		     /* push %rbx */
	{ "\x66\x55", 2, DISASM_SP_MOVED, -2, DISASM_FP_KEPT },		     /* push %bp */
	{ "\x6a\x01", 2, DISASM_SP_MOVED, -8, DISASM_FP_KEPT },		     /* push $1 */
	{ "\xff\x75\x08", 3, DISASM_SP_MOVED, -8, DISASM_FP_KEPT },	     /* push 8(%rbp) */
	{ "\x9c", 1, DISASM_SP_MOVED, -8, DISASM_FP_KEPT },		     /* pushf */
	{ "\x5d", 1, DISASM_SP_MOVED, 8, DISASM_FP_POPPED },		     /* pop %rbp */
	{ "\x5b", 1, DISASM_SP_MOVED, 8, DISASM_FP_KEPT },		     /* pop %rbx */
	{ "\x66\x5d", 2, DISASM_SP_MOVED, 2, DISASM_FP_UNKNOWN },	     /* pop %bp */
	{ "\x9d", 1, DISASM_SP_MOVED, 8, DISASM_FP_KEPT },		     /* popf */
	{ "\x5c", 1, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT },		     /* pop %rsp */
	{ "\xf3\x48\x0f\xb8\xc3", 5, DISASM_SP_MOVED, 0, DISASM_FP_KEPT },   /* popcnt */
	{ "\x48\x89\xe5", 3, DISASM_SP_MOVED, 0, DISASM_FP_FROM_SP },	     /* mov %rsp, %rbp */
	{ "\x48\x89\xec", 3, DISASM_SP_FROM_FP, 0, DISASM_FP_KEPT },	     /* mov %rbp, %rsp */
	{ "\x89\xec", 2, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT },	     /* mov %ebp, %esp */
	{ "\xc9", 1, DISASM_SP_FROM_FP, 8, DISASM_FP_POPPED },		     /* leave */
	{ "\xc8\x08\0\0", 4, DISASM_SP_UNKNOWN, 0, DISASM_FP_UNKNOWN },	     /* enter */
	{ "\x48\x83\xec\x18", 4, DISASM_SP_MOVED, -0x18, DISASM_FP_KEPT },   /* sub $24, %rsp */
	{ "\x48\x83\xec\x80", 4, DISASM_SP_MOVED, 128, DISASM_FP_KEPT },     /* sub $-128, %rsp */
	{ "\x48\x81\xc4\0\1\0\0", 7, DISASM_SP_MOVED, 256, DISASM_FP_KEPT }, /* add $256, %rsp */
	{ "\x48\x83\xe4\xf0", 4, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT },     /* and $-16, %rsp */
	{ "\x48\x29\xc4", 3, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT },	     /* sub %rax, %rsp */
	{ "\x48\x8d\x64\x24\xe8", 5, DISASM_SP_MOVED, -24,
	  DISASM_FP_KEPT },						   /* lea -24(%rsp), %rsp */
	{ "\x48\x8d\x65\xd8", 4, DISASM_SP_FROM_FP, -40, DISASM_FP_KEPT }, /* lea -40(%rbp), %rsp */
	{ "\x48\x8d\x24\x04", 4, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT }, /* lea (%rsp,%rax), %rsp */
	{ "\x48\x8d\x6c\x24\x10", 5, DISASM_SP_MOVED, 0,
	  DISASM_FP_UNKNOWN },					       /* lea 16(%rsp), %rbp */
	{ "\x48\x94", 2, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT },       /* xchg %rax, %rsp */
	{ "\x48\x39\xe5", 3, DISASM_SP_MOVED, 0, DISASM_FP_KEPT },     /* cmp %rsp, %rbp */
	{ "\x48\x0f\xa3\xc5", 4, DISASM_SP_MOVED, 0, DISASM_FP_KEPT }, /* bt %rax, %rbp */
	{ "\x31\xed", 2, DISASM_SP_MOVED, 0, DISASM_FP_UNKNOWN },      /* xor %ebp, %ebp */
	{ "\xe8\0\0\0\0", 5, DISASM_SP_MOVED, 0, DISASM_FP_KEPT },     /* call */
	{ "\xff\xd5", 2, DISASM_SP_MOVED, 0, DISASM_FP_KEPT },	       /* call *%rbp */
};

static void test_frames(void **state)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const struct expected_frame *expected = &frames[i];
		struct disasm_insn insn;

		assert_int_equal(disasm__decode(expected->bytes, expected->length, VADDR, &insn),
				 0);
		if (insn.length != expected->length || insn.sp != expected->sp ||
		    insn.sp_offset != expected->sp_offset || insn.fp != expected->fp)
			fail_msg("entry %zu: expected sp %d %+lld fp %d, got sp %d %+lld fp %d", i,
				 expected->sp, expected->sp_offset, expected->fp, insn.sp,
				 insn.sp_offset, insn.fp);
	}
}

/* Processors refuse them, too. */
static void test_invalid(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} invalid[] = {
		{ "\x06", 1 },	       /* push %es, before x86-64 */
		{ "\xf0\x90", 2 },     /* lock nop */
		{ "\xf0\x74\x05", 3 }, /* lock je */
		{ "\x8e\xf4", 2 },     /* mov to a segment that is not there */
		{ "\x0f\x04", 2 },     /* no instruction */
		{ "\x48", 1 },	       /* a prefix alone */
		{ "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", 16 },
		{ "\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e\x2e", 15 },
	};
	struct disasm_insn insn = { .length = 77 };

	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		if (disasm__decode(invalid[i].bytes, invalid[i].size, VADDR, &insn) != -EILSEQ)
			fail_msg("entry %zu is taken for valid", i);
	assert_int_equal(insn.length, 77);
}

static void test_text_truncated(void **state)
{
	struct disasm_insn insn = { 0 };
	char text[6] = "******";

	disasm_insn__text(&insn, text, 4); /* it has no code */
	assert_memory_equal(text, "(ba\0**", 6);
	assert_int_equal(disasm__decode("\x48\x89\xe5", 3, VADDR, &insn), 0);
	disasm_insn__text(&insn, text, 5);
	assert_memory_equal(text, "mov \0*", 6);
}

static void test_cut_short(void **state)
{
	static const char call[] = "\xe8\x01\x02\x03\x04";
	struct disasm_insn insn = { .length = 77 };

	for (size_t size = 0; size < 5; size++)
		assert_int_equal(disasm__decode(call, size, VADDR, &insn), -EILSEQ);
	assert_int_equal(insn.length, 77);
	assert_int_equal(disasm__decode(call, 5, VADDR, &insn), 0);
	assert_int_equal(disasm__decode(call, 5, UINT64_MAX - 2, &insn), -EILSEQ);
}

/* Whatever the bytes are, lengths stay inside, and no byte behind them is read. */
static void test_noise(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t seed = 1;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	for (int i = 0; i < 200000; i++) {
		size_t size = 1 + i % 16;
		unsigned char *code = pages + page - size;
		struct disasm_insn insn;
		char text[24];

		for (size_t j = 0; j < size; j++) {
			seed = seed * 1664525 + 1013904223;
			code[j] = seed >> 24;
		}
		if (disasm__decode(code, size, VADDR, &insn) == 0) {
			assert_in_range(insn.length, 1, size);
			disasm_insn__text(&insn, text, sizeof(text));
			assert_true(memchr(text, '\0', sizeof(text)));
		}
	}
	munmap(pages, 2 * page);
}

struct found {
	int n;
	struct disasm_branch last;
};

static void count(const struct disasm_branch *branch, void *arg)
{
	struct found *found = arg;

	found->n++;
	found->last = *branch;
}

static void test_scan(void **state)
{
	struct found found = { 0 };

	disasm__scan_branches("\x90\xe8\x10\0\0\0", 6, VADDR, count, &found);
	assert_int_equal(found.n, 1);
	assert_true(found.last.is_call);
	assert_int_equal(found.last.next, VADDR + 6);
	assert_int_equal(found.last.target, VADDR + 6 + 0x10);
	disasm__scan_branches("\x0f\x84\xfa\xff\xff\xff", 6, VADDR, count, &found);
	assert_int_equal(found.n, 2);
	assert_false(found.last.is_call);
	assert_int_equal(found.last.target, VADDR);
	disasm__scan_branches("\x0f\x84\xfa\xff\xff", 5, VADDR, count, &found);
	disasm__scan_branches("\xe9\0\0\0", 4, VADDR, count, &found);
	assert_int_equal(found.n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	       cmocka_unit_test(test_registers),
		cmocka_unit_test(test_slot),	       cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_noise),	       cmocka_unit_test(test_scan),
		cmocka_unit_test(test_frames),	       cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_text_truncated), cmocka_unit_test(test_stubs),
		cmocka_unit_test(test_calls_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
