// SPDX-License-Identifier: GPL-3.0-or-later
/* Holds the last copy of the recording for `allocprof top`, and puts its rows into words. */
#include "top_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "completeness.h"
#include "data_options.h"
#include "error.h"
#include "number.h"
#include "profile.h"
#include "profile_runs.h"
#include "stack_groups.h"
#include "text.h"

static const struct {
	const char *name, *a_second, *in_all;
	bool needs_live;
} columns[TOP_COLUMNS] = {
	[TOP_CALLS] = { "calls", "CALLS/s", "CALLS", false },
	[TOP_BYTES] = { "bytes", "BYTES/s", "BYTES", false },
	[TOP_LIVE] = { "live", "LIVE", "LIVE", true },
	[TOP_GROWTH] = { "growth", "GROWTH", "GROWTH", true },
	[TOP_PEAK] = { "peak", "PEAK", "PEAK", true },
};

static const struct {
	const char *name, *title;
} kinds[TOP_BYS] = {
	[TOP_BY_FUNCTION] = { "function", "FUNCTION" },
	[TOP_BY_STACK] = { "stack", "STACK, from the inside outwards" },
	[TOP_BY_THREAD] = { "thread", "THREAD" },
	[TOP_BY_PROCESS] = { "process", "PROCESS" },
};

const char *top_column__name(enum top_column column)
{
	return columns[column].name;
}

const char *top_by__name(enum top_by by)
{
	return kinds[by].name;
}

int top_column__by_name(const char *name)
{
	for (int i = 0; i < TOP_COLUMNS; i++)
		if (!strcmp(columns[i].name, name))
			return i;
	return -ENOENT;
}

int top_by__by_name(const char *name)
{
	for (int i = 0; i < TOP_BYS; i++)
		if (!strcmp(kinds[i].name, name))
			return i;
	return -ENOENT;
}

/* Gives the new copy the names that the last one has, and looks up what is new. */
static int name_copy(struct top_view *view, struct profile *profile, struct error *error)
{
	size_t n_frames = profile->n_frames;
	int err = view->now.profile ? profile__borrow_names(profile, view->now.profile) : 0;

	if (err)
		return error__set(error, err, "cannot keep the names: out of memory");
	if (view->now.profile && n_frames == view->n_raw_frames)
		return 0;
	view->n_raw_frames = n_frames;
	view->symbols.only_new = true;
	return offline_names__add(profile, &view->symbols, false, error);
}

static int fail_memory(struct error *error)
{
	return error__set(error, -ENOMEM, "cannot show the recording: out of memory");
}

int top_view__take(struct top_view *view, struct profile *profile, bool has_ended,
		   struct error *error)
{
	struct selected next = { .profile = profile };
	int err = name_copy(view, profile, error);

	if (!err)
		err = selected__choose(&next, &view->choice, COST_ALLOCATIONS, error);
	if (!err && top__add(&view->top, profile, next.filtered.end_ns, has_ended))
		err = fail_memory(error);
	if (err) {
		selected__release(&next);
		return err;
	}
	selected__release(&view->now);
	view->now = next;
	view->has_ended = has_ended;
	return top_view__refresh(view) ? fail_memory(error) : 0;
}

int top_view__refresh(struct top_view *view)
{
	struct top_rows rows;
	int err;

	if (!view->now.profile)
		return 0;
	err = top__add_up(&view->top, view->now.profile, view->now.groups,
			  view->now.filtered.counts, &view->wish, &rows);
	if (err)
		return err;
	top_rows__release(&view->rows);
	view->rows = rows;
	return 0;
}

