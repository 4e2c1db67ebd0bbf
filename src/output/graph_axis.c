// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_axis.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "text.h"

struct unit {
	double size;
	const char *name;
	double from; /* values from @from on use this unit */
};

static const struct unit byte_units[] = {
	{ 1, "bytes", 0 },	   { 0x1p10, "KiB", 0x1p10 }, { 0x1p20, "MiB", 0x1p20 },
	{ 0x1p30, "GiB", 0x1p30 }, { 0x1p40, "TiB", 0x1p40 }, { 0x1p50, "PiB", 0x1p50 },
};

static const struct unit count_units[] = {
	{ 1, "", 0 },
	{ 1e3, "k", 1e4 },
	{ 1e6, "M", 1e6 },
	{ 1e9, "G", 1e9 },
};

static const struct unit time_units[] = {
	{ 1, "ns", 0 },
	{ 1e3, "\302\265s", 1e3 },
	{ 1e6, "ms", 1e6 },
	{ 1e9, "s", 1e9 },
	{ 60e9, "min", 180e9 },
	{ 3600e9, "h", 7200e9 },
	{ 86400e9, "days", 172800e9 },
};

static const struct unit *choose_unit(const struct unit *units, size_t n, double max)
{
	while (n > 1 && max < units[n - 1].from)
		n--;
	return &units[n - 1];
}

/* The smallest of 1, 2, 5, 10, ... that is not below @least. */
static double round_up(double least)
{
	double power = pow(10, floor(log10(least)));
	static const double steps[] = { 1, 2, 5 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (steps[i] * power >= least * (1 - 1e-9))
			return steps[i] * power;
	}
	return 10 * power;
}

/* The same for minutes and hours. */
static double round_up_sixties(double least, bool hours)
{
	static const double minutes[] = { 1, 2, 5, 10, 15, 20, 30, 60, 0 };
	static const double of_day[] = { 1, 2, 3, 6, 12, 24, 0 };
	const double *steps = hours ? of_day : minutes;

	while (steps[1] && *steps < least)
		steps++;
	return *steps;
}

static struct graph_axis make_axis(const struct unit *unit, double max, double least_step)
{
	struct graph_axis axis = { .unit = unit->size, .unit_name = unit->name };

	axis.step = round_up(least_step / unit->size) * unit->size;
	axis.end = axis.step * ceil(max / axis.step * (1 - 1e-9));
	return axis;
}

struct graph_axis graph_axis__bytes(__u64 max, unsigned int n_ticks)
{
	double top = max;
	const struct unit *unit = choose_unit(byte_units, ARRAY_SIZE(byte_units), top);

	if (!max)
		return (struct graph_axis){ 1024, 1024, 1024, "KiB" };
	return make_axis(unit, top, unit->size == 1 ? fmax(1, top / n_ticks) : top / n_ticks);
}

struct graph_axis graph_axis__count(double max, unsigned int n_ticks)
{
	const struct unit *unit = choose_unit(count_units, ARRAY_SIZE(count_units), max);

	if (!(max > 0))
		return (struct graph_axis){ 1, 1, 1, "" };
	return make_axis(unit, max, max / n_ticks);
}

struct graph_axis graph_axis__time(__u64 end_ns, unsigned int n_ticks)
{
	double end = end_ns ? end_ns : 1;
	const struct unit *unit = choose_unit(time_units, ARRAY_SIZE(time_units), end);
	struct graph_axis axis = make_axis(unit, end, end / n_ticks);

	if (!strcmp(unit->name, "min") || !strcmp(unit->name, "h"))
		axis.step = unit->size *
			    round_up_sixties(end / unit->size / n_ticks, *unit->name == 'h');
	axis.end = end;
	return axis;
}

size_t graph_axis__ticks(const struct graph_axis *axis)
{
	return (size_t)(axis->end / axis->step * (1 + 1e-9)) + 1;
}

void graph_axis__label(const struct graph_axis *axis, size_t tick, char *text, size_t size)
{
	if (axis->unit == 1 && !*axis->unit_name && axis->step >= 1)
		graph_axis__print_count(tick * axis->step, text, size);
	else
		snprintf(text, size, "%.10g%s%s", tick * axis->step / axis->unit,
			 *axis->unit_name && tick ? " " : "", tick ? axis->unit_name : "");
}

void graph_axis__print_bytes(__u64 bytes, char *text, size_t size)
{
	const struct unit *unit = choose_unit(byte_units, ARRAY_SIZE(byte_units), bytes);
	double value = bytes / unit->size;

	if (unit->size == 1)
		snprintf(text, size, "%llu %.5s", bytes, plural__of("byte{|s}", bytes).text);
	else
		snprintf(text, size, "%.*f %s",
			 value < 9.995	 ? 2
			 : value < 99.95 ? 1
					 : 0,
			 value, unit->name);
}

void graph_axis__print_time(__u64 time_ns, char *text, size_t size)
{
	__u64 seconds = time_ns / NS_PER_S;
	const struct unit *unit = choose_unit(time_units, 4, time_ns);

	if (seconds >= 172800)
		snprintf(text, size, "%llu days %llu h", seconds / 86400, seconds / 3600 % 24);
	else if (seconds >= 7200)
		snprintf(text, size, "%llu h %llu min", seconds / 3600, seconds / 60 % 60);
	else if (seconds >= 180)
		snprintf(text, size, "%llu min %llu s", seconds / 60, seconds % 60);
	else
		snprintf(text, size, "%.4g %s", time_ns / unit->size, unit->name);
}

void graph_axis__print_count(__u64 count, char *text, size_t size)
{
	char digits[32];
	size_t n = snprintf(digits, sizeof(digits), "%llu", count), at = 0;

	for (size_t i = 0; i < n && at + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	if (size)
		text[at] = '\0';
}
