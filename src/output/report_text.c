// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Prints a report as text: its head, its table of stacks, histograms, what still grew, and the
 * remarks below.
 */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "completeness.h"
#include "mapping_text.h"
#include "number.h"
#include "profile.h"
#include "profile_runs.h"
#include "recording_text.h"
#include "report_output.h"
#include "stack_groups.h"
#include "suppressions.h"
#include "table.h"
#include "text.h"

/* Prints which stacks and functions still grew when the recording ended, and what the end freed. */

static void report_output__growth(const struct report_output *output)
{
	const struct report *report = output->report;
	FILE *to = output->terminal.to;
	double bytes_per_second = 0;
	size_t n = 0, n_known = 0, n_undecided = 0;

	for (size_t i = 0; i < report->n_entries; i++) {
		const struct growth *growth = &report->entries[i].growth;

		n_known += growth->is_known;
		n_undecided += growth->verdict == GROWTH_UNDECIDED;
		if (growth->verdict == GROWTH_GROWING) {
			bytes_per_second += growth->bytes_per_second;
			n++;
		}
	}
	/* Nothing is said if the recording is shorter than the epochs over which growth is
	 * computed, or has several runs. */
	if (!n_known && (!report->epoch_ns || profile__n_runs(output->profile) > 1))
		return;
	terminal__set_colour(&output->terminal, COLOUR_BOLD);
	fputs("Still growing at the end", to);
	terminal__set_colour(&output->terminal, COLOUR_NONE);
	if (n)
		fprintf(to, ": %s %s, by %s a second", number__count(n).text,
			plural__of("stack{|s}", n).text,
			report_output__bytes(output, number__of(bytes_per_second)).text);
	else
		fputs(n_known ? ": none" : ": not known, the recording is too short", to);
	if (n_undecided)
		fprintf(to, "%s %s undecided", n ? "," : ", but", number__count(n_undecided).text);
	fputc('\n', to);
	for (size_t i = 0; i < report->n_growing && i < output->top; i++) {
		const struct report_growing *growing = &report->growing[i];

		fprintf(to, "Growing in sum over %s stacks, by %s a second: ",
			number__count(growing->n_entries).text,
			report_output__bytes(output, number__of(growing->growth.bytes_per_second))
				.text);
		report_output__frame(output, growing->label, 0);
		fputc('\n', to);
	}
}

static void report_output__exit_frees(const struct report_output *output)
{
	const struct report *report = output->report;

	if (!report->exit_frees.epoch)
		return;
	fprintf(output->terminal.to,
		"in its last %s the program freed %s of it: what was live before that is shown, and "
		"--at-exit\nshows what was left at the end, %s in %s %s\n",
		number__time(report->exit_frees.took_ns).text,
		report_output__bytes(output, report->exit_frees.freed_bytes).text,
		report_output__bytes(output, report->left_bytes).text,
		number__count(report->left).text, plural__of("block{|s}", report->left).text);
}

/* The head, the table of stacks, and the remarks below. */

#define MAX_COLUMNS  10
#define FRAME_INDENT 8
#define INLINED	     " (inlined)"

/* Large shares are red, as in perf. */
static enum colour share_colour(__u64 part, __u64 whole)
{
	double share = whole ? (double)part / whole : 0;

	return share >= 0.05 ? COLOUR_RED : share >= 0.005 ? COLOUR_GREEN : COLOUR_NONE;
}

static struct number_text bytes_text(const struct report_output *output, __u64 bytes)
{
	return number__bytes(bytes, !output->terminal.is_terminal);
}

struct number_text report_text__bytes(__u64 bytes, bool exact)
{
	struct number_text text = number__bytes(bytes, exact);

	if (exact)
		snprintf(text.text, sizeof(text.text), "%.32s %.5s", number__count(bytes).text,
			 plural__of("byte{|s}", bytes).text);
	return text;
}

struct number_text report_output__bytes(const struct report_output *output, __u64 bytes)
{
	return report_text__bytes(bytes, !output->terminal.is_terminal);
}

