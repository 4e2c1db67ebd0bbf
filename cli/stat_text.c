// SPDX-License-Identifier: GPL-3.0-or-later
/* The report of `allocprof stat` as text: its run, and the regions that the target marks. */
#include "stat_report.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "measure.h"
#include "measure_gaps.h"
#include "measure_options.h"
#include "number.h"
#include "profile.h"
#include "recording_text.h"
#include "stat_figures.h"
#include "table.h"
#include "terminal.h"
#include "text.h"

/* Width of the column of numbers. */
#define STAT_NUMBER_COLUMNS 16
#define WORDS_GAP	    4

#define WORDS_AT (STAT_NUMBER_COLUMNS + WORDS_GAP)

void stat_print__wrapped(FILE *to, const char *text, size_t used, size_t indent)
{
	_cleanup_(free_ptr) char *copy = strdup(text);
	char *rest = copy, *word;
	bool is_first = true;

	while (rest && (word = strsep(&rest, " "))) {
		size_t columns = terminal__columns_of(word);

		if (!is_first && used + 1 + columns > STAT_COLUMNS) {
			fprintf(to, "\n%*s", (int)indent, "");
			used = indent;
		} else if (!is_first) {
			fputc(' ', to);
			used++;
		}
		fputs(word, to);
		used += columns;
		is_first = false;
	}
	fputc('\n', to);
}

void stat_print__sentence(FILE *to, const char *fmt, ...)
{
	_cleanup_(free_ptr) char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	if (text)
		utf8__clean(text);
	fputs("  ", to);
	stat_print__wrapped(to, text ? text : "", 2, 4);
}

/* A measure_gaps_say that prints the sentence to @to, a FILE. */
static void print_gap(void *to, const char *sentence)
{
	stat_print__sentence(to, "%s", sentence);
}

void stat_print__title(FILE *to, size_t columns, const char *before, const char *name,
		       const char *after)
{
	const struct terminal terminal = { .to = to };
	size_t taken = terminal__columns_of(before) + terminal__columns_of(after);

	fputs(before, to);
	terminal__print(&terminal, name, columns > taken + 8 ? columns - taken : columns ? 8 : 0);
	fprintf(to, "%s\n", after);
}

void stat_print__command(FILE *to, size_t columns, char *const argv[], const char *after)
{
	_cleanup_(free_ptr) char *words = NULL;
	size_t size;
	FILE *memory = open_memstream(&words, &size);

	for (char *const *word = argv; memory && *word; word++)
		fprintf(memory, "%s%s", word == argv ? "" : " ", *word);
	if (memory)
		fclose(memory);
	stat_print__title(to, columns, " Allocation counts for '", words ? words : argv[0], after);
}

/* Prints a note, such as " # memalign too", on a line of its own if there is no room for it. */
static void print_note(FILE *to, const char *note, size_t used)
{
	if (used + strlen("  # ") + terminal__columns_of(note) <= STAT_COLUMNS) {
		fprintf(to, "  # %s\n", note);
		return;
	}
	fprintf(to, "\n%*s# ", WORDS_AT, "");
	stat_print__wrapped(to, note, WORDS_AT + 2, WORDS_AT + 2);
}

/* Prints the line of a figure; @note may be "". */
static void print_count(FILE *to, __u64 value, const char *what, const char *note)
{
	int used = fprintf(to, "%*s%*s%s", STAT_NUMBER_COLUMNS, number__count(value).text,
			   WORDS_GAP, "", what);

	if (*note)
		print_note(to, note, used);
	else
		fputc('\n', to);
}

/*
 * Returns text such as "with memalign": other names of the same function. Names with underscores
 * are aliases inside of the C library and are not listed. The caller frees the text; NULL if there
 * are none.
 */
