// SPDX-License-Identifier: GPL-3.0-or-later
/* Completes the profile of a finished session: what its engines have counted, which files they probed, and how the run went. */
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
#include "own_file.h"
#include "probed_file.h"
#include "profile.h"
#include "definitions.h"
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

/* Adds exported functions whose effect on blocks is unknown. */
static int add_unknown(const struct session *session, const struct session_files *at)
{
	const struct engine *engine = session->engines[at->engine];
	size_t file = at->n_seen[at->engine] - 1;
	const char *name;
	int err = 0;
	bool ends;

	for (size_t i = 0; !err && (name = probed_file__unknown(&at->file, i, &ends)); i++) {
		struct profile_gap gap = {
			.kind = ends ? GAP_FUNCTION_ENDS : GAP_FUNCTION_UNKNOWN,
			.object = at->file.path,
			.detail = name,
		};

		/* Without --live it does not matter whether the function ends blocks. */
		if (!ends || session->options.live)
			gap.number = engine->operations->unknown_calls(engine, file, i);
		err = gap.number ? profile__add_gap(session->profile, &gap) : 0;
	}
	return err;
}

static int add_file(const struct session *session, enum gap kind, const char *path, const char *why)
{
	const struct profile_gap gap = { .kind = kind, .object = path, .detail = why };

	return *why ? profile__add_gap(session->profile, &gap) : 0;
}

static int add_allocator(const struct session *session, const struct probed_file *file)
{
	return profile__add_allocator(session->profile, &(struct profile_allocator){
								.path = (char *)file->path,
								.build_id = (char *)file->build_id,
								.gap = (char *)file->gap,
								.live_gap = (char *)file->live_gap,
							});
}

static int add_files(const struct session *session)
{
	struct session_files at = { 0 };
	int err = 0;

	while (!err && session__next_file(session, &at)) {
		err = add_allocator(session, &at.file);
		if (!err)
			err = add_file(session, GAP_ALLOCATOR_UNPROBED, at.file.path, at.file.gap);
		if (!err)
			err = add_file(session, GAP_ALLOCATOR_UNFOLLOWED, at.file.path,
				       at.file.live_gap);
		if (!err)
			err = add_unknown(session, &at);
	}
	return err;
}

/* Returns whether no file of the run had any function of the definition. */
static bool is_lacking(const struct session *session, const struct definition *definition)
{
	struct session_files at = { 0 };

	if (session->profile->totals.functions[definition->functions[0].interface.function].probed)
		return false;
	while (session__next_file(session, &at))
		for (size_t i = 0; i < definition->n_functions; i++)
			if (probed_file__has(&at.file, definition, i))
				return false;
	return true;
}

static int add_definition(const struct session *session, const struct definition *definition)
{
	bool is_by_domain = definition->domain && strcmp(session__engine(session), "uprobe");
	_cleanup_(free_ptr) char *detail = NULL;
	size_t size;
	FILE *to = open_memstream(&detail, &size);

	if (!to)
		return -ENOMEM;
	/* The engine preload looks at all files that have the domain. */
	fputs(is_by_domain ? definition->domain : definition->functions[0].name, to);
	for (size_t i = 0; i < definition->n_modules && !is_by_domain; i++)
		fprintf(to, "\n%s", definition->modules[i]);
	if (fclose(to))
		return -ENOMEM;
	return add_file(session, GAP_DEFINITION_LACKING, definition->name, detail);
}

static int add_definitions(const struct session *session)
{
	const struct definitions *definitions = session->options.definitions;
	int err = 0;

	for (size_t i = 0; definitions && i < definitions->n && !err; i++)
		if (is_lacking(session, &definitions->list[i]))
			err = add_definition(session, &definitions->list[i]);
	return err;
}

/* Prints lines, each with a newline. */
typedef void lines_fn(const struct session *session, FILE *to);