bool report_output__selects_blocks(const struct report_output *output)
{
	return filter__selects_blocks(output->filter);
}

static bool shows_types(const struct report_output *output)
{
	return output->groups->view->shown_types == STACK_TYPES_ONLY;
}

static bool is_about_live(const struct report_output *output)
{
	const struct filter_options *options = output->filter;

	return options->leaks || options->older.is_given || output->cost == COST_LIVE ||
	       output->cost == COST_LIVE_BYTES;
}

const char *report_output__what(const struct report_output *output)
{
	const struct filter_options *options = output->filter;

	if (!output->report->epoch_ns && !filter__has_live(output->profile))
		return "requested";
	if (output->report->exit_frees.epoch)
		return "alive before the end";
	if (is_about_live(output))
		return output->report->at_exit ? "leaked" : "still allocated";
	if (options->freed || options->freed_after.is_given || options->max_lifetime.is_given)
		return "freed";
	if (output->cost == COST_TEMPORARY)
		return "temporary";
	if (output->cost == COST_PEAK)
		return "at the peak";
	if (output->cost == COST_RESIDENT)
		return "resident";
	if (output->cost == COST_UNIQUE)
		return "on pages of one stack alone";
	if (output->cost == COST_LOST)
		return "lost";
	return "allocated";
}

static void print_ledger(const struct report_output *output)
{
	const struct profile *profile = output->profile;
	__u64 incomplete = profile__ledger(profile, "incomplete");
	__u64 attributed = profile__ledger(profile, "attributed");
	__u64 untracked = profile__ledger(profile, "untracked");

	fprintf(output->terminal.to,
		"%s events = ", number__count(profile__ledger(profile, "events")).text);
	if (profile__sample_bytes(profile))
		fprintf(output->terminal.to, "%s sampled + %s not sampled",
			number__count(profile__ledger(profile, "sampled")).text,
			number__count(profile__ledger(profile, "not_sampled")).text);
	else
		fprintf(output->terminal.to, "%s attributed", number__count(attributed).text);
	fprintf(output->terminal.to, " + %s lost",
		number__count(profile__ledger(profile, "lost")).text);
	if (untracked)
		fprintf(output->terminal.to, ", %s not followed", number__count(untracked).text);
	fputs(": ", output->terminal.to);
	if (completeness__is_complete(profile))
		fputs("complete", output->terminal.to);
	else
		fputs("not complete", output->terminal.to);
	if (incomplete)
		fprintf(output->terminal.to,
			"\n%s of the calls have stacks that are, or may be, incomplete; --strict "
			"says why",
			number__share(incomplete, attributed).text);
	fputc('\n', output->terminal.to);
}

/* Prints " within 3.9 %", or nothing if the number is exact. */
static void print_margin(const struct report_output *output,
			 const struct profile_estimate *estimate, bool bytes, __u64 value)
{
	__u64 unseen = profile__unseen_bytes(output->profile);

	if (!profile__sample_bytes(output->profile) || !estimate)
		return;
	if (!value && bytes && unseen)
		fprintf(output->terminal.to, ", less than %s",
			report_output__bytes(output, unseen).text);
	if (!value)
		return;
	fprintf(output->terminal.to, " within %s",
		number__margin(profile_estimate__margin(estimate, bytes), value).text);
}

static void print_sampling(const struct report_output *output)
{
	__u64 bytes = profile__sample_bytes(output->profile);
	bool is_weighted = profile__is_weighted(output->profile);

	if (is_weighted)
		fputs("samples that probes told of count by their weight: numbers of these are "
		      "estimates, 95 % of them within the stated error\n",
		      output->terminal.to);
	if (bytes && !(is_weighted && bytes == 1))
		fprintf(output->terminal.to,
			"one byte of %s was sampled: all numbers are estimates, 95 %% of them "
			"within the stated error\n",
			number__count(bytes).text);
}

