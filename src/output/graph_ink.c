// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the colours, text and axes of pictures, and puts quantities into words. */
#include "graph_internal.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "text.h"

/* Longer text does not fit anywhere, and is truncated before it is measured. */
#define MAX_TEXT 1024

static const char ellipsis[] = "...";

/* The palette of Okabe and Ito, and a dark red, ordered so that similar colours are apart. */
static const unsigned int bands[] = {
	0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7, 0x56b4e9, 0xd55e00, 0xf0e442, 0x882255,
};

#define N_BANDS (ARRAY_SIZE(bands))

void ink__set(const struct ink *ink, unsigned int colour)
{
	ink->cairo->set_source_rgb(ink->cr, (colour >> 16 & 0xff) / 255.0,
				   (colour >> 8 & 0xff) / 255.0, (colour & 0xff) / 255.0);
}

static unsigned int blend(unsigned int colour, unsigned int other, double share)
{
	unsigned int mixed = 0;

	for (int shift = 0; shift <= 16; shift += 8) {
		double a = colour >> shift & 0xff, b = other >> shift & 0xff;

		mixed |= (unsigned int)(a + (b - a) * share + 0.5) << shift;
	}
	return mixed;
}

unsigned int ink__mix(unsigned int colour, double paper)
{
	return blend(colour, INK_PAPER, paper);
}

unsigned int ink__band(size_t band, bool others)
{
	unsigned int colour = bands[band % N_BANDS];

	if (others)
		return 0x999999;
	return band / N_BANDS % 2 ? blend(colour, 0, 0.4) : colour;
}

void ink__font(const struct ink *ink, double size, bool bold)
{
	ink->cairo->select_font_face(ink->cr, "sans", CAIRO_FONT_SLANT_NORMAL,
				     bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	ink->cairo->set_font_size(ink->cr, size);
}

double ink__width(const struct ink *ink, const char *text)
{
	cairo_text_extents_t extents;

	ink->cairo->text_extents(ink->cr, text, &extents);
	return extents.x_advance;
}

void ink__text(const struct ink *ink, double x, double y, enum ink_align align, const char *text)
{
	if (align != INK_LEFT)
		x -= ink__width(ink, text) / (align == INK_CENTRE ? 2 : 1);
	ink->cairo->move_to(ink->cr, x, y);
	ink->cairo->show_text(ink->cr, text);
}

/* Returns the first character boundary at or after @at. */
static const char *boundary(const char *at)
{
	while ((*at & 0xc0) == 0x80)
		at++;
	return at;
}

/* Keeps about @keep bytes of @text, half at each end. */
static void shorten(const char *text, size_t keep, char *shortened, size_t size)
{
	size_t len = strlen(text);
	const char *head = boundary(text + (keep + 1) / 2);
	const char *tail = boundary(text + len - keep / 2);

	snprintf(shortened, size, "%.*s%s%s", (int)(head - text), text, ellipsis, tail);
}

/* Replaces characters that cairo refuses: U+FDD0 to U+FDEF, and the last two code points of each
 * plane, which are no characters. */
static void clean_for_cairo(char *text)
{
	utf8__clean(text);
	while (*text) {
		const unsigned char *at = (const unsigned char *)text;
		size_t size = utf8__sequence(text);
		unsigned int low =
			size < 3 ? 0 : (at[size - 2] & 0x3f) << 6 | (at[size - 1] & 0x3f);
		bool is_arabic = size == 3 && at[0] == 0xef && low >= 0xdd0 && low <= 0xdef;
		bool is_last = (low & 0xffe) == 0xffe &&
			       (size == 3 ? at[0] == 0xef : size == 4 && (at[1] & 0xf) == 0xf);

		if (is_arabic || is_last)
			memset(text, '?', size);
		text += size;
	}
}

int ink__fit(const struct ink *ink, double x, double y, double width, const char *text,
	     double *used)
{
	_cleanup_(free_ptr) char *clean = strdup(text);
	char shortened[MAX_TEXT + 16];
	size_t low = 0, high;
	bool fits;

	if (!clean)
		return -ENOMEM;
	clean_for_cairo(clean);
	high = strlen(clean);
	fits = high <= MAX_TEXT && ink__width(ink, clean) <= width;
	if (high > MAX_TEXT)
		high = MAX_TEXT;
	while (!fits && low + 1 < high) {
		size_t middle = (low + high) / 2;

		shorten(clean, middle, shortened, sizeof(shortened));
		if (ink__width(ink, shortened) <= width)
			low = middle;
		else
			high = middle;
	}
	shorten(clean, low, shortened, sizeof(shortened));
	ink__text(ink, x, y, INK_LEFT, fits ? clean : shortened);
	if (used)
		*used = ink__width(ink, fits ? clean : shortened);
	return 0;
}

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

/* Returns the smallest of 1, 2, 5, 10, ... that is not below @least. */
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

/* Works like round_up(), for minutes and hours. */
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
