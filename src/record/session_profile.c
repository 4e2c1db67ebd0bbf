// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_profile.h"

#include "session_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "probed_file.h"
#include "profile.h"
#include "symbols.h"
#include "tail_calls.h"
#include "text.h"

int session__symbolize(const struct session *session, struct symbols *symbols, bool files)
{
	int err = 0;

	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)
			      ->add_modules(session->engines[i], symbols, files);
	if (!err)
		err = profile__add_tail_calls(session->profile, symbols);
	if (!err)
		err = profile__symbolize(session->profile, symbols);
	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->name_frames(session->engines[i]);
	return err;
}

/* Prints lines, each with a newline. */
typedef void lines_fn(const struct session *session, const struct session_results *results,
		      FILE *to);

/* Sets *@lines, to be freed, to what @print prints, without the last newline. */
static int make_lines(const struct session *session, const struct session_results *results,
		      lines_fn *print, char **lines)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return -ENOMEM;
	print(session, results, to);
	if (fclose(to)) {
		free(text);
		return -ENOMEM;
	}
	if (size && text[size - 1] == '\n')
		text[size - 1] = '\0';
	*lines = text;
	return 0;
}

/* The command, quoted for a shell. */
static int set_command(struct profile *profile, char *const argv[])
{
	_cleanup_(free_ptr) char *command = NULL;
	size_t size;
	FILE *text = open_memstream(&command, &size);

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			fputc(' ', text);
		shell_word__print(argv[i], text);
	}
	return fclose(text) ? -ENOMEM : profile__set_meta(profile, "command", command);
}

static int set_start_time(struct profile *profile, __u64 realtime_ns)
{
	time_t seconds = realtime_ns / NS_PER_S;
	struct tm utc;
	char text[32];

	if (!gmtime_r(&seconds, &utc) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc))
		return 0;
	return profile__set_meta(profile, "start_time", text);
}

static int set_kernel(struct profile *profile)
{
	struct utsname uts = { 0 };

	(void)uname(&uts);
	return profile__set_meta(profile, "kernel", uts.release);
}

/* Lines "path". */
static void print_allocators(const struct session *session, const struct session_results *results,
			     FILE *to)
{
	struct session_files at = { 0 };

	while (session__next_file(session, &at))
		fprintf(to, "%s\n", at.file.path);
}

static void print_processes(FILE *to, __u64 n)
{
	fprintf(to, ": %llu %s", n, plural__of("process{|es}", n).text);
}

/* Lines "program: processes" of what the second engine measured. */
static void print_second_programs(const struct session *session,
				  const struct session_results *results, FILE *to)
{
	for (size_t i = 0; i < results->n_second_programs; i++) {
		fputs(results->second_programs[i].name, to);
		print_processes(to, results->second_programs[i].processes);
		fputc('\n', to);
	}
}

/* Lines "path" of files whose frames were unwound by frame pointers, some of them several times. */
static void print_without_table(const struct session *session,
				const struct session_results *results, FILE *to)
{
	for (size_t i = 0; i < session->n_engines; i++)
		session__operations(session, i)->list_without_table(session->engines[i], to);
}

/* Files without the key are of the engine uprobe. */
static int set_engine(const struct session *session, struct profile *profile)
{
	const char *name = session__engine(session);

	return strcmp(name, "uprobe") ? profile__set_meta(profile, "engine", name) : 0;
}

/* Removes the last newline, and lines that are there already. */
static void remove_repeated(char *lines)
{
	char *end = lines, *line, *rest = lines;

	while ((line = strsep(&rest, "\n"))) {
		size_t size = strlen(line) + 1;
		char *before = lines;

		if (!*line)
			continue;
		while (before < end && strcmp(before, line) != 0)
			before += strlen(before) + 1;
		if (before < end)
			continue;
		memmove(end, line, size);
		end += size;
	}
	for (char *at = lines; end > lines && at < end - 1; at++)
		if (!*at)
			*at = '\n';
	*(end > lines ? end - 1 : lines) = '\0';
}

