// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints histograms of the sizes and lifetimes of blocks. */
#include "report_output.h"

#include "array.h"
#include "number.h"
#include "profile.h"
#include "table.h"

#define BAR_COLUMNS 40

typedef struct number_text (*bound_fn)(__u64 value);

static struct number_text size_bound(__u64 value)
{
	return number__count(value);
}

/* Returns the smallest value of bucket @n. */
static __u64 bucket_start(int n)
{
	return n ? 1ULL << (n - 1) : 0;
}

static struct table_cell make_bucket(int n, bound_fn bound)
{
	struct table_cell cell = { .colour = COLOUR_NONE };
	struct number_text from = bound(bucket_start(n));

	if (n == PROFILE_BUCKETS - 1)
		snprintf(cell.text.text, sizeof(cell.text.text), "%.15s or more", from.text);
	else if (n < 2 && bound == size_bound)
		cell.text = from;
	else
		snprintf(cell.text.text, sizeof(cell.text.text), "%.13s to %.13s", from.text,
			 bound(bound == size_bound ? bucket_start(n + 1) - 1 : bucket_start(n + 1))
				 .text);
	return cell;
}

static void print_bar(const struct terminal *terminal, __u64 blocks, __u64 most)
{
	int length = most ? (double)blocks / most * BAR_COLUMNS : 0;

	if (blocks)
		fputs("  ", terminal->to);
	for (int i = 0; i < (blocks && !length ? 1 : length); i++)
		fputs(terminal->utf8 ? "█" : "#", terminal->to);
}

/* Returns whether bucket @i is in a row of empty buckets that is not printed in full. */
static bool is_gap(const __u64 *buckets, int i, int first, int last)
{
	int from = i, until = i;

	while (from > first && !buckets[from])
		from--;
	while (until < last && !buckets[until])
		until++;
	return !buckets[i] && until - from > 3;
}

static void fill_cells(const __u64 *buckets, int i, __u64 sum, bound_fn bound,
		       struct table_cell *cells)
{
	cells[0] = make_bucket(i, bound);
	cells[1] = (struct table_cell){ number__count(buckets[i]) };
	cells[2] = (struct table_cell){ number__share(buckets[i], sum) };
}

static void print_histogram(const struct terminal *terminal, const char *title,
			    const __u64 *buckets, bound_fn bound)
{
	struct table_column columns[] = {
		{ title },
		{ "blocks", .gap = 2 },
		{ "share", .gap = 2 },
	};
	const size_t n = ARRAY_SIZE(columns);
	struct table_cell cells[ARRAY_SIZE(columns)];
	__u64 sum = 0, most = 0;
	int first = -1, last = -1;

	for (int i = 0; i < PROFILE_BUCKETS; i++) {
		if (!buckets[i])
			continue;
		first = first < 0 ? i : first;
		last = i;
		most = buckets[i] > most ? buckets[i] : most;
		sum = profile__add_up(sum, buckets[i]);
	}
	if (first < 0)
		return;
	table__fit_titles(columns, n);
	for (int i = first; i <= last; i++) {
		fill_cells(buckets, i, sum, bound, cells);
		table__fit(columns, n, cells);
	}
	fputc('\n', terminal->to);
	table__print_titles(columns, n, terminal);
	fputc('\n', terminal->to);
	for (int i = first; i <= last; i++) {
		if (is_gap(buckets, i, first, last)) {
			if (buckets[i - 1])
				fprintf(terminal->to, "%*s\n", (int)columns[0].width, "...");
			continue;
		}
		fill_cells(buckets, i, sum, bound, cells);
		table__print_row(columns, n, cells, terminal);
		print_bar(terminal, buckets[i], most);
		fputc('\n', terminal->to);
	}
}

void report_output__histograms(const struct report_output *output)
{
	__u64 sizes[PROFILE_BUCKETS], lifetimes[PROFILE_BUCKETS];

	if (!output->report->n_entries)
		return;
	report__histograms(output->report, output->filtered, sizes, lifetimes);
	if (report_output__selects_blocks(output))
		fputs("\nThe histograms are of all blocks of these stacks.\n", output->terminal.to);
	print_histogram(&output->terminal, "size in bytes", sizes, size_bound);
	print_histogram(&output->terminal, "freed after", lifetimes, number__time);
}
