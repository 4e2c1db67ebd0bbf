// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_print.h"

#include "json.h"
#include "number.h"
#include "profile.h"
#include "session.h"
#include "table.h"

void stat_print__count(FILE *to, __u64 value, const char *what, const char *note)
{
	fprintf(to, "%20s      %s%s%s\n", number__count(value).text, what, *note ? "  # " : "",
		note);
}

static const struct ap_site_counts *counts_of(const struct session_results *results,
					      const struct region *region, int function)
{
	return region ? &region->counts[function] : &results->functions[function].counts;
}

void stat_print__functions(const struct measure *measure, const struct session_results *results,
			   const struct region *region, FILE *to)
{
	static const struct table_column columns[] = {
		{ "calls", .width = 20 },
		{ "function", .left = true, .gap = 6, .width = 16 },
		{ "bytes asked for", .gap = 1, .width = 18 },
		{ "internal", .gap = 1, .width = 12 },
	};
	/* What is internal has no region. */
	const size_t n = sizeof(columns) / sizeof(columns[0]) - (region ? 1 : 0);
	const struct terminal plain = { .to = to };

	table__print_titles(columns, n, &plain);
	fputc('\n', to);
	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct session_function *function = &results->functions[i];
		const struct ap_site_counts *counts = counts_of(results, region, i);
		const struct table_cell cells[] = {
			{ number__count(counts->calls) },
			table__word(profile__function_name(i)),
			i == AP_FREE ? table__word("")
				     : (struct table_cell){ number__count(counts->size_bytes) },
			{ number__count(counts->internal) },
		};

		if (!stat_totals__shows(measure, results, i) || (region && !counts->calls))
			continue;
		table__print_row(columns, n, cells, &plain);
		/* Names with underscores are the C library's own for the same thing. */
		for (size_t j = 0, shown = 0; !region && j < function->n_aliases; j++)
			if (function->aliases[j][0] != '_')
				fprintf(to, "%s%s", shown++ ? ", " : "  # with ",
					function->aliases[j]);
		fputc('\n', to);
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
	stat_print__count(to, totals->allocations_size_bytes + totals->reallocations_size_bytes,
			  has_live ? "bytes allocated" : "bytes asked for",
			  has_live ? "by allocations and reallocations" : "");
}

static void add(json_object *object, const char *key, json_object *value)
{
	json_object_object_add(object, key, value);
}

static json_object *count_of(__u64 count)
{
	return json_object_new_uint64(count);
}

json_object *stat_print__functions_object(const struct measure *measure,
					  const struct session_results *results,
					  const struct region *region)
{
	json_object *functions = json_object_new_object();

	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct session_function *function = &results->functions[i];
		const struct ap_site_counts *counts = counts_of(results, region, i);
		json_object *entry, *aliases;

		if (!stat_totals__shows(measure, results, i))
			continue;
		entry = json_object_new_object();
		add(functions, profile__function_name(i), entry);
		add(entry, "calls", count_of(counts->calls));
		if (!region)
			add(entry, "internal", count_of(counts->internal));
		add(entry, "bytes", count_of(counts->size_bytes));
		if (region)
			continue;
		aliases = json_object_new_array();
		for (size_t j = 0; j < function->n_aliases; j++)
			json_object_array_add(aliases, json__string(function->aliases[j]));
		add(entry, "aliases", aliases);
	}
	return functions;
}

void stat_print__add_totals(json_object *root, const struct stat_totals *totals, bool live,
			    __u64 failed)
{
	__s64 remaining = totals->allocations - totals->deallocations;
	bool knows_frees = totals->knows_frees;

	add(root, "allocations", count_of(totals->allocations));
	add(root, "reallocations", count_of(totals->reallocations));
	add(root, "deallocations", knows_frees ? count_of(totals->deallocations) : NULL);
	add(root, "bytes_allocated",
	    count_of(live ? totals->bytes_allocated : totals->allocations_size_bytes));
	add(root, "bytes_deallocated", live ? count_of(totals->bytes_deallocated) : NULL);
	add(root, "bytes_reallocated",
	    live ? json_object_new_int64(totals->bytes_reallocated) : NULL);
	add(root, "failed", live ? count_of(failed) : NULL);
	add(root, "total_allocations", count_of(totals->allocations + totals->reallocations));
	add(root, "remaining_allocations", knows_frees ? json_object_new_int64(remaining) : NULL);
	add(root, "total_allocated_bytes",
	    count_of(totals->allocations_size_bytes + totals->reallocations_size_bytes));
}