static char *other_names(const struct function_totals *function)
{
	char *names = NULL;
	size_t size, n = 0;
	FILE *to = open_memstream(&names, &size);

	for (size_t i = 0; to && i < function->n_aliases; i++)
		if (function->aliases[i][0] != '_')
			fprintf(to, "%s%s", n++ ? ", " : "with ", function->aliases[i]);
	if (to && !fclose(to) && n) {
		utf8__clean(names);
		return names;
	}
	free(names);
	return NULL;
}

/* Prints a row of the table of functions. Unless @function is NULL, its other names are printed,
 * too. */
static void print_row(const struct table_column *columns, size_t n, const struct table_cell *cells,
		      const struct function_totals *function, FILE *to)
{
	_cleanup_(free_ptr) char *names = function ? other_names(function) : NULL;
	const struct terminal plain = { .to = to };
	size_t used = 0;

	table__print_row(columns, n, cells, &plain);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(cells[i].text.text);

		used += columns[i].gap + (len > columns[i].width ? len : columns[i].width);
	}
	if (names)
		print_note(to, names, used);
	else
		fputc('\n', to);
}

/* Prints the table of functions of the run or, if @region is not NULL, of those called in that
 * region. */
static void print_functions(const struct measure *measure, const struct profile *profile,
			    const struct region *region, FILE *to)
{
	static const struct table_column columns[] = {
		{ "calls", .width = STAT_NUMBER_COLUMNS },
		{ "function", .left = true, .gap = WORDS_GAP, .width = 15 },
		{ "bytes requested", .gap = 1, .width = 16 },
		{ "internal", .gap = 1, .width = 10 },
	};
	/* Internal calls are not counted by region, so that column is left out. */
	const size_t n = ARRAY_SIZE(columns) - (region ? 1 : 0);
	const struct terminal plain = { .to = to };

	table__print_titles(columns, n, &plain);
	fputc('\n', to);
	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct function_totals *function = &profile->totals.functions[i];
		const struct ap_site_counts *counts = stat_totals__counts(profile, region, i);
		const struct table_cell cells[] = {
			{ number__count(counts->calls) },
			table__word(definition_names__function(&measure->definitions.names, i)),
			profile__function_frees(i) ||
					definition_names__counts(&profile->definitions, i)
				? table__word("")
				: (struct table_cell){ number__count(counts->size_bytes) },
			{ number__count(counts->internal) },
		};

		if (!stat_totals__shows(measure, profile, i) || (region && !counts->calls))
			continue;
		print_row(columns, n, cells, region ? NULL : function, to);
	}
}

/* Prints the sums of the functions. */
static void print_totals(const struct stat_totals *totals, bool has_live, FILE *to)
{
	print_count(to, totals->allocations, "allocations",
		    has_live ? "" : "requests; failed ones are among them");
	print_count(to, totals->reallocations, "reallocations", "");
	if (totals->knows_frees) {
		print_count(to, totals->deallocations, "deallocations", "without free(NULL)");
		if (totals->allocations >= totals->deallocations)
			print_count(to, totals->allocations - totals->deallocations,
				    "remaining allocations", "allocations - deallocations");
		else
			print_count(to, totals->deallocations - totals->allocations,
				    "more deallocations than allocations",
				    "of blocks from before the start");
	}
	print_count(to, stat_totals__total_bytes(totals),
		    has_live ? "bytes allocated" : "bytes requested",
		    has_live ? "by allocations and reallocations" : "");
}

static void print_region(const struct measure *measure, const struct profile *profile,
			 const struct region *region, size_t columns, FILE *to)
{
	struct stat_totals totals = stat_totals__of_region(measure, profile, region);
	char entered[400];

	snprintf(entered, sizeof(entered), "', entered %s %s:\n",
		 number__count(region->entered).text, plural__of("time{|s}", region->entered).text);
	fputc('\n', to);
	stat_print__title(to, columns, " Region '", region->name, entered);
	print_functions(measure, profile, region, to);
	fputc('\n', to);
	print_totals(&totals, profile->totals.has_live, to);
	if (!profile->totals.has_live)
		return;
	print_count(to, region->stats[AP_STAT_FREED_BYTES], "bytes freed",
		    "by frees and reallocations");
	print_count(to, region->stats[AP_STAT_FAILED], "failed requests", "");
}