/* Adds the rule that @text stands for. */
static int add_rule(struct top_view *view, const char *text, struct error *error)
{
	static const struct {
		const char *name;
		int key;
	} options[] = {
		{ "through=", OPT_THROUGH }, { "not-through=", OPT_NOT_THROUGH },
		{ "module=", OPT_MODULE },   { "thread=", OPT_THREAD },
		{ "process=", OPT_PROCESS }, { "function=", OPT_FUNCTION },
	};
	int key = OPT_THROUGH;

	snprintf(view->filter_rule, sizeof(view->filter_rule),
		 strpbrk(text, "*?[") || *text == '/' ? "%s" : "*%s*", text);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		size_t len = strlen(options[i].name);

		if (strncmp(text, options[i].name, len))
			continue;
		key = options[i].key;
		snprintf(view->filter_rule, sizeof(view->filter_rule), "%s", text + len);
	}
	return filter_choice__parse(&view->choice.filter, key, view->filter_rule, error);
}

static void drop_rules(struct top_view *view)
{
	view->choice.filter.options.n_rules = view->n_given_rules;
	view->filter[0] = '\0';
}

/* Selects anew from the copy that is shown. */
static int choose_again(struct top_view *view, struct error *error)
{
	struct filtered filtered;
	int err;

	if (!view->now.profile)
		return 0;
	err = filter__apply(view->now.profile, view->now.groups, &view->choice.filter.options,
			    &filtered, error);
	if (err)
		return err;
	filtered__release(&view->now.filtered);
	view->now.filtered = filtered;
	return top_view__refresh(view) ? fail_memory(error) : 0;
}

int top_view__filter(struct top_view *view, const char *text, struct error *error)
{
	int err = 0;

	drop_rules(view);
	if (*text) {
		err = add_rule(view, text, error);
		if (!err)
			snprintf(view->filter, sizeof(view->filter), "%s", text);
	}
	if (!err)
		err = choose_again(view, error);
	if (!err)
		return 0;
	drop_rules(view);
	(void)choose_again(view, NULL);
	return err;
}

int top_view__turn(struct top_view *view, int step)
{
	memset(view->wish.scopes, 0, sizeof(view->wish.scopes));
	view->wish.by = (view->wish.by + TOP_BYS + step) % TOP_BYS;
	return top_view__refresh(view);
}

/* Returns the scope that was opened last, or NULL. */
static struct top_scope *last_scope(struct top_view *view)
{
	struct top_scope *found = NULL;

	for (size_t i = 0; i < TOP_BYS; i++)
		if (view->wish.scopes[i].is_given)
			found = &view->wish.scopes[i];
	return found;
}

int top_view__open(struct top_view *view, const struct top_row *row)
{
	struct top_scope *last = last_scope(view);
	struct top_scope *next = last ? last + 1 : view->wish.scopes;

	if (view->wish.by == TOP_BY_STACK || next == view->wish.scopes + TOP_BYS)
		return -ENOENT;
	*next = (struct top_scope){ true, view->wish.by, row->key };
	view->wish.by = TOP_BY_STACK;
	return top_view__refresh(view);
}

bool top_view__leave(struct top_view *view)
{
	struct top_scope *last = last_scope(view);

	if (!last)
		return false;
	view->wish.by = last->by;
	last->is_given = false;
	(void)top_view__refresh(view);
	return true;
}

void top_view__release(struct top_view *view)
{
	selected__release(&view->now);
	top__release(&view->top);
	top_rows__release(&view->rows);
	filter_choice__release(&view->choice.filter);
}

/* Describes the processes that are measured: their number, and the first one's name. */
static void describe_target(const struct top_view *view, FILE *to)
{
	const struct profile *profile = view->now.profile;
	const struct profile_process *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < profile->n_processes; i++) {
		const struct profile_process *process = &profile->processes[i];

		if (process->end_ns && !view->has_ended)
			continue;
		if (!first)
			first = process;
		n++;
	}
	if (!first)
		fprintf(to, "no process at present");
	else if (n == 1)
		fprintf(to, "%s (%u)", first->comm, first->pid);
	else
		fprintf(to, "%s processes, %s (%u) first", number__count(n).text, first->comm,
			first->pid);
}

