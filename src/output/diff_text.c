// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints the difference of two profiles as text: its tables, and the source lines of stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "completeness.h"
#include "diff_output.h"
#include "filter.h"
#include "finding_text.h"
#include "number.h"
#include "profile.h"
#include "recording_text.h"
#include "stack_view.h"
#include "table.h"
#include "text.h"

/* Returns the part of @label with the line: the name is the function's, which the view without
 * lines shows alone. */
static const char *line_of(const struct stack_label *label, const struct diff_name *name)
{
	size_t n = strlen(name->function);

	if (!label->function || strncmp(label->text, name->function, n) != 0 ||
	    strncmp(label->text + n, " (", 2) != 0)
		return NULL;
	return label->text + n + 1;
}

static void add_line(struct diff_frame_lines *lines, const char *text)
{
	for (size_t i = 0; i < lines->n; i++)
		if (!strcmp(lines->texts[i], text))
			return;
	if (lines->n < DIFF_LINES_MOST)
		lines->texts[lines->n++] = text;
	else
		lines->has_more = true;
}

/*
 * Stores the lines of the @n frames @marks of the unpaired stack @entry in *@lines, which the
 * caller frees; NULL if the output has no lines. They come from AFTER if it has the stack. Returns
 * 0 or -ENOMEM.
 */
static int diff_lines__of(const struct diff_output *output, const struct diff_entry *entry,
			  const struct diff_mark *marks, size_t n, struct diff_frame_lines **lines)
{
	enum diff_side side = entry->stacks[DIFF_AFTER] ? DIFF_AFTER : DIFF_BEFORE;
	const struct profile *profile = output->profiles[side];
	const struct stack_view *view = output->lines[side];
	struct diff_frame_lines *made;

	*lines = NULL;
	if (!view)
		return 0;
	made = calloc(n + 1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++) {
		const __u32 *labels;
		size_t n_labels;

		if (output->diff->count_stacks[side][i] != entry->stacks[side])
			continue;
		labels = stack_view__frames(view, profile->counts[i].stack, &n_labels);
		/* The first mark is the allocator's function. */
		for (size_t j = 0; j < n_labels && j + 1 < n; j++) {
			const char *text = line_of(&view->labels[labels[j]], marks[j + 1].name);

			if (text)
				add_line(&made[j + 1], text);
		}
	}
	*lines = made;
	return 0;
}

/* Prints " (server.c:12, server.c:14)", or nothing. */
static void diff_frame_lines__print(const struct diff_frame_lines *lines,
				    const struct terminal *terminal)
{
	for (size_t i = 0; i < lines->n; i++) {
		char text[256];
		size_t size = strlen(lines->texts[i] + 1);

		/* The surrounding parentheses are left out. */
		snprintf(text, sizeof(text), "%.*s", (int)(size ? size - 1 : 0),
			 lines->texts[i] + 1);
		fputs(i ? ", " : " (", terminal->to);
		terminal__print(terminal, text, 0);
	}
	if (lines->n)
		fputs(lines->has_more ? ", ...)" : ")", terminal->to);
}

/* The tables of the difference. */

#define COLUMNS 6
/* Number of equal frames that are printed before and after those that differ. */
#define CONTEXT 2
/* A frame's name begins behind so many columns, and has so many at least. */
#define MARGIN	   8
#define LEAST_NAME 24
/* So many columns of the head beside the command, and so many of the command at least. */
#define HEAD_COLUMNS  72
#define LEAST_COMMAND 16

static const char *const titles[DIFF_SECTIONS] = {
	[DIFF_ONLY_BEFORE] = "only in BEFORE",
	[DIFF_ONLY_AFTER] = "only in AFTER",
	[DIFF_CHANGED] = "changed",
	[DIFF_PAIRED] = "paired, frames differ",
	[DIFF_ALIKE] = "alike",
	[DIFF_BELOW_MIN] = "below --min",
};

