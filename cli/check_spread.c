// SPDX-License-Identifier: GPL-3.0-or-later
/* Says for `check` in which stacks the runs of a test differ, and how. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cleanup.h"
#include "data_command.h"
#include "number.h"
#include "profile.h"
#include "profile_runs.h"
#include "stack_groups.h"
#include "terminal.h"

/* How many stacks are named, and how many frames of each: enough to know where to look. */
#define MOST_STACKS 3
#define MOST_FRAMES 4

static void free_view(struct stack_view **view)
{
	stack_view__free(*view);
}

static void free_groups(struct stack_groups **groups)
{
	stack_groups__free(*groups);
}

/* What the runs did in the stacks of one group. */
struct spread {
	const struct stack_group *group;
	const __u64 *calls; /* by run */
	__u64 usual;	    /* what most runs did, the least of equally frequent numbers */
	size_t n_usual;
	__u64 least, most;
};

static size_t count_equal(const __u64 *calls, size_t n, __u64 value)
{
	size_t equal = 0;

	for (size_t i = 0; i < n; i++)
		equal += calls[i] == value;
	return equal;
}

static struct spread spread_of(const struct stack_group *group, const __u64 *calls, size_t n)
{
	struct spread spread = { .group = group, .calls = calls, .least = UINT64_MAX };

	for (size_t i = 0; i < n; i++) {
		size_t equal = count_equal(calls, n, calls[i]);

		spread.least = calls[i] < spread.least ? calls[i] : spread.least;
		spread.most = calls[i] > spread.most ? calls[i] : spread.most;
		if (equal > spread.n_usual ||
		    (equal == spread.n_usual && calls[i] < spread.usual)) {
			spread.usual = calls[i];
			spread.n_usual = equal;
		}
	}
	return spread;
}

static __u64 range_of(const struct spread *spread)
{
	return spread->most - spread->least;
}

static int compare_spreads(const void *a, const void *b)
{
	const struct spread *first = a, *second = b;

	if (range_of(first) != range_of(second))
		return range_of(first) > range_of(second) ? -1 : 1;
	return first->group->id < second->group->id ? -1 : first->group->id > second->group->id;
}

/* Prints "1 of 5 runs +3", "2 of 5 runs +3, 1 of 5 -1", or the range where hardly two runs are alike. */
static void print_deviations(const struct spread *spread, size_t n, FILE *to)
{
	size_t distinct = 0;

	for (size_t i = 0; i < n; i++)
		distinct += spread->calls[i] != spread->usual &&
			    !count_equal(spread->calls, i, spread->calls[i]);
	if (distinct > 2) {
		fprintf(to, "%s to %s in %zu runs", number__count(spread->least).text,
			number__count(spread->most).text, n);
		return;
	}
	for (size_t i = 0, shown = 0; i < n; i++) {
		__u64 calls = spread->calls[i];

		if (calls == spread->usual || count_equal(spread->calls, i, calls))
			continue;
		fprintf(to, "%s%zu of %zu runs %s%s", shown++ ? ", " : "",
			count_equal(spread->calls, n, calls), n, calls > spread->usual ? "+" : "-",
			number__count(calls > spread->usual ? calls - spread->usual
							    : spread->usual - calls)
				.text);
	}
}

static void print_spread(const struct stack_groups *groups, const struct spread *spread, size_t n,
			 FILE *to)
{
	const struct terminal terminal = { .to = to };

	fputs("  ", to);
	print_deviations(spread, n, to);
	fputs(" in ", to);
	for (__u32 i = 0; i < spread->group->n_frames && i < MOST_FRAMES; i++) {
		fputs(i ? " < " : "", to);
		terminal__print(&terminal, groups->labels[spread->group->frames[i]].text, 0);
	}
	fputs(spread->group->n_frames > MOST_FRAMES ? " < ...\n" : "\n", to);
}

/* Adds up calls by group and run. */
static __u64 *count_calls(const struct profile *all, const struct stack_groups *groups, size_t n)
{
	__u64 *calls = calloc(groups->n_groups * n + 1, sizeof(*calls));

	for (size_t i = 0; i < all->n_counts && calls; i++) {
		const struct profile_count *count = &all->counts[i];
		__u32 run = profile__count_run(all, count);

		if (count->stack && run <= n && !profile__function_frees(count->function) &&
		    !definition_names__counts(&all->definitions, count->function))
			calls[groups->by_stack[count->stack - 1] * n + run - 1] += count->calls;
	}
	return calls;
}

static void print_all(const struct stack_groups *groups, const __u64 *calls, size_t n, FILE *to)
{
	_cleanup_(free_ptr) struct spread *spreads = calloc(groups->n_groups + 1, sizeof(*spreads));
	size_t n_spreads = 0;

	for (size_t i = 0; i < groups->n_groups && spreads; i++) {
		spreads[n_spreads] = spread_of(&groups->groups[i], &calls[i * n], n);
		n_spreads += range_of(&spreads[n_spreads]) != 0;
	}
	if (!n_spreads)
		return;
	qsort(spreads, n_spreads, sizeof(*spreads), compare_spreads);
	fputs("Runs differ:\n", to);
	for (size_t i = 0; i < n_spreads && i < MOST_STACKS; i++)
		print_spread(groups, &spreads[i], n, to);
	if (n_spreads > MOST_STACKS)
		fprintf(to, "  and in %zu other %s\n", n_spreads - MOST_STACKS,
			n_spreads - MOST_STACKS == 1 ? "stack" : "stacks");
}

char *check_spread__text(struct profile *all, size_t n)
{
	const struct view_choice choice = { 0 };
	_cleanup_(free_view) struct stack_view *view = NULL;
	_cleanup_(free_groups) struct stack_groups *groups = NULL;
	_cleanup_(free_ptr) __u64 *calls = NULL;
	struct error error = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *to;

	/* It only adds to what is known, so that its failure is none of the test. */
	if (n < 2 || view_choice__open(&choice, all, &view, &error))
		return NULL;
	groups = stack_groups__new(all, view);
	calls = groups ? count_calls(all, groups, n) : NULL;
	to = calls ? open_memstream(&text, &size) : NULL;
	if (!to)
		return NULL;
	print_all(groups, calls, n, to);
	if (!fclose(to) && size)
		return text;
	free(text);
	return NULL;
}
