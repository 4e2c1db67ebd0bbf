// SPDX-License-Identifier: GPL-3.0-or-later
#include "stat_report.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "cleanup.h"
#include "json.h"
#include "measure.h"
#include "measure_gaps.h"
#include "number.h"
#include "probed_file.h"
#include "profile.h"
#include "recording_text.h"
#include "session.h"
#include "stat_figures.h"
#include "stat_print.h"
#include "stat_regions.h"
#include "text.h"

/* The columns of a terminal that is as narrow as they come. */
#define PARAGRAPH_COLUMNS 80

static void print_completeness(const struct session_results *results, FILE *to)
{
	char reasons[512] = "";
	size_t len = 0;

	measure_gaps__visit(results, false, stat_print__gap, to);
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
}

static void print_live(const struct session_live *live, FILE *to)
{
	const __u64 *stats = live->stats;
	char note[96];

	stat_print__count(to, stats[AP_STAT_FREED_BYTES], "bytes freed",
			  "by frees and reallocations");
	/* At the peak those of ended processes are gone. */
	snprintf(note, sizeof(note), "in %s %.8s%s", number__count(live->blocks).text,
		 plural__of("block{|s}", live->blocks).text,
		 live->size_bytes > live->peak_bytes ? ", with those that ended processes left"
						     : "");
	stat_print__count(to, live->size_bytes, "bytes live at the end", note);
	stat_print__count(to, live->peak_bytes, "bytes live at the peak", "");
	stat_print__count(to, stats[AP_STAT_TEMPORARY], "temporary allocations",
			  "freed before the thread's next one");
	stat_print__count(to, stats[AP_STAT_FAILED], "failed requests", "");
	if (live->discarded)
		stat_print__count(to, live->discarded, "blocks discarded", "by exec");
	if (session_live__frees_unknown(live))
		stat_print__count(to, session_live__frees_unknown(live), "frees of unknown blocks",
				  "allocated before the start, or unseen");
	if (stats[AP_STAT_FREES_INHERITED])
		stat_print__count(to, stats[AP_STAT_FREES_INHERITED], "frees of inherited blocks",
				  "allocated before a fork");
	if (live->unfinished)
		stat_print__count(to, live->unfinished, "calls did not return", "");
	if (stats[AP_STAT_UNMATCHED])
		stat_print__count(to, stats[AP_STAT_UNMATCHED], "frees unseen",
				  "of blocks whose address was handed out again");
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		if (stats[AP_STAT_UNTRACKED + reason])
			stat_print__count(to, stats[AP_STAT_UNTRACKED + reason],
					  "calls whose blocks are not followed",
					  profile__untracked_name(reason));
}

/* Prints each line of @text as a paragraph, of words in PARAGRAPH_COLUMNS. */
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

static void print_beside(const struct session_results *results, FILE *to)
{
	_cleanup_(free_ptr) char *heaps = NULL, *beside = NULL;
	char pid[16];
	const struct recording_target target = measure_gaps__target(results, pid, sizeof(pid));

	if (!recording_text__beside(&target, &beside))
		print_paragraphs(beside, to);
	if (!recording_text__own_heaps(results->own_heaps, &heaps))
		print_paragraphs(heaps, to);
}

int stat_report__text(const struct session *session, const struct measure *measure,
		      const struct session_results *results, size_t columns, FILE *to)
{
	struct stat_totals totals = stat_totals__of(measure, results);

	fputc('\n', to);
	if (measure->pid)
		fprintf(to, " Allocation counts for process %d%s%s%s:\n\n", measure->pid,
			results->target_command ? " (" : "", results->target_command ?: "",
			results->target_command ? ")" : "");
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
	stat_print__count(to, results->processes,
			  plural__of("process{|es}", results->processes).text, "");
	print_completeness(results, to);
	print_window(&results->window, to);
	stat_regions__print(measure, results, columns, to);
	fprintf(to, "\n%*.6f seconds elapsed\n", STAT_NUMBER_COLUMNS, results->elapsed_seconds);
	if (!measure->pid && !results->target_runs)
		fprintf(to, "%*.6f seconds user\n%*.6f seconds sys\n", STAT_NUMBER_COLUMNS,
			results->user_seconds, STAT_NUMBER_COLUMNS, results->system_seconds);
	if (results->target_runs)
		fprintf(to, "\n Process %d goes on without probes.\n", results->target_pid);
	else if (results->is_attached)
		fprintf(to, "\n Process %d has ended, and the counting with it.\n",
			results->target_pid);
	print_beside(results, to);
	if (results->processes_left)
		fprintf(to,
			"\n Of the processes that the command started, %s %s on without probes.\n",
			number__count(results->processes_left).text,
			plural__of("go{es|}", results->processes_left).text);
	fputc('\n', to);
	return fflush(to) ? -errno : 0;
}

/* An object with two strings for each line "WORD REST". */
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

/* What cannot be read is absent. */
static void add_attached(json_object *root, const struct session_results *results)
{
	if (results->target_command)
		json__add(root, "attached_command", json__string(results->target_command));
	if (results->target_rss_bytes)
		json__add(root, "attached_rss_bytes", json__count(results->target_rss_bytes));
	if (results->target_children)
		json__add(root, "attached_children",
			  json_pairs(results->target_children, "pid", "command"));
}

static json_object *json_lost(const struct session_results *results)
{
	json_object *lost = json_object_new_object();

	json__add(lost, "total", json__count(results->lost_total));
	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		json__add(lost, profile__lost_name(reason), json__count(results->lost[reason]));
	return lost;
}