/* Sets *@lines, which the caller frees, to what @print prints, without the last newline. */
static int make_lines(const struct session *session, lines_fn *print, char **lines)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return -ENOMEM;
	print(session, to);
	if (fclose(to)) {
		free(text);
		return -ENOMEM;
	}
	if (size && text[size - 1] == '\n')
		text[size - 1] = '\0';
	*lines = text;
	return 0;
}

/* Sets the command, quoted for a shell; without @arguments its first word alone. */
static int set_command(struct profile *profile, char *const argv[], bool arguments)
{
	_cleanup_(free_ptr) char *command = NULL;
	size_t size;
	FILE *text = open_memstream(&command, &size);

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; argv[i] && (!i || arguments); i++) {
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

/* Salvaged files may be another machine's, of the same processor. */
static int set_machine(const struct session *session)
{
	struct utsname uts = { 0 };
	const char *kernel = uts.release;
	int err;

	(void)uname(&uts);
	if (session->salvaged)
		kernel = own_files__get(session->salvaged, 0)->origin.kernel;
	err = profile__set_meta(session->profile, "kernel", kernel);
	return err ? err : profile__set_meta(session->profile, "machine", uts.machine);
}

/* Leaves out what is not known. */
static int set_platform(struct profile *profile, const struct platform *platform)
{
	const struct {
		const char *key, *value;
	} entries[] = {
		{ "system", platform->system },
		{ "libc", platform->libc },
		{ "compiler", platform->compiler },
		{ "libraries", platform->libraries },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(entries) && !err; i++)
		if (entries[i].value)
			err = profile__set_meta(profile, entries[i].key, entries[i].value);
	return err;
}

/* Prints lines "PATH". */
static void print_allocators(const struct session *session, FILE *to)
{
	const struct profile_totals *totals = &session->profile->totals;

	for (size_t i = 0; i < totals->n_allocators; i++)
		fprintf(to, "%s\n", totals->allocators[i].path);
}

/* Prints lines "PROGRAM: PROCESSES" of what the fallback engine measured. */
static void print_uprobe_programs(const struct session *session, FILE *to)
{
	const struct profile_totals *totals = &session->profile->totals;

	for (size_t i = 0; i < totals->n_uprobe_programs; i++) {
		const struct uprobe_program *program = &totals->uprobe_programs[i];

		fprintf(to, "%s: %llu %s\n", program->name, program->processes,
			plural__of("process{|es}", program->processes).text);
	}
}

/* Prints lines "PATH" of files whose frames were unwound by frame pointers; some come several
 * times. */
static void print_without_table(const struct session *session, FILE *to)
{
	for (size_t i = 0; i < session->n_engines && session->options.stacks; i++)
		session__operations(session, i)->list_without_table(session->engines[i], to);
}

/* Sets the engine's name. Data files without the key are of the engine uprobe. */
static int set_engine(const struct session *session, struct profile *profile)
{
	const char *name = session__engine(session);

	return strcmp(name, "uprobe") ? profile__set_meta(profile, "engine", name) : 0;
}

/* Removes the last newline, and lines that come again. */
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

/* Sets the lists that have lines, and in any case that of the allocators. */
static int set_lists(const struct session *session)
{
	static const struct {
		const char *key;
		lines_fn *print;
		bool may_be_empty, may_repeat;
	} lists[] = {
		{ "allocators", print_allocators, .may_be_empty = true },
		{ "uprobe_programs", print_uprobe_programs },
		{ "no_unwind_table", print_without_table, .may_repeat = true },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists) && !err; i++) {
		_cleanup_(free_ptr) char *lines = NULL;

		err = make_lines(session, lists[i].print, &lines);
		if (err)
			break;
		if (lists[i].may_repeat)
			remove_repeated(lines);
		if (*lines || lists[i].may_be_empty)
			err = profile__set_meta(session->profile, lists[i].key, lines);
	}
	return err;
}

static int set_number(struct profile *profile, const char *key, long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", value);
	return profile__set_meta(profile, key, text);
}