static void print_memory(const struct report_output *output)
{
	const struct selection *whole = &output->report->whole;
	const struct profile_estimate *of_left = &output->report->of_left;
	FILE *to = output->terminal.to;

	fprintf(to, "%s %s", number__count(whole->allocations).text,
		plural__of("allocation{|s}", whole->allocations).text);
	print_margin(output, &whole->of_allocations, false, whole->allocations);
	fprintf(to, ", %s", report_output__bytes(output, whole->size_bytes).text);
	print_margin(output, &whole->of_allocations, true, whole->size_bytes);
	if (whole->temporary)
		fprintf(to, "; %s temporary",
			number__share(whole->temporary, whole->allocations).text);
	fprintf(to, "; at the end %s left", number__count(output->report->left).text);
	print_margin(output, of_left, false, output->report->left);
	fprintf(to, ", %s", report_output__bytes(output, output->report->left_bytes).text);
	print_margin(output, of_left, true, output->report->left_bytes);
	fputc('\n', to);
}

/* Prints what was recorded, when, and for how long. The command is truncated on a terminal. */
static void print_subject(const struct report_output *output)
{
	const struct profile *profile = output->profile;
	const struct terminal *terminal = &output->terminal;
	_cleanup_(free_ptr) char *title = recording_text__subject(profile);
	const char *start = profile__meta(profile, "start_time");
	/* The engine is only printed if it is not uprobe. */
	const char *engine = profile__meta(profile, "engine");
	const char *copied_at = profile__meta(profile, "dump_at");
	size_t used = strlen(output->input) + (start ? strlen(start) : 0) + 16;

	terminal__set_colour(terminal, COLOUR_BOLD);
	terminal__print(terminal, output->input, 0);
	terminal__set_colour(terminal, COLOUR_NONE);
	if (title) {
		fputs(": ", terminal->to);
		terminal__print(terminal, title,
				!terminal->columns		? 0
				: terminal->columns > used + 16 ? terminal->columns - used
								: 16);
	}
	if (start) {
		fputs(", ", terminal->to);
		terminal__print(terminal, start, 0);
	}
	if (output->report->end_ns)
		fprintf(terminal->to, ", %s%s", profile->n_runs > 1 ? "the longest run " : "",
			number__time(output->report->end_ns).text);
	if (engine) {
		fputs(", engine ", terminal->to);
		terminal__print(terminal, engine, 0);
		if (profile__meta(profile, "uprobe_programs"))
			fputs(" and uprobe", terminal->to);
	}
	if (copied_at) {
		fputs(", copied at ", terminal->to);
		terminal__print(terminal, copied_at, 0);
	}
	fputc('\n', terminal->to);
}

int report_output__header(const struct report_output *output)
{
	int err;

	print_subject(output);
	err = runs_text__print_subject(output->profile, output->terminal.to);
	if (err)
		return err;
	print_ledger(output);
	print_sampling(output);
	if (profile__meta(output->profile, "backtrace"))
		fputs("no stacks were taken (--backtrace=none)\n", output->terminal.to);
	if (output->report->epoch_ns)
		print_memory(output);
	return recording_text__print_beside(output->profile, &output->terminal);
}

/* Returns the unit of the shares in words. */
static const char *name_unit(const struct report_output *output)
{
	if (cost__is_bytes(output->cost))
		return "bytes";
	return filter__has_live(output->profile) ? "blocks" : "calls";
}

static __u64 mask_of(bool (*is_one)(enum ap_function function))
{
	__u64 functions = 0;

	for (int i = 0; i < AP_DEFINED; i++)
		functions |= (__u64)is_one(i) << i;
	return functions;
}

/* Says how much of the sum is of the @functions, a mask, and @what they are. */
static void print_part(const struct report_output *output, __u64 functions, const char *what)
{
	const struct report *report = output->report;
	struct selection sum = selection_none;
	__u64 calls;

	for (size_t i = 0; i < report->n_entries; i++)
		if (functions >> report->entries[i].function & 1)
			selection__add(&sum, &report->entries[i].selected);
	calls = cost__blocks(output->cost, &sum);
	if (!calls)
		return;
	if (calls == cost__blocks(output->cost, &report->total)) {
		fprintf(output->terminal.to, "These are %s\n", what);
		return;
	}
	fprintf(output->terminal.to, "%s of these, in %s %s, are %s\n",
		report_output__bytes(output, cost__bytes(output->cost, &sum)).text,
		number__count(calls).text, plural__of("call{|s}", calls).text, what);
}

