// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "disasm.h"

#define VADDR 0x10000

#define ARG	DISASM_WRITES_ARGUMENT
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
	{ "\x66\x90", 2, DISASM_NOP, 0, true, 0, "xchg %ax,%ax" },
	/* The kernel takes pause for a nop, and xchg %r8,%rax too; nothing is built on that. */
	{ "\xf3\x90", 2, DISASM_OTHER, UNKNOWN, false, 0, "pause" },
	{ "\x49\x90", 2, DISASM_OTHER, UNKNOWN, false, 0, "xchg %rax,%r8" },
	{ "\x0f\x1f\x00", 3, DISASM_NOP, 0, false, 0, "nopl (%rax)" },
	{ "\x66\x2e\x0f\x1f\x84\0\0\0\0\0", 10, DISASM_NOP, 0, false, 0, NULL },
	{ "\xf3\x0f\x1e\xfa", 4, DISASM_OTHER, 0, false, 0, "endbr64" },

	{ "\x55", 1, DISASM_PUSH, MEMORY | SP, true, 0, "push %rbp" },
	{ "\x41\x54", 2, DISASM_PUSH, MEMORY | SP, true, 0, "push %r12" },
	{ "\x48\x55", 2, DISASM_PUSH, MEMORY | SP, false, 0, NULL },
	{ "\x66\x55", 2, DISASM_PUSH, MEMORY | SP, false, 0, "push %bp" },
	{ "\xff\xf0", 2, DISASM_PUSH, MEMORY | SP, false, 0, NULL },
	{ "\x6a\x01", 2, DISASM_OTHER, UNKNOWN, false, 0, "push $0x1" },
	{ "\x5f", 1, DISASM_OTHER, ARG | SP, false, 0, "pop %rdi" },
	{ "\x5b", 1, DISASM_OTHER, SP, false, 0, "pop %rbx" },

	{ "\xeb\x10", 2, DISASM_JUMP, 0, true, 0x12, "jmp 0x10012" },
	{ "\xeb\xf0", 2, DISASM_JUMP, 0, true, -0xeULL, "jmp 0xfff2" },
	{ "\xe9\x00\x01\x00\x00", 5, DISASM_JUMP, 0, true, 0x105, "jmp 0x10105" },
	{ "\xf2\xe9\x00\x01\x00\x00", 6, DISASM_JUMP, 0, true, 0x106, NULL },
	{ "\x74\x05", 2, DISASM_JUMP_CONDITIONAL, 0, true, 7, "je 0x10007" },
	{ "\x0f\x8f\x00\x01\x00\x00", 6, DISASM_JUMP_CONDITIONAL, 0, true, 0x106, "jg 0x10106" },
	{ "\x66\x74\x05", 3, DISASM_JUMP_CONDITIONAL, 0, false, 8, NULL },
	{ "\x3e\x74\x05", 3, DISASM_JUMP_CONDITIONAL, 0, false, 8, NULL },
	{ "\xe2\x05", 2, DISASM_JUMP_CONDITIONAL, ARG, false, 7, "loop 0x10007" },
	{ "\xe3\x05", 2, DISASM_JUMP_CONDITIONAL, 0, false, 7, "jrcxz 0x10007" },
	{ "\xe8\xfb\xff\xff\xff", 5, DISASM_CALL, UNKNOWN, true, 0, "call 0x10000" },
	/* As before __tls_get_addr. */
	{ "\x66\x66\x48\xe8\x10\0\0\0", 8, DISASM_CALL, UNKNOWN, false, 0x18, NULL },
	{ "\xff\xd0", 2, DISASM_CALL_INDIRECT, UNKNOWN, false, 0, "call *%rax" },
	{ "\xff\x15\x10\0\0\0", 6, DISASM_CALL_INDIRECT, UNKNOWN, false, 0, NULL },
	{ "\xff\xe0", 2, DISASM_JUMP_INDIRECT, 0, false, 0, "jmp *%rax" },
	{ "\x3e\xff\xe0", 3, DISASM_JUMP_INDIRECT, 0, false, 0, "notrack jmp *%rax" },
	{ "\xc3", 1, DISASM_RET, SP, false, 0, "ret" },
	{ "\xf3\xc3", 2, DISASM_RET, SP, false, 0, NULL },
	{ "\xc2\x08\x00", 3, DISASM_RET, SP, false, 0, "ret $0x8" },
	{ "\x0f\x0b", 2, DISASM_TRAP, UNKNOWN, false, 0, "ud2" },
	{ "\xf4", 1, DISASM_TRAP, UNKNOWN, false, 0, "hlt" },
	{ "\xcc", 1, DISASM_TRAP, UNKNOWN, false, 0, "int3" },

	{ "\x48\x85\xff", 3, DISASM_OTHER, 0, false, 0, "test %rdi,%rdi" },
	{ "\x80\x3d\x46\x1b\x14\x00\x00", 7, DISASM_OTHER, 0, false, 0,
	  "cmpb $0x0,0x141b46(%rip)" },
	{ "\x64\x48\x8b\x04\x25\x28\0\0\0", 9, DISASM_OTHER, 0, false, 0, "mov %fs:0x28,%rax" },
	{ "\x48\x89\xf8", 3, DISASM_OTHER, 0, false, 0, "mov %rdi,%rax" },
	{ "\x48\x8b\x47\xf8", 4, DISASM_OTHER, 0, false, 0, "mov -0x8(%rdi),%rax" },
	{ "\x4c\x8d\x14\x37", 4, DISASM_OTHER, 0, false, 0, "lea (%rdi,%rsi,1),%r10" },
	{ "\x0f\xb6\xc0", 3, DISASM_OTHER, 0, false, 0, "movzbl %al,%eax" },
	{ "\x31\xed", 2, DISASM_OTHER, 0, false, 0, "xor %ebp,%ebp" },
	{ "\x0f\x90\xc0", 3, DISASM_OTHER, 0, false, 0, "seto %al" },
	{ "\x48\x0f\x44\xc7", 4, DISASM_OTHER, 0, false, 0, "cmove %rdi,%rax" },
	{ "\x48\x0f\xaf\xc7", 4, DISASM_OTHER, 0, false, 0, "imul %rdi,%rax" },
	{ "\x48\x98", 2, DISASM_OTHER, 0, false, 0, "cltq" },

	{ "\x48\x89\xf7", 3, DISASM_OTHER, ARG, false, 0, "mov %rsi,%rdi" },
	{ "\x31\xd2", 2, DISASM_OTHER, ARG, false, 0, "xor %edx,%edx" },
	{ "\x41\xb0\x01", 3, DISASM_OTHER, ARG, false, 0, "mov $0x1,%r8b" },
	{ "\xb5\x01", 2, DISASM_OTHER, ARG, false, 0, "mov $0x1,%ch" },
	{ "\x48\xf7\xe2", 3, DISASM_OTHER, ARG, false, 0, "mul %rdx" },
	{ "\x48\xf7\xeb", 3, DISASM_OTHER, ARG, false, 0, "imul %rbx" },
	{ "\x48\x99", 2, DISASM_OTHER, ARG, false, 0, "cqto" },
	{ "\x48\x83\xec\x08", 4, DISASM_OTHER, SP, false, 0, "sub $0x8,%rsp" },
	{ "\x48\x89\x7e\x08", 4, DISASM_OTHER, MEMORY, false, 0, "mov %rdi,0x8(%rsi)" },
	{ "\xc7\x05\x10\0\0\0\0\0\0\0", 10, DISASM_OTHER, MEMORY, false, 0, NULL },
	{ "\x64\x89\x04\x25\x28\0\0\0", 8, DISASM_OTHER, UNKNOWN, false, 0, "mov %eax,%fs:0x28" },
	{ "\x48\xa5", 2, DISASM_OTHER, UNKNOWN, false, 0, NULL },
	{ "\xf3\x48\xa5", 3, DISASM_OTHER, UNKNOWN, false, 0, NULL },
	{ "\x48\x87\xd8", 3, DISASM_OTHER, UNKNOWN, false, 0, NULL },
	{ "\xf0\x48\x0f\xc1\x07", 5, DISASM_OTHER, UNKNOWN, false, 0, NULL },
	{ "\x0f\x05", 2, DISASM_OTHER, UNKNOWN, false, 0, "syscall" },
	{ "\x66\x48\x0f\x6e\xc7", 5, DISASM_OTHER, UNKNOWN, false, 0, "movq %rdi,%xmm0" },
	{ "\x0f\xa2", 2, DISASM_OTHER, UNKNOWN, false, 0, "cpuid" },
};