/* Blocks whose end was not seen have no lifetime, and are another entry of the ledger. */
static __u64 lifetimes_missing(const struct profile *profile, const struct live_totals *live)
{
	__u64 without = profile__blocks_without_lifetime(profile),
	      unseen = live->stats[AP_STAT_UNMATCHED];
	__u64 lost = live->stats[AP_STAT_LIFETIMES_LOST];

	return without > unseen && without - unseen > lost ? without - unseen : lost;
}

static int set_live_ledger(struct profile *profile, const struct live_totals *live, bool sampled)
{
	const struct mapping_totals *mappings = &live->mappings;
	const struct {
		const char *name;
		__u64 value;
	} entries[] = {
		{ "allocations", live->stats[AP_STAT_ALLOCATIONS] + mappings->allocations },
		{ "reallocations", live->stats[AP_STAT_REALLOCATIONS] },
		{ "failed", live->stats[AP_STAT_FAILED] + mappings->failed },
		{ "released", live->stats[AP_STAT_RELEASED] + mappings->released },
		{ "unfinished", live->unfinished },
		{ "untracked", live->untracked },
		{ "frees", live->stats[AP_STAT_FREES] + mappings->frees },
		{ "frees_null", live->stats[AP_STAT_FREES_NULL] },
		{ "frees_unknown", live_totals__frees_unknown(live) },
		{ "frees_inherited", live->stats[AP_STAT_FREES_INHERITED] },
		{ "frees_unseen", live->stats[AP_STAT_UNMATCHED] },
		{ "discarded", live->discarded + mappings->discarded },
		{ "lifetimes_missing", lifetimes_missing(profile, live) },
		{ "blocks_dropped", live->stats[AP_STAT_DROPPED] },
		{ "histograms_missing", live->stats[AP_STAT_HISTOGRAMS_LOST] },
	};
	char name[64];
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(entries) && !err; i++) {
		/* With sampling such a block may be one that was not sampled. */
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

/* Sets the keys of the window only if there is one, so that files of whole runs do not have them. */
static int set_window(struct profile *profile, const struct window_options *asked)
{
	const struct {
		const char *key, *value;
	} entries[] = {
		{ "window_within", asked->within },
		{ "window_start_on", asked->start_on },
		{ "window_stop_on", asked->stop_on },
		{ "window_paused", asked->paused ? "1" : NULL },
		{ "window_opened", profile->totals.window.opened ? "1" : "0" },
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(entries) && !err; i++)
		if (entries[i].value)
			err = profile__set_meta(profile, entries[i].key, entries[i].value);
	if (!err && asked->delay_ns)
		err = set_number(profile, "window_delay_ns", asked->delay_ns);
	return err;
}

static int set_live(struct profile *profile, const struct live_totals *live, bool sampled)
{
	int err = set_number(profile, "epoch_ns", live->epoch_ns);

	if (!err)
		err = set_number(profile, "peak_bytes", live->peak_bytes);
	if (!err && live->mappings.allocations)
		err = set_number(profile, "mappings_peak_bytes", live->mappings.peak_bytes);
	if (!err)
		err = set_number(profile, "kernel_bytes",
				 live->memory.block_bytes + live->memory.record_bytes);
	if (!err)
		err = set_number(profile, "max_live", live->memory.max_blocks);
	if (!err)
		err = set_number(profile, "max_records", live->memory.max_records);
	return err ? err : set_live_ledger(profile, live, sampled);
}

/* Returns whether each block that the command frees was allocated in a counted call, which is so
 * if the command is measured from its exec on, all the time. */
static bool sees_all_births(const struct session *session)
{
	const struct session_options *options = &session->options;

	return session->target.launched && options->live && !options->sample_bytes &&
	       !window_options__any(&options->window) && !session->marks.stops &&
	       !session->marks.resets;
}

/* Sets those numbers that are not 0, and own_bytes. */
static int set_numbers(const struct session *session)
{
	const struct target *target = &session->target;
	const struct {
		const char *key;
		__u64 value;
	} numbers[] = {
		{ "sample_bytes", session->options.sample_bytes },
		{ "weighted", definitions__any_weight(session->options.definitions) },
		{ "stops", session->marks.stops },
		{ "resets", session->marks.resets },
		{ "dump", session->marks.is_dump },
		{ "exit_signal", target__exit_signal(target) },
		{ "oom_kills", session__count_kills(session) },
		{ "group_limit_bytes", session->target_group.limit_bytes },
		{ "own_in_group", session->is_in_group },
		{ "salvaged", session->salvaged ? own_files__count(session->salvaged) : 0 },
		{ "checked_calls", session__checked_calls(session) },
	};
	int err = 0;

	if (session->options.stacks && !session->options.max_depth)
		err = profile__set_meta(session->profile, "backtrace", "none");
	if (!err && session->marks.dump_at)
		err = profile__set_meta(session->profile, "dump_at", session->marks.dump_at);
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !err; i++)
		if (numbers[i].value)
			err = set_number(session->profile, numbers[i].key, numbers[i].value);
	/* Here the engines have already added what they keep. */
	return err ? err
		   : profile__add_meta_number(session->profile, "own_bytes",
					      memory_group__own_bytes());
}

