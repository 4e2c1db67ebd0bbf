// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "cfi.h"
#include "cfi_frames.h"
#include "cleanup.h"
#include "error.h"

struct fixture {
	struct cfi_table *table;
	struct cfi_frames *frames;
	void *library;
	__u64 base;
};

static int set_up(void **state)
{
	static struct fixture fixture;
	struct error error = { "" };
	char path[4096];
	Dl_info info;
	int fd;

	snprintf(path, sizeof(path), "%s/unit_frames.so", getenv("ALLOCPROF_UNIT_DATA") ?: ".");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	fixture.library = dlopen(path, RTLD_NOW);
	if (fd < 0 || !fixture.library || !dladdr(dlsym(fixture.library, "signs"), &info) ||
	    cfi_table__build(fd, path, &fixture.table, &error))
		fail_msg("%s cannot be read: %s", path, error.text);
	assert_int_equal(cfi_frames__open(fd, &fixture.frames), 0);
	close(fd);
	fixture.base = (__u64)info.dli_fbase;
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	cfi_table__free(fixture->table);
	cfi_frames__free(fixture->frames);
	return dlclose(fixture->library);
}

static void check(const struct fixture *fixture, const char *function, int offset,
		  struct unwind_rule expected)
{
	__u64 vaddr = (__u64)dlsym(fixture->library, function) - fixture->base;
	struct unwind_rule rule = { 0 };

	cfi_table__lookup(fixture->table, vaddr + (__u64)offset, &rule);
	if (memcmp(&rule, &expected, sizeof(rule)) != 0)
		fail_msg("%s+%d: cfa %u %d, fp %u %d, ra %u %d, flags %u", function, offset,
			 rule.cfa, rule.cfa_offset, rule.fp_where, rule.fp_offset, rule.ra_where,
			 rule.ra_offset, rule.flags);
}

/* Signing return addresses changes no rule; the return address is in its register until it is stored. */
static void test_signed(void **state)
{
	static const struct unwind_rule at_entry = { .cfa = UNWIND_CFA_SP },
					stored = { .cfa = UNWIND_CFA_SP,
						   .cfa_offset = 32,
						   .fp_where = UNWIND_AT_CFA,
						   .fp_offset = -32,
						   .ra_where = UNWIND_AT_CFA,
						   .ra_offset = -24 };
	struct unwind_rule by_fp = stored;

	by_fp.cfa = UNWIND_CFA_FP;
	check(*state, "signs", 0, at_entry);
	check(*state, "signs", 4, at_entry);
	check(*state, "signs", 8, stored);
	check(*state, "signs", 12, by_fp);
	check(*state, "signs", 20, at_entry);
	check(*state, "signs", 24, at_entry);
}

/* The unwinder of snapshots finds the return address in memory, at an offset from the CFA, or still in its register. */
#define IN_REGISTER 0

static void check_complete(const struct fixture *fixture, const char *function, int offset,
			   int cfa_register, int cfa_offset, int ra_offset)
{
	__u64 vaddr = (__u64)dlsym(fixture->library, function) - fixture->base;
	const struct frame_rule *ra;
	struct frame_rules rules;

	assert_true(cfi_frames__find(fixture->frames, vaddr + (__u64)offset, &rules));
	ra = &rules.registers[dwarf_registers.return_address];
	if (rules.cfa.how != FRAME_REGISTER || rules.cfa.value != cfa_register ||
	    rules.cfa.offset != cfa_offset || ra->value != ra_offset ||
	    ra->how != (ra_offset == IN_REGISTER ? FRAME_UNSPECIFIED : FRAME_AT_CFA))
		fail_msg(
			"%s+%d: cfa of register %lld %lld, ra %u %lld; expected register %d %d, ra %d",
			function, offset, rules.cfa.value, rules.cfa.offset, ra->how, ra->value,
			cfa_register, cfa_offset, ra_offset);
}

/* The instruction that says that the return address is signed has no operand, and the next one is read as such. */
static void test_signed_complete(void **state)
{
	const int sp = (int)dwarf_registers.sp, fp = 29;

	check_complete(*state, "signs", 0, sp, 0, IN_REGISTER);
	check_complete(*state, "signs", 4, sp, 0, IN_REGISTER);
	check_complete(*state, "signs", 8, sp, 32, -24);
	check_complete(*state, "signs", 12, fp, 32, -24);
	check_complete(*state, "signs", 16, fp, 32, -24);
	check_complete(*state, "signs", 20, sp, 0, IN_REGISTER);
	check_complete(*state, "signs", 24, sp, 0, IN_REGISTER);
}

/* The return address at the far end of a frame is counted from where the CFA is counted from. */
static void test_large(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SP,
				    .cfa_offset = 40976,
				    .fp_where = UNWIND_AT_CFA,
				    .fp_offset = -40976,
				    .ra_where = UNWIND_AT_SP,
				    .ra_offset = 8 };

	check(*state, "large", 8, rule);
	rule.cfa = UNWIND_CFA_FP;
	rule.ra_where = UNWIND_AT_FP;
	check(*state, "large", 12, rule);
}

static void test_outermost(void **state)
{
	check(*state, "begins", 0,
	      (struct unwind_rule){ .cfa = UNWIND_CFA_SP, .ra_where = UNWIND_UNDEFINED });
}

/* A handler returns to the code that ends its signal: the frame there is the kernel's. The byte before it is looked
 * up, like that of a call. */
static void test_signal(void **state)
{
	/* struct rt_sigframe of arch/arm64/kernel/signal.c */
	const int context = 128 + (int)offsetof(ucontext_t, uc_mcontext);
	const struct unwind_rule rule = {
		.cfa = UNWIND_CFA_AT_SP,
		.cfa_offset = context + (int)offsetof(mcontext_t, sp),
		.fp_where = UNWIND_AT_SP,
		.fp_offset = context + (int)offsetof(mcontext_t, regs[29]),
		.ra_where = UNWIND_AT_SP,
		.ra_offset = (__s16)(context + (int)offsetof(mcontext_t, pc)),
		.flags = UNWIND_SIGNAL_FRAME | UNWIND_OF_CODE,
	};

	assert_int_equal(rule.cfa_offset, 560);
	check(*state, "returns", -1, rule);
	check(*state, "returns", 0, rule);
	check(*state, "returns", 4, rule);
	check(*state, "bare", 0, (struct unwind_rule){ 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signed), cmocka_unit_test(test_signed_complete),
		cmocka_unit_test(test_large),  cmocka_unit_test(test_outermost),
		cmocka_unit_test(test_signal),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