static void test_table(void **state)
{
	struct disasm *disasm;

	assert_int_equal(disasm__new(&disasm), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct expected *expected = &table[i];
		unsigned char code[32] = { 0 };
		struct disasm_insn insn;
		int err;

		memcpy(code, expected->bytes, expected->length);
		err = disasm__decode(disasm, code, sizeof(code), VADDR, &insn);
		if (err || insn.length != expected->length || insn.class != expected->class ||
		    insn.effects != expected->effects || insn.emulated != expected->emulated ||
		    (expected->target && insn.target != VADDR + expected->target) ||
		    (expected->text && strcmp(insn.text, expected->text) != 0))
			fail_msg(
				"entry %zu (%s): expected length %u class %d effects %x emulated %d, "
				"got %d, `%s` %u %d %x %d target %llx",
				i, expected->text ? expected->text : "", expected->length,
				expected->class, expected->effects, expected->emulated, err,
				insn.text, insn.length, insn.class, insn.effects, insn.emulated,
				(unsigned long long)insn.target);
	}
	disasm__free(disasm);
}

static void test_slot(void **state)
{
	struct disasm_insn insn;
	struct disasm *disasm;

	assert_int_equal(disasm__new(&disasm), 0);
	assert_int_equal(disasm__decode(disasm, "\xff\x25\x10\0\0\0", 6, VADDR, &insn), 0);
	assert_int_equal(insn.class, DISASM_JUMP_INDIRECT);
	assert_true(insn.has_slot);
	assert_int_equal(insn.slot, VADDR + 6 + 0x10);
	assert_int_equal(disasm__decode(disasm, "\xf2\xff\x25\xf0\xff\xff\xff", 7, VADDR, &insn),
			 0);
	assert_true(insn.has_slot);
	assert_int_equal(insn.slot, VADDR + 7 - 0x10);
	assert_int_equal(disasm__decode(disasm, "\xff\x60\x10", 3, VADDR, &insn), 0);
	assert_int_equal(insn.class, DISASM_JUMP_INDIRECT);
	assert_false(insn.has_slot);
	disasm__free(disasm);
}

