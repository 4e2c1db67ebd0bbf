// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_report.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "json.h"
#include "measure.h"
#include "measure_gaps.h"
#include "number.h"
#include "probed_file.h"
#include "profile.h"
#include "session.h"
#include "stat_figures.h"
#include "stat_print.h"
#include "stat_regions.h"

static void print_unknown(const struct session *session, size_t index,
			  const struct probed_file *file, FILE *to)
{
	struct session_unknown unknown;

	for (size_t i = 0; session__unknown(session, index, i, &unknown); i++) {
		__u64 calls = unknown.calls;

		if (calls && unknown.ends)
			stat_print__sentence(to, "not complete: " BLOCKS_ENDED, file->path,
					     unknown.name, number__count(calls).text,
					     calls == 1 ? "" : "s");
		else if (calls)
			stat_print__sentence(to, "not complete: " UNKNOWN_FUNCTION, file->path,
					     unknown.name, number__count(calls).text,
					     calls == 1 ? "" : "s", calls == 1 ? "is" : "are",
					     unknown.name);
	}
}

static void print_unprobed(const struct session_results *results, FILE *to)
{
	__u64 told = 0;

	for (size_t i = 0; i < results->n_unprobed; i++) {
		const struct unprobed_program *program = &results->unprobed[i];

		stat_print__sentence(to, "not complete: " UNPROBED_PROGRAM,
				     number__count(program->processes).text,
				     program->processes == 1 ? "" : "es", program->name,
				     program->pid, number__count(program->size_bytes).text);
		told += program->processes;
	}
	if (results->processes_unprobed > told)
		stat_print__sentence(to, "not complete: " UNPROBED_OTHERS,
				     number__count(results->processes_unprobed - told).text);
}

static void print_sources(const struct session *session, const struct session_results *results,
			  FILE *to)
{
	const struct sources *sources = session__sources(session);

	for (size_t i = 0; sources && i < sources->n; i++)
		if (session__lacks_source(session, &sources->list[i]))
			stat_print__sentence(to, "not complete: " LACKING_SOURCE,
					     patterns_text__of(&sources->list[i]).text,
					     sources->list[i].name,
					     sources->list[i].functions[0].name);
	if (results->not_nested)
		stat_print__sentence(to, "not exact: " NOT_NESTED,
				     number__count(results->not_nested).text);
}

static void print_completeness(const struct session *session, const struct session_results *results,
			       FILE *to)
{
	struct probed_file file;
	char reasons[512] = "";
	size_t len = 0;

	for (size_t i = 0; session__file(session, i, &file); i++)
		if (file.gap[0])
			stat_print__sentence(to, "not complete: allocator %s was %s", file.path,
					     file.gap);
	for (size_t i = 0; session__file(session, i, &file); i++)
		print_unknown(session, i, &file, to);
	print_sources(session, results, to);
	if (results->counters_unread)
		stat_print__sentence(to,
				     "not complete: %s of the kernel's counters could not be read, "
				     "so that numbers may be too small",
				     number__count(results->counters_unread).text);
	if (results->processes_unfollowed)
		stat_print__sentence(to, "not complete: %s processes could not be followed",
				     number__count(results->processes_unfollowed).text);
	if (results->processes_unnoticed)
		stat_print__sentence(to,
				     "not complete: %s beginnings or ends of processes went "
				     "unnoticed, and with them perhaps an allocator",
				     number__count(results->processes_unnoticed).text);
	print_unprobed(results, to);
	if (results->operands_unread)
		stat_print__sentence(to, "not exact: " OPERANDS_UNREAD,
				     number__count(results->operands_unread).text);
	if (results->mappings_unsure)
		stat_print__sentence(to, "not exact: " MAPPINGS_UNSURE,
				     number__count(results->mappings_unsure).text);
	if (results->relabelled)
		stat_print__sentence(
			to, "not exact: %s calls are counted under the function that they led to",
			number__count(results->relabelled).text);
	if (results->mappings_lost)
		stat_print__sentence(
			to,
			"not complete: %s mappings of files went unnoticed, and with them perhaps an "
			"allocator",
			number__count(results->mappings_lost).text);
	for (int reason = 0; reason < AP_LOST_REASONS && len < sizeof(reasons); reason++)
		if (results->lost[reason])
			len += snprintf(reasons + len, sizeof(reasons) - len, "%s%s %s",
					len ? ", " : "", number__count(results->lost[reason]).text,
					profile__lost_name(reason));
	stat_print__count(to, results->lost_total, "lost", reasons);
}

