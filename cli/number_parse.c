// SPDX-License-Identifier: GPL-3.0-or-later
#include "number_parse.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

struct unit {
	const char *name;
	double factor;
};

/* Parses a number from 0 to 10^18 with one of @units, which end with a NULL. */
static bool parse(const char *text, const struct unit *units, double *value)
{
	char *end;
	double number;

	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	number = strtod(text, &end);
	if (end == text)
		return false;
	for (; units->name; units++) {
		if (strcmp(end, units->name))
			continue;
		/* Rejects NaN, and what would not fit in 64 bits. */
		if (!(number >= 0) || number * units->factor > 1e18)
			return false;
		*value = number * units->factor;
		return true;
	}
	return false;
}

int number__parse_duration(const char *text, __u64 *ns, struct error *error)
{
	static const struct unit units[] = { { "", 1e9 },     { "s", 1e9 }, { "ms", 1e6 },
					     { "us", 1e3 },   { "ns", 1 },  { "m", 60e9 },
					     { "h", 3600e9 }, { NULL, 0 } };
	double value;

	if (parse(text, units, &value) && value > 0) {
		*ns = value;
		return 0;
	}
	return error__set(error, -EINVAL, "'%s' is no duration; write for example 500ms, 10s or 5m",
			  text);
}

int number__parse_size(const char *text, __u64 *bytes, struct error *error)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "k", 1024 },
		{ "K", 1024 },
		{ "M", 1024 * 1024 },
		{ "G", 1024.0 * 1024 * 1024 },
		{ "KiB", 1024 },
		{ "MiB", 1024 * 1024 },
		{ "GiB", 1024.0 * 1024 * 1024 },
		{ "kB", 1000 },
		{ "KB", 1000 },
		{ "MB", 1e6 },
		{ "GB", 1e9 },
		{ NULL, 0 },
	};
	double value;

	if (parse(text, units, &value)) {
		*bytes = value;
		return 0;
	}
	return error__set(error, -EINVAL, "'%s' is no size; write for example 64, 4K or 1MiB",
			  text);
}

int number__parse_share(const char *text, double *share, struct error *error)
{
	static const struct unit units[] = { { "%", 0.01 }, { NULL, 0 } };
	double value;

	if (parse(text, units, &value) && value <= 1) {
		*share = value;
		return 0;
	}
	return error__set(error, -EINVAL, "'%s' is no share; write for example 1%% or 98%%", text);
}

bool number__parse_between(const char *text, __u64 least, __u64 most, __u64 *value)
{
	unsigned long long number;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number < least || number > most)
		return false;
	*value = number;
	return true;
}

int number__parse_count(const char *text, __u64 *count, struct error *error)
{
	if (number__parse_between(text, 0, UINT64_MAX, count))
		return 0;
	return error__set(error, -EINVAL,
			  "'%s' is neither 0 nor a positive whole number; write for example 10",
			  text);
}

int number__parse_pid(const char *text, pid_t *pid, struct error *error)
{
	__u64 value;

	if (!number__parse_between(text, 1, INT_MAX, &value))
		return error__set(error, -EINVAL,
				  "'%s' is no process id; give one number, as ps shows it", text);
	*pid = value;
	return 0;
}
