// SPDX-License-Identifier: GPL-3.0-or-later
#include "number.h"

#include <stdint.h>
#include <stdio.h>

#include "array.h"

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

__u64 number__of(double sum)
{
	/* The double nearest to the limit is above it. */
	return sum < (double)INT64_MAX ? (__u64)sum : INT64_MAX;
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