static void print_window(const struct session_window *window, FILE *to)
{
	if (!window->asked_for)
		return;
	if (!window->opened)
		stat_print__sentence(to, "nothing was measured: %s", window->why);
	if (window->undecided)
		stat_print__count(to, window->undecided, "calls undecided",
				  "incomplete stacks, perhaps within");
	if (window->unnoticed)
		stat_print__count(to, window->unnoticed,
				  "beginnings or ends of the window unnoticed", "");
}

static void print_live(const struct session_live *live, FILE *to)
{
	const __u64 *stats = live->stats;
	char note[64];

	stat_print__count(to, stats[AP_STAT_FREED_BYTES], "bytes freed",
			  "by frees and reallocations");
	snprintf(note, sizeof(note), "in %s blocks", number__count(live->blocks).text);
	stat_print__count(to, live->size_bytes, "bytes live at the end", note);
	stat_print__count(to, live->peak_bytes, "bytes live at the peak", "");
	stat_print__count(to, stats[AP_STAT_TEMPORARY], "temporary allocations",
			  "freed before the thread's next one");
	stat_print__count(to, stats[AP_STAT_FAILED], "failed requests", "");
	if (live->discarded)
		stat_print__count(to, live->discarded, "blocks discarded", "by exec");
	if (stats[AP_STAT_FREES_UNKNOWN])
		stat_print__count(to, stats[AP_STAT_FREES_UNKNOWN], "frees of unknown blocks",
				  "allocated before the start, or unseen");
	if (stats[AP_STAT_FREES_INHERITED])
		stat_print__count(to, stats[AP_STAT_FREES_INHERITED], "frees of inherited blocks",
				  "allocated before a fork");
	if (live->unfinished)
		stat_print__count(to, live->unfinished, "calls did not return", "");
	if (stats[AP_STAT_UNMATCHED])
		stat_print__count(to, stats[AP_STAT_UNMATCHED], "frees unseen",
				  "of blocks whose address was handed out again");
	if (stats[AP_STAT_DROPPED])
		stat_print__count(to, stats[AP_STAT_DROPPED], "live blocks not followed any more",
				  "not complete: a failed realloc kept them");
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		if (stats[AP_STAT_UNTRACKED + reason])
			stat_print__count(to, stats[AP_STAT_UNTRACKED + reason],
					  "calls whose blocks are not followed",
					  profile__untracked_name(reason));
}

int stat_report__text(const struct session *session, const struct measure *measure,
		      const struct session_results *results, size_t columns, FILE *to)
{
	struct stat_totals totals = stat_totals__of(measure, results);

	fputc('\n', to);
	if (measure->pid)
		fprintf(to, " Allocation counts for process %d:\n\n", measure->pid);
	else
		stat_print__command(to, columns, measure->argv, "':\n");
	stat_print__functions(measure, results, NULL, to);
	fputc('\n', to);
	stat_print__totals(&totals, results->has_live, to);
	if (results->has_live)
		print_live(&results->live, to);
	if (totals.knows_mappings) {
		stat_print__count(to, totals.returned_bytes, "bytes given back to the kernel",
				  "by munmap, mremap and brk");
		stat_print__count(to, totals.mappings_failed, "mappings refused",
				  totals.mappings_failed ? "they are among the calls" : "");
	}
	stat_print__count(to, results->processes, results->processes == 1 ? "process" : "processes",
			  "");
	print_completeness(session, results, to);
	print_window(&results->window, to);
	stat_regions__print(session, measure, results, columns, to);
	fprintf(to, "\n%*.6f seconds elapsed\n", STAT_NUMBER_COLUMNS, results->elapsed_seconds);
	if (!measure->pid && !results->target_runs)
		fprintf(to, "%*.6f seconds user\n%*.6f seconds sys\n", STAT_NUMBER_COLUMNS,
			results->user_seconds, STAT_NUMBER_COLUMNS, results->system_seconds);
	if (results->target_runs)
		fprintf(to, "\n Process %d goes on without probes.\n", results->target_pid);
	else if (results->is_attached)
		fprintf(to, "\n Process %d has ended, and the counting with it.\n",
			results->target_pid);
	if (results->python_arenas)
		fputs("\n Python keeps objects of up to 512 bytes in arenas of its own, which are no\n"
		      " calls of malloc. PYTHONMALLOC=malloc in its environment makes them calls.\n",
		      to);
	if (results->processes_left)
		fprintf(to,
			"\n Of the processes that the command started %s go on without probes.\n",
			number__count(results->processes_left).text);
	fputc('\n', to);
	return fflush(to) ? -errno : 0;
}

