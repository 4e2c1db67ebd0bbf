// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "usdt_definition.h"

#define SP	31
#define AT(reg) ((__u16)((reg) * sizeof(__u64)))

static struct ap_operand operand_of(__u8 kind, int bytes)
{
	return (struct ap_operand){ .kind = kind,
				    .bytes = (__u8)(bytes < 0 ? -bytes : bytes),
				    .is_signed = bytes < 0,
				    .base = AP_NO_REGISTER,
				    .index = AP_NO_REGISTER };
}

static void check(const char *arguments, unsigned int number, struct ap_operand expected)
{
	struct ap_operand operand;
	int err = usdt_operand__parse(arguments, number, &operand);

	if (err)
		fail_msg("argument %u of '%s' cannot be parsed: %d", number, arguments, err);
	if (memcmp(&operand, &expected, sizeof(operand)) != 0)
		fail_msg(
			"argument %u of '%s' is kind %d, base %d, index %d << %d, value %lld, %s%d bytes",
			number, arguments, operand.kind, operand.base, operand.index, operand.shift,
			(long long)operand.value, operand.is_signed ? "signed " : "",
			operand.bytes);
}

static void test_constants(void **state)
{
	struct ap_operand expected = operand_of(AP_OPERAND_CONSTANT, 8);

	check("8@xzr", 0, expected);
	expected.value = 1000;
	check("8@1000", 0, expected);
	check("8@#1000", 0, expected);
	expected = operand_of(AP_OPERAND_CONSTANT, -4);
	expected.value = -5;
	check("-4@-5", 0, expected);
}

static void test_registers(void **state)
{
	struct ap_operand expected = operand_of(AP_OPERAND_REGISTER, 8);

	expected.base = AT(0);
	check("8@x0", 0, expected);
	expected.base = AT(30);
	check("8@x30", 0, expected);
	expected.base = AT(SP);
	check("8@sp", 0, expected);
	expected = operand_of(AP_OPERAND_REGISTER, -4);
	expected.base = AT(19);
	check("-4@w19", 0, expected);
}

static void test_memory(void **state)
{
	struct ap_operand expected = operand_of(AP_OPERAND_MEMORY, -4);

	expected.base = AT(SP);
	expected.value = 12;
	check("-4@[sp, 12]", 0, expected);
	check("8@x0 -4@[sp, 12] 8@x1", 1, expected);
	expected.base = AT(29);
	expected.value = -16;
	check("-4@[x29, -16]", 0, expected);
	expected = operand_of(AP_OPERAND_MEMORY, 8);
	expected.base = AT(1);
	check("8@[x1]", 0, expected);
	expected.index = AT(2);
	check("8@[x1, x2]", 0, expected);
	expected.shift = 3;
	check("8@[x1, x2, lsl 3]", 0, expected);
	/* What follows an argument with spaces is found. */
	expected = operand_of(AP_OPERAND_REGISTER, 8);
	expected.base = AT(1);
	check("8@x0 -4@[sp, 12] 8@x1", 2, expected);
}

static void test_others(void **state)
{
	static const struct {
		const char *arguments;
		int err;
	} cases[] = {
		{ "", -ENOENT },
		{ "8f@d0", -ENOTSUP },
		{ "8@d0", -ENOTSUP },
		{ "8@symbol", -ENOTSUP },
		{ "8@x31", -ENOTSUP },
		{ "4@[x0, w1, sxtw 2]", -ENOTSUP },
		{ "4@[x0, :lo12:symbol]", -ENOTSUP },
		{ "8@x0x1", -ENOTSUP },
		{ "8@[", -EINVAL },
		{ "8@[x0", -EINVAL },
		{ "8@[w0]", -EINVAL },
		{ "8@[x0, 8]!", -EINVAL },
		{ "8@[x0, x1, lsl 4]", -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ap_operand operand;
		int err = usdt_operand__parse(cases[i].arguments, 0, &operand);

		if (err != cases[i].err)
			fail_msg("'%s': expected %d, got %d", cases[i].arguments, cases[i].err,
				 err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