/* An allocator makes mappings to hand out the same memory again, and it becomes resident later. The
 * entries have all of these; the totals of stat include neither mappings nor page faults. */
static void print_parts(const struct report_output *output)
{
	print_part(output, mask_of(profile__function_maps),
		   "mappings: memory that allocators take from the kernel counts here, and again "
		   "where they hand it out");
	print_part(output, mask_of(profile__function_faults),
		   "page faults: memory that became resident, a page each, also where the kernel "
		   "mapped more at once");
	print_part(output, output->profile->definitions.counted,
		   "calls that are only counted: they hand out nothing");
}

/* Prints "Leaked: 12.3 MiB in 4,011 blocks of 3 stacks, 61.2 % of all bytes". */
void report_output__title(const struct report_output *output)
{
	const struct report *report = output->report;
	const char *what = report_output__what(output);
	__u64 blocks = cost__blocks(output->cost, &report->total);
	__u64 bytes = cost__bytes(output->cost, &report->total);
	__u64 part = cost__of(output->cost, &report->total);
	__u64 all = cost__of(output->cost, &report->whole);
	const char *unit = filter__has_live(output->profile) ? "block{|s}" : "call{|s}";
	__u64 unseen = profile__unseen_bytes(output->profile);
	FILE *to = output->terminal.to;

	fputc('\n', to);
	terminal__set_colour(&output->terminal, COLOUR_BOLD);
	fprintf(to, "%c%s", what[0] - 'a' + 'A', what + 1);
	terminal__set_colour(&output->terminal, COLOUR_NONE);
	if (!report->n_entries) {
		fputs(": nothing", to);
		if (cost__estimate(output->cost, &report->total) && unseen)
			fprintf(to, " was sampled: less than %s",
				report_output__bytes(output, unseen).text);
		fputc('\n', to);
		return;
	}
	if (output->cost == COST_PEAK && report->peak_bytes && report->peak_bytes != bytes)
		fprintf(to, ": %s, of which the stacks add up to %s",
			report_output__bytes(output, report->peak_bytes).text,
			report_output__bytes(output, bytes).text);
	else
		fprintf(to, ": %s", report_output__bytes(output, bytes).text);
	print_margin(output, cost__estimate(output->cost, &report->total), true, bytes);
	fprintf(to, " in %s %s", number__count(blocks).text, plural__of(unit, blocks).text);
	print_margin(output, cost__estimate(output->cost, &report->total), false, blocks);
	fprintf(to, " of %s %s", number__count(report->n_entries).text,
		plural__of(shows_types(output) ? "row{|s}" : "stack{|s}", report->n_entries).text);
	if (part < all)
		fprintf(to, ", %s of all %s", number__share(part, all).text, name_unit(output));
	fputc('\n', to);
	print_parts(output);
	mapping_text__live(output);
	report_output__exit_frees(output);
	if (output->with_reach)
		report_output__reach(output);
	if (output->with_growth)
		report_output__growth(output);
}

/* The columns of a row, left to right. */
struct row {
	struct table_column columns[MAX_COLUMNS];
	struct table_cell cells[MAX_COLUMNS];
	size_t n;
};

static void add_cell(struct row *row, const char *title, struct number_text text,
		     enum colour colour)
{
	row->columns[row->n].title = title;
	row->columns[row->n].gap = row->n ? 2 : 0;
	row->cells[row->n++] = (struct table_cell){ text, colour };
}

static void add_age(const struct report_output *output, struct row *row,
		    const struct report_entry *entry)
{
	__u64 oldest_ns = entry->selected.oldest_ns, end_ns = output->report->end_ns;
	struct number_text age = { "-" };

	if (oldest_ns != UINT64_MAX)
		age = number__time(end_ns > oldest_ns ? end_ns - oldest_ns : 0);
	add_cell(row, "oldest", age, COLOUR_NONE);
}