static void add(json_object *object, const char *key, json_object *value)
{
	json_object_object_add(object, key, value);
}

static json_object *count_of(__u64 count)
{
	return json_object_new_uint64(count);
}

static json_object *json_lost(const struct session_results *results)
{
	json_object *lost = json_object_new_object();

	add(lost, "total", count_of(results->lost_total));
	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		add(lost, profile__lost_name(reason), count_of(results->lost[reason]));
	return lost;
}

/* The unknown functions that were called, with their counts; NULL: none. */
static json_object *json_unknown(const struct session *session, size_t file)
{
	json_object *functions = NULL;
	struct session_unknown unknown;

	for (size_t i = 0; session__unknown(session, file, i, &unknown); i++) {
		if (!unknown.calls)
			continue;
		if (!functions)
			functions = json_object_new_object();
		add(functions, unknown.name, count_of(unknown.calls));
	}
	return functions;
}

static json_object *json_allocators(const struct session *session)
{
	json_object *allocators = json_object_new_array();
	struct probed_file file;

	for (size_t i = 0; session__file(session, i, &file); i++) {
		json_object *entry = json_object_new_object(), *unknown;

		add(entry, "path", json__string(file.path));
		add(entry, "build_id", json__string(file.build_id));
		add(entry, "gap", file.gap[0] ? json__string(file.gap) : NULL);
		if (file.live_gap[0])
			add(entry, "live_gap", json__string(file.live_gap));
		unknown = json_unknown(session, i);
		if (unknown)
			add(entry, "unknown", unknown);
		json_object_array_add(allocators, entry);
	}
	return allocators;
}