static const char *const cost_titles[COSTS] = {
	[COST_ALLOCATIONS] = "allocations", [COST_BYTES] = "bytes",
	[COST_LIVE] = "live blocks",	    [COST_LIVE_BYTES] = "live bytes",
	[COST_TEMPORARY] = "temporary",	    [COST_PEAK] = "bytes at the peak",
	[COST_RESIDENT] = "resident bytes", [COST_UNIQUE] = "bytes of unique pages",
	[COST_LOST] = "lost bytes",
};

static bool cost_anything(const struct diff *diff, const struct diff_entry *entry)
{
	return diff_entry__cost(diff, entry, DIFF_BEFORE).max ||
	       diff_entry__cost(diff, entry, DIFF_AFTER).max;
}

/*
 * Returns how many stacks of @section have any cost and can be listed. Sections are sorted by
 * difference or, if that is 0, by cost.
 */
static size_t count_listable(const struct diff_output *output, enum diff_section section)
{
	const struct diff *diff = output->diff;
	const struct diff_sum *sum = &diff->sections[section];
	const struct diff_entry *entries = &diff->entries[sum->first];
	size_t n = sum->n;

	if (section == DIFF_BELOW_MIN || (section == DIFF_ALIKE && !output->alike))
		return 0;
	while (n && !cost_anything(diff, &entries[n - 1]))
		n--;
	while (n && section == DIFF_PAIRED && !output->equal_pairs && !entries[n - 1].difference)
		n--;
	return n;
}

/* Returns the number of pairs that are not listed because their costs are equal. */
static size_t count_equal_pairs(const struct diff_output *output)
{
	const struct diff_sum *sum = &output->diff->sections[DIFF_PAIRED];
	size_t n = 0;

	for (size_t i = count_listable(output, DIFF_PAIRED); i < sum->n; i++)
		n += cost_anything(output->diff, &output->diff->entries[sum->first + i]);
	return n;
}

size_t diff_output__listed(const struct diff_output *output, enum diff_section section)
{
	size_t n = count_listable(output, section);

	return output->top && output->top < n ? output->top : n;
}

/* Returns a cost: on a terminal bytes are "1.23 MiB", as in a report. */
static struct number_text cost_text(const struct diff_output *output, __u64 value)
{
	return cost__is_bytes(output->diff->options.cost)
		       ? number__bytes(value, !output->terminal.is_terminal)
		       : number__count(value);
}

/* "+1,234" */
static struct number_text signed_text(const struct diff_output *output, __s64 value)
{
	struct number_text number = cost_text(output, value < 0 ? -(__u64)value : (__u64)value);
	struct number_text text;

	snprintf(text.text, sizeof(text.text), "%s%.30s",
		 value < 0 ? "-"
		 : value   ? "+"
			   : "",
		 number.text);
	return text;
}

/* "+12.3 %" */
static struct number_text change_text(__u64 before, __s64 difference)
{
	struct number_text text;

	if (!difference)
		return table__word("").text;
	if (!before)
		return table__word("new").text;
	snprintf(text.text, sizeof(text.text), "%+.1f %%", 100.0 * difference / before);
	return text;
}

/* Increases are red, decreases green. */
static enum colour change_colour(__s64 difference)
{
	return difference > 0 ? COLOUR_RED : difference < 0 ? COLOUR_GREEN : COLOUR_NONE;
}

static void fill_row(const struct diff_output *output, struct table_cell cells[COLUMNS],
		     const char *n, const char *title, const struct number_text values[DIFF_SIDES],
		     __u64 before, __s64 difference)
{
	cells[0] = table__word(n);
	cells[1] = (struct table_cell){ .text = values[DIFF_BEFORE] };
	cells[2] = (struct table_cell){ .text = values[DIFF_AFTER] };
	cells[3] =
		(struct table_cell){ signed_text(output, difference), change_colour(difference) };
	cells[4] = (struct table_cell){ .text = change_text(before, difference) };
	cells[5] = table__word(title);
}

