// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads --per, and finds out from two recordings how many seconds, calls or units each of them took. */
#include "diff_rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "number_parse.h"
#include "profile.h"
#include "selected.h"
#include "stack_groups.h"
#include "stack_view.h"

/* "N:M"; -EINVAL if @text is something else. */
static int parse_numbers(const char *text, struct diff_rate *rate)
{
	size_t digits = strspn(text, "0123456789");
	char *before;
	__u64 n, m;
	int err;

	if (!digits || text[digits] != ':')
		return -EINVAL;
	before = strndup(text, digits);
	if (!before)
		return -ENOMEM;
	err = number__parse_count(before, &n, NULL);
	free(before);
	if (!err)
		err = number__parse_count(text + digits + 1, &m, NULL);
	if (err)
		return -EINVAL;
	rate->amounts[DIFF_BEFORE] = n;
	rate->amounts[DIFF_AFTER] = m;
	return 0;
}

/* Allocations of stacks through the function. */
static int count_calls(const char *function, struct profile *profile,
		       const struct data_choice *names, double *calls, struct error *error)
{
	struct filter_rule rule = { .kind = FILTER_THROUGH, .text = function };
	struct data_choice choice = { .view = names->view };
	struct selected selected = { .profile = profile };
	int err;

	choice.filter.options.rules = &rule;
	choice.filter.options.n_rules = 1;
	choice.filter.all_runs = true;
	err = selected__choose(&selected, &choice, COST_ALLOCATIONS, error);
	if (!err)
		*calls = selected.filtered.total.allocations;
	selected.profile = NULL;
	selected__release(&selected);
	return err;
}

int diff_rate__read(const char *text, struct profile *const profiles[DIFF_SIDES],
		    const struct data_choice *names, struct diff_rate *rate, struct error *error)
{
	static const char *const sides[DIFF_SIDES] = { "BEFORE", "AFTER" };
	struct diff_rate made = { .unit = text };
	bool are_seconds = !strcmp(text, "second");
	int err = are_seconds ? 0 : parse_numbers(text, &made);

	if (err == -ENOMEM)
		return error__set(error, err, "out of memory");
	made.is_function = err;
	for (int side = 0; side < DIFF_SIDES; side++) {
		err = 0;
		if (are_seconds)
			made.amounts[side] = diff_output__seconds(profiles[side]);
		else if (made.is_function)
			err = count_calls(text, profiles[side], names, &made.amounts[side], error);
		if (err)
			return err;
		if (!(made.amounts[side] > 0))
			return error__set(
				error, -ENODATA,
				"nothing is known to divide by in %s: --per takes second, a "
				"function that allocates once for each of what was done, or "
				"N:M, how often it was done",
				sides[side]);
	}
	*rate = made;
	return 0;
}