/* Adds the error of the share to the row. */
static void add_estimate(const struct report_output *output, struct row *row,
			 const struct report_entry *entry)
{
	const struct profile_estimate *estimate = cost__estimate(output->cost, &entry->selected);
	__u64 part = cost__of(output->cost, &entry->selected);
	double margin;

	if (!profile__sample_bytes(output->profile) || !estimate)
		return;
	margin = profile_estimate__margin(estimate, cost__is_bytes(output->cost));
	add_cell(row, "within", number__margin(margin, part), COLOUR_NONE);
	add_cell(row, "samples", number__count(estimate->samples), COLOUR_NONE);
}

/* Returns the title of the column with the share of a stack's own blocks that is selected. */
static const char *share_title(const struct report_output *output)
{
	const char *what = report_output__what(output);

	if (!strcmp(what, "still allocated") || !strcmp(what, "alive before the end"))
		return "alive";
	if (!strcmp(what, "at the peak"))
		return "at peak";
	return strcmp(what, "allocated") ? what : "selected";
}

static void add_growth(const struct report_output *output, struct row *row,
		       const struct growth *growth)
{
	bool is_growing = growth->verdict == GROWTH_GROWING;
	struct number_text text = { "no" };

	if (growth->verdict == GROWTH_UNDECIDED)
		text = (struct number_text){ "undecided" };
	else if (is_growing)
		snprintf(text.text, sizeof(text.text), "+%.20s/s",
			 bytes_text(output, growth->bytes_per_second).text);
	add_cell(row, "growing", text, is_growing ? COLOUR_RED : COLOUR_NONE);
}

/* Adds what the stack's live blocks have of the resident memory: what would come back with them,
 * what of that is of no block, and the blocks' own bytes, resident and in all. */
static void add_resident(const struct report_output *output, struct row *row,
			 const struct report_entry *entry)
{
	const struct selection *selected = &entry->selected;
	__u64 unique = cost__bytes(COST_UNIQUE, selected);

	add_cell(row, "unique", bytes_text(output, unique), COLOUR_NONE);
	add_cell(row, "slack", bytes_text(output, selected->unique_slack_bytes), COLOUR_NONE);
	add_cell(row, "resident", bytes_text(output, selected->resident_bytes), COLOUR_NONE);
	add_cell(row, "live", bytes_text(output, selected->live_bytes), COLOUR_NONE);
	add_cell(row, "blocks", number__count(selected->live), COLOUR_NONE);
	if (entry->growth.is_known)
		add_growth(output, row, &entry->growth);
}

/* Adds the bytes of the stack's blocks that are lost, or may be. */
static void add_reach(const struct report_output *output, struct row *row,
		      const struct report_entry *entry)
{
	static const char *const titles[] = {
		[PROFILE_LOST] = "lost",
		[PROFILE_INDIRECTLY_LOST] = "indirectly",
		[PROFILE_POSSIBLY_LOST] = "possibly",
	};
	const struct profile_reached *reached = entry->selected.reached;

	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		add_cell(row, titles[i], bytes_text(output, reached[i].size_bytes),
			 reached[i].blocks && i != PROFILE_POSSIBLY_LOST ? COLOUR_RED
									 : COLOUR_NONE);
	if (entry->growth.is_known)
		add_growth(output, row, &entry->growth);
}

/* Fills the cells of @row; the titles are the same for all entries. */
static void fill_row(const struct report_output *output, const struct report_entry *entry,
		     struct row *row)
{
	const struct report *report = output->report;
	const struct selection *selected = &entry->selected;
	__u64 blocks = cost__blocks(output->cost, selected);
	__u64 bytes = cost__bytes(output->cost, selected);
	__u64 part = cost__of(output->cost, selected), all = cost__of(output->cost, &report->whole);
	bool has_live = filter__has_live(output->profile);
	const char *title = share_title(output);
	struct selection whole;
	struct number_text id;

