// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "json.h"
#include "measure.h"
#include "number.h"
#include "profile.h"
#include "stat_report.h"
#include "table.h"
#include "text.h"

static struct stat_series_region *find_region(struct stat_series *stat, const char *name)
{
	struct stat_series_region *region;

	for (size_t i = 0; i < stat->n_regions; i++)
		if (!strcmp(stat->regions[i].name, name))
			return &stat->regions[i];
	if (array__reserve(&stat->regions, &stat->regions_room, stat->n_regions + 1,
			   sizeof(*stat->regions)))
		return NULL;
	region = &stat->regions[stat->n_regions];
	*region = (struct stat_series_region){
		.name = strdup(name),
		.runs = calloc(stat->series->runs, sizeof(*region->runs)),
	};
	stat->n_regions++;
	return region->name && region->runs ? region : NULL;
}

/* Adds the regions of the last run. */
static int add_regions(struct stat_series *stat, const struct profile *profile)
{
	for (size_t i = 0; i < profile->totals.n_regions; i++) {
		const struct region *region = &profile->totals.regions[i];
		struct stat_series_region *known = find_region(stat, region->name);

		if (!known)
			return -ENOMEM;
		known->runs[stat->n_runs - 1] =
			stat_figures__of_region(stat->measure, profile, region);
	}
	return 0;
}

int stat_series__add(struct stat_series *stat, const struct profile *profile)
{
	json_object *object;
	int err = array__reserve(&stat->runs, &stat->room, stat->n_runs + 1, sizeof(*stat->runs));

	if (err)
		return err;
	if (stat->wants_objects) {
		object = stat_report__object(stat->measure, profile);
		if (!object || (!stat->objects && !(stat->objects = json_object_new_array())))
			return -ENOMEM;
		json_object_array_add(stat->objects, object);
	}
	stat->is_complete = (stat->is_complete || !stat->n_runs) && profile__is_complete(profile);
	stat->are_regions_complete =
		(stat->are_regions_complete || !stat->n_runs) && !profile__has_gaps(profile, true);
	stat->has_live = profile->totals.has_live;
	stat->runs[stat->n_runs++] = stat_figures__of(stat->measure, profile);
	return add_regions(stat, profile);
}

void stat_series__release(struct stat_series *stat)
{
	json_object_put(stat->objects);
	for (size_t i = 0; i < stat->n_regions; i++) {
		free(stat->regions[i].name);
		free(stat->regions[i].runs);
	}
	free(stat->regions);
	free(stat->runs);
}

/* Finds the range of a figure over the runs. Returns false if no run has the figure. @values has
 * room for all runs. */
static bool find_range(const struct stat_figures *runs, size_t n, int figure, __s64 *values,
		       struct figure_range *range)
{
	bool is_known = false;

	for (size_t i = 0; i < n; i++) {
		is_known |= runs[i].is_known[figure];
		values[i] = runs[i].values[figure];
	}
	if (is_known)
		*range = figures__range(values, n);
	return is_known;
}

/* Returns @value divided by --per as text, such as "1,234.567". */
static struct number_text divided(const struct stat_series *stat, __u64 value)
{
	unsigned __int128 thousandths =
		((unsigned __int128)value * 1000 + stat->per / 2) / stat->per;
	struct number_text text;

	snprintf(text.text, sizeof(text.text), "%.26s.%03u", number__count(thousandths / 1000).text,
		 (unsigned int)(thousandths % 1000));
	return text;
}

static struct table_cell cell_of(const struct stat_series *stat, int figure, __s64 value)
{
	struct table_cell cell = { 0 };
	__u64 size = value < 0 ? -(__u64)value : (__u64)value;

	if (stat_figure__is_time(figure))
		snprintf(cell.text.text, sizeof(cell.text.text), "%.6f", value / 1e9 / stat->per);
	else
		snprintf(cell.text.text, sizeof(cell.text.text), "%s%.30s", value < 0 ? "-" : "",
			 (stat->per > 1 ? divided(stat, size) : number__count(size)).text);
	return cell;
}