static void fill_sum(const struct diff_output *output, struct table_cell cells[COLUMNS], size_t n,
		     const char *title, const __u64 costs[DIFF_SIDES])
{
	const struct number_text values[] = { cost_text(output, costs[DIFF_BEFORE]),
					      cost_text(output, costs[DIFF_AFTER]) };

	fill_row(output, cells, number__count(n).text, title, values, costs[DIFF_BEFORE],
		 diff__difference(costs));
}

static void print_sums(const struct diff_output *output)
{
	struct table_column columns[COLUMNS] = {
		{ .title = "stacks", .gap = 1 },
		{ .title = "before", .gap = 2, .width = 11 },
		{ .title = "after", .gap = 2, .width = 11 },
		{ .title = "difference", .gap = 2, .width = 11 },
		{ .title = "change", .gap = 2, .width = 8 },
		{ .title = "", .gap = 2, .left = true },
	};
	struct table_cell rows[DIFF_SECTIONS + 2][COLUMNS];
	const struct diff *diff = output->diff;
	const __u64 totals[] = { diff->profiles[DIFF_BEFORE].total,
				 diff->profiles[DIFF_AFTER].total };
	const __s64 *between = diff->between_runs;
	size_t n = 0;

	for (int i = 0; i < DIFF_SECTIONS; i++) {
		const struct diff_sum *sum = &diff->sections[i];

		if (i == DIFF_BELOW_MIN ? diff->options.min > 0
					: i != DIFF_PAIRED || !diff->options.no_pairing)
			fill_sum(output, rows[n++], sum->n, titles[i], sum->costs);
	}
	if (between[DIFF_BEFORE] || between[DIFF_AFTER]) {
		const struct number_text values[] = { signed_text(output, between[DIFF_BEFORE]),
						      signed_text(output, between[DIFF_AFTER]) };

		fill_row(output, rows[n++], "", "between runs", values, 0,
			 between[DIFF_AFTER] - between[DIFF_BEFORE]);
		rows[n - 1][4] = table__word("");
	}
	fill_sum(output, rows[n++], diff->n_entries, "total", totals);
	table__fit_titles(columns, COLUMNS);
	for (size_t i = 0; i < n; i++)
		table__fit(columns, COLUMNS, rows[i]);
	/* The last column is text and needs no padding. */
	columns[COLUMNS - 1].width = 0;
	table__print_titles(columns, COLUMNS - 1, &output->terminal);
	fputc('\n', output->terminal.to);
	for (size_t i = 0; i < n; i++) {
		table__print_row(columns, COLUMNS, rows[i], &output->terminal);
		fputc('\n', output->terminal.to);
	}
}

double diff_output__seconds(const struct profile *profile)
{
	const char *seconds = profile__meta(profile, "elapsed_seconds");
	__u64 runs = profile->n_runs > 1 ? profile->n_runs : 1;

	return seconds ? strtod(seconds, NULL) / runs : 0;
}

/* Prints when a side was recorded, for how long, and its sum. */
static void print_size(const struct diff_output *output, enum diff_side side)
{
	const struct profile *profile = output->profiles[side];
	const char *start = profile__meta(profile, "start_time");
	double seconds = diff_output__seconds(profile);
	__u64 calls = profile__ledger(profile, "events");
	FILE *to = output->terminal.to;

	if (start) {
		fputs("; ", to);
		terminal__print(&output->terminal, start, 0);
	}
	if (seconds > 0)
		fprintf(to, "; %s", number__time(seconds * NS_PER_S).text);
	fprintf(to, "; %s %s", number__count(calls).text, plural__of("call{|s}", calls).text);
}

/* Returns whether a recording covers only a part of what its program did, so that its numbers
 * depend on how long it took. */
static bool is_part(const struct profile *profile)
{
	return profile__meta(profile, "attached_pid") || !profile__meta(profile, "exit_status");
}

/* Durations that differ by a smaller factor are said to be the same. */
#define SAME_DURATION 1.1