static void test_cut_short(void **state)
{
	static const char call[] = "\xe8\x01\x02\x03\x04";
	struct disasm_insn insn = { .length = 77 };
	struct disasm *disasm;

	assert_int_equal(disasm__new(&disasm), 0);
	for (size_t size = 0; size < 5; size++)
		assert_int_equal(disasm__decode(disasm, call, size, VADDR, &insn), -EILSEQ);
	assert_int_equal(insn.length, 77);
	assert_int_equal(disasm__decode(disasm, call, 5, VADDR, &insn), 0);
	assert_int_equal(disasm__decode(disasm, "\x06", 1, VADDR, &insn), -EILSEQ);
	assert_int_equal(disasm__decode(disasm, call, 5, UINT64_MAX - 2, &insn), -EILSEQ);
	disasm__free(disasm);
}

/* Whatever the bytes are, nothing outside of them is read (ASan) and lengths stay inside. */
static void test_noise(void **state)
{
	struct disasm *disasm;
	uint32_t seed = 1;

	assert_int_equal(disasm__new(&disasm), 0);
	for (int i = 0; i < 200000; i++) {
		unsigned char code[16];
		struct disasm_insn insn;
		size_t size = 1 + i % sizeof(code);
		unsigned char *exact;

		for (size_t j = 0; j < sizeof(code); j++) {
			seed = seed * 1664525 + 1013904223;
			code[j] = seed >> 24;
		}
		exact = test_malloc(size);
		memcpy(exact, code, size);
		if (disasm__decode(disasm, exact, size, VADDR, &insn) == 0) {
			assert_in_range(insn.length, 1, size);
			assert_true(memchr(insn.text, '\0', sizeof(insn.text)));
		}
		test_free(exact);
	}
	disasm__free(disasm);
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

	disasm_arch__scan_branches("\x90\xe8\x10\0\0\0", 6, VADDR, count, &found);
	assert_int_equal(found.n, 1);
	assert_true(found.last.is_call);
	assert_int_equal(found.last.next, VADDR + 6);
	assert_int_equal(found.last.target, VADDR + 6 + 0x10);
	disasm_arch__scan_branches("\x0f\x84\xfa\xff\xff\xff", 6, VADDR, count, &found);
	assert_int_equal(found.n, 2);
	assert_false(found.last.is_call);
	assert_int_equal(found.last.target, VADDR);
	disasm_arch__scan_branches("\x0f\x84\xfa\xff\xff", 5, VADDR, count, &found);
	disasm_arch__scan_branches("\xe9\0\0\0", 4, VADDR, count, &found);
	assert_int_equal(found.n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	  cmocka_unit_test(test_slot),
		cmocka_unit_test(test_cut_short), cmocka_unit_test(test_noise),
		cmocka_unit_test(test_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