/* The unknown functions of @path that were called, with their counts; NULL: none. */
static json_object *json_unknown(const struct session_results *results, const char *path)
{
	json_object *functions = NULL;
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(results->gaps_of, &at, &gap);) {
		if ((gap->kind != GAP_FUNCTION_UNKNOWN && gap->kind != GAP_FUNCTION_ENDS) ||
		    strcmp(gap->object, path) != 0)
			continue;
		functions = functions ?: json_object_new_object();
		json__add(functions, gap->detail, json__count(gap->number));
	}
	return functions;
}

static json_object *json_allocators(const struct session *session,
				    const struct session_results *results)
{
	json_object *allocators = json_object_new_array();
	struct session_files at = { 0 };

	while (session__next_file(session, &at)) {
		json_object *entry = json_object_new_object(), *unknown;

		json__add(entry, "path", json__string(at.file.path));
		json__add(entry, "build_id", json__string(at.file.build_id));
		json__add(entry, "gap", at.file.gap[0] ? json__string(at.file.gap) : NULL);
		if (at.file.live_gap[0])
			json__add(entry, "live_gap", json__string(at.file.live_gap));
		unknown = json_unknown(results, at.file.path);
		if (unknown)
			json__add(entry, "unknown", unknown);
		json_object_array_add(allocators, entry);
	}
	return allocators;
}

static json_object *json_unprobed(const struct session_results *results)
{
	json_object *programs = json_object_new_array();
	const struct profile_gap *gap;

	for (size_t at = 0; profile__next_gap(results->gaps_of, &at, &gap);) {
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

static json_object *json_second(const struct session_results *results)
{
	json_object *programs = json_object_new_array();

	for (size_t i = 0; i < results->n_second_programs; i++) {
		const struct unprobed_program *program = &results->second_programs[i];
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

/* Adds the target and how it ended; null is unknown. */
static void add_run(json_object *root, const struct measure *measure,
		    const struct session_results *results)
{
	bool ended = measure->argv && !results->target_runs;

	json__add(root, "command", json_command(measure));
	json__add(root, "pid", measure->pid ? json_object_new_int(measure->pid) : NULL);
	json__add(root, "exit_status", ended ? json_object_new_int(results->exit_status) : NULL);
	json__add(root, "exit_signal",
		  results->exit_signal ? json_object_new_int(results->exit_signal) : NULL);
	json__add(root, "oom_kills", json__count(results->oom_kills));
	json__add(root, "impossible_calls", json__count(results->impossible));
	json__add(root, "elapsed_seconds", json__seconds(results->elapsed_seconds));
	json__add(root, "user_seconds", ended ? json__seconds(results->user_seconds) : NULL);
	json__add(root, "system_seconds", ended ? json__seconds(results->system_seconds) : NULL);
	json__add(root, "processes", json__count(results->processes));
}

static void add_live(json_object *root, const struct session_live *live)
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
	json__add(root, "unknown", json__count(session_live__frees_unknown(live)));
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
		       const struct session_results *results)
{
	const struct session_window *window = &results->window;
	const struct window_options *asked = &measure->session.window;
	json_object *object;

	if (!window->asked_for)
		return;
	object = json_object_new_object();
	json__add(object, "within", string_or_null(asked->within));
	json__add(object, "start_on", string_or_null(asked->start_on));
	json__add(object, "stop_on", string_or_null(asked->stop_on));
	json__add(object, "delay_seconds", json__seconds(asked->delay_ns / 1e9));
	json__add(object, "why_not_opened", string_or_null(window->why));
	json__add(object, "unnoticed", json__count(results->gaps[GAP_WINDOW_UNNOTICED]));
	json__add(root, "window", object);
	json__add(root, "window_opened", json_object_new_boolean(window->opened));
	json__add(root, "undecided", json__count(window->undecided));
}

json_object *stat_report__object(const struct session *session, const struct measure *measure,
				 const struct session_results *results)
{
	struct stat_totals totals = stat_totals__of(measure, results);
	json_object *root = json_object_new_object(), *gaps;

	if (!root)
		return NULL;
	json__add(root, "schema", json_object_new_string("allocprof-stat/1"));
	add_run(root, measure, results);
	json__add(root, "basis",
		  json_object_new_string(results->has_live ? "allocations" : "requests"));
	json__add(root, "complete", json_object_new_boolean(results->complete));
	json__add(root, "functions", stat_print__functions_object(measure, results, NULL));
	stat_print__add_totals(root, &totals, results->has_live,
			       results->live.stats[AP_STAT_FAILED]);
	json__add(root, "internal", json__count(totals.internal));
	if (results->has_live)
		add_live(root, &results->live);
	add_window(root, measure, results);
	stat_regions__add(root, measure, results);
	json__add(root, "relabelled", json__count(results->relabelled));
	json__add(root, "lost", json_lost(results));
	json__add(root, "processes_left", json__count(results->processes_left));
	/* No copies are made of what stat counts. */
	for (enum gap gap = 0; gap < GAP_TORN; gap++)
		json__add(root, gap__key(gap), json__count(results->gaps[gap]));
	json__add(root, "processes_unprobed", json__count(results->processes_unprobed));
	json__add(root, "unprobed_programs", json_unprobed(results));
	json__add(root, "allocators", json_allocators(session, results));
	json__add(root, "engine", json__string(session__engine(session)));
	if (results->n_second_programs)
		json__add(root, "uprobe_programs", json_second(results));
	gaps = stat_print__gaps_array(results, false);
	if (json_object_array_length(gaps))
		json__add(root, "engine_gaps", gaps);
	else
		json_object_put(gaps);
	if (results->own_heaps)
		json__add(root, "own_heaps", json_pairs(results->own_heaps, "runtime", "path"));
	if (results->is_attached)
		add_attached(root, results);
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
