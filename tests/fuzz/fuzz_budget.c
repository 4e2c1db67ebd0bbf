// SPDX-License-Identifier: GPL-3.0-or-later
/* Budget files: what is accepted is written back, and accepted again. */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "error.h"
#include "fuzz.h"

/* As if the recording said so of all. */
static const char *says(void *context, enum budget_condition condition)
{
	return condition == BUDGET_LIBRARY ? "/usr/lib/libstdc++.so.6.0.30\n/usr/lib/libc.so.6"
					   : context;
}

static void update(struct budget *budget)
{
	static const struct budget_measured values[BUDGET_FIGURES] = {
		{ 1, 1, 1 }, { -2, -2, 9 }, { 3, 2, 2000 }, { 1LL << 62, 1LL << 62, 1LL << 62 },
		{ 5, 5, 5 }, { 0, 0, 0 },
	};
	char platform[] = "x86_64 2.36";
	struct error error;
	bool changed;

	for (size_t i = 0; i < budget->n_tests; i++) {
		struct budget_test *test = &budget->tests[i];

		(void)budget_test__choose_when(test, says, platform, &error);
		budget_test__update(test, values, &changed);
		for (size_t j = 0; j < test->n_parts; j++)
			budget_part__update(&test->parts[j], values, &changed);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size), *written;
	struct budget budget = { 0 };
	struct error error = { "" };

	if (!budget__parse(text, size, "budget.json", &budget, &error)) {
		update(&budget);
		written = strdup(json_object_to_json_string(budget.root));
		budget__release(&budget);
		budget = (struct budget){ 0 };
		FUZZ_CHECK(!budget__parse(written, strlen(written), "written", &budget, &error));
		budget__release(&budget);
		free(written);
	} else {
		FUZZ_CHECK(error.text[0]);
	}
	free(text);
	return 0;
}
