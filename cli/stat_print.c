// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_print.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "gap_text.h"
#include "json.h"
#include "measure_options.h"
#include "number.h"
#include "profile.h"
#include "table.h"
#include "terminal.h"
#include "text.h"

#define WORDS_GAP 4
#define WORDS_AT  (STAT_NUMBER_COLUMNS + WORDS_GAP)

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

void stat_print__gap(void *to, const char *sentence)
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

/* "  # memalign too", on a line of its own if there is no room. */
static void print_note(FILE *to, const char *note, size_t used)
{
	if (used + strlen("  # ") + terminal__columns_of(note) <= STAT_COLUMNS) {
		fprintf(to, "  # %s\n", note);
		return;
	}
	fprintf(to, "\n%*s# ", WORDS_AT, "");
	stat_print__wrapped(to, note, WORDS_AT + 2, WORDS_AT + 2);
}

void stat_print__count(FILE *to, __u64 value, const char *what, const char *note)
{
	int used = fprintf(to, "%*s%*s%s", STAT_NUMBER_COLUMNS, number__count(value).text,
			   WORDS_GAP, "", what);

	if (*note)
		print_note(to, note, used);
	else
		fputc('\n', to);
}

static const struct ap_site_counts *counts_of(const struct profile *profile,
					      const struct region *region, int function)
{
	return region ? &region->counts[function] : &profile->totals.functions[function].counts;
}

/*
 * "with memalign": other names of the same function. Names with underscores are aliases inside of
 * the C library and are not listed. To be freed; NULL if there are none.
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

/* @function: its other names are printed; or NULL. */
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

void stat_print__functions(const struct measure *measure, const struct profile *profile,
			   const struct region *region, FILE *to)
{
	static const struct table_column columns[] = {
		{ "calls", .width = STAT_NUMBER_COLUMNS },
		{ "function", .left = true, .gap = WORDS_GAP, .width = 15 },
		{ "bytes requested", .gap = 1, .width = 16 },
		{ "internal", .gap = 1, .width = 10 },
	};
	/* Internal calls are not counted by region. */
	const size_t n = ARRAY_SIZE(columns) - (region ? 1 : 0);
	const struct terminal plain = { .to = to };

	table__print_titles(columns, n, &plain);
	fputc('\n', to);
	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct function_totals *function = &profile->totals.functions[i];
		const struct ap_site_counts *counts = counts_of(profile, region, i);
		const struct table_cell cells[] = {
			{ number__count(counts->calls) },
			table__word(source_names__function(&measure->sources.names, i)),
			profile__function_frees(i)
				? table__word("")
				: (struct table_cell){ number__count(counts->size_bytes) },
			{ number__count(counts->internal) },
		};

		if (!stat_totals__shows(measure, profile, i) || (region && !counts->calls))
			continue;
		print_row(columns, n, cells, region ? NULL : function, to);
	}
}

void stat_print__totals(const struct stat_totals *totals, bool has_live, FILE *to)
{
	stat_print__count(to, totals->allocations, "allocations",
			  has_live ? "" : "requests; failed ones are among them");
	stat_print__count(to, totals->reallocations, "reallocations", "");
	if (totals->knows_frees) {
		stat_print__count(to, totals->deallocations, "deallocations", "without free(NULL)");
		if (totals->allocations >= totals->deallocations)
			stat_print__count(to, totals->allocations - totals->deallocations,
					  "remaining allocations", "allocations - deallocations");
		else
			stat_print__count(to, totals->deallocations - totals->allocations,
					  "more deallocations than allocations",
					  "of blocks from before the start");
	}
	stat_print__count(to, stat_totals__total_bytes(totals),
			  has_live ? "bytes allocated" : "bytes requested",
			  has_live ? "by allocations and reallocations" : "");
}

json_object *stat_print__functions_object(const struct measure *measure,
					  const struct profile *profile,
					  const struct region *region)
{
	json_object *functions = json_object_new_object();

	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct function_totals *function = &profile->totals.functions[i];
		const struct ap_site_counts *counts = counts_of(profile, region, i);
		json_object *entry, *aliases;

		if (!stat_totals__shows(measure, profile, i))
			continue;
		entry = json_object_new_object();
		json__add(functions, source_names__function(&measure->sources.names, i), entry);
		json__add(entry, "calls", json__count(counts->calls));
		if (!region)
			json__add(entry, "internal", json__count(counts->internal));
		json__add(entry, "bytes", json__count(counts->size_bytes));
		if (profile__function_maps(i) && !region) {
			json__add(entry, "failed", json__count(counts->failed));
			json__add(entry, "returned_bytes", json__count(counts->returned_bytes));
		}
		if (region)
			continue;
		aliases = json_object_new_array();
		for (size_t j = 0; j < function->n_aliases; j++)
			json_object_array_add(aliases, json__string(function->aliases[j]));
		json__add(entry, "aliases", aliases);
	}
	return functions;
}

void stat_print__add_totals(json_object *root, const struct stat_totals *totals, bool live,
			    __u64 failed)
{
	__s64 remaining = totals->allocations - totals->deallocations;
	bool knows_frees = totals->knows_frees;

	json__add(root, "allocations", json__count(totals->allocations));
	json__add(root, "reallocations", json__count(totals->reallocations));
	json__add(root, "deallocations", knows_frees ? json__count(totals->deallocations) : NULL);
	json__add(root, "bytes_allocated",
		  json__count(live ? totals->bytes_allocated : totals->allocations_size_bytes));
	json__add(root, "bytes_deallocated", live ? json__count(totals->bytes_deallocated) : NULL);
	json__add(root, "bytes_reallocated",
		  live ? json_object_new_int64(totals->bytes_reallocated) : NULL);
	json__add(root, "failed", live ? json__count(failed) : NULL);
	json__add(root, "total_allocations",
		  json__count(totals->allocations + totals->reallocations));
	json__add(root, "remaining_allocations",
		  knows_frees ? json_object_new_int64(remaining) : NULL);
	json__add(root, "total_allocated_bytes", json__count(stat_totals__total_bytes(totals)));
}

static bool is_in_words(enum gap kind, bool of_regions)
{
	if (of_regions)
		return gap__is_of_regions(kind) && kind > GAP_REGION_UNNOTICED;
	return kind >= GAP_PROGRAMS_UNCOUNTED && kind <= GAP_ALLOCATOR_HIDDEN;
}

json_object *stat_print__gaps_array(const struct profile *profile, bool of_regions)
{
	json_object *gaps = json_object_new_array();
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(profile, &at, &gap);) {
		_cleanup_(free_ptr) char *sentence = NULL;

		if (!is_in_words(gap->kind, of_regions))
			continue;
		sentence = gap_text__sentence(gap);
		json_object_array_add(gaps, sentence ? json__string(sentence) : NULL);
	}
	return gaps;
}
