// SPDX-License-Identifier: GPL-3.0-or-later
/* Words growth, and limits of it. */
#include "growth_text.h"

#include <stdio.h>

#include "number.h"

struct growth_text growth_limit__text(const struct growth_limit *growth)
{
	struct growth_text made = { .text = "no growth" };

	if (growth->percent > 0)
		snprintf(made.text, sizeof(made.text), "a growth of %g %%", growth->percent);
	else if (growth->most)
		snprintf(made.text, sizeof(made.text), "a growth of %s",
			 number__count(growth->most).text);
	return made;
}

struct growth_text growth_text__difference(__s64 before, __s64 after)
{
	const char *sign = after < before ? "-" : "+";
	__u64 change = after < before ? (__u64)before - (__u64)after : (__u64)after - (__u64)before;
	struct number_text number = number__count(change);
	struct growth_text made;

	if (before)
		snprintf(made.text, sizeof(made.text), "%s%s (%s%.1f %%)", sign, number.text, sign,
			 100 * (double)change / (before < 0 ? -(double)before : (double)before));
	else
		snprintf(made.text, sizeof(made.text), "%s%s", sign, number.text);
	return made;
}