/* Only those that have lines, but for the allocators. */
static int set_lists(const struct session *session, const struct session_results *results,
		     struct profile *profile)
{
	static const struct {
		const char *key;
		lines_fn *print;
		bool may_be_empty, may_repeat;
	} lists[] = {
		{ "allocators", print_allocators, .may_be_empty = true },
		{ "uprobe_programs", print_second_programs },
		{ "no_unwind_table", print_without_table, .may_repeat = true },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists) && !err; i++) {
		_cleanup_(free_ptr) char *lines = NULL;

		err = make_lines(session, results, lists[i].print, &lines);
		if (err)
			break;
		if (lists[i].may_repeat)
			remove_repeated(lines);
		if (*lines || lists[i].may_be_empty)
			err = profile__set_meta(profile, lists[i].key, lines);
	}
	return err;
}

static int set_number(struct profile *profile, const char *key, long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", value);
	return profile__set_meta(profile, key, text);
}

static int set_live_ledger(struct profile *profile, const struct session_live *live, bool sampled)
{
	const struct {
		const char *name;
		__u64 value;
	} entries[] = {
		{ "allocations", live->stats[AP_STAT_ALLOCATIONS] },
		{ "reallocations", live->stats[AP_STAT_REALLOCATIONS] },
		{ "failed", live->stats[AP_STAT_FAILED] },
		{ "released", live->stats[AP_STAT_RELEASED] },
		{ "unfinished", live->unfinished },
		{ "untracked", live->untracked },
		{ "frees", live->stats[AP_STAT_FREES] },
		{ "frees_null", live->stats[AP_STAT_FREES_NULL] },
		{ "frees_unknown", session_live__frees_unknown(live) },
		{ "frees_inherited", live->stats[AP_STAT_FREES_INHERITED] },
		{ "frees_unseen", live->stats[AP_STAT_UNMATCHED] },
		{ "discarded", live->discarded },
		{ "lifetimes_missing", live->stats[AP_STAT_LIFETIMES_LOST] },
		{ "blocks_dropped", live->stats[AP_STAT_DROPPED] },
		{ "histograms_missing", live->stats[AP_STAT_HISTOGRAMS_LOST] },
	};
	char name[64];
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(entries) && !err; i++) {
		/* With sampling the block may just not have been sampled. */
		if (sampled && (!strcmp(entries[i].name, "frees_unknown") ||
				!strcmp(entries[i].name, "frees_inherited")))
			continue;
		err = profile__set_ledger(profile, entries[i].name, entries[i].value);
	}
	for (int i = 0; i < AP_UNTRACKED_REASONS && !err; i++) {
		snprintf(name, sizeof(name), "untracked_%s", profile__untracked_name(i));
		err = profile__set_ledger(profile, name, live->stats[AP_STAT_UNTRACKED + i]);
	}
	return err;
}

/* Only if there is a window, so that files of whole runs have no such keys. */
static int set_window(struct profile *profile, const struct window_options *asked,
		      const struct session_window *window)
{
	const struct {
		const char *key, *value;
	} entries[] = {
		{ "window_within", asked->within },
		{ "window_start_on", asked->start_on },
		{ "window_stop_on", asked->stop_on },
		{ "window_paused", asked->paused ? "1" : NULL },
		{ "window_opened", window->opened ? "1" : "0" },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(entries) && !err; i++)
		if (entries[i].value)
			err = profile__set_meta(profile, entries[i].key, entries[i].value);
	if (!err && asked->delay_ns)
		err = set_number(profile, "window_delay_ns", asked->delay_ns);
	return err ? err : profile__set_ledger(profile, "undecided", window->undecided);
}

