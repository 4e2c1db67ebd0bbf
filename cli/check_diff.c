// SPDX-License-Identifier: GPL-3.0-or-later
/* Appends to a result of `check` what differs from the test's baseline. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "cleanup.h"
#include "data_command.h"
#include "diff.h"
#include "diff_output.h"
#include "stack_view.h"

/* Enough to find the cause, few enough to keep a log readable. */
#define MOST_STACKS 5

static const enum cost costs[BUDGET_FIGURES] = {
	[BUDGET_TOTAL_ALLOCATIONS] = COST_ALLOCATIONS,
	[BUDGET_TOTAL_ALLOCATED_BYTES] = COST_BYTES,
	[BUDGET_REMAINING_ALLOCATIONS] = COST_LIVE,
	[BUDGET_REMAINING_BYTES] = COST_LIVE_BYTES,
	[BUDGET_PEAK_BYTES] = COST_PEAK,
};

static void free_diff(struct diff **diff)
{
	diff__free(*diff);
}

static void free_views(struct stack_view *(*views)[DIFF_SIDES])
{
	for (int side = 0; side < DIFF_SIDES; side++)
		stack_view__free((*views)[side]);
}

static void release_selected(struct selected (*selected)[DIFF_SIDES])
{
	for (int side = 0; side < DIFF_SIDES; side++)
		selected__release(&(*selected)[side]);
}

static int print_diff(const struct check_result *result, enum cost cost, FILE *to,
		      struct error *error)
{
	const char *const paths[DIFF_SIDES] = { result->baseline, result->profile };
	const struct diff_options options = { .cost = cost };
	_cleanup_(release_selected) struct selected selected[DIFF_SIDES] = { 0 };
	_cleanup_(free_views) struct stack_view *lines[DIFF_SIDES] = { NULL };
	_cleanup_(free_diff) struct diff *diff = NULL;
	/* Compared without lines, so that an edited function keeps its stacks. */
	const struct view_choice with_lines = { .options.lines = true };
	struct diff_input inputs[DIFF_SIDES];
	int err = 0;

	for (int side = 0; side < DIFF_SIDES && !err; side++) {
		struct data_choice choice = {
			.paths.input = paths[side],
			.needs_no_groups = true,
		};

		err = selected__open(&selected[side], &choice, cost, error);
		if (!err)
			err = view_choice__open(&with_lines, selected[side].profile, &lines[side],
						error);
		inputs[side] = (struct diff_input){
			.profile = selected[side].profile,
			.view = selected[side].view,
			.counts = selected[side].filtered.counts,
		};
	}
	if (!err)
		err = diff__new(inputs, &options, &diff, error);
	if (err)
		return err;
	return diff_output__text(&(struct diff_output){
		.diff = diff,
		.profiles = { selected[DIFF_BEFORE].profile, selected[DIFF_AFTER].profile },
		.inputs = { paths[DIFF_BEFORE], paths[DIFF_AFTER] },
		.lines = { lines[DIFF_BEFORE], lines[DIFF_AFTER] },
		.top = MOST_STACKS,
		.terminal = { .to = to },
	});
}

/* @name may contain any characters. */
static void print_words(FILE *to, const char *before, const char *name, const char *after)
{
	const struct terminal terminal = { .to = to };

	fputs(before, to);
	terminal__print(&terminal, name, 0);
	fputs(after, to);
}

static void print_details(const struct check_result *result, FILE *to)
{
	struct error error = { 0 };

	if (!result->profile || access(result->profile, R_OK))
		return;
	if (access(result->baseline, R_OK)) {
		print_words(to, "No recording of a run that passed to compare with at ",
			    result->baseline, ".\n");
		print_words(to, "allocprof report -i ", result->profile, " shows this one.\n");
		return;
	}
	for (int i = 0; i < BUDGET_FIGURES; i++) {
		if (check_result__verdict(result, i) == BUDGET_WITHIN)
			continue;
		fprintf(to, "Since the last pass, %s:\n", budget__figure_name(i));
		if (print_diff(result, costs[i], to, &error))
			print_words(to, "cannot be compared: ", error.text, "\n");
		fputc('\n', to);
	}
	print_words(to, "More of it: allocprof diff ", result->baseline, " ");
	print_words(to, "", result->profile, "\n");
}

void check_result__explain(struct check_result *result)
{
	size_t size;
	FILE *to;

	if (!result->baseline)
		return;
	to = open_memstream(&result->details, &size);
	if (!to)
		return;
	print_details(result, to);
	if (fclose(to) || !size) {
		free(result->details);
		result->details = NULL;
	}
}