static void print_durations(const struct diff_output *output)
{
	double before = diff_output__seconds(output->profiles[DIFF_BEFORE]);
	double after = diff_output__seconds(output->profiles[DIFF_AFTER]);
	double times = before > 0 ? after / before : 0;

	if (output->rate || !(times > 0) || (times < SAME_DURATION && times > 1 / SAME_DURATION) ||
	    !is_part(output->profiles[DIFF_BEFORE]) || !is_part(output->profiles[DIFF_AFTER]))
		return;
	fprintf(output->terminal.to,
		"AFTER took %.2f times as long as BEFORE: --per second compares rates, and --per FUNCTION or "
		"--per N:M what each call or request allocates\n",
		times);
}

/* Prints the rates, and what the numbers of BEFORE mean with them. */
static void print_rate(const struct diff_output *output)
{
	const struct diff_rate *rate = output->rate;
	const struct diff *diff = output->diff;
	double factor = diff->options.before_times;
	FILE *to = output->terminal.to;

	if (!rate)
		return;
	fprintf(to, "\nper %s", rate->is_function ? "call through " : "");
	terminal__print(&output->terminal,
			strchr(rate->unit, ':') && !rate->is_function ? "one of N:M" : rate->unit,
			0);
	fprintf(to,
		": before %.3f, after %.3f; the numbers of BEFORE are multiplied by %.4g, to compare equal amounts",
		diff->profiles[DIFF_BEFORE].total / factor / rate->amounts[DIFF_BEFORE],
		diff->profiles[DIFF_AFTER].total / rate->amounts[DIFF_AFTER], factor);
	fputc('\n', to);
}

/* Returns how many columns the command has in the head; 0: no limit. */
static size_t command_columns(const struct diff_output *output, enum diff_side side)
{
	size_t used = HEAD_COLUMNS + terminal__columns_of(output->inputs[side]);

	if (!output->terminal.columns)
		return 0;
	return output->terminal.columns > used + LEAST_COMMAND ? output->terminal.columns - used
							       : LEAST_COMMAND;
}

static void print_header(const struct diff_output *output)
{
	static const char *const names[DIFF_SIDES] = { "BEFORE", "AFTER" };
	const struct diff *diff = output->diff;
	FILE *to = output->terminal.to;

	for (int side = 0; side < DIFF_SIDES; side++) {
		const char *command = profile__meta(output->profiles[side], "command");
		const char *attached = profile__meta(output->profiles[side], "attached_command");
		const struct diff_profile *profile = &diff->profiles[side];
		char run[RUNS_TEXT_SIZE];

		fprintf(to, "%-6s  ", names[side]);
		terminal__set_colour(&output->terminal, COLOUR_BOLD);
		terminal__print(&output->terminal, output->inputs[side], 0);
		terminal__set_colour(&output->terminal, COLOUR_NONE);
		if (command || attached) {
			fputs(": ", to);
			terminal__print(&output->terminal, command ? command : attached,
					command_columns(output, side));
		}
		print_size(output, side);
		if (runs_text__taken(output->profiles[side], run))
			fprintf(to, "; %s", run);
		if (profile->n_runs > 1)
			fprintf(to, "; %s runs, %s to %s", number__count(profile->n_runs).text,
				number__count(profile->min).text, number__count(profile->max).text);
		if (profile->is_sampled)
			fprintf(to, "; sampled, %s to %s", number__count(profile->min).text,
				number__count(profile->max).text);
		if (!completeness__is_complete(output->profiles[side]))
			fputs("; NOT COMPLETE, differences may come from that", to);
		fputc('\n', to);
	}
	print_durations(output);
	print_rate(output);
	if (output->moved) {
		fputc('\n', to);
		moved_text__print(output->moved, output->n_moved, &output->terminal);
	}
	fprintf(to, "\n%s", cost_titles[diff->options.cost]);
	if (diff->options.depth)
		fprintf(to, ", by the innermost %u frames", diff->options.depth);
	fputs("\n\n", to);
}

