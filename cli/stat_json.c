// SPDX-License-Identifier: GPL-3.0-or-later
/* The report of `allocprof stat` as JSON (allocprof-stat(5)): its run, and the regions that the target marks. */
#include "stat_report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "completeness.h"
#include "json.h"
#include "measure.h"
#include "measure_options.h"
#include "profile.h"
#include "stat_figures.h"

/* Makes the object with the functions of the run or, if @region is not NULL, with those called in
 * that region. */
static json_object *functions_object(const struct measure *measure, const struct profile *profile,
				     const struct region *region)
{
	json_object *functions = json_object_new_object();

	for (int i = 0; i < AP_FUNCTIONS; i++) {
		const struct function_totals *function = &profile->totals.functions[i];
		const struct ap_site_counts *counts = stat_totals__counts(profile, region, i);
		json_object *entry, *aliases;

		if (!stat_totals__shows(measure, profile, i))
			continue;
		entry = json_object_new_object();
		json__add(functions, definition_names__function(&measure->definitions.names, i),
			  entry);
		json__add(entry, "calls", json__count(counts->calls));
		if (definition_names__counts(&profile->definitions, i))
			continue;
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

static void add_totals(json_object *root, const struct stat_totals *totals, bool live, __u64 failed)
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

/* Returns an array of sentences: about files that mark regions, or about gaps that only the engine
 * knows of. */
static json_object *gaps_array(const struct profile *profile, bool of_regions)
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

static json_object *region_object(const struct measure *measure, const struct profile *profile,
				  const struct region *region)
{
	struct stat_totals totals = stat_totals__of_region(measure, profile, region);
	json_object *object = json_object_new_object();

	json__add(object, "entered", json__count(region->entered));
	json__add(object, "functions", functions_object(measure, profile, region));
	add_totals(object, &totals, profile->totals.has_live, region->stats[AP_STAT_FAILED]);
	return object;
}

static json_object *gaps_object(const struct profile *profile)
{
	json_object *object = json_object_new_object();

	for (enum gap gap = GAP_REGION_DEPTH; gap <= GAP_REGION_UNNOTICED; gap++)
		json__add(object, gap__key(gap) + strlen("region_"),
			  json__count(profile__gap(profile, gap)));
	json__add(object, "files", gaps_array(profile, true));
	return object;
}

/* Adds the keys about regions to @root; adds none if there are no regions. */
static void add_regions(json_object *root, const struct measure *measure,
			const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;
	json_object *object;

	if (!totals->n_regions && !profile__has_gaps(profile, true))
		return;
	object = json_object_new_object();
	for (size_t i = 0; i < totals->n_regions; i++)
		json__add(object, totals->regions[i].name,
			  region_object(measure, profile, &totals->regions[i]));
	json__add(root, "regions", object);
	json__add(root, "regions_complete",
		  json_object_new_boolean(!profile__has_gaps(profile, true)));
	json__add(root, "regions_gaps", gaps_object(profile));
}

/* Makes an array that has an object with two strings for each line "WORD REST". */
static json_object *json_pairs(const char *lines, const char *word, const char *rest)
{
	json_object *list = json_object_new_array();

	for (const char *line = lines; *line;) {
		size_t len = strcspn(line, "\n"), end = strcspn(line, " \n");
		_cleanup_(free_ptr) char *first = strndup(line, end);
		_cleanup_(free_ptr) char *second =
			end < len ? strndup(line + end + 1, len - end - 1) : NULL;
		json_object *pair = json_object_new_object();

		json__add(pair, word, first ? json__string(first) : NULL);
		json__add(pair, rest, second ? json__string(second) : NULL);
		json_object_array_add(list, pair);
		line += len + (line[len] == '\n');
	}
	return list;
}

/* Adds the keys about an attached process. What could not be read is absent. */
static void add_attached(json_object *root, const struct profile *profile)
{
	if (profile__meta(profile, "attached_command"))
		json__add(root, "attached_command",
			  json__string(profile__meta(profile, "attached_command")));
	if (profile__meta_number(profile, "attached_rss_bytes"))
		json__add(root, "attached_rss_bytes",
			  json__count(profile__meta_number(profile, "attached_rss_bytes")));
	if (profile__meta(profile, "attached_children"))
		json__add(
			root, "attached_children",
			json_pairs(profile__meta(profile, "attached_children"), "pid", "command"));
}

static json_object *json_lost(const struct profile *profile)
{
	json_object *lost = json_object_new_object();

	json__add(lost, "total", json__count(profile__ledger(profile, "lost")));
	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		json__add(lost, profile__lost_name(reason),
			  json__count(profile__lost(profile, reason)));
	return lost;
}

/* Makes the list of unknown functions of @path that were called, with their counts; returns NULL
 * if there are none. */
static json_object *json_unknown(const struct profile *profile, const char *path)
{
	json_object *functions = NULL;
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(profile, &at, &gap);) {
		if ((gap->kind != GAP_FUNCTION_UNKNOWN && gap->kind != GAP_FUNCTION_ENDS) ||
		    strcmp(gap->object, path) != 0)
			continue;
		functions = functions ?: json_object_new_object();
		json__add(functions, gap->detail, json__count(gap->number));
	}
	return functions;
}

static json_object *json_allocators(const struct profile *profile)
{
	json_object *allocators = json_object_new_array();

	for (size_t i = 0; i < profile->totals.n_allocators; i++) {
		const struct profile_allocator *file = &profile->totals.allocators[i];
		json_object *entry = json_object_new_object(), *unknown;

		json__add(entry, "path", json__string(file->path));
		json__add(entry, "build_id", json__string(file->build_id));
		json__add(entry, "gap", file->gap[0] ? json__string(file->gap) : NULL);
		if (file->live_gap[0])
			json__add(entry, "live_gap", json__string(file->live_gap));
		unknown = json_unknown(profile, file->path);
		if (unknown)
			json__add(entry, "unknown", unknown);
		json_object_array_add(allocators, entry);
	}
	return allocators;
}

/* Returns the number of processes whose calls were not seen: those of programs that are named, and
 * others. */
static __u64 count_unprobed(const struct profile *profile)
{
	__u64 sum = profile__gap(profile, GAP_OTHERS_UNPROBED);

	for (enum gap kind = GAP_PROGRAM_UNPROBED; kind <= GAP_PROGRAM_FOREIGN; kind++)
		sum += profile__gap(profile, kind);
	return sum;
}

static json_object *json_unprobed(const struct profile *profile)
{
	json_object *programs = json_object_new_array();
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(profile, &at, &gap);) {
		json_object *entry;

		if (gap->kind < GAP_PROGRAM_UNPROBED || gap->kind > GAP_PROGRAM_FOREIGN)
			continue;
		entry = json_object_new_object();
		json__add(entry, "name", json__string(gap->object));
		json__add(entry, "pid", json__count(gap->pid));
		json__add(entry, "processes", json__count(gap->number));
		if (gap->kind == GAP_PROGRAM_UNPROBED)
			json__add(entry, "bytes", json__count(gap->size_bytes));
		else
			json__add(entry, "why", json__string(gap->detail));
		json_object_array_add(programs, entry);
	}
	return programs;
}