	report_entry__whole(report, entry, output->cost, &whole);
	row->n = 0;
	/* The id has the form that --stack takes. */
	snprintf(id.text, sizeof(id.text), "%u", report->groups->groups[entry->group].id);
	if (!shows_types(output))
		add_cell(row, "stack", id, COLOUR_NONE);
	add_cell(row, "share", number__share(part, all), share_colour(part, all));
	if (output->resident) {
		add_resident(output, row, entry);
		return;
	}
	add_estimate(output, row, entry);
	add_cell(row, "bytes", bytes_text(output, bytes), COLOUR_NONE);
	add_cell(row, has_live ? "blocks" : "calls", number__count(blocks), COLOUR_NONE);
	if (output->with_reach) {
		add_reach(output, row, entry);
		return;
	}
	if (!has_live) {
		add_cell(row, "average", bytes_text(output, blocks ? bytes / blocks : 0),
			 COLOUR_NONE);
		return;
	}
	if (report_output__selects_blocks(output) || cost__needs_live(output->cost)) {
		add_cell(row, title, number__share(blocks, whole.allocations), COLOUR_NONE);
		add_age(output, row, entry);
		add_cell(row, "allocations", number__count(whole.allocations), COLOUR_NONE);
	} else {
		add_cell(row, "alive", number__share(whole.live, whole.allocations), COLOUR_NONE);
		add_cell(row, "alive bytes", bytes_text(output, whole.live_bytes), COLOUR_NONE);
		add_age(output, row, entry);
	}
	/* The growth of all stacks is known, or of none. A row must fit into 80 columns. */
	if (entry->growth.is_known)
		add_growth(output, row, &entry->growth);
	else if (strcmp(title, "temporary"))
		add_cell(row, "temporary", number__share(whole.temporary, whole.allocations),
			 COLOUR_NONE);
}

size_t report_output__frame_columns(const struct report_output *output, __u32 frame)
{
	const struct stack_label *printed = &output->groups->labels[frame];

	return terminal__columns_of(printed->text) + (printed->inlined ? strlen(INLINED) : 0);
}

void report_output__frame(const struct report_output *output, __u32 frame, size_t columns)
{
	const struct terminal *terminal = &output->terminal;
	const struct stack_label *printed = &output->groups->labels[frame];
	size_t used = terminal__print(terminal, printed->text, columns);

	/* If there is no room for the mark, the name matters more. */
	if (!printed->inlined || (columns && used + strlen(INLINED) > columns))
		return;
	terminal__set_colour(terminal, COLOUR_DIM);
	fputs(INLINED, terminal->to);
	terminal__set_colour(terminal, COLOUR_NONE);
}

/* Marks a stack that reached the outermost frame but may lack others. */
static void print_doubt(const struct report_output *output, const struct stack_group *group,
			size_t columns)
{
	const struct terminal *terminal = &output->terminal;
	const char *file = stack_groups__without_table(output->groups, group, output->profile);
	char text[512];

	snprintf(text, sizeof(text), "frames may be missing (no unwind table%s%s)",
		 file ? " in " : "", file ? file : "");
	fprintf(terminal->to, "%*s", FRAME_INDENT, "");
	terminal__set_colour(terminal, COLOUR_DIM);
	terminal__print(terminal, text, columns);
	terminal__set_colour(terminal, COLOUR_NONE);
	fputc('\n', terminal->to);
}

void report_output__stack(const struct report_output *output, __u32 number, __u32 root)
{
	const struct terminal *terminal = &output->terminal;
	const struct stack_group *group = &output->groups->groups[number];
	size_t columns = terminal->columns ? terminal->columns - FRAME_INDENT : 0;

	for (__u32 i = 0; i < group->n_frames; i++) {
		fprintf(terminal->to, "%*s", FRAME_INDENT, "");
		report_output__frame(output, group->frames[i], columns);
		fputc('\n', terminal->to);
	}
	if (root != REPORT_NO_ROOT) {
		fprintf(terminal->to, "%*s", FRAME_INDENT, "");
		report_output__frame(output, root, columns);
		fputc('\n', terminal->to);
	}
	if (group->end == AP_END_FRAME_POINTERS)
		print_doubt(output, group, columns);
}

