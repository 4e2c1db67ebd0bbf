// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "usdt_definition.h"

/* Words of the kernel's struct pt_regs. */
enum {
	R15,
	R14,
	R13,
	R12,
	RBP,
	RBX,
	R11,
	R10,
	R9,
	R8,
	RAX,
	RCX,
	RDX,
	RSI,
	RDI,
	RSP = 19
};

#define AT(reg) ((__u16)((reg) * sizeof(__u64)))

static struct ap_operand parsed(const char *arguments, unsigned int number)
{
	struct ap_operand operand;

	if (usdt_operand__parse(arguments, number, &operand))
		fail_msg("'%s' has an argument %u", arguments, number);
	return operand;
}

static void check(const char *arguments, struct ap_operand expected)
{
	struct ap_operand operand = parsed(arguments, 0);

	if (memcmp(&operand, &expected, sizeof(operand)) != 0)
		fail_msg("'%s' is kind %d, base %d, index %d << %d, value %lld, %s%d bytes%s",
			 arguments, operand.kind, operand.base, operand.index, operand.shift,
			 (long long)operand.value, operand.is_signed ? "signed " : "",
			 operand.bytes, operand.is_second ? ", second" : "");
}

static void test_constants(void **state)
{
	const struct ap_operand none = { .kind = AP_OPERAND_CONSTANT,
					 .base = AP_NO_REGISTER,
					 .index = AP_NO_REGISTER };
	struct ap_operand expected = none;

	expected.value = 1000;
	expected.bytes = 8;
	check("8@$1000", expected);
	check("$1000", expected);
	expected.value = -5;
	expected.bytes = 4;
	expected.is_signed = 1;
	check("-4@$-5", expected);
	expected.value = 0x10;
	check("-4@$0x10", expected);
}

static void test_registers(void **state)
{
	static const struct {
		const char *name;
		int word, bytes;
	} cases[] = {
		{ "rax", RAX, 8 },  { "eax", RAX, 4 }, { "ax", RAX, 2 },  { "al", RAX, 1 },
		{ "rdi", RDI, 8 },  { "edi", RDI, 4 }, { "dil", RDI, 1 }, { "rsi", RSI, 8 },
		{ "rdx", RDX, 8 },  { "rcx", RCX, 8 }, { "rbx", RBX, 8 }, { "rbp", RBP, 8 },
		{ "rsp", RSP, 8 },  { "r8", R8, 8 },   { "r9d", R9, 4 },  { "r10w", R10, 2 },
		{ "r11b", R11, 1 }, { "r12", R12, 8 }, { "r13", R13, 8 }, { "r14d", R14, 4 },
		{ "r15", R15, 8 },
	};
	char text[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ap_operand expected = {
			.kind = AP_OPERAND_REGISTER,
			.base = AT(cases[i].word),
			.index = AP_NO_REGISTER,
			.bytes = cases[i].bytes,
		};

		snprintf(text, sizeof(text), "%d@%%%s", cases[i].bytes, cases[i].name);
		check(text, expected);
		if (cases[i].word != RAX)
			continue;
		expected.is_second = 1;
		expected.bytes = 1;
		check("1@%ah", expected);
	}
}

static void test_memory(void **state)
{
	struct ap_operand expected = {
		.kind = AP_OPERAND_MEMORY, .base = AT(RBP), .index = AP_NO_REGISTER, .bytes = 8
	};

	check("8@(%rbp)", expected);
	expected.value = -16;
	check("8@-16(%rbp)", expected);
	expected.index = AT(RAX);
	check("8@-16(%rbp,%rax)", expected);
	check("8@-16(%rbp,%rax,1)", expected);
	expected.shift = 3;
	check("8@-16(%rbp,%rax,8)", expected);
	expected.base = AP_NO_REGISTER;
	expected.value = 64;
	expected.bytes = 4;
	expected.is_signed = 1;
	check("-4@64(,%rax,8)", expected);
}

static void test_numbers(void **state)
{
	const char *arguments = "8@%rdi  -4@$1 8@-16(%rbp)";

	assert_int_equal(parsed(arguments, 0).kind, AP_OPERAND_REGISTER);
	assert_int_equal(parsed(arguments, 1).kind, AP_OPERAND_CONSTANT);
	assert_int_equal(parsed(arguments, 2).kind, AP_OPERAND_MEMORY);
}

static void test_refused(void **state)
{
	static const struct {
		const char *arguments;
		int err;
	} cases[] = {
		{ "", -ENOENT },
		{ "  ", -ENOENT },
		{ "8f@%xmm0", -ENOTSUP },
		{ "8@%xmm0", -ENOTSUP },
		{ "16@%rax", -ENOTSUP },
		{ "8@counter(%rip)", -ENOTSUP },
		{ "8@16(%rip)", -ENOTSUP },
		{ "8@%fs:16", -ENOTSUP },
		{ "8@1234", -ENOTSUP },
		{ "8@$counter", -ENOTSUP },
		{ "8@$99999999999999999999999", -ENOTSUP },
		{ "8@%rax)", -ENOTSUP },
		{ "8@", -ENOTSUP },
		{ "@%rax", -EINVAL },
		{ "8x@%rax", -EINVAL },
		{ "8@(%rax", -EINVAL },
		{ "8@(%rax,)", -EINVAL },
		{ "8@(%rax,%rbx,3)", -EINVAL },
		{ "8@(%rax,%rbx,0)", -EINVAL },
		{ "8@(%rax,%rbx,16)", -EINVAL },
	};
	struct ap_operand operand = { .value = 77 };
	char text[400];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (usdt_operand__parse(cases[i].arguments, 0, &operand) != cases[i].err)
			fail_msg("'%s' is not refused by %d", cases[i].arguments, cases[i].err);
	memset(text, '1', sizeof(text) - 1);
	memcpy(text, "8@$", 3);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(usdt_operand__parse(text, 0, &operand), -EINVAL);
	assert_int_equal(usdt_operand__parse("8@%rax", 1, &operand), -ENOENT);
	assert_int_equal(operand.value, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants), cmocka_unit_test(test_registers),
		cmocka_unit_test(test_memory),	  cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