static json_object *json_uprobe_programs(const struct profile *profile)
{
	json_object *programs = json_object_new_array();

	for (size_t i = 0; i < profile->totals.n_uprobe_programs; i++) {
		const struct uprobe_program *program = &profile->totals.uprobe_programs[i];
		json_object *entry = json_object_new_object();

		json__add(entry, "name", json__string(program->name));
		json__add(entry, "pid", json__count(program->pid));
		json__add(entry, "processes", json__count(program->processes));
		json_object_array_add(programs, entry);
	}
	return programs;
}

static json_object *json_command(const struct measure *measure)
{
	json_object *command;

	if (!measure->argv)
		return NULL;
	command = json_object_new_array();
	for (char **word = measure->argv; *word; word++)
		json_object_array_add(command, json__string(*word));
	return command;
}

/* Returns the numbers of a list that commas separate. */
static json_object *json_pids(const char *list)
{
	json_object *array = json_object_new_array();

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		json_object_array_add(array, json__count(strtoull(at, NULL, 10)));
	}
	return array;
}

/* Adds the keys about the target and how it ended; null stands for unknown. */
static void add_run(json_object *root, const struct measure *measure, const struct profile *profile)
{
	bool ended = measure->argv && !profile->totals.run.runs;

	json__add(root, "command", json_command(measure));
	json__add(root, "pid", measure->pid ? json_object_new_int(measure->pid) : NULL);
	if (profile__meta(profile, "attached_pids"))
		json__add(root, "pids", json_pids(profile__meta(profile, "attached_pids")));
	json__add(root, "exit_status",
		  ended ? json_object_new_int(profile->totals.run.exit_status) : NULL);
	json__add(root, "exit_signal",
		  profile__meta_number(profile, "exit_signal")
			  ? json_object_new_int(profile__meta_number(profile, "exit_signal"))
			  : NULL);
	json__add(root, "oom_kills", json__count(profile__meta_number(profile, "oom_kills")));
	json__add(root, "impossible_calls",
		  json__count(profile__meta_number(profile, "impossible_calls")));
	json__add(root, "elapsed_seconds", json__seconds(profile->totals.run.elapsed_seconds));
	json__add(root, "user_seconds",
		  ended ? json__seconds(profile->totals.run.user_seconds) : NULL);
	json__add(root, "system_seconds",
		  ended ? json__seconds(profile->totals.run.system_seconds) : NULL);
	json__add(root, "processes", json__count(profile->totals.processes));
}