static void print_frame(const struct diff_output *output, const struct diff_mark *mark,
			const struct diff_frame_lines *lines)
{
	const struct terminal *terminal = &output->terminal;
	bool removed = !mark->is_in[DIFF_AFTER], added = !mark->is_in[DIFF_BEFORE];
	size_t room =
		terminal->columns > MARGIN + LEAST_NAME ? terminal->columns - MARGIN : LEAST_NAME;
	size_t module = terminal__columns_of(mark->name->module) + strlen(" ()");

	fprintf(terminal->to, "      %c ", removed ? '-' : added ? '+' : ' ');
	/* The file is left out where nothing of the function would be left. */
	if (*mark->name->module && room >= module + LEAST_NAME)
		room -= module;
	else if (terminal->columns)
		module = 0;
	terminal__print(terminal, mark->name->function, terminal->columns ? room : 0);
	if (lines)
		diff_frame_lines__print(lines, terminal);
	if (module && *mark->name->module && *mark->name->function != '[') {
		fputs(" (", terminal->to);
		terminal__print(terminal, mark->name->module, 0);
		fputc(')', terminal->to);
	}
	fputc('\n', terminal->to);
}

static bool differs(const struct diff_mark *mark)
{
	return !mark->is_in[DIFF_BEFORE] || !mark->is_in[DIFF_AFTER];
}

/* Prints the frames that differ, with context. */
static void print_pair(const struct diff_output *output, const struct diff_mark *marks, size_t n)
{
	size_t skipped = 0;

	for (size_t i = 0; i <= n; i++) {
		size_t from = i > CONTEXT ? i - CONTEXT : 0, to = i + CONTEXT;
		bool near = false;

		for (size_t j = from; j <= to && j < n && i < n; j++)
			near |= differs(&marks[j]);
		if (skipped && (near || i == n)) {
			fprintf(output->terminal.to, "        ... %s %s alike\n",
				number__count(skipped).text, plural__of("frame{|s}", skipped).text);
			skipped = 0;
		}
		if (!near) {
			skipped++;
			continue;
		}
		terminal__set_colour(&output->terminal, !marks[i].is_in[DIFF_AFTER] ? COLOUR_RED
							: !marks[i].is_in[DIFF_BEFORE]
								? COLOUR_GREEN
								: COLOUR_NONE);
		print_frame(output, &marks[i], NULL);
		terminal__set_colour(&output->terminal, COLOUR_NONE);
	}
}

static void print_cost(const struct diff_output *output, const struct diff_entry *entry,
		       enum diff_side side)
{
	struct diff_cost cost = diff_entry__cost(output->diff, entry, side);

	fputs(cost_text(output, cost.median).text, output->terminal.to);
	if (diff_profile__has_range(&output->diff->profiles[side]) && cost.min != cost.max)
		fprintf(output->terminal.to, " (%s to %s)", cost_text(output, cost.min).text,
			cost_text(output, cost.max).text);
}

static int print_entry(const struct diff_output *output, const struct diff_entry *entry)
{
	_cleanup_(free_ptr) struct diff_mark *marks = NULL;
	_cleanup_(free_ptr) struct diff_frame_lines *lines = NULL;
	const struct terminal *terminal = &output->terminal;
	__u64 before = diff_entry__cost(output->diff, entry, DIFF_BEFORE).median;
	struct number_text change = change_text(before, entry->difference);
	size_t n;
	int err = diff_entry__marks(output->diff, entry, &marks, &n);

	if (!err && entry->section != DIFF_PAIRED)
		err = diff_lines__of(output, entry, marks, n, &lines);
	if (err)
		return err;
	fputs("\n  ", terminal->to);
	terminal__set_colour(terminal, change_colour(entry->difference));
	fputs(signed_text(output, entry->difference).text, terminal->to);
	terminal__set_colour(terminal, COLOUR_NONE);
	fputs("  ", terminal->to);
	print_cost(output, entry, DIFF_BEFORE);
	fputs(" -> ", terminal->to);
	print_cost(output, entry, DIFF_AFTER);
	if (*change.text)
		fprintf(terminal->to, "  %s", change.text);
	if (entry->section == DIFF_PAIRED)
		fprintf(terminal->to, "  paired, %u.%u %% alike", entry->similarity / 10,
			entry->similarity % 10);
	if (entry->is_noise)
		fputs("  within the noise", terminal->to);
	fputc('\n', terminal->to);
	if (entry->section == DIFF_PAIRED) {
		print_pair(output, marks, n);
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		/* The frame counts as being on both sides, since the section's title already says
		 * which side has the stack. */
		marks[i].is_in[DIFF_BEFORE] = marks[i].is_in[DIFF_AFTER] = true;
		print_frame(output, &marks[i], lines ? &lines[i] : NULL);
	}
	return 0;
}

