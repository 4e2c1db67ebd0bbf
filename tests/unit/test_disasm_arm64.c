// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "disasm.h"

#define VADDR 0x100000

#define MEMORY	DISASM_WRITES_MEMORY
#define SP	DISASM_WRITES_SP
#define UNKNOWN DISASM_UNKNOWN_EFFECT

/* What the kernel does at a probe. */
#define STEPS	  0
#define SIMULATES 1
#define REFUSES	  2

#define ALL  0x7fffffffU
#define R(n) (1U << (n))

struct expected {
	__u32 word;
	enum disasm_class class;
	unsigned int effects;
	unsigned int written;
	int probing;
	__s64 distance; /* of the target from VADDR, 0: none */
	const char *text;
};

static const struct expected table[] = {
	{ 0xd503201f, DISASM_NOP, 0, 0, STEPS, 0, "nop" },
	{ 0xd503203f, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, "yield" },
	{ 0xd503251f, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, "hint #40" },
	{ 0xd503245f, DISASM_OTHER, 0, 0, STEPS, 0, "bti c" },
	/* They change x30, which has the return address. */
	{ 0xd503233f, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, "paciasp" },
	{ 0xd503237f, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, "pacibsp" },
	{ 0xd50323bf, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, "autiasp" },
	{ 0xd50320ff, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, "xpaclri" },
	{ 0xd503211f, DISASM_OTHER, 0, R(17), STEPS, 0, NULL },

	{ 0x14000004, DISASM_JUMP, 0, 0, SIMULATES, 0x10, "b 0x100010" },
	{ 0x17fffffe, DISASM_JUMP, 0, 0, SIMULATES, -8, "b 0xffff8" },
	{ 0x94000040, DISASM_CALL, UNKNOWN, ALL, SIMULATES, 0x100, "bl 0x100100" },
	{ 0x540000a1, DISASM_JUMP_CONDITIONAL, 0, 0, SIMULATES, 20, "b.ne 0x100014" },
	{ 0xb40000c0, DISASM_JUMP_CONDITIONAL, 0, 0, SIMULATES, 24, "cbz x0, 0x100018" },
	{ 0x35ffffe3, DISASM_JUMP_CONDITIONAL, 0, 0, SIMULATES, -4, "cbnz w3, 0xffffc" },
	{ 0x36180061, DISASM_JUMP_CONDITIONAL, 0, 0, SIMULATES, 12, "tbz w1, #3, 0x10000c" },
	{ 0xb7400062, DISASM_JUMP_CONDITIONAL, 0, 0, SIMULATES, 12, "tbnz x2, #40, 0x10000c" },
	{ 0xd61f0220, DISASM_JUMP_INDIRECT, 0, 0, SIMULATES, 0, "br x17" },
	{ 0xd63f0100, DISASM_CALL_INDIRECT, UNKNOWN, ALL, SIMULATES, 0, "blr x8" },
	{ 0xd65f03c0, DISASM_RET, 0, 0, SIMULATES, 0, "ret" },
	{ 0xd65f0120, DISASM_RET, 0, 0, SIMULATES, 0, "ret x9" },
	{ 0xd65f0bff, DISASM_RET, UNKNOWN, ALL, REFUSES, 0, "retaa" },
	{ 0xd65f0fff, DISASM_RET, UNKNOWN, ALL, REFUSES, 0, "retab" },
	{ 0xd71f0822, DISASM_JUMP_INDIRECT, UNKNOWN, ALL, REFUSES, 0, NULL },
	{ 0xd63f087f, DISASM_CALL_INDIRECT, UNKNOWN, ALL, REFUSES, 0, NULL },
	{ 0xd69f03e0, DISASM_RET, UNKNOWN, ALL, REFUSES, 0, NULL },
	{ 0xd4000001, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* svc #0 */
	{ 0xd4200020, DISASM_TRAP, UNKNOWN, ALL, REFUSES, 0, NULL },  /* brk #1 */
	{ 0xd4400020, DISASM_TRAP, UNKNOWN, ALL, REFUSES, 0, NULL },  /* hlt #1 */
	{ 0x00000001, DISASM_TRAP, UNKNOWN, ALL, STEPS, 0, NULL },    /* udf #1 */

	{ 0x100000a0, DISASM_OTHER, 0, R(0), SIMULATES, 0, "adr x0, 0x100014" },
	{ 0xb0000010, DISASM_OTHER, 0, R(16), SIMULATES, 0, "adrp x16, 0x101000" },
	{ 0x910003fd, DISASM_OTHER, 0, R(29), STEPS, 0, "add x29, sp, #0" },
	{ 0x910003bf, DISASM_OTHER, SP, 0, STEPS, 0, "add sp, x29, #0" },
	{ 0xd100c3ff, DISASM_OTHER, SP, 0, STEPS, 0, "sub sp, sp, #48" },
	{ 0xd14007ff, DISASM_OTHER, SP, 0, STEPS, 0, "sub sp, sp, #4096" },
	{ 0xd10043bf, DISASM_OTHER, SP, 0, STEPS, 0, "sub sp, x29, #16" },
	{ 0x910023e0, DISASM_OTHER, 0, R(0), STEPS, 0, "add x0, sp, #8" },
	{ 0xb1002020, DISASM_OTHER, 0, R(0), STEPS, 0, NULL }, /* adds x0, x1, #8 */
	{ 0xf100201f, DISASM_OTHER, 0, 0, STEPS, 0, NULL },    /* cmp x0, #8 */
	{ 0xaa0003f3, DISASM_OTHER, 0, R(19), STEPS, 0, "mov x19, x0" },
	{ 0x2a0003f3, DISASM_OTHER, 0, R(19), STEPS, 0, NULL },	    /* mov w19, w0 */
	{ 0xd28000a0, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	    /* mov x0, #5 */
	{ 0xf2a000e0, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	    /* movk x0, #7, lsl #16 */
	{ 0x8b020020, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	    /* add x0, x1, x2 */
	{ 0xcb2163ff, DISASM_OTHER, SP, 0, STEPS, 0, NULL },	    /* sub sp, sp, x1 */
	{ 0x927ced3f, DISASM_OTHER, SP, 0, STEPS, 0, NULL },	    /* and sp, x9, #-16 */
	{ 0xfa410800, DISASM_OTHER, 0, 0, STEPS, 0, NULL },	    /* ccmp x0, #1, #0, eq */
	{ 0x9a820020, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	    /* csel x0, x1, x2, eq */
	{ 0x9a020020, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	    /* adc x0, x1, x2 */
	{ 0xd3421020, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	    /* ubfx x0, x1, #2, #3 */
	{ 0x9b027c20, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	    /* mul x0, x1, x2 */
	{ 0x9b020c3e, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL }, /* madd x30, x1, x2, x3 */
	{ 0x9e660000, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL }, /* fmov x0, d0 */

	{ 0xa9bd7bfd, DISASM_OTHER, MEMORY | SP, 0, STEPS, 0, "stp x29, x30, [sp, #-48]!" },
	{ 0xa9017bfd, DISASM_OTHER, MEMORY, 0, STEPS, 0, "stp x29, x30, [sp, #16]" },
	{ 0xf90007f3, DISASM_OTHER, MEMORY, 0, STEPS, 0, NULL },      /* str x19, [sp, #8] */
	{ 0xf81f0ffe, DISASM_OTHER, MEMORY | SP, 0, STEPS, 0, NULL }, /* str x30, [sp, #-16]! */
	{ 0xf9000020, DISASM_OTHER, MEMORY, 0, STEPS, 0, NULL },      /* str x0, [x1] */
	{ 0xa8c37bfd, DISASM_OTHER, UNKNOWN | SP, ALL, STEPS, 0, "ldp x29, x30, [sp], #48" },
	{ 0xa94153f3, DISASM_OTHER, 0, R(19) | R(20), STEPS, 0, "ldp x19, x20, [sp, #16]" },
	{ 0xf9400420, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	      /* ldr x0, [x1, #8] */
	{ 0xb8627820, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	      /* ldr w0, [x1, x2, lsl #2] */
	{ 0xb9800020, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	      /* ldrsw x0, [x1] */
	{ 0xf85f8020, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	      /* ldur x0, [x1, #-8] */
	{ 0xfd400020, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL },   /* ldr d0, [x1] */
	{ 0xf9800000, DISASM_OTHER, 0, 0, STEPS, 0, NULL },	      /* prfm pldl1keep, [x0] */
	{ 0x58000100, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* ldr x0, .+32 */
	{ 0x5c000100, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* ldr d0, .+32 */
	{ 0xd8000100, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* prfm pldl1keep, .+32 */
	{ 0xc85f7c20, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* ldxr x0, [x1] */
	{ 0xc800fc41, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* stlxr w0, x1, [x2] */
	{ 0xc8dffc20, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL },   /* ldar x0, [x1] */
	{ 0xc8a07c41, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL },   /* cas x0, x1, [x2] */
	{ 0xf8200041, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL },   /* ldadd x0, x1, [x2] */
	{ 0x4c407000, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL },   /* ld1 {v0.16b}, [x0] */
	{ 0xd53bd040, DISASM_OTHER, 0, R(0), STEPS, 0, NULL },	      /* mrs x0, tpidr_el0 */
	{ 0xd51bd040, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* msr tpidr_el0, x0 */
	{ 0xd50342df, DISASM_OTHER, UNKNOWN, ALL, REFUSES, 0, NULL }, /* msr daifset, #2 */
	{ 0xd5033bbf, DISASM_OTHER, UNKNOWN, ALL, STEPS, 0, NULL },   /* dmb ish */
};

static struct disasm_insn decoded(const __u32 *word)
{
	struct disasm_insn insn;

	if (disasm__decode(word, sizeof(*word), VADDR, &insn))
		fail_msg("0x%08x cannot be decoded", *word);
	return insn;
}

static void test_table(void **state)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct expected *want = &table[i];
		struct disasm_insn insn = decoded(&want->word);
		int probing = insn.emulated ? SIMULATES : insn.refused ? REFUSES : STEPS;
		char text[64];

		disasm_insn__text(&insn, text, sizeof(text));
		if (insn.class != want->class || insn.effects != want->effects ||
		    insn.written != want->written || probing != want->probing || insn.length != 4)
			fail_msg("0x%08x (%s): class %d, effects %u, written 0x%x, probing %d",
				 want->word, text, insn.class, insn.effects, insn.written, probing);
		if (insn.has_target != !!want->distance ||
		    (insn.has_target && insn.target != VADDR + (__u64)want->distance))
			fail_msg("0x%08x (%s): target 0x%llx", want->word, text,
				 (unsigned long long)insn.target);
		if (strcmp(text, want->text ?: text) != 0)
			fail_msg("0x%08x: expected '%s', got '%s'", want->word, want->text, text);
	}
}

static void test_not_decoded(void **state)
{
	static const __u32 nop = 0xd503201f;
	struct disasm_insn insn;

	assert_int_equal(disasm__decode(&nop, 3, VADDR, &insn), -EILSEQ);
	assert_int_equal(disasm__decode(&nop, 4, VADDR + 2, &insn), -EILSEQ);
	assert_int_equal(disasm__decode(&nop, 4, -4ULL, &insn), -EILSEQ);
}

static void test_frames(void **state)
{
	static const struct {
		__u32 word;
		enum disasm_sp sp;
		__s64 sp_offset;
		enum disasm_fp fp;
	} cases[] = {
		{ 0xa9bd7bfd, DISASM_SP_MOVED, -48,
		  DISASM_FP_KEPT },				    /* stp x29, x30, [sp, #-48]! */
		{ 0xa9017bfd, DISASM_SP_MOVED, 0, DISASM_FP_KEPT }, /* stp x29, x30, [sp, #16] */
		{ 0xa8c37bfd, DISASM_SP_MOVED, 48,
		  DISASM_FP_UNKNOWN },				      /* ldp x29, x30, [sp], #48 */
		{ 0xd100c3ff, DISASM_SP_MOVED, -48, DISASM_FP_KEPT }, /* sub sp, sp, #48 */
		{ 0x9100c3ff, DISASM_SP_MOVED, 48, DISASM_FP_KEPT },  /* add sp, sp, #48 */
		{ 0x910003bf, DISASM_SP_FROM_FP, 0, DISASM_FP_KEPT }, /* mov sp, x29 */
		{ 0xd10043bf, DISASM_SP_FROM_FP, -16, DISASM_FP_KEPT }, /* sub sp, x29, #16 */
		{ 0x910003fd, DISASM_SP_MOVED, 0, DISASM_FP_FROM_SP },	/* mov x29, sp */
		{ 0xcb2163ff, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT },	/* sub sp, sp, x1 */
		{ 0x927ced3f, DISASM_SP_UNKNOWN, 0, DISASM_FP_KEPT },	/* and sp, x9, #-16 */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct disasm_insn insn = decoded(&cases[i].word);

		if (insn.sp != cases[i].sp || insn.sp_offset != cases[i].sp_offset ||
		    insn.fp != cases[i].fp)
			fail_msg("0x%08x: sp %d by %lld, fp %d", cases[i].word, insn.sp,
				 (long long)insn.sp_offset, insn.fp);
	}
}

/* What a probe may be set behind: not a store of x30, for a return probe changes x30 where it is hit. */
static void test_own_frame(void **state)
{
	static const __u32 saves = 0xa90153f3, links = 0xa9017bfd, vectors = 0x6d0227e8,
			   elsewhere = 0xf9000020;
	struct disasm_insn insn = decoded(&saves);

	assert_true(insn.writes_frame);
	assert_int_equal(insn.frame_offset, 16);
	assert_int_equal(insn.frame_bytes, 16);
	insn = decoded(&vectors);
	assert_true(insn.writes_frame);
	assert_int_equal(insn.frame_offset, 32);
	assert_false(decoded(&links).writes_frame);
	assert_false(decoded(&elsewhere).writes_frame);
}

static void test_copies(void **state)
{
	static const __u32 copy = 0xaa0003f3, half = 0x2a0003f3, zero = 0xaa1f03e0;
	struct disasm_insn insn = decoded(&copy);

	assert_true(insn.is_copy);
	assert_int_equal(insn.to, 19);
	assert_int_equal(insn.from, 0);
	assert_false(decoded(&half).is_copy);
	assert_false(decoded(&zero).is_copy);
	assert_int_equal(disasm__argument_register(1), 0);
	assert_int_equal(disasm__argument_register(6), 5);
	assert_int_equal(disasm__argument_register(DISASM_RESULT), 0);
}

struct found {
	__u64 next[8], target[8];
	size_t n, calls;
};

static void take_branch(const struct disasm_branch *branch, void *arg)
{
	struct found *found = arg;

	assert_true(found->n < 8);
	found->next[found->n] = branch->next;
	found->target[found->n++] = branch->target;
	found->calls += branch->is_call;
}

static void take_operand(const struct disasm_operand *operand, void *arg)
{
	struct found *found = arg;

	assert_true(found->n < 8);
	found->next[found->n] = operand->next;
	found->target[found->n++] = operand->target;
}

static void test_scans(void **state)
{
	static const __u32 code[] = {
		0x94000040,		/* bl .+0x100 */
		0xd503201f, 0xb40000c0, /* cbz x0, .+24 */
		0xb0000010,		/* adrp x16, a page further */
		0xd503201f, 0x91004210, /* add x16, x16, #16 */
		0x90000011,		/* adrp x17, this page, and nothing added */
		0x14000004,		/* b .+16 */
	};
	struct found found = { .n = 0 };

	disasm__scan_branches(code, sizeof(code), VADDR, take_branch, &found);
	assert_int_equal(found.n, 3);
	assert_int_equal(found.calls, 1);
	assert_int_equal(found.next[0], VADDR + 4);
	assert_int_equal(found.target[0], VADDR + 0x100);
	assert_int_equal(found.target[1], VADDR + 8 + 24);
	assert_int_equal(found.target[2], VADDR + 28 + 16);
	found.n = 0;
	disasm__scan_operands(code, sizeof(code), VADDR, VADDR + 0x100, VADDR + 0x2000,
			      take_operand, &found);
	assert_int_equal(found.n, 2);
	assert_int_equal(found.target[0], VADDR + 0x100);
	assert_int_equal(found.target[1], VADDR + 0x1010);
	assert_int_equal(found.next[1], VADDR + 16);
	/* Code whose first instruction is not at its begin. */
	found.n = 0;
	disasm__scan_branches((const char *)code + 2, sizeof(code) - 2, VADDR + 2, take_branch,
			      &found);
	assert_int_equal(found.n, 2);
	assert_int_equal(found.target[0], VADDR + 8 + 24);
}

static void test_stubs(void **state)
{
	static const __u32 stub[] = {
		0xd503245f, /* bti c */
		0xb0000bd0, /* adrp x16, .+0x179000 */
		0xf9400611, /* ldr x17, [x16, #8] */
		0x91002210, /* add x16, x16, #8 */
		0xd503219f, /* autia1716 */
		0xd61f0220, /* br x17 */
	};
	static const __u32 others[][4] = {
		{ 0xb0000bd0, 0xf9400611, 0x91002210, 0xd61f0200 }, /* br x16 */
		{ 0xb0000bd0, 0xf9400611, 0x91002210, 0xd63f0220 }, /* blr x17 */
		{ 0xb0000bd0, 0xf9400631, 0x91002210, 0xd61f0220 }, /* of another register */
		{ 0xb0000bd0, 0x91002210, 0xd61f0200, 0xd61f0220 },
		{ 0xb0000bd0, 0xf9400611, 0xf9000611, 0xd61f0220 }, /* str */
	};
	__u64 slot = 0, page = (VADDR & ~4095ULL) + 0x179000;

	assert_true(disasm__stub_slot(stub, sizeof(stub), VADDR, &slot));
	assert_int_equal(slot, page + 8);
	assert_false(disasm__stub_slot(stub, sizeof(stub) - 4, VADDR, &slot));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (disasm__stub_slot(others[i], sizeof(others[i]), VADDR, &slot))
			fail_msg("code %zu was taken for a stub", i);
}

static void test_calls_before(void **state)
{
	static const __u32 calls[] = { 0x94000010, 0xd63f0220, 0xd63f0a3f };  /* bl, blr, blraa */
	static const __u32 others[] = { 0x14000010, 0xd61f0220, 0xd503201f }; /* b, br, nop */
	unsigned char code[DISASM_CALL_BYTES] = { 0 };

	for (size_t i = 0; i < 3; i++) {
		memcpy(code + sizeof(code) - 4, &calls[i], 4);
		assert_true(disasm__ends_with_call(code));
		memcpy(code + sizeof(code) - 4, &others[i], 4);
		assert_false(disasm__ends_with_call(code));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),  cmocka_unit_test(test_not_decoded),
		cmocka_unit_test(test_frames), cmocka_unit_test(test_own_frame),
		cmocka_unit_test(test_copies), cmocka_unit_test(test_scans),
		cmocka_unit_test(test_stubs),  cmocka_unit_test(test_calls_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