static void print_others(const struct profile_totals *totals, FILE *to)
{
	_cleanup_(free_ptr) char *names = NULL;
	size_t size, n = 0;
	FILE *memory = open_memstream(&names, &size);

	for (size_t i = 0; memory && i < totals->n_regions; i++)
		if (!totals->regions[i].entered)
			fprintf(memory, "%s%s", n++ ? ", " : " Regions that were not entered: ",
				totals->regions[i].name);
	if (!memory || fclose(memory) || !n)
		return;
	fputc('\n', to);
	stat_print__wrapped(to, names, 0, 2);
}

/* Prints a block for each region that was entered, and the coverage gaps. */
static void print_regions(const struct measure *measure, const struct profile *profile,
			  size_t columns, FILE *to)
{
	const struct profile_totals *totals = &profile->totals;

	for (size_t i = 0; i < totals->n_regions; i++)
		if (totals->regions[i].entered)
			print_region(measure, profile, &totals->regions[i], columns, to);
	print_others(totals, to);
	if (profile__has_gaps(profile, true))
		fputc('\n', to);
	measure_gaps__visit(profile, true, print_gap, to);
}

/* Width of paragraphs, which even narrow terminals have. */
#define PARAGRAPH_COLUMNS 80

static void print_completeness(const struct profile *profile, FILE *to)
{
	char reasons[512] = "";
	size_t len = 0;

	measure_gaps__visit(profile, false, print_gap, to);
	for (int reason = 0; reason < AP_LOST_REASONS && len < sizeof(reasons); reason++)
		if (profile__lost(profile, reason))
			len += snprintf(reasons + len, sizeof(reasons) - len, "%s%s %s",
					len ? ", " : "",
					number__count(profile__lost(profile, reason)).text,
					profile__lost_name(reason));
	print_count(to, profile__ledger(profile, "lost"), "lost", reasons);
}

static void print_live(const struct live_totals *live, FILE *to)
{
	const __u64 *stats = live->stats;
	char note[96];

	print_count(to, stats[AP_STAT_FREED_BYTES], "bytes freed", "by frees and reallocations");
	/* The peak does not include the blocks of processes that had ended by then. */
	snprintf(note, sizeof(note), "in %s %.8s%s", number__count(live->blocks).text,
		 plural__of("block{|s}", live->blocks).text,
		 live->size_bytes > live->peak_bytes ? ", with those that ended processes left"
						     : "");
	print_count(to, live->size_bytes, "bytes live at the end", note);
	print_count(to, live->peak_bytes, "bytes live at the peak", "");
	print_count(to, stats[AP_STAT_TEMPORARY], "temporary allocations",
		    "freed before the thread's next one");
	print_count(to, stats[AP_STAT_FAILED], "failed requests", "");
	if (live->discarded)
		print_count(to, live->discarded, "blocks discarded", "by exec");
	if (live_totals__frees_unknown(live))
		print_count(to, live_totals__frees_unknown(live), "frees of unknown blocks",
			    "allocated before the start, or unseen");
	if (stats[AP_STAT_FREES_INHERITED])
		print_count(to, stats[AP_STAT_FREES_INHERITED], "frees of inherited blocks",
			    "allocated before a fork");
	if (live->unfinished)
		print_count(to, live->unfinished, "calls did not return", "");
	if (stats[AP_STAT_UNMATCHED])
		print_count(to, stats[AP_STAT_UNMATCHED], "frees unseen",
			    "of blocks whose address was handed out again");
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		if (stats[AP_STAT_UNTRACKED + reason])
			print_count(to, stats[AP_STAT_UNTRACKED + reason],
				    "calls whose blocks are not followed",
				    profile__untracked_name(reason));
}

