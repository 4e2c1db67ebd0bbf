// SPDX-License-Identifier: GPL-3.0-or-later
#include "folded_lines.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "list_sort.h"

/* A line as text. The next one often begins like it, so its names stay. */
struct text {
	char *bytes;
	size_t room;
	__u32 *ranks;
	size_t *ends; /* by index of a name: where it ends in bytes */
	size_t n_names, ranks_room, ends_room;
};

static int append_name(struct text *text, const struct folded_names *names, __u32 rank)
{
	size_t begin = text->n_names ? text->ends[text->n_names - 1] : 0;
	const char *name = folded_names__text(names, rank);
	size_t size = strlen(name);

	if (array__reserve(&text->ranks, &text->ranks_room, text->n_names + 1,
			   sizeof(*text->ranks)) ||
	    array__reserve(&text->ends, &text->ends_room, text->n_names + 1, sizeof(*text->ends)) ||
	    array__reserve(&text->bytes, &text->room, begin + size, 1))
		return -ENOMEM;
	memcpy(text->bytes + begin, name, size);
	text->ranks[text->n_names] = rank;
	text->ends[text->n_names++] = begin + size;
	return 0;
}

/* How many names @line shares with @text, from the root; *@rank is that of its next one. */
static size_t share(const struct folded_lines *lines, __u32 line, const struct text *text,
		    __u32 *rank)
{
	size_t at = 0;

	while ((*rank = lines->rank(lines->owner, line, at)) != FOLDED_END && at < text->n_names &&
	       text->ranks[at] == *rank)
		at++;
	return at;
}

/* Makes @text that of @line, which shares its first @at names; the next one has @rank. */
static int build(const struct folded_lines *lines, __u32 line, size_t at, __u32 rank,
		 struct text *text)
{
	int err = 0;

	text->n_names = at;
	while (rank != FOLDED_END && !err) {
		err = append_name(text, &lines->names, rank);
		rank = lines->rank(lines->owner, line, ++at);
	}
	return err;
}

static void print_text(const struct folded_lines *lines, const struct text *text,
		       const __u64 *costs, FILE *to)
{
	errno = 0;
	if (text->n_names)
		fwrite_unlocked(text->bytes, 1, text->ends[text->n_names - 1], to);
	for (size_t i = 0; i < lines->n_costs; i++)
		fprintf(to, i ? " %llu" : "%llu", costs[i]);
	putc_unlocked('\n', to);
}

static int print_lines(const struct folded_lines *lines, struct text *text, FILE *to)
{
	__u64 costs[FOLDED_MAX_COSTS] = { 0 };

	for (size_t i = 0; i < lines->n && !ferror(to); i++) {
		__u32 line = lines->order[i], rank;
		size_t n_shared = share(lines, line, text, &rank);
		int err;

		if (rank != FOLDED_END || n_shared != text->n_names) {
			if (i)
				print_text(lines, text, costs, to);
			err = build(lines, line, n_shared, rank, text);
			if (err)
				return err;
			memset(costs, 0, sizeof(costs));
		}
		lines->add(lines->owner, line, costs);
	}
	if (lines->n && !ferror(to))
		print_text(lines, text, costs, to);
	if (ferror(to))
		return errno ? -errno : -EIO;
	return fflush(to) ? -errno : 0;
}

int folded_lines__init(struct folded_lines *lines, size_t n, size_t n_names,
		       char *(*name)(size_t index, const void *owner))
{
	lines->order = calloc(n + 1, sizeof(*lines->order));
	lines->n = 0;
	return lines->order && n <= UINT32_MAX
		       ? folded_names__make(&lines->names, n_names, name, lines->owner)
		       : -ENOMEM;
}

int folded_lines__print(struct folded_lines *lines, FILE *to)
{
	struct text text = { 0 };
	int err = list_sort(lines->order, lines->n, lines->rank, lines->owner);

	if (!err)
		err = print_lines(lines, &text, to);
	free(text.bytes);
	free(text.ranks);
	free(text.ends);
	return err;
}

void folded_lines__release(struct folded_lines *lines)
{
	folded_names__release(&lines->names);
	free(lines->order);
}
