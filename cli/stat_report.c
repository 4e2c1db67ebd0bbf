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
#include "profile.h"
#include "recording_text.h"
#include "stat_figures.h"
#include "stat_print.h"
#include "stat_regions.h"
#include "text.h"

/* The columns of a terminal that is as narrow as they come. */
#define PARAGRAPH_COLUMNS 80

static void print_completeness(const struct profile *profile, FILE *to)
{
	char reasons[512] = "";
	size_t len = 0;

	measure_gaps__visit(profile, false, stat_print__gap, to);
	for (int reason = 0; reason < AP_LOST_REASONS && len < sizeof(reasons); reason++)
		if (profile__lost(profile, reason))
			len += snprintf(reasons + len, sizeof(reasons) - len, "%s%s %s",
					len ? ", " : "",
					number__count(profile__lost(profile, reason)).text,
					profile__lost_name(reason));
	stat_print__count(to, profile__ledger(profile, "lost"), "lost", reasons);
}

static void print_live(const struct live_totals *live, FILE *to)
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
	if (live_totals__frees_unknown(live))
		stat_print__count(to, live_totals__frees_unknown(live), "frees of unknown blocks",
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

static void print_beside(const struct profile *profile, FILE *to)
{
	_cleanup_(free_ptr) char *heaps = NULL, *beside = NULL;

	if (!recording_text__beside(profile, false, &beside))
		print_paragraphs(beside, to);
	if (!recording_text__own_heaps(profile__meta(profile, "own_heaps"), &heaps))
		print_paragraphs(heaps, to);
}

int stat_report__text(const struct measure *measure, const struct profile *profile, size_t columns,
		      FILE *to)
{
	struct stat_totals totals = stat_totals__of(measure, profile);

	fputc('\n', to);
	if (measure->pid)
		fprintf(to, " Allocation counts for process %d%s%s%s:\n\n", measure->pid,
			profile__meta(profile, "attached_command") ? " (" : "",
			profile__meta(profile, "attached_command") ?: "",
			profile__meta(profile, "attached_command") ? ")" : "");
	else
		stat_print__command(to, columns, measure->argv, "':\n");
	stat_print__functions(measure, profile, NULL, to);
	fputc('\n', to);
	stat_print__totals(&totals, profile->totals.has_live, to);
	if (profile->totals.has_live)
		print_live(&profile->totals.live, to);
	if (totals.knows_mappings) {
		stat_print__count(to, totals.returned_bytes, "bytes given back to the kernel",
				  "by munmap, mremap and brk");
		stat_print__count(to, totals.mappings_failed, "mappings refused",
				  totals.mappings_failed ? "they are among the calls" : "");
	}
	stat_print__count(to, profile->totals.processes,
			  plural__of("process{|es}", profile->totals.processes).text, "");
	print_completeness(profile, to);
	if (profile->totals.window.why)
		stat_print__sentence(to, "nothing was measured: %s", profile->totals.window.why);
	stat_regions__print(measure, profile, columns, to);
	fprintf(to, "\n%*.6f seconds elapsed\n", STAT_NUMBER_COLUMNS,
		profile->totals.run.elapsed_seconds);
	if (!measure->pid && !profile->totals.run.runs)
		fprintf(to, "%*.6f seconds user\n%*.6f seconds sys\n", STAT_NUMBER_COLUMNS,
			profile->totals.run.user_seconds, STAT_NUMBER_COLUMNS,
			profile->totals.run.system_seconds);
	if (profile->totals.run.runs)
		fprintf(to, "\n Process %d goes on without probes.\n", profile->totals.run.pid);
	else if (profile->totals.run.is_attached)
		fprintf(to, "\n Process %d has ended, and the counting with it.\n",
			profile->totals.run.pid);
	print_beside(profile, to);
	if (profile->totals.processes_left)
		fprintf(to,
			"\n Of the processes that the command started, %s %s on without probes.\n",
			number__count(profile->totals.processes_left).text,
			plural__of("go{es|}", profile->totals.processes_left).text);
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

/* The unknown functions of @path that were called, with their counts; NULL: none. */
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

/* Processes whose calls were not seen: of programs that are named, and of others. */
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

static json_object *json_second(const struct profile *profile)
{
	json_object *programs = json_object_new_array();

	for (size_t i = 0; i < profile->totals.n_second_programs; i++) {
		const struct second_program *program = &profile->totals.second_programs[i];
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
static void add_run(json_object *root, const struct measure *measure, const struct profile *profile)
{
	bool ended = measure->argv && !profile->totals.run.runs;

	json__add(root, "command", json_command(measure));
	json__add(root, "pid", measure->pid ? json_object_new_int(measure->pid) : NULL);
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
	json__add(root, "functions", stat_print__functions_object(measure, profile, NULL));
	stat_print__add_totals(root, &totals, profile->totals.has_live,
			       profile->totals.live.stats[AP_STAT_FAILED]);
	json__add(root, "internal", json__count(totals.internal));
	if (profile->totals.has_live)
		add_live(root, &profile->totals.live);
	add_window(root, measure, profile);
	stat_regions__add(root, measure, profile);
	json__add(root, "relabelled", json__count(profile->totals.relabelled));
	json__add(root, "lost", json_lost(profile));
	json__add(root, "processes_left", json__count(profile->totals.processes_left));
	/* No copies are made of what stat counts. */
	for (enum gap gap = 0; gap < GAP_TORN; gap++)
		json__add(root, gap__key(gap), json__count(profile__gap(profile, gap)));
	json__add(root, "processes_unprobed", json__count(count_unprobed(profile)));
	json__add(root, "unprobed_programs", json_unprobed(profile));
	json__add(root, "allocators", json_allocators(profile));
	json__add(root, "engine", json__string(profile__engine(profile)));
	if (profile->totals.n_second_programs)
		json__add(root, "uprobe_programs", json_second(profile));
	gaps = stat_print__gaps_array(profile, false);
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
