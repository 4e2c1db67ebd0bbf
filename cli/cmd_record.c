// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof record`: records the calls of a command or process, with stacks. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "command.h"
#include "data_file.h"
#include "error.h"
#include "event_choice.h"
#include "event_log.h"
#include "filter.h"
#include "measure.h"
#include "measure_gaps.h"
#include "measure_options.h"
#include "message.h"
#include "options.h"
#include "profile.h"
#include "profile_runs.h"
#include "record_summary.h"
#include "recorder.h"
#include "recording.h"
#include "recording_text.h"
#include "sample_abi.h"
#include "session.h"
#include "symbol_options.h"
#include "symbols.h"

/* Default of the maximum depth of stacks, in frames: enough for nearly all programs, and perf's
 * limit, too. */
#define DEFAULT_DEPTH 127

/* Functions that are recorded by default: all but free, whose stack says nothing about the
 * allocation. */
#define ALLOCATING (AP_ALL_FUNCTIONS & ~AP_FREEING)

enum {
	OPT_NO_SYMBOLS = 256,
	OPT_RESIDENT,
	OPT_REACHABLE,
	OPT_INTERVAL,
	OPT_EVENTS,
	OPT_THROTTLE,
	OPT_BACKTRACE,
	OPT_WHERE_LOGGED,
	OPT_NO_CHECKPOINTS,
	OPT_NO_ARGUMENTS,
	OPT_DUMP_AT,
	OPT_KEEP,
	OPT_BEGIN_AT,
};

static const struct argp_option record_options[] = {
	OPTIONS_GROUP("Target:"),
	MEASURE_OPTIONS_PID,
	MEASURE_OPTION_USER,
	MEASURE_OPTION_DURATION,
	MEASURE_OPTION_NO_FOLLOW,
	MEASURE_OPTION_EXPECT,
	SERIES_OPTIONS("1"),
	OPTIONS_GROUP("What is recorded:"),
	RECORD_OPTION_LIVE,
	{ "resident", OPT_RESIDENT, NULL, 0,
	  "Find out at the end which blocks hold resident memory, and what else does; implies --live",
	  0 },
	{ "reachable", OPT_REACHABLE, NULL, 0,
	  "Search the memory at the end for pointers: which blocks are lost, and which can still be reached; "
	  "implies --live",
	  0 },
	{ "interval", OPT_INTERVAL, "TIME", 0,
	  "With --live, add a point to the time line every TIME, instead of some hundred", 0 },
	RECORD_OPTION_SAMPLE,
	{ "events", OPT_EVENTS, NULL, 0,
	  "Log every event, too, to FILE.events beside the data file; implies --live", 0 },
	MEASURE_OPTION_FAULTS,
	MEASURE_OPTION_EVENTS,
	MEASURE_OPTIONS_DEFINITIONS,
	MEASURE_OPTION_IGNORE,
	OPTIONS_GROUP("In which part of the run:"),
	WINDOW_OPTIONS,
	{ "begin-at", OPT_BEGIN_AT, "rss=SIZE", 0,
	  "With -p, begin when the process has SIZE of resident memory; it has no probes before",
	  0 },
	{ "dump-at", OPT_DUMP_AT, "LIMIT", 0,
	  "Write a copy of the recording so far when the memory reaches LIMIT: rss=SIZE, live=SIZE, "
	  "growth=SIZE/TIME, cgroup=N%, oom, peak, or signal=USR2; also a list of these",
	  0 },
	{ "keep", OPT_KEEP, "N", 0, "With --dump-at, keep only the last N copies", 0 },
	OPTIONS_GROUP("File and names:"),
	{ "output", 'o', "FILE", 0, "Write to FILE instead of allocprof.data", 0 },
	MEASURE_OPTION_QUIET,
	MEASURE_OPTION_VERBOSE,
	{ "no-symbols", OPT_NO_SYMBOLS, NULL, 0,
	  "Do not look up names; `allocprof symbolize` can do it later", 0 },
	{ "no-arguments", OPT_NO_ARGUMENTS, NULL, 0,
	  "Keep only the names of programs, not their arguments, which may have secrets", 0 },
	{ "no-checkpoints", OPT_NO_CHECKPOINTS, NULL, 0,
	  "Do not save the recording so far in FILE.partial", 0 },
	SYMBOL_OPTION_DEBUG_DIR,
	SYMBOL_OPTION_NO_DEBUGINFOD,
	SYMBOL_OPTION_DEBUGINFOD_TIMEOUT,
	DEMANGLING_OPTION_COMMAND(0),
	OPTIONS_GROUP("How it is recorded:"),
	MEASURE_OPTION_ENGINE,
	MEASURE_OPTIONS_ISOLATE,
	MEASURE_OPTION_NO_CACHE,
	RECORD_OPTIONS_LIMITS,
	{ "throttle", OPT_THROTTLE, NULL, 0,
	  "With --events, slow the target down rather than lose events of the log", 0 },
	{ "backtrace", OPT_BACKTRACE, "none", 0,
	  "With --events, take no stacks: each event costs less", 0 },
	{ "where", OPT_WHERE_LOGGED, "EXPRESSION", 0,
	  "With --events, log only blocks for whose size and thread EXPRESSION is true", 0 },
	MEASURE_OPTION_INJECT,
	{ 0 },
};

