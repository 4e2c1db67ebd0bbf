// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads limits of growth, and compares figures with them. */
#include "growth_limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

/* The greatest share that makes sense, and more than any figure can grow by. */
#define MOST_PERCENT 1e6
#define MOST_GROWTH  1e18

int growth_limit__parse(const char *text, struct growth_limit *growth, struct error *error)
{
	size_t digits = strspn(text, "0123456789."), length = strlen(text);
	bool is_share = length && text[length - 1] == '%';
	char *end = (char *)text;
	double value = digits && text[0] != '.' ? strtod(text, &end) : 0;
	bool is_whole = !memchr(text, '.', digits);

	if (end == text || end != text + length - is_share || digits + is_share != length ||
	    (!is_share && !is_whole) || value > (is_share ? MOST_PERCENT : MOST_GROWTH))
		return error__set(error, -EINVAL,
				  "'%.64s' is no limit of growth; write a share such as 1%% or a "
				  "whole number such as 1000",
				  text);
	*growth = (struct growth_limit){ .is_share = is_share };
	if (is_share)
		growth->percent = value;
	else
		growth->most = value;
	return 0;
}

static double magnitude(__s64 value)
{
	return value < 0 ? -(double)value : (double)value;
}

bool growth_limit__allows(const struct growth_limit *growth, __s64 before, __s64 after)
{
	if (after <= before)
		return true;
	if (!growth->is_share)
		return after - before <= growth->most;
	return (double)(after - before) <= growth->percent / 100 * magnitude(before);
}