static int print_section(const struct diff_output *output, enum diff_section section)
{
	const struct diff_sum *sum = &output->diff->sections[section];
	size_t n = diff_output__listed(output, section);
	size_t more = count_listable(output, section) - n;
	size_t equal = section == DIFF_PAIRED ? count_equal_pairs(output) : 0;
	__s64 rest = diff__difference(sum->costs);
	int err = 0;

	if (!n && !equal)
		return 0;
	fputc('\n', output->terminal.to);
	terminal__set_colour(&output->terminal, COLOUR_BOLD);
	fprintf(output->terminal.to, "%s: %s", titles[section],
		n ? signed_text(output, rest).text : "");
	terminal__set_colour(&output->terminal, COLOUR_NONE);
	if (n)
		fputc('\n', output->terminal.to);
	for (size_t i = 0; i < n && !err; i++) {
		const struct diff_entry *entry = &output->diff->entries[sum->first + i];

		err = print_entry(output, entry);
		rest -= entry->difference;
	}
	if (more)
		fprintf(output->terminal.to, "\n  %s  %s %s; --top 0 lists all\n",
			signed_text(output, rest).text, number__count(more).text,
			plural__of("more stack{|s}", more).text);
	if (equal)
		fprintf(output->terminal.to, "%s%s %s\n", n ? "\n  0  " : "",
			number__count(equal).text,
			plural__of("pair{|s} at the same cost; --all lists {it|them}", equal).text);
	return err;
}

static void print_notes(const struct diff_output *output)
{
	const struct diff *diff = output->diff;
	FILE *to = output->terminal.to;

	if (filter__has_live(output->profiles[DIFF_BEFORE]) !=
	    filter__has_live(output->profiles[DIFF_AFTER]))
		fputs("\nOnly one of the recordings was made with --live: the other one counts "
		      "calls that got no\nmemory, too.\n",
		      to);
	if (diff->between_runs[DIFF_BEFORE] || diff->between_runs[DIFF_AFTER])
		fputs("\nEach stack's cost is its median over the runs; \"between runs\" is what "
		      "the median\nof the totals has over their sum.\n",
		      to);
	if (diff->stopped_pairing)
		fputs("\nSo many stacks differ that not all of them were looked at for pairs.\n",
		      to);
	if (diff->is_cut)
		fputs("\nA sum is greater than 9,223,372,036,854,775,807 and shown as that, so the numbers do not add up.\n",
		      to);
}

static __u64 effect(const struct diff *diff, enum diff_section section)
{
	__s64 difference = diff__difference(diff->sections[section].costs);

	return difference < 0 ? -(__u64)difference : (__u64)difference;
}

int diff_output__text(const struct diff_output *output)
{
	enum diff_section order[] = { DIFF_ONLY_AFTER, DIFF_CHANGED, DIFF_PAIRED, DIFF_ONLY_BEFORE,
				      DIFF_ALIKE };
	size_t n = ARRAY_SIZE(order);
	int err = 0;

	print_header(output);
	print_sums(output);
	/* Sorts causes in descending order of effect; the last one has none. */
	for (size_t i = 1; i + 1 < n; i++) {
		for (size_t j = i;
		     j && effect(output->diff, order[j]) > effect(output->diff, order[j - 1]);
		     j--) {
			enum diff_section section = order[j];

			order[j] = order[j - 1];
			order[j - 1] = section;
		}
	}
	for (size_t i = 0; i < n && !err; i++)
		err = print_section(output, order[i]);
	if (!err)
		print_notes(output);
	return err;
}