#define MOST_KEPT_DUMPS 10000

struct record_options {
	struct measure measure;
	struct series series;
	struct symbol_options symbols;
	bool no_symbols, events, no_stacks, no_checkpoints;
	struct event_log_choice logged; /* with a context; zeroed: all blocks */
	char *partial;			/* path of the checkpoint; and whether there is one */
	bool is_kept;
	char *peak; /* path of the copy at the peak, or NULL; and whether there is one */
	bool has_peak;
	const char *output;
};

/* Parses @text, the argument of @option, as a number of @things from 1 to @most. */
static int parse_limit(const char *option, const char *things, const char *text, __u64 most,
		       __u64 *limit, struct error *error)
{
	if (number__parse_between(text, 1, most, limit))
		return 0;
	return error__set(error, -EINVAL, "'%s' is no number of %s; %s takes 1 or more", text,
			  things, option);
}

static int parse_sample(struct measure *measure, const char *text, struct error *error)
{
	__u64 bytes;

	if (number__parse_size(text, &bytes, error))
		return -EINVAL;
	if (bytes < 1 || bytes > AP_MAX_SAMPLE_BYTES)
		return error__set(
			error, -EINVAL,
			"'%s' cannot be sampled; --sample takes 1 byte to 1G, 512K for example",
			text);
	measure->session.sample_bytes = bytes;
	return 0;
}

static int check_dumps(const struct record_options *options, struct error *error)
{
	const struct measure *measure = &options->measure;

	if (measure->n_kept_dumps && !measure->dump_limits.n)
		return error__set(error, -EINVAL, "--keep means nothing without --dump-at");
	if (measure->dump_limits.n && options->series.runs)
		return error__set(
			error, -EINVAL,
			"--dump-at and -r cannot be used together: all runs are written at "
			"the end");
	if (dump_limits__has(&measure->dump_limits, DUMP_AT_LIVE) && !measure->session.live)
		return error__set(error, -EINVAL, "--dump-at live= means nothing without --live");
	if (dump_limits__has(&measure->dump_limits, DUMP_AT_PEAK) && !measure->session.live)
		return error__set(error, -EINVAL, "--dump-at peak means nothing without --live");
	if (measure->begin_rss_bytes && !measure__attaches(measure))
		return error__set(error, -EINVAL, "--begin-at means nothing without -p");
	return 0;
}