/* Prints each line of @text as a paragraph, wrapped to PARAGRAPH_COLUMNS. */
static void print_paragraphs(char *text, FILE *to)
{
	for (char *line; (line = strsep(&text, "\n")) && *line;) {
		size_t column = 0;

		for (char *word; (word = strsep(&line, " "));) {
			size_t len = strlen(word);
			bool fits = column && column + 1 + len <= PARAGRAPH_COLUMNS;

			fprintf(to, "%s %s", fits ? "" : "\n", word);
			column = fits ? column + 1 + len : 1 + len;
		}
		fputs("\n", to);
	}
}

static void print_going_on(const struct profile *profile, FILE *to)
{
	_cleanup_(free_ptr) char *text = NULL, *sentence = NULL;

	if (!recording_text__goes_on(profile, &text) &&
	    asprintf(&sentence, "%c%s.", toupper((unsigned char)*text), text + 1) >= 0)
		print_paragraphs(sentence, to);
}

static void print_beside(const struct profile *profile, FILE *to)
{
	_cleanup_(free_ptr) char *heaps = NULL, *beside = NULL;

	if (!recording_text__beside(profile, false, &beside))
		print_paragraphs(beside, to);
	if (!recording_text__own_heaps(profile, &heaps))
		print_paragraphs(heaps, to);
}

/* Prints the title of a measurement of running processes. */
static void print_attached(const struct profile *profile, FILE *to)
{
	_cleanup_(free_ptr) char *title = recording_text__title(profile);

	fprintf(to, " Allocation counts for %s:\n\n", title ?: "processes");
}

int stat_report__text(const struct measure *measure, const struct profile *profile, size_t columns,
		      FILE *to)
{
	struct stat_totals totals = stat_totals__of(measure, profile);

	fputc('\n', to);
	if (measure->pid)
		print_attached(profile, to);
	else
		stat_print__command(to, columns, measure->argv, "':\n");
	print_functions(measure, profile, NULL, to);
	fputc('\n', to);
	print_totals(&totals, profile->totals.has_live, to);
	if (profile->totals.has_live)
		print_live(&profile->totals.live, to);
	if (totals.knows_mappings) {
		print_count(to, totals.returned_bytes, "bytes given back to the kernel",
			    "by munmap, mremap and brk");
		print_count(to, totals.mappings_failed, "mappings refused",
			    totals.mappings_failed ? "they are among the calls" : "");
	}
	if (totals.knows_faults)
		print_count(to, totals.faulted_bytes, "bytes became resident",
			    "by page faults, a page each");
	print_count(to, profile->totals.processes,
		    plural__of("process{|es}", profile->totals.processes).text, "");
	print_completeness(profile, to);
	if (profile->totals.window.why)
		stat_print__sentence(to, "nothing was measured: %s", profile->totals.window.why);
	print_regions(measure, profile, columns, to);
	fprintf(to, "\n%*.6f seconds elapsed\n", STAT_NUMBER_COLUMNS,
		profile->totals.run.elapsed_seconds);
	if (!measure->pid && !profile->totals.run.runs)
		fprintf(to, "%*.6f seconds user\n%*.6f seconds sys\n", STAT_NUMBER_COLUMNS,
			profile->totals.run.user_seconds, STAT_NUMBER_COLUMNS,
			profile->totals.run.system_seconds);
	if (recording_text__has_left(profile))
		print_going_on(profile, to);
	else if (profile->totals.run.is_attached && profile__meta(profile, "attached_pids"))
		fputs("\n All of the processes have ended.\n", to);
	else if (profile->totals.run.is_attached)
		fprintf(to, "\n Process %d has ended, and the counting with it.\n",
			profile->totals.run.pid);
	print_beside(profile, to);
	if (profile->totals.processes_left && !profile->totals.run.is_attached)
		fprintf(to,
			"\n Of the processes that the command started, %s %s on without probes.\n",
			number__count(profile->totals.processes_left).text,
			plural__of("go{es|}", profile->totals.processes_left).text);
	fputc('\n', to);
	return fflush(to) ? -errno : 0;
}
