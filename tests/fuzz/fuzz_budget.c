// SPDX-License-Identifier: GPL-3.0-or-later
/* Budget files: what is accepted is written back, and accepted again. */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "error.h"
#include "fuzz.h"

static void update(struct budget *budget)
{
	static const __s64 values[BUDGET_FIGURES] = { 1, -2, 3, 1LL << 62, 5 };
	bool changed;

	for (size_t i = 0; i < budget->n_tests; i++) {
		struct budget_test *test = &budget->tests[i];

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