static int check_record(struct record_options *options, struct error *error)
{
	struct session_options *session = &options->measure.session;

	if (session->throttle && !options->events)
		return error__set(error, -EINVAL,
				  "--throttle means nothing without --events: other recordings "
				  "count in the kernel, and wait by themselves");
	if (options->logged.context && !options->events)
		return error__set(
			error, -EINVAL,
			"--where means nothing without --events: it chooses what is in the "
			"log, and reports select from a recording by it");
	if (options->no_stacks && !options->events)
		return error__set(
			error, -EINVAL,
			"--backtrace=none means nothing without --events; `allocprof stat` "
			"counts without stacks");
	if (options->no_stacks && (session->max_depth || session->window.within))
		return error__set(
			error, -EINVAL,
			"--backtrace=none takes no stacks, which --max-depth and --within "
			"are about; leave one of them out");
	if (options->events && options->series.runs)
		return error__set(
			error, -EINVAL,
			"--events and -r cannot be used together; a log is of one run: leave one of "
			"them out");
	if (session->resident && session->sample_bytes)
		return error__set(
			error, -EINVAL,
			"--resident and --sample cannot be used together; which pages hold blocks is known "
			"only of all blocks: leave one of them out");
	if (session->reachable && session->sample_bytes)
		return error__set(
			error, -EINVAL,
			"--reachable and --sample cannot be used together; pointers in blocks that were not "
			"sampled are not looked at: leave one of them out");
	session->live |= options->events;
	if (session->live && definitions__has_mappings(&options->measure.definitions) &&
	    (options->events || session->sample_bytes))
		return error__set(
			error, -EINVAL,
			"--allocator mmap and %s cannot be used together with --live; mappings are "
			"followed, but neither logged nor sampled: leave one of them out",
			options->events ? "--events" : "--sample");
	if (!session->live && (session->max_live || session->max_records || session->interval_ns))
		return error__set(error, -EINVAL,
				  "--max-live, --max-records and --interval mean nothing without "
				  "--live");
	if (check_dumps(options, error))
		return -EINVAL;
	if (series__check(&options->series, &options->measure, error))
		return -EINVAL;
	return measure__check(&options->measure, "record", error);
}

static bool is_logged(void *choice, const char *thread, __u64 size_bytes)
{
	return event_choice__has(choice, thread, size_bytes);
}

static int choose_logged(struct record_options *options, const char *text, struct error *error)
{
	struct event_choice *choice;
	int err = options->logged.context
			  ? error__set(error, -EINVAL,
				       "--where is given twice; join both expressions with AND")
			  : event_choice__new(text, &choice, error);

	if (!err)
		options->logged = (struct event_log_choice){ text, is_logged, choice };
	return err;
}

static int parse_record(int key, char *arg, struct options_input *input)
{
	struct record_options *options = input->options;
	__u64 records;
	int err;

	switch (key) {
	case 'o':
		options->output = arg;
		return 0;
	case OPT_NO_SYMBOLS:
		options->no_symbols = true;
		return 0;
	case OPT_NO_CHECKPOINTS:
		options->no_checkpoints = true;
		return 0;
	case OPT_NO_ARGUMENTS:
		options->measure.session.omits_arguments = true;
		return 0;
	case OPT_DEBUG_DIR:
	case OPT_NO_DEBUGINFOD:
	case OPT_DEBUGINFOD_TIMEOUT:
	case OPT_DEMANGLE_COMMAND:
		return symbol_options__parse(&options->symbols, key, arg, input->error);
	case 'r':
	case OPT_WARMUP:
		return series__parse(&options->series, key, arg, input->error);
	case OPT_LIVE:
		options->measure.session.live = true;
		return 0;
	case OPT_RESIDENT:
		options->measure.session.live = options->measure.session.resident = true;
		return 0;
	case OPT_REACHABLE:
		options->measure.session.live = options->measure.session.reachable = true;
		return 0;
	case OPT_MAX_LIVE:
		return parse_limit("--max-live", "blocks", arg, LLONG_MAX,
				   &options->measure.session.max_live, input->error);
	case OPT_MAX_RECORDS:
		err = parse_limit("--max-records", "stacks", arg, INT_MAX, &records, input->error);
		if (!err)
			options->measure.session.max_records = records;
		return err;
	case OPT_INTERVAL:
		return number__parse_duration(arg, &options->measure.session.interval_ns,
					      input->error);
	case OPT_SAMPLE:
		return parse_sample(&options->measure, arg, input->error);
	case OPT_EVENTS:
		options->events = true;
		return 0;
	case OPT_DUMP_AT:
		return dump_limits__parse(&options->measure.dump_limits, arg, input->error);
	case OPT_KEEP:
		return parse_limit("--keep", "copies", arg, MOST_KEPT_DUMPS,
				   &options->measure.n_kept_dumps, input->error);
	case OPT_BEGIN_AT:
		return dump_limits__parse_begin(arg, &options->measure.begin_rss_bytes,
						input->error);
	case OPT_BACKTRACE:
		options->no_stacks = true;
		return strcmp(arg, "none")
			       ? error__set(input->error, -EINVAL,
					    "unknown form '%s'; --backtrace takes none, and "
					    "`allocprof export` prints stacks in other forms",
					    arg)
			       : 0;
	case OPT_WHERE_LOGGED:
		return choose_logged(options, arg, input->error);
	case OPT_THROTTLE:
		options->measure.session.throttle = true;
		return 0;
	case OPTIONS_END:
		return check_record(options, input->error);
	default:
		return measure__parse(&options->measure, key, arg, input);
	}
}