static void print_title(const struct stat_series *stat, size_t columns, FILE *to)
{
	_cleanup_(free_ptr) char *after = NULL;
	size_t size;
	FILE *memory = open_memstream(&after, &size);

	if (!memory)
		return;
	fprintf(memory, "', %s %s", number__count(stat->n_runs).text,
		plural__of("run{|s}", stat->n_runs).text);
	if (stat->n_runs < stat->series->runs)
		fprintf(memory, " of %s", number__count(stat->series->runs).text);
	if (stat->series->warmup)
		fprintf(memory, " after %s that did not count",
			number__count(stat->series->warmup).text);
	if (stat->per > 1)
		fprintf(memory, ", per %s", number__count(stat->per).text);
	fputs(":\n", memory);
	if (fclose(memory))
		return;
	fputc('\n', to);
	stat_print__command(to, columns, stat->measure->argv, after);
}

#define SERIES_COLUMNS 5

/* Fills in the row of a figure. Returns false if no run has the figure. @values has room for all
 * runs. */
static bool fill_row(const struct stat_series *stat, const struct stat_figures *runs, int figure,
		     __s64 *values, struct table_cell cells[SERIES_COLUMNS])
{
	struct figure_range range;

	if (!find_range(runs, stat->n_runs, figure, values, &range))
		return false;
	cells[0] = cell_of(stat, figure, range.min);
	cells[1] = cell_of(stat, figure, range.median);
	cells[2] = cell_of(stat, figure, range.max);
	cells[3] = range.min == range.max ? table__word("same")
					  : cell_of(stat, figure, range.max - range.min);
	cells[4] = table__word(stat_figure__words(stat->measure, figure, stat->has_live));
	return true;
}

static size_t width_of(const struct table_column columns[SERIES_COLUMNS])
{
	size_t width = 0;

	for (int i = 0; i < SERIES_COLUMNS; i++)
		width += columns[i].gap + columns[i].width;
	return width;
}

/* Widens @columns for the figures, except for columns that do not fit into a line. */
static void fit(const struct stat_series *stat, const struct stat_figures *runs, __s64 *values,
		struct table_column columns[SERIES_COLUMNS])
{
	struct table_column wider[SERIES_COLUMNS];
	struct table_cell cells[SERIES_COLUMNS];

	for (int i = 0; i < STAT_FIGURES; i++) {
		if (!fill_row(stat, runs, i, values, cells))
			continue;
		memcpy(wider, columns, sizeof(wider));
		table__fit(wider, SERIES_COLUMNS, cells);
		if (width_of(wider) <= STAT_COLUMNS)
			memcpy(columns, wider, sizeof(wider));
	}
}

/* Returns whether the columns are too wide for a line, except the last one: that is text and may
 * exceed the width. */
static bool is_too_wide(const struct table_column columns[SERIES_COLUMNS],
			const struct table_cell cells[SERIES_COLUMNS])
{
	for (int i = 0; i < SERIES_COLUMNS - 1; i++)
		if (strlen(cells[i].text.text) > columns[i].width)
			return true;
	return false;
}

/* Prints the figures of all runs as a table. @values has room for all of them. */
static void print_figures(const struct stat_series *stat, const struct stat_figures *runs,
			  __s64 *values, FILE *to)
{
	struct table_column columns[SERIES_COLUMNS] = {
		{ "min", .width = 12 },		  { "median", .gap = 1, .width = 12 },
		{ "max", .gap = 1, .width = 12 }, { "spread", .gap = 1, .width = 8 },
		{ "", .left = true, .gap = 2 },
	};
	const struct terminal plain = { .to = to };
	struct table_cell cells[SERIES_COLUMNS];

	fit(stat, runs, values, columns);
	/* The last column needs no padding. */
	columns[SERIES_COLUMNS - 1].width = 0;
	table__print_titles(columns, SERIES_COLUMNS - 1, &plain);
	fputc('\n', to);
	for (int i = 0; i < STAT_FIGURES; i++) {
		if (!fill_row(stat, runs, i, values, cells))
			continue;
		if (i == AP_FUNCTIONS || i == STAT_ELAPSED_SECONDS)
			fputc('\n', to);
		if (is_too_wide(columns, cells)) {
			stat_print__sentence(to, "%s: min %s, median %s, max %s, spread %s",
					     cells[4].text.text, cells[0].text.text,
					     cells[1].text.text, cells[2].text.text,
					     cells[3].text.text);
			continue;
		}
		table__print_row(columns, SERIES_COLUMNS, cells, &plain);
		fputc('\n', to);
	}
}

