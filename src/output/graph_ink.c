// SPDX-License-Identifier: GPL-3.0-or-later
#include "graph_ink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "text.h"

/* Longer text fits nowhere and is truncated before it is measured. */
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

/* The first character boundary at or after @at. */
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

/* cairo refuses text with U+FDD0 to U+FDEF or with the last two characters of a plane, which are none. */
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