static void add_live(json_object *root, const struct live_totals *live)
{
	const __u64 *stats = live->stats;
	json_object *untracked = json_object_new_object(), *kernel = json_object_new_object();

	json__add(root, "released", json__count(stats[AP_STAT_RELEASED]));
	json__add(root, "unfinished", json__count(live->unfinished));
	json__add(root, "live", json__count(live->blocks));
	json__add(root, "live_bytes", json__count(live->size_bytes));
	json__add(root, "peak_bytes", json__count(live->peak_bytes));
	json__add(root, "temporary", json__count(stats[AP_STAT_TEMPORARY]));
	json__add(root, "temporary_bytes", json__count(stats[AP_STAT_TEMPORARY_BYTES]));
	json__add(root, "discarded", json__count(live->discarded));
	json__add(root, "discarded_bytes", json__count(live->discarded_bytes));
	json__add(root, "inherited", json__count(stats[AP_STAT_FREES_INHERITED]));
	json__add(root, "unknown", json__count(live_totals__frees_unknown(live)));
	json__add(root, "unseen", json__count(stats[AP_STAT_UNMATCHED]));
	json__add(root, "blocks_dropped", json__count(stats[AP_STAT_DROPPED]));
	json__add(untracked, "total", json__count(live->untracked));
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		json__add(untracked, profile__untracked_name(reason),
			  json__count(stats[AP_STAT_UNTRACKED + reason]));
	json__add(root, "untracked", untracked);
	json__add(kernel, "bytes",
		  json__count(live->memory.block_bytes + live->memory.record_bytes));
	json__add(kernel, "blocks", json__count(live->memory.entries));
	json__add(kernel, "max_live", json__count(live->memory.max_blocks));
	json__add(root, "kernel_memory", kernel);
}

static json_object *string_or_null(const char *text)
{
	return text ? json__string(text) : NULL;
}

static void add_window(json_object *root, const struct measure *measure,
		       const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;
	const struct window_options *asked = &measure->session.window;
	json_object *object;

	if (!totals->window.asked_for)
		return;
	object = json_object_new_object();
	json__add(object, "within", string_or_null(asked->within));
	json__add(object, "start_on", string_or_null(asked->start_on));
	json__add(object, "stop_on", string_or_null(asked->stop_on));
	json__add(object, "delay_seconds", json__seconds(asked->delay_ns / 1e9));
	json__add(object, "why_not_opened", string_or_null(totals->window.why));
	json__add(object, "unnoticed", json__count(profile__gap(profile, GAP_WINDOW_UNNOTICED)));
	json__add(root, "window", object);
	json__add(root, "window_opened", json_object_new_boolean(totals->window.opened));
	json__add(root, "undecided", json__count(profile__ledger(profile, "undecided")));
}

json_object *stat_report__object(const struct measure *measure, const struct profile *profile)
{
	struct stat_totals totals = stat_totals__of(measure, profile);
	json_object *root = json_object_new_object(), *gaps;

	if (!root)
		return NULL;
	json__add(root, "schema", json_object_new_string("allocprof-stat/1"));
	add_run(root, measure, profile);
	json__add(root, "basis",
		  json_object_new_string(profile->totals.has_live ? "allocations" : "requests"));
	json__add(root, "complete", json_object_new_boolean(profile__is_complete(profile)));
	json__add(root, "functions", functions_object(measure, profile, NULL));
	add_totals(root, &totals, profile->totals.has_live,
		   profile->totals.live.stats[AP_STAT_FAILED]);
	json__add(root, "internal", json__count(totals.internal));
	if (profile->totals.has_live)
		add_live(root, &profile->totals.live);
	add_window(root, measure, profile);
	add_regions(root, measure, profile);
	json__add(root, "relabelled", json__count(profile->totals.relabelled));
	json__add(root, "lost", json_lost(profile));
	json__add(root, "processes_left", json__count(profile->totals.processes_left));
	/* Leave out GAP_TORN, which concerns checkpoints of live memory: stat makes none. */
	for (enum gap gap = 0; gap < GAP_TORN; gap++)
		json__add(root, gap__key(gap), json__count(profile__gap(profile, gap)));
	json__add(root, "processes_unprobed", json__count(count_unprobed(profile)));
	json__add(root, "unprobed_programs", json_unprobed(profile));
	json__add(root, "allocators", json_allocators(profile));
	json__add(root, "engine", json__string(profile__engine(profile)));
	if (profile->totals.n_uprobe_programs)
		json__add(root, "uprobe_programs", json_uprobe_programs(profile));
	gaps = gaps_array(profile, false);
	if (json_object_array_length(gaps))
		json__add(root, "engine_gaps", gaps);
	else
		json_object_put(gaps);
	if (profile__meta(profile, "own_heaps"))
		json__add(root, "own_heaps",
			  json_pairs(profile__meta(profile, "own_heaps"), "runtime", "path"));
	if (profile->totals.run.is_attached)
		add_attached(root, profile);
	return root;
}

int stat_report__json(const struct measure *measure, const struct profile *profile, FILE *to)
{
	json_object *root = stat_report__object(measure, profile);
	int err = root ? json__write(root, to) : -ENOMEM;

	json_object_put(root);
	return err;
}