static void summarize(const struct record_options *options, const struct profile *profile)
{
	struct selection sums = record_summary__sum(profile);

	if (profile->totals.has_live)
		live_summary__print(&profile->totals.live,
				    profile__sample_bytes(profile) ? &sums : NULL,
				    profile__unseen_bytes(profile), profile->totals.run.runs);
	record_summary__print_log(profile, options->measure.session.events_path);
	record_summary__print(profile, &sums, options->output);
}

/* The copy at the peak was written without names, to be fast. The recording has them now. */
static void name_peak(const struct record_options *options, const struct profile *profile)
{
	struct profile *peak = NULL;
	struct error error = { 0 };
	int err = data_file__read(options->peak, &peak, &error);

	if (!err)
		err = profile__borrow_names(peak, profile);
	if (!err)
		err = data_file__replace(peak, options->peak, &error);
	if (err)
		message__print(
			"%s has no names of functions: %s; `allocprof symbolize` can look them up",
			options->peak, error.text[0] ? error.text : strerror(-err));
	profile__free(peak);
}

/* Writes the recording for its owner to the open file @fd, without names, which the owner looks up. */
static int write_for_owner(const struct record_options *options, struct session *session, int fd,
			   struct error *error)
{
	struct symbol_options symbols = options->symbols;
	int err;

	symbols.stop = NULL;
	err = recording__name(session, &symbols, false, NULL, error);
	if (err)
		return err;
	err = data_file__write_open(session__profile(session), fd);
	return err ? error__set(error, err, "cannot write a copy of the recording: %s",
				strerror(-err))
		   : 0;
}

static int take_only_run(void *context, struct session *session, size_t number, struct error *error)
{
	const struct profile *profile = session__profile(session);
	const struct record_options *options = context;
	const struct recorder_owner *owner = options->measure.owner;
	int err;

	if (owner && recorder_owner__has_left(owner))
		return 0;
	if (owner)
		return write_for_owner(options, session, owner->final_fd, error);
	/* Forget the signal that ended the recording, so that it does not abort symbolization,
	 * too. */
	(void)measure_surroundings__was_interrupted(options->symbols.stop_context);
	err = recording__write(session, &options->symbols, !options->no_symbols, options->output,
			       error);
	if (options->is_kept && !err)
		unlink(options->partial);
	else if (options->is_kept && !access(options->partial, F_OK))
		message__print("%s has the recording up to some time before the end",
			       options->partial);
	if (options->has_peak && !options->no_symbols && !err)
		name_peak(options, profile);
	measure__report_gaps(&options->measure, profile);
	measure__tell_stepped(&options->measure, profile);
	measure__suggest_engine(&options->measure, profile);
	record_summary__print_lost_events(profile, options->measure.session.events_path);
	if (options->logged.context && event_choice__failure(options->logged.context))
		message__print(
			"--where: %s; blocks of which it was not known whether it holds are in the log",
			event_choice__failure(options->logged.context));
	/* The summary is printed last, because it names the next command to run. */
	if (!err && !options->measure.quiet)
		summarize(options, profile);
	return err;
}

/* The runs of -r, added up in one profile. */
struct record_series {
	const struct measure *measure;
	const struct series *series;
	const struct symbol_options *symbols;
	bool names;		 /* look names up */
	struct profile *profile; /* NULL before the first run; owned */
};

static int fail_series(int err, struct error *error)
{
	return error__set(error, err, "cannot put the runs into one profile: %s", strerror(-err));
}

/*
 * Adds the finished @session as a run, and reports on stderr what it lacks. Returns 0, or a
 * negative errno with @error set.
 */
static int record_series__add(struct record_series *record, const struct session *session,
			      struct error *error)
{
	struct symbol_options symbols = *record->symbols;
	const struct profile *run = session__profile(session);
	int err;