static void print_clock(FILE *to)
{
	time_t now = time(NULL);
	struct tm local;

	if (localtime_r(&now, &local))
		fprintf(to, ", %02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

static void print_first(const struct top_view *view, FILE *to)
{
	const char *engine;

	fputs("allocprof top", to);
	print_clock(to);
	if (!view->now.profile) {
		fputs(": begins to record", to);
		return;
	}
	engine = profile__engine(view->now.profile);
	fputs(": ", to);
	describe_target(view, to);
	fprintf(to, ", %s, counted %s%s", number__time(view->top.last.time_ns).text,
		!strcmp(engine, "preload") ? "inside" : "by uprobes",
		view->has_ended ? "; has ended" : "");
}

static void print_number(const struct top_view *view, enum top_column column, const char *format,
			 FILE *to)
{
	char text[64];

	top_view__number(view, &view->rows.total, column, text, sizeof(text));
	fprintf(to, format, text, view->wish.since_mark ? "" : "/s");
}

static void print_total(const struct top_view *view, FILE *to)
{
	static const struct {
		enum top_column column;
		const char *format;
	} totals[] = {
		{ TOP_CALLS, "calls %s%s" }, { TOP_BYTES, "bytes %s%s" }, { TOP_LIVE, "live %s" },
		{ TOP_GROWTH, "growth %s" }, { TOP_PEAK, "peak %s" },
	};
	const char *separator = "";

	if (!view->now.profile)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
		if (!top_view__has(view, totals[i].column))
			continue;
		fputs(separator, to);
		print_number(view, totals[i].column, totals[i].format, to);
		separator = ", ";
	}
}

static void print_span(const struct top_view *view, FILE *to)
{
	bool since_mark = view->wish.since_mark;
	__u64 span_ns =
		since_mark ? top__mark_span_ns(&view->top) : top__growth_span_ns(&view->top);

	if (view->now.profile)
		fprintf(to, "%s %s; ",
			since_mark			  ? "in all"
			: top_view__has(view, TOP_GROWTH) ? "growth in"
							  : "in",
			number__time(span_ns).text);
}

static void print_pace(const struct top_view *view, FILE *to)
{
	const struct profile *profile = view->now.profile;

	if (view->is_paused)
		fputs("PAUSED; ", to);
	if (profile && !view->rows.n)
		fputs(filter__selects_all(&view->choice.filter.options) ? "no call was seen yet; "
									: "nothing is selected; ",
		      to);
	if (view->filter[0])
		fprintf(to, "filter: %s; ", view->filter);
	if (profile && profile__sample_bytes(profile))
		fputs("estimates of samples; ", to);
	print_span(view, to);
	fprintf(to, "every %s", number__time(view->every_ns).text);
	if (view->cost_ns)
		fprintf(to, ", which costs %.1f %% of a processor",
			100.0 * view->cost_ns / (view->every_ns + view->cost_ns));
}

/* What the numbers lack. */
static void print_lack(const struct top_view *view, FILE *to)
{
	_cleanup_(free_ptr) char *lines = NULL;
	size_t n = 0;

	if (!view->now.profile ||
	    completeness__lines(view->now.profile, COMPLETENESS_TIMES, &lines) || !lines[0])
		return;
	for (const char *at = lines; *at; at++)
		n += *at == '\n' && at[1];
	fprintf(to, "%.*s", (int)strcspn(lines, "\n"), lines);
	if (n)
		fprintf(to, " (and %zu more)", n);
}

void top_view__status(const struct top_view *view, int n, char *text, size_t size)
{
	static void (*const printers[TOP_STATUS_LINES])(const struct top_view *view,
							FILE *to) = { print_first, print_total,
								      print_pace, print_lack };
	FILE *to = fmemopen(text, size, "w");

	text[0] = '\0';
	if (!to)
		return;
	printers[n](view, to);
	fclose(to);
	text[size - 1] = '\0';
}

static const char *label_of(const struct top_view *view, __u32 label)
{
	return view->now.groups->labels[label].text;
}

/* Returns what the allocator's function is called. */
static const char *function_name(const struct top_view *view, const struct top_row *row)
{
	return definition_names__function(&view->now.profile->definitions, row->function);
}

static void name_stack(const struct top_view *view, const struct top_row *row, char *text,
		       size_t size)
{
	const struct stack_group *group = &view->now.groups->groups[row->group];
	size_t used = 0;

	text[0] = '\0';
	for (__u32 i = row->depth; i < group->n_frames && used < size; i++)
		used += snprintf(text + used, size - used, "%s%s", i > row->depth ? " < " : "",
				 label_of(view, group->frames[i]));
}

void top_view__name(const struct top_view *view, const struct top_row *row, char *text, size_t size)
{
	const struct profile *profile = view->now.profile;
	const struct profile_process *process = &profile->processes[row->process - 1];

	switch (view->rows.by) {
	case TOP_BY_FUNCTION:
		snprintf(text, size, "%s", label_of(view, row->label));
		break;
	case TOP_BY_THREAD:
		snprintf(text, size, "%s of %s (%u)", profile->threads[row->thread - 1].name,
			 process->comm, process->pid);
		break;
	case TOP_BY_PROCESS:
		snprintf(text, size, "%s (%u)", process->comm, process->pid);
		break;
	default:
		name_stack(view, row, text, size);
	}
}

bool top_view__frame(const struct top_view *view, const struct top_row *row, __u32 n, char *text,
		     size_t size)
{
	const struct stack_group *group = &view->now.groups->groups[row->group];

	if (n > group->n_frames)
		return false;
	snprintf(text, size, "%s",
		 n ? label_of(view, group->frames[n - 1]) : function_name(view, row));
	return true;
}

bool top_view__has(const struct top_view *view, enum top_column column)
{
	return !view->hidden[column] && (!columns[column].needs_live || !view->now.profile ||
					 profile__has_blocks(view->now.profile) || !view->rows.n);
}

const char *top_view__title(const struct top_view *view, enum top_column column)
{
	return view->wish.since_mark ? columns[column].in_all : columns[column].a_second;
}

const char *top_view__kind(const struct top_view *view)
{
	return kinds[view->wish.by].title;
}

void top_view__number(const struct top_view *view, const struct top_row *row,
		      enum top_column column, char *text, size_t size)
{
	double value = row->values[column];
	const char *sign = column == TOP_GROWTH && value > 0 ? "+" : value < 0 ? "-" : "";
	__u64 whole = number__of((value < 0 ? -value : value) + 0.5);

	if (column != TOP_CALLS)
		snprintf(text, size, "%s%s", sign, number__bytes(whole, false).text);
	else if (whole < 10 && value != (double)whole)
		snprintf(text, size, "%.2f", value);
	else if (whole < 100000000)
		snprintf(text, size, "%s", number__count(whole).text);
	else
		snprintf(text, size, "%.3g M", value / 1e6);
}

static void print_row(const struct top_view *view, const struct top_row *row,
		      const struct terminal *terminal)
{
	size_t room = terminal->columns, used = 0;
	char text[TOP_TEXT];

	for (int i = 0; i < TOP_COLUMNS; i++) {
		if (!top_view__has(view, i))
			continue;
		if (row)
			top_view__number(view, row, i, text, sizeof(text));
		fprintf(terminal->to, "%*s", TOP_COLUMN_WIDTH,
			row ? text : top_view__title(view, i));
		used += TOP_COLUMN_WIDTH;
	}
	fputs("  ", terminal->to);
	if (row)
		top_view__name(view, row, text, sizeof(text));
	terminal__print(terminal, row ? text : top_view__kind(view),
			room > used + 2 ? room - used - 2 : 0);
	fputc('\n', terminal->to);
}

void top_view__print(const struct top_view *view, size_t most, const struct terminal *terminal)
{
	char text[TOP_TEXT];

	for (int i = 0; i < TOP_STATUS_LINES; i++) {
		top_view__status(view, i, text, sizeof(text));
		if (!text[0])
			continue;
		terminal__print(terminal, text, terminal->columns);
		fputc('\n', terminal->to);
	}
	fputc('\n', terminal->to);
	print_row(view, NULL, terminal);
	for (size_t i = 0; i < view->rows.n && (!most || i < most); i++)
		print_row(view, &view->rows.rows[i], terminal);
	fputc('\n', terminal->to);
}