void report_output__frames(const struct report_output *output, const struct report_entry *entry)
{
	const struct terminal *terminal = &output->terminal;

	fprintf(terminal->to, "%*s", FRAME_INDENT, "");
	mapping_text__function(output, entry);
	fputc('\n', terminal->to);
	report_output__stack(output, entry->group, entry->root);
}

static void print_rest(const struct report_output *output, size_t shown)
{
	const struct report *report = output->report;
	__u64 rest = 0;
	size_t more = report->n_entries - shown;

	if (!more)
		return;
	/* The entries that are left are added up, since sums saturate: the total minus the printed
	 * ones may be wrong. */
	for (size_t i = shown; i < report->n_entries; i++)
		rest = profile__add_up(rest, cost__of(output->cost, &report->entries[i].selected));
	fprintf(output->terminal.to, "\n%s %s, %s of all %s; %s too\n", number__count(more).text,
		plural__of(shows_types(output) ? "more row{|s}" : "more stack{|s}", more).text,
		number__share(rest, cost__of(output->cost, &report->whole)).text, name_unit(output),
		plural__of("--top=0 prints {it|them}", more).text);
}

void report_output__table(const struct report_output *output)
{
	const struct report *report = output->report;
	size_t shown = output->top < report->n_entries ? output->top : report->n_entries;
	struct row row = { .n = 0 };

	for (size_t i = 0; i < shown; i++) {
		fill_row(output, &report->entries[i], &row);
		table__fit(row.columns, row.n, row.cells);
	}
	if (!shown)
		return;
	fputc('\n', output->terminal.to);
	table__fit_titles(row.columns, row.n);
	table__print_titles(row.columns, row.n, &output->terminal);
	for (size_t i = 0; i < shown && !ferror(output->terminal.to); i++) {
		fill_row(output, &report->entries[i], &row);
		fputc('\n', output->terminal.to);
		table__print_row(row.columns, row.n, row.cells, &output->terminal);
		fputc('\n', output->terminal.to);
		report_output__frames(output, &report->entries[i]);
	}
	print_rest(output, shown);
}

static void print_unsure(const struct report_output *output)
{
	const struct selection *total = &output->report->total;

	if (!total->unsure)
		return;
	fprintf(output->terminal.to,
		"\n%s more blocks, %s, may belong here: times are known to %s.\n",
		number__count(total->unsure).text,
		report_output__bytes(output, total->unsure_bytes).text,
		number__time(output->report->epoch_ns).text);
}

/* The wording is that of LeakSanitizer. */
static void print_suppressions(const struct report_output *output)
{
	const struct suppressions *suppressions = output->filter->suppressions;
	bool any = false;

	for (size_t i = 0; suppressions && i < suppressions->n; i++) {
		const struct suppression *suppression = &suppressions->list[i];

		if (!suppression->blocks)
			continue;
		if (!any)
			fprintf(output->terminal.to, "\nSuppressions used:\n%12s %16s  template\n",
				"blocks", "bytes");
		any = true;
		fprintf(output->terminal.to, "%12s %16s  ", number__count(suppression->blocks).text,
			bytes_text(output, suppression->size_bytes).text);
		terminal__print(&output->terminal, suppression->template, 0);
		fputc('\n', output->terminal.to);
	}
}

static void print_words(const struct report_output *output)
{
	FILE *to = output->terminal.to;

	if (output->report->n_entries && is_about_live(output) && !output->report->at_exit &&
	    !output->report->exit_frees.epoch)
		fputs("\nStill allocated: not freed when the recording ended; the process ran on, or "
		      "replaced itself.\n",
		      to);
}

void report_output__notes(const struct report_output *output)
{
	print_words(output);
	print_unsure(output);
	print_suppressions(output);
}