	/* debuginfod servers are queried once for all runs, at the end. */
	symbols.no_debuginfod = true;
	symbols.stop = NULL;
	if (!record->profile)
		record->profile = profile__new();
	if (!record->profile)
		return fail_series(-ENOMEM, error);
	err = recording__name(session, &symbols, record->names, record->profile, error);
	if (err)
		return err;
	err = profile__add_run(record->profile, run);
	measure__report_gaps(record->measure, run);
	return err ? fail_series(err, error) : 0;
}

static void print_runs_summary(const struct profile *profile, const char *path)
{
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	int err = memory ? runs_text__print(profile, memory) : -ENOMEM;

	if (memory && fclose(memory))
		err = -ENOMEM;
	if (!err)
		record_summary__print_runs(text, path);
}

static int write_runs(const struct record_series *record, const char *path, struct error *error)
{
	struct data_file_version version;
	struct error why_unnamed = { 0 };
	int err;

	if (!record->names || record->symbols->no_debuginfod || !symbols__have_servers())
		return data_file__write(record->profile, path, error);
	err = data_file__write_first(record->profile, path, &version, error);
	if (err)
		return err;
	(void)record->symbols->stop(record->symbols->stop_context);
	if (offline_names__add(record->profile, record->symbols, false, &why_unnamed)) {
		message__print("%s; `allocprof symbolize` can do it later", why_unnamed.text);
		return 0;
	}
	return data_file__write_names(record->profile, path, &version, error);
}

/* Writes the runs to @path, and a summary to stderr. Returns 0 or a negative errno with @error
 * set. */
static int record_series__write(struct record_series *record, const char *path, struct error *error)
{
	const struct series *series = record->series;
	int err = profile__settle_runs(record->profile, series->runs, series->warmup);

	if (err)
		return fail_series(err, error);
	err = write_runs(record, path, error);
	if (!err && !record->measure->quiet)
		print_runs_summary(record->profile, path);
	return err;
}

static void record_series__release(struct record_series *record)
{
	profile__free(record->profile);
}

static int take_run(void *context, struct session *session, size_t number, struct error *error)
{
	return record_series__add(context, session, error);
}

static bool was_interrupted(void *context)
{
	return measure_surroundings__was_interrupted(context);
}

/* Records one run of the target. Returns the exit status. */
static int record_once(struct record_options *options, struct error *error)
{
	struct measure_surroundings surroundings = { 0 };
	struct series_end end;
	int err;

	options->symbols.stop = was_interrupted;
	options->symbols.stop_context = &surroundings;
	err = series__run(&options->series, &options->measure, &surroundings, take_only_run,
			  options, &end, error);

	measure_surroundings__release(&surroundings);
	if (err)
		message__error(error, err);
	return end.status;
}

/* Records several runs of the target. If the series is aborted, its finished runs are kept.
 * Returns the exit status. */
static int record_runs(struct record_options *options, struct error *error)
{
	struct measure_surroundings surroundings = { 0 };
	struct record_series record = {
		.measure = &options->measure,
		.series = &options->series,
		.symbols = &options->symbols,
		.names = !options->no_symbols,
	};
	struct series_end end;
	int err;

	options->symbols.stop = was_interrupted;
	options->symbols.stop_context = &surroundings;
	err = series__run(&options->series, &options->measure, &surroundings, take_run, &record,
			  &end, error);
	if (err)
		message__error(error, err);
	*error = (struct error){ 0 };
	err = end.counted ? record_series__write(&record, options->output, error) : 0;
	if (err) {
		message__error(error, err);
		end.status = EXIT_OURS;
	}
	record_series__release(&record);
	measure_surroundings__release(&surroundings);
	return end.status;
}

static int write_dump(void *context, struct session *session, const char *path, bool replaces,
		      __u64 *calls, struct error *error)
{
	const struct record_options *options = context;
	struct profile *profile = session__profile(session);
	struct symbol_options symbols = options->symbols;
	int err;

	/* This child ignores signals: they are meant for the recording, which kills a child that
	 * still writes a dump. */
	symbols.stop = NULL;
	if (!path)
		return write_for_owner(options, session, options->measure.owner->copy_fd, error);
	if (replaces) {
		err = recording__name(session, &symbols, false, NULL, error);
		return err ? err : data_file__replace(profile, path, error);
	}
	err = recording__write(session, &symbols, !options->no_symbols, path, error);
	if (!err)
		*calls = profile__ledger(profile, "attributed");
	return err;
}