static bool has_process(const struct profile *profile, pid_t pid)
{
	for (size_t i = 0; i < profile->n_processes; i++)
		if (profile->processes[i].pid == (__u32)pid)
			return true;
	return false;
}

/* Adds the numbers of the processes if there are several, or may be. One may have ended before it was
 * measured, which is known where the profile has processes: not of stat's by the library. */
static int set_processes(const struct session *session)
{
	const struct target *target = &session->target;
	_cleanup_(free_ptr) char *text = NULL;
	size_t size, n = 0;
	FILE *to;

	if (target->ends_with)
		return 0;
	to = open_memstream(&text, &size);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < target__n_processes(target); i++)
		if (!session->profile->n_processes ||
		    has_process(session->profile, target__process(target, i)))
			fprintf(to, "%s%d", n++ ? "," : "", target__process(target, i));
	return fclose(to) ? -ENOMEM : profile__set_meta(session->profile, "attached_pids", text);
}

/* Removes the lines of those children that were measured nevertheless, since they began later. */
static void keep_unmeasured(const struct profile *profile, char *lines)
{
	char *to = lines;

	for (char *line = lines, *next; *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		if (has_process(profile, atoi(line)))
			continue;
		if (to != lines)
			*to++ = '\n';
		memmove(to, line, len);
		to += len;
	}
	*to = '\0';
}

/* Adds what is known of the processes that were attached to. A key whose value could not be read is
 * left out. */
static int set_attached(const struct session *session)
{
	const struct attached *attached = &session->attached;
	struct profile *profile = session->profile;
	_cleanup_(free_ptr) char *children = NULL;
	int err =
		set_number(profile, "attached_pid", session->target.pid) ?: set_processes(session);

	if (!err && attached->command)
		err = profile__set_meta(profile, "attached_command", attached->command);
	if (!err && attached->rss_bytes)
		err = set_number(profile, "attached_rss_bytes", attached->rss_bytes);
	/* Where children are followed those that begin meanwhile need not be listed. */
	if (!err && !session->options.follow)
		err = attached__list_children(&session->target, !session->options.omits_arguments,
					      &children);
	else if (!err && attached->children && (children = strdup(attached->children)))
		keep_unmeasured(profile, children);
	return !err && children && *children
		       ? profile__set_meta(profile, "attached_children", children)
		       : err;
}

static struct target_run target_run(const struct session *session)
{
	const struct target *target = &session->target;
	__u64 begin_ns = session->since_ns ? session->since_ns : target->start_ns;
	__u64 end_ns = session->is_snapshot ? session->cut_ns : target->end_ns;