static json_object *json_unprobed(const struct session_results *results)
{
	json_object *programs = json_object_new_array();

	for (size_t i = 0; i < results->n_unprobed; i++) {
		const struct unprobed_program *program = &results->unprobed[i];
		json_object *entry = json_object_new_object();

		add(entry, "name", json__string(program->name));
		add(entry, "pid", count_of(program->pid));
		add(entry, "processes", count_of(program->processes));
		add(entry, "bytes", count_of(program->size_bytes));
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

/* Adds the target and how it ended; null is unknown. */
static void add_run(json_object *root, const struct measure *measure,
		    const struct session_results *results)
{
	bool ended = measure->argv && !results->target_runs;

	add(root, "command", json_command(measure));
	add(root, "pid", measure->pid ? json_object_new_int(measure->pid) : NULL);
	add(root, "exit_status", ended ? json_object_new_int(results->exit_status) : NULL);
	add(root, "elapsed_seconds", json__seconds(results->elapsed_seconds));
	add(root, "user_seconds", ended ? json__seconds(results->user_seconds) : NULL);
	add(root, "system_seconds", ended ? json__seconds(results->system_seconds) : NULL);
	add(root, "processes", count_of(results->processes));
}

static void add_live(json_object *root, const struct session_live *live)
{
	const __u64 *stats = live->stats;
	json_object *untracked = json_object_new_object(), *kernel = json_object_new_object();

	add(root, "released", count_of(stats[AP_STAT_RELEASED]));
	add(root, "unfinished", count_of(live->unfinished));
	add(root, "live", count_of(live->blocks));
	add(root, "live_bytes", count_of(live->size_bytes));
	add(root, "peak_bytes", count_of(live->peak_bytes));
	add(root, "temporary", count_of(stats[AP_STAT_TEMPORARY]));
	add(root, "temporary_bytes", count_of(stats[AP_STAT_TEMPORARY_BYTES]));
	add(root, "discarded", count_of(live->discarded));
	add(root, "discarded_bytes", count_of(live->discarded_bytes));
	add(root, "inherited", count_of(stats[AP_STAT_FREES_INHERITED]));
	add(root, "unknown", count_of(stats[AP_STAT_FREES_UNKNOWN]));
	add(root, "unseen", count_of(stats[AP_STAT_UNMATCHED]));
	add(root, "blocks_dropped", count_of(stats[AP_STAT_DROPPED]));
	add(untracked, "total", count_of(live->untracked));
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		add(untracked, profile__untracked_name(reason),
		    count_of(stats[AP_STAT_UNTRACKED + reason]));
	add(root, "untracked", untracked);
	add(kernel, "bytes", count_of(live->memory.block_bytes + live->memory.record_bytes));
	add(kernel, "blocks", count_of(live->memory.entries));
	add(kernel, "max_live", count_of(live->memory.max_blocks));
	add(root, "kernel_memory", kernel);
}

static json_object *string_or_null(const char *text)
{
	return text ? json__string(text) : NULL;
}

static void add_window(json_object *root, const struct measure *measure,
		       const struct session_window *window)
{
	const struct window_options *asked = &measure->session.window;
	json_object *object;

	if (!window->asked_for)
		return;
	object = json_object_new_object();
	add(object, "within", string_or_null(asked->within));
	add(object, "start_on", string_or_null(asked->start_on));
	add(object, "stop_on", string_or_null(asked->stop_on));
	add(object, "delay_seconds", json__seconds(asked->delay_ns / 1e9));
	add(object, "why_not_opened", string_or_null(window->why));
	add(object, "unnoticed", count_of(window->unnoticed));
	add(root, "window", object);
	add(root, "window_opened", json_object_new_boolean(window->opened));
	add(root, "undecided", count_of(window->undecided));
}

json_object *stat_report__object(const struct session *session, const struct measure *measure,
				 const struct session_results *results)
{
	struct stat_totals totals = stat_totals__of(measure, results);
	json_object *root = json_object_new_object();

	if (!root)
		return NULL;
	add(root, "schema", json_object_new_string("allocprof-stat/1"));
	add_run(root, measure, results);
	add(root, "basis", json_object_new_string(results->has_live ? "allocations" : "requests"));
	add(root, "complete", json_object_new_boolean(results->complete));
	add(root, "functions", stat_print__functions_object(measure, results, NULL));
	stat_print__add_totals(root, &totals, results->has_live,
			       results->live.stats[AP_STAT_FAILED]);
	add(root, "internal", count_of(totals.internal));
	if (results->has_live)
		add_live(root, &results->live);
	add_window(root, measure, &results->window);
	stat_regions__add(root, session, measure, results);
	add(root, "relabelled", count_of(results->relabelled));
	add(root, "not_nested", count_of(results->not_nested));
	add(root, "lost", json_lost(results));
	add(root, "processes_left", count_of(results->processes_left));
	add(root, "mappings_unsure", count_of(results->mappings_unsure));
	add(root, "operands_unread", count_of(results->operands_unread));
	add(root, "mappings_lost", count_of(results->mappings_lost));
	add(root, "processes_unfollowed", count_of(results->processes_unfollowed));
	add(root, "processes_unnoticed", count_of(results->processes_unnoticed));
	add(root, "counters_unread", count_of(results->counters_unread));
	add(root, "processes_unprobed", count_of(results->processes_unprobed));
	add(root, "unprobed_programs", json_unprobed(results));
	add(root, "allocators", json_allocators(session));
	if (results->python_arenas)
		add(root, "python_arenas", json__string(results->python_arenas));
	return root;
}

int stat_report__json(const struct session *session, const struct measure *measure,
		      const struct session_results *results, FILE *to)
{
	json_object *root = stat_report__object(session, measure, results);
	int err = root ? json__write(root, to) : -ENOMEM;

	json_object_put(root);
	return err;
}