int stat_series__text(const struct stat_series *stat, size_t columns, FILE *to)
{
	_cleanup_(free_ptr) __s64 *values = calloc(stat->n_runs + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	print_title(stat, columns, to);
	print_figures(stat, stat->runs, values, to);
	for (size_t i = 0; i < stat->n_regions; i++) {
		fputc('\n', to);
		stat_print__title(to, columns, " Region '", stat->regions[i].name, "':\n");
		print_figures(stat, stat->regions[i].runs, values, to);
	}
	if (!stat->are_regions_complete)
		fputs("\n Regions not complete: calls in them are missing in some of the runs.\n",
		      to);
	if (!stat->is_complete)
		fputs("\n Not complete: calls are missing in some of the runs.\n", to);
	fputc('\n', to);
	return fflush(to) ? -errno : 0;
}

/* Makes a number of @value divided by --per; an integer stays an integer. */
static json_object *json_value(const struct stat_series *stat, int figure, __s64 value)
{
	if (stat_figure__is_time(figure))
		return json__seconds(value / 1e9 / stat->per);
	return stat->per > 1 ? json__seconds((double)value / stat->per)
			     : json_object_new_int64(value);
}

static json_object *json_range(const struct stat_series *stat, int figure,
			       const struct figure_range *range)
{
	json_object *object = json_object_new_object();

	json__add(object, "min", json_value(stat, figure, range->min));
	json__add(object, "median", json_value(stat, figure, range->median));
	json__add(object, "max", json_value(stat, figure, range->max));
	json__add(object, "spread", json_value(stat, figure, range->max - range->min));
	json__add(object, "same", json_object_new_boolean(range->min == range->max));
	return object;
}

/* Adds the figures: those of functions to one object, others to another. @values has room for all
 * runs. */
static void add_figures(const struct stat_series *stat, const struct stat_figures *runs,
			__s64 *values, json_object *functions, json_object *figures)
{
	struct figure_range range;

	for (int i = 0; i < STAT_FIGURES; i++)
		if (find_range(runs, stat->n_runs, i, values, &range))
			json__add(i < AP_FUNCTIONS ? functions : figures,
				  stat_figure__key(stat->measure, i), json_range(stat, i, &range));
}

static json_object *json_regions(const struct stat_series *stat, __s64 *values)
{
	json_object *regions = json_object_new_object();

	for (size_t i = 0; i < stat->n_regions; i++) {
		json_object *functions = json_object_new_object();
		json_object *figures = json_object_new_object();
		json_object *region = json_object_new_object();

		add_figures(stat, stat->regions[i].runs, values, functions, figures);
		json__add(region, "functions", functions);
		json__add(region, "figures", figures);
		json__add(regions, stat->regions[i].name, region);
	}
	return regions;
}

int stat_series__json(struct stat_series *stat, const struct series_end *end, FILE *to)
{
	_cleanup_(free_ptr) __s64 *values = calloc(stat->n_runs + 1, sizeof(*values));
	json_object *root = json_object_new_object(), *functions = json_object_new_object();
	json_object *figures = json_object_new_object(), *command = json_object_new_array();
	int err;

	if (!values || !root || !functions || !figures || !command)
		return -ENOMEM;
	for (char **word = stat->measure->argv; *word; word++)
		json_object_array_add(command, json__string(*word));
	add_figures(stat, stat->runs, values, functions, figures);
	json__add(root, "schema", json_object_new_string("allocprof-stat/2"));
	json__add(root, "command", command);
	json__add(root, "exit_status", json_object_new_int(end->status));
	json__add(root, "warmup", json__count(stat->series->warmup));
	json__add(root, "wanted_runs", json__count(stat->series->runs));
	json__add(root, "per", json__count(stat->per));
	json__add(root, "complete", json_object_new_boolean(stat->is_complete));
	json__add(root, "functions", functions);
	json__add(root, "figures", figures);
	if (stat->n_regions || !stat->are_regions_complete) {
		json__add(root, "regions", json_regions(stat, values));
		json__add(root, "regions_complete",
			  json_object_new_boolean(stat->are_regions_complete));
	}
	json__add(root, "runs", stat->objects);
	stat->objects = NULL;
	err = json__write(root, to);
	json_object_put(root);
	return err;
}