static void release_options(struct record_options **options)
{
	measure__release(&(*options)->measure);
	event_choice__free((*options)->logged.context);
}

/* Checks before the run whether its files can be written, so that a run is not lost. */
static int check_files(const struct record_options *options, struct error *error)
{
	int err;

	if (options->measure.owner)
		return 0;
	err = data_file__check_writable(options->output, error);
	if (!err && options->peak)
		err = data_file__check_writable(options->peak, error);
	return err;
}

int record__run(char **argv, const struct recorder_owner *owner)
{
	struct record_options options = {
		.measure.owner = owner,
		.measure.choice.owner = owner ? owner->pid : 0,
		.measure.quiet = owner,
		.no_symbols = owner,
		.no_checkpoints = owner,
		.measure.follows_mappings = true,
		.measure.estimates = true,
		.measure.session = {
			.stacks = true,
			.functions = ALLOCATING,
			.follow = true,
			.stack_dump_bytes = AP_MAX_STACK_DUMP,
		},
		.output = DATA_FILE_DEFAULT,
	};
	_cleanup_(release_options) struct record_options *released = &options;
	_cleanup_(free_ptr) char *events_path = NULL, *partial = NULL, *peak = NULL;
	struct error error = { 0 };
	int status, err;

	status = options__read(&cmd_record, parse_record, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	if (measure__find_processes(&released->measure, &error)) {
		message__print("%s", error.text);
		return EXIT_OURS;
	}
	/* The function of --within may be far up the stack. */
	if (!options.measure.session.max_depth && !options.no_stacks)
		options.measure.session.max_depth =
			options.measure.session.window.within ? AP_MAX_DEPTH : DEFAULT_DEPTH;
	if (options.measure.quiet)
		progress__forbid();
	for (unsigned int i = 0; i < options.measure.dump_limits.n; i++) {
		int number = options.measure.dump_limits.limits[i].signal_number;

		if (number)
			options.measure.session.own_signals |= 1U << number;
	}
	options.measure.dump = write_dump;
	options.measure.dump_context = &options;
	options.measure.dump_path = options.output;
	if (!options.no_checkpoints &&
	    asprintf(&options.partial, "%s" DATA_FILE_CHECKPOINT, options.output) < 0)
		options.partial = NULL;
	if (!options.no_checkpoints)
		options.measure.checkpoint_path = partial = options.partial;
	options.measure.is_kept = &options.is_kept;
	if (dump_limits__has(&options.measure.dump_limits, DUMP_AT_PEAK) &&
	    asprintf(&options.peak, "%s" DATA_FILE_PEAK, options.output) < 0) {
		message__error(&error, -ENOMEM);
		return EXIT_OURS;
	}
	options.measure.peak_path = peak = options.peak;
	options.measure.has_peak = &options.has_peak;
	err = check_files(&options, &error);
	if (err) {
		message__error(&error, err);
		return EXIT_OURS;
	}
	/* One of an earlier recording would be taken for this one's. */
	if (options.peak)
		unlink(options.peak);
	if (options.events) {
		events_path = event_log__path(options.output);
		if (!events_path) {
			message__error(&error, -ENOMEM);
			return EXIT_OURS;
		}
		options.measure.session.events_path = events_path;
		if (options.logged.context)
			options.measure.session.events_choice = &options.logged;
	}
	return options.series.runs ? record_runs(&options, &error) : record_once(&options, &error);
}

static int run_record(char **argv)
{
	return record__run(argv, NULL);
}

const struct command cmd_record = {
	.name = "record",
	.summary = "Record where a command or process allocates",
	.args_doc = "[--] COMMAND [ARGUMENT...]\n-p PID[,PID...]",
	.doc = "Record the stacks from which a command and all processes that it starts, or a running "
	       "process, call malloc and its kin.\v"
	       "For example: allocprof record ./app && allocprof flamegraph -o app.html\n"
	       "Ctrl-C ends a recording and keeps it. The exit status is that of the command; 125 "
	       "where allocprof itself failed, 126 and 127 where the command could not be run or was "
	       "not found.",
	.options = record_options,
	.launches = true,
	.run = run_record,
};
