// SPDX-License-Identifier: GPL-3.0-or-later
#include "number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"

struct number_text number__count(__u64 value)
{
	struct number_text result;
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", value), at = 0;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			result.text[at++] = ',';
		result.text[at++] = digits[i];
	}
	result.text[at] = '\0';
	return result;
}

struct number_text number__bytes(__u64 bytes, bool exact)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	struct number_text result;
	double value = bytes;
	size_t unit = 0;

	if (exact)
		return number__count(bytes);
	/* 1023.5 would be rounded to 1024. */
	for (; value >= 1023.5 && unit + 1 < ARRAY_SIZE(units); unit++)
		value /= 1024;
	if (!unit)
		snprintf(result.text, sizeof(result.text), "%.28s B", number__count(bytes).text);
	else
		snprintf(result.text, sizeof(result.text), "%.*f %s",
			 value < 9.995	 ? 2
			 : value < 99.95 ? 1
					 : 0,
			 value, units[unit]);
	return result;
}

struct number_text number__share(__u64 part, __u64 whole)
{
	struct number_text result = { "-" };
	double percent;

	if (!whole)
		return result;
	percent = 100.0 * part / whole;
	if (part && percent < 0.05)
		snprintf(result.text, sizeof(result.text), "<0.1 %%");
	else if (part < whole && percent >= 99.95)
		snprintf(result.text, sizeof(result.text), "99.9 %%");
	else
		snprintf(result.text, sizeof(result.text), "%.1f %%", percent);
	return result;
}

struct number_text number__margin(double margin, __u64 value)
{
	struct number_text result = { "-" };
	double percent = value ? 100 * margin / value : 0;

	if (!value)
		return result;
	if (margin > 0 && percent < 0.05)
		snprintf(result.text, sizeof(result.text), "<0.1 %%");
	else
		snprintf(result.text, sizeof(result.text), "%.*f %%", percent < 9.95 ? 1 : 0,
			 percent);
	return result;
}

struct number_text number__time(__u64 ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "h", 3600e9 } };
	struct number_text result;
	size_t unit = 0;
	double value;

	while (unit + 1 < ARRAY_SIZE(units) && ns >= units[unit + 1].ns * 0.9995)
		unit++;
	value = ns / units[unit].ns;
	snprintf(result.text, sizeof(result.text), "%.*f %s",
		 !unit		 ? 0
		 : value < 9.995 ? 2
		 : value < 99.95 ? 1
				 : 0,
		 value, units[unit].unit);
	return result;
}

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
	error__set(error, -EINVAL, "'%s' is no duration; write for example 500ms, 10s or 5m", text);
	return EINVAL;
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
	error__set(error, -EINVAL, "'%s' is no size; write for example 64, 4K or 1MiB", text);
	return EINVAL;
}

int number__parse_share(const char *text, double *share, struct error *error)
{
	static const struct unit units[] = { { "%", 0.01 }, { NULL, 0 } };
	double value;

	if (parse(text, units, &value) && value <= 1) {
		*share = value;
		return 0;
	}
	error__set(error, -EINVAL, "'%s' is no share; write for example 1%% or 98%%", text);
	return EINVAL;
}

int number__parse_count(const char *text, __u64 *count, struct error *error)
{
	char *end;

	errno = 0;
	if (*text >= '0' && *text <= '9') {
		*count = strtoull(text, &end, 10);
		if (!errno && !*end)
			return 0;
	}
	error__set(error, -EINVAL, "'%s' is no number; write for example 10", text);
	return EINVAL;
}