/* Only those that are not 0. */
static int set_numbers(const struct session_results *results, __u64 sample_bytes,
		       struct profile *profile)
{
	const struct {
		const char *key;
		__u64 value;
	} numbers[] = {
		{ "sample_bytes", sample_bytes },
		{ "stops", results->marks.stops },
		{ "resets", results->marks.resets },
		{ "dump", results->marks.is_dump },
		{ "impossible_calls", results->impossible },
		{ "exit_signal", results->exit_signal },
		{ "oom_kills", results->oom_kills },
		{ "group_limit_bytes", results->group_limit_bytes },
		{ "own_in_group", results->is_in_group },
		{ "own_bytes", results->own_bytes },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !err; i++)
		if (numbers[i].value)
			err = set_number(profile, numbers[i].key, numbers[i].value);
	return err;
}

static int set_live(struct profile *profile, const struct session_live *live, bool sampled)
{
	int err = set_number(profile, "epoch_ns", live->epoch_ns);

	if (!err)
		err = set_number(profile, "peak_bytes", live->peak_bytes);
	if (!err)
		err = set_number(profile, "kernel_bytes",
				 live->memory.block_bytes + live->memory.record_bytes);
	if (!err)
		err = set_number(profile, "max_live", live->memory.max_blocks);
	if (!err)
		err = set_number(profile, "max_records", live->memory.max_records);
	return err ? err : set_live_ledger(profile, live, sampled);
}

/* What was not there, or could not be read, has no key. */
static int set_attached(struct profile *profile, const struct session_results *results)
{
	int err = set_number(profile, "attached_pid", results->target_pid);

	if (!err && results->target_command)
		err = profile__set_meta(profile, "attached_command", results->target_command);
	if (!err && results->target_rss_bytes)
		err = set_number(profile, "attached_rss_bytes", results->target_rss_bytes);
	if (!err && results->target_children)
		err = profile__set_meta(profile, "attached_children", results->target_children);
	return err;
}

static int set_events(const struct session *session, struct profile *profile,
		      const struct event_log_results *log)
{
	int err = profile__set_meta(profile, "events_id", log->id.text);

	if (!err && session->is_snapshot)
		err = set_number(profile, "events_stacks", session->log_stacks);
	if (!err)
		err = profile__set_ledger(profile, "logged", log->logged);
	return err ? err : profile__set_ledger(profile, "not_logged", log->lost);
}

int session__profile(const struct session *session, char *const argv[], struct profile **out)
{
	struct profile *profile = session->profile;
	struct session_results results;
	__u64 sample_bytes = session->options.sample_bytes;
	char elapsed[32];
	int err;

	session__results(session, &results);
	snprintf(elapsed, sizeof(elapsed), "%.6f", results.elapsed_seconds);
	err = argv ? set_command(profile, argv) : 0;
	if (!err && !argv)
		err = set_attached(profile, &results);
	if (!err && argv && !results.target_runs)
		err = set_number(profile, "exit_status", results.exit_status);
	if (!err)
		err = set_kernel(profile);
	if (!err)
		err = set_start_time(profile, session__start_realtime_ns(session));
	if (!err)
		err = profile__set_meta(profile, "elapsed_seconds", elapsed);
	if (!err)
		err = profile__set_meta(profile, "allocprof_version", ALLOCPROF_VERSION);
	if (!err)
		err = set_engine(session, profile);
	if (!err)
		err = set_lists(session, &results, profile);
	if (!err)
		err = set_numbers(&results, sample_bytes, profile);
	if (!err)
		err = set_number(profile, "waits", results.waits);
	if (!err)
		err = set_number(profile, "waits_ns", results.waits_ns);
	if (!err && results.common_names)
		err = set_number(profile, "common_names", results.common_names);
	if (!err && results.own_heaps)
		err = profile__set_meta(profile, "own_heaps", results.own_heaps);
	if (!err)
		err = profile__settle_ledger(profile, results.events, results.lost);
	if (!err && sample_bytes)
		err = profile__settle_samples(profile, results.not_sampled);
	if (!err && results.has_live)
		err = set_live(profile, &results.live, sample_bytes);
	if (!err && results.events_log.is_logged)
		err = set_events(session, profile, &results.events_log);
	if (!err && results.window.asked_for)
		err = set_window(profile, &session->options.window, &results.window);
	if (!err)
		*out = profile;
	return err;
}