	return (struct target_run){
		.pid = target->pid,
		.is_attached = !target->launched,
		/* A snapshot's target still runs. */
		.runs = session->is_snapshot ||
			(target->launched ? !target->waited : target__is_running(target)),
		.interrupted = session->n_signals > 0,
		.exit_status = target__exit_status(target),
		.elapsed_seconds = (end_ns - begin_ns) / 1e9,
		.user_seconds =
			target->usage.ru_utime.tv_sec + target->usage.ru_utime.tv_usec / 1e6,
		.system_seconds =
			target->usage.ru_stime.tv_sec + target->usage.ru_stime.tv_usec / 1e6,
	};
}

static int set_target(const struct session *session)
{
	struct profile *profile = session->profile;
	struct target_run *run = &profile->totals.run;
	char elapsed[32];
	int err;

	*run = target_run(session);
	snprintf(elapsed, sizeof(elapsed), "%.6f", run->elapsed_seconds);
	err = run->is_attached
		      ? set_attached(session)
		      : set_command(profile, session->argv, !session->options.omits_arguments);
	/* How the processes of salvaged files have ended only their parents know. */
	if (!err && !run->is_attached && !run->runs && !session->salvaged)
		err = set_number(profile, "exit_status", run->exit_status);
	if (!err)
		err = set_machine(session);
	if (!err)
		err = set_platform(profile, &session->platform);
	if (!err)
		err = set_start_time(profile, session->start_realtime_ns);
	if (!err)
		err = profile__set_meta(profile, "elapsed_seconds", elapsed);
	if (!err)
		err = profile__set_meta(profile, "allocprof_version", ALLOCPROF_VERSION);
	return err ? err : set_engine(session, profile);
}

static int settle_ledger(const struct session *session)
{
	struct profile *profile = session->profile;
	const struct profile_totals *totals = &profile->totals;
	bool is_sampled = session->options.sample_bytes;
	int err = profile__settle_ledger(profile, totals->calls.events, totals->calls.lost);

	if (!err && is_sampled)
		err = profile__settle_samples(profile, totals->calls.not_sampled);
	return !err && totals->has_live ? set_live(profile, &totals->live, is_sampled) : err;
}

/* Adds the gaps that are numbers and that no single engine knows. */
static int add_gaps(const struct session *session)
{
	const struct live_totals *live = &session->profile->totals.live;
	__u64 gaps[GAP_NUMBERS] = { [GAP_TORN] = session->torn_ms };
	bool sees_all = sees_all_births(session) && !live->untracked &&
			!live->stats[AP_STAT_DROPPED] && !profile__ledger(session->profile, "lost");

	for (int i = 0; i < AP_FAMILIES && sees_all; i++)
		gaps[GAP_ALLOCATIONS_UNSEEN + i] = live->stats[AP_STAT_FREES_UNKNOWN + i];
	return profile__add_numbers(session->profile, gaps, GAP_NUMBERS);
}

int session__complete_profile(struct session *session)
{
	/* This comes first, so that the counters that it cannot read are among the results. */
	int err = add_files(session);

	for (size_t i = 0; i < session->n_engines && !err; i++)
		err = session__operations(session, i)->results(session->engines[i]);
	if (!err)
		err = add_definitions(session);
	if (!err)
		err = set_target(session);
	if (!err)
		err = set_lists(session);
	if (!err)
		err = set_numbers(session);
	if (!err)
		err = settle_ledger(session);
	if (!err)
		err = add_gaps(session);
	if (!err)
		err = session__add_bypasses(session);
	if (!err && profile__meta(session->profile, "events_id"))
		err = set_number(session->profile, "events_start_ns",
				 session->profile->totals.live.start_ns);
	if (!err && session->is_snapshot && profile__meta(session->profile, "events_id"))
		err = set_number(session->profile, "events_stacks", session->log_stacks);
	if (!err && session->profile->totals.window.asked_for)
		err = set_window(session->profile, &session->options.window);
	return err;
}

struct profile *session__profile(const struct session *session)
{
	return session->profile;
}
