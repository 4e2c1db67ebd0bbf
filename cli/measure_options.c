// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads and checks the options of commands that measure a target. */
#include "measure_options.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "array.h"
#include "command.h"
#include "error.h"
#include "message.h"
#include "options.h"
#include "process_set.h"
#include "pattern.h"
#include "profile.h"
#include "recorder.h"
#include "session_options.h"

/* Resolves the names of -e, once all definitions are known. */
static int select_functions(struct measure *measure, struct error *error)
{
	const struct definition_names *definitions = &measure->definitions.names;
	const char *names[AP_FUNCTIONS + 1] = { NULL };
	char name[DEFINITION_NAME_MAX + 16];
	size_t n = 0;

	measure->session.functions = 0;
	for (int i = 0; i < definition_names__n_functions(definitions); i++)
		if (*definition_names__function(definitions, i))
			names[n++] = definition_names__function(definitions, i);
	for (const char *word = measure->selected;; word++) {
		size_t len = strcspn(word, ",");
		const char *nearest;
		int function;

		snprintf(name, sizeof(name), "%.*s", (int)(len < 46 ? len : 46), word);
		function = definition_names__find(definitions, name);
		if (function < 0) {
			nearest = options__nearest(name, names);
			if (nearest)
				return error__set(error, -EINVAL,
						  "unknown function '%s'; did you mean '%s'?", name,
						  nearest);
			return error__set(error, -EINVAL,
					  "unknown function '%s'; -e takes names such as "
					  "malloc,calloc",
					  name);
		}
		measure->session.functions |= 1ULL << function;
		word += len;
		if (!*word)
			return 0;
	}
}

static int parse_depth(struct measure *measure, const char *text, struct error *error)
{
	__u64 depth;

	if (!number__parse_between(text, 1, AP_MAX_DEPTH, &depth))
		return error__set(error, -EINVAL,
				  "'%s' is no stack depth; --max-depth takes 1 to %d", text,
				  AP_MAX_DEPTH);
	measure->session.max_depth = depth;
	return 0;
}

static int parse_expected(struct measure *measure, const char *name, struct error *error)
{
	if (measure->n_expected == MEASURE_MAX_EXPECTED)
		return error__set(error, -EINVAL, "--expect takes %d files at the most",
				  MEASURE_MAX_EXPECTED);
	measure->expected[measure->n_expected++] = name;
	return 0;
}

static int parse_ignored(struct measure *measure, const char *pattern, struct error *error)
{
	struct pattern parsed;

	if (measure->n_ignored == MEASURE_MAX_EXPECTED)
		return error__set(error, -EINVAL, "--ignore takes %d functions at the most",
				  MEASURE_MAX_EXPECTED);
	if (pattern__parse(&parsed, pattern, error))
		return -EINVAL;
	pattern__release(&parsed);
	measure->ignored[measure->n_ignored++] = pattern;
	return 0;
}

/* Keeps the argument of --probe for later, since the file of --probe-in may follow it. */
static int parse_probe(struct measure *measure, const char *text, struct error *error)
{
	if (measure->n_probes == AP_MAX_DEFINITIONS)
		return error__set(error, -EINVAL, "--probe can be given %d times at the most",
				  AP_MAX_DEFINITIONS);
	measure->probes[measure->n_probes++] = text;
	return 0;
}

static int parse_probe_file(struct measure *measure, const char *path, struct error *error)
{
	if (measure->n_probe_files == MEASURE_MAX_EXPECTED)
		return error__set(error, -EINVAL, "--probe-in takes %d files at the most",
				  MEASURE_MAX_EXPECTED);
	measure->probe_files[measure->n_probe_files++] = path;
	return 0;
}

static int define_probes(struct measure *measure, struct error *error)
{
	int err = 0;

	if (measure->n_probe_files && !measure->n_probes)
		return error__set(error, -EINVAL, "--probe-in means nothing without --probe");
	for (size_t i = 0; i < measure->n_probes && !err; i++)
		err = definitions__add_probe(&measure->definitions, measure->probes[i],
					     measure->probe_files, error);
	return err;
}

static int parse_stack_dump(struct measure *measure, const char *text, struct error *error)
{
	__u64 bytes;

	if (!number__parse_between(text, 0, AP_MAX_STACK_DUMP, &bytes))
		return error__set(error, -EINVAL,
				  "'%s' is no size; --stack-dump takes 0 to %d bytes", text,
				  AP_MAX_STACK_DUMP);
	measure->session.stack_dump_bytes = bytes;
	return 0;
}

/* Parses the list of limits, such as "counts=8,ring=4096,scratch=0", that are so small that losses
 * must happen. */
static int parse_inject(struct measure *measure, char *list, struct error *error)
{
	struct session_limits *limits = &measure->session.limits;
	const struct {
		const char *name;
		/* The value of a name is written to one of these. */
		__u32 *number;
		bool *flag; /* set if the number is not 0 */
		bool *lack; /* set if the number is 0 */
	} known[] = {
		{ "counts", .number = &limits->counts },
		{ "ring", .number = &limits->ring_bytes },
		{ "stacks", .number = &limits->stacks_sent },
		{ "tail_calls", .number = &limits->tail_calls },
		{ "processes", .number = &limits->processes },
		{ "threads", .number = &limits->threads },
		{ "sites", .number = &limits->sites },
		{ "unread", .number = &limits->unread },
		{ "check_ms", .number = &limits->check_ms },
		{ "preemption", .flag = &limits->preempts },
		{ "scratch", .lack = &limits->no_scratch },
		{ "multi", .lack = &limits->no_multi },
		{ "sessions", .lack = &limits->no_sessions },
		{ "sleepable", .lack = &limits->no_sleepable },
		{ "last_read", .lack = &limits->no_last_read },
	};

	while (list && *list) {
		char *value = strsep(&list, ","), *name = strsep(&value, "="), *end = NULL;
		unsigned long number = value ? strtoul(value, &end, 10) : 0;
		size_t i = 0;

		while (i < ARRAY_SIZE(known) && strcmp(known[i].name, name) != 0)
			i++;
		if (i == ARRAY_SIZE(known))
			return error__set(error, -EINVAL, "--inject knows no '%s'", name);
		if (!value || end == value || *end)
			return error__set(error, -EINVAL, "--inject needs a number for %s", name);
		if (known[i].number)
			*known[i].number = number;
		else if (known[i].flag)
			*known[i].flag = number;
		else
			*known[i].lack = !number;
	}
	return 0;
}

/* Chooses the engine @name; @from is the option or variable that names it, for messages. */
static int parse_engine(struct measure *measure, const char *name, const char *from,
			struct error *error)
{
	static const struct {
		const char *name;
		enum session_engine engine;
	} names[] = {
		{ "auto", SESSION_ENGINE_AUTO },
		{ "uprobe", SESSION_ENGINE_UPROBE },
		{ "preload", SESSION_ENGINE_PRELOAD },
		{ "inside", SESSION_ENGINE_PRELOAD },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i].name) != 0)
			continue;
		measure->session.engine = names[i].engine;
		measure->has_engine = true;
		return 0;
	}
	return error__set(error, -EINVAL,
			  "'%s' is no engine; %s takes auto, uprobe, preload or inside", name,
			  from);
}

static int parse_processes(struct measure *measure, const char *arg, struct error *error)
{
	int err;

	if (!measure->set)
		measure->set = process_set__new();
	if (!measure->set)
		return -ENOMEM;
	err = process_set__add_numbers(measure->set, arg, error);
	if (!err)
		measure->pid = process_set__first(measure->set);
	return err;
}

/* Parses one of these options. Returns OPTIONS_UNKNOWN for any other key. */
static int window_options__parse(struct window_options *options, int key, char *arg,
				 struct error *error)
{
	switch (key) {
	case OPT_WITHIN:
		options->within = arg;
		return 0;
	case OPT_START_ON:
		options->start_on = arg;
		return 0;
	case OPT_STOP_ON:
		options->stop_on = arg;
		return 0;
	case OPT_DELAY:
		return number__parse_duration(arg, &options->delay_ns, error);
	case OPT_PAUSED:
		options->paused = true;
		return 0;
	default:
		return OPTIONS_UNKNOWN;
	}
}

static int choose_group(struct measure *measure, const char *option, const char **to,
			const char *group, struct error *error)
{
	if (measure->group_option && strcmp(measure->group_option, option) != 0)
		return error__set(error, -EINVAL,
				  "%s and %s cannot be used together; give one control group",
				  measure->group_option, option);
	measure->group_option = option;
	*to = group;
	return 0;
}

int measure__parse(struct measure *measure, int key, char *arg, struct options_input *input)
{
	switch (key) {
	case 'p':
		return parse_processes(measure, arg, input->error);
	case OPT_NAME:
		measure->choice.name = arg;
		return 0;
	case OPT_CGROUP:
		return choose_group(measure, "--cgroup", &measure->choice.group, arg, input->error);
	case OPT_UNIT:
		return choose_group(measure, "--unit", &measure->choice.group, arg, input->error);
	case OPT_CONTAINER:
		return choose_group(measure, "--container", &measure->choice.container, arg,
				    input->error);
	case 'a':
		measure->all = true;
		return 0;
	case OPT_FOLLOW:
		measure->follows = true;
		return 0;
	case 'e':
		measure->selected = arg;
		return 0;
	case 'q':
		measure->quiet = true;
		return 0;
	case 'v':
		measure->verbose = true;
		return 0;
	case OPT_NO_FOLLOW:
		measure->session.follow = false;
		return 0;
	case OPT_DURATION:
		return number__parse_duration(arg, &measure->duration_ns, input->error);
	case OPT_MAX_DEPTH:
		return parse_depth(measure, arg, input->error);
	case OPT_ENGINE:
		return parse_engine(measure, arg, "--engine", input->error);
	case OPT_USER:
		measure->user = arg;
		return 0;
	case OPT_ISOLATE:
	case OPT_NO_ISOLATE:
		measure->session.isolates = key == OPT_ISOLATE;
		return 0;
	case OPT_STOP_LIMIT:
		return number__parse_duration(arg, &measure->session.stop_limit_ns, input->error);
	case OPT_FORCE:
		measure->session.ends_translators = true;
		return 0;
	case OPT_NO_CACHE:
		measure->session.no_cache = true;
		return 0;
	case OPT_EXPECT:
		return parse_expected(measure, arg, input->error);
	case OPT_IGNORE:
		return parse_ignored(measure, arg, input->error);
	case OPT_ALLOCATOR:
		return definitions__add_files(&measure->definitions, arg, input->error);
	case OPT_FAULTS:
		measure->faults = true;
		measure->definitions.faults = true;
		return 0;
	case OPT_USDT:
		return definitions__add_usdt(&measure->definitions, arg, input->error);
	case OPT_PROBE:
		return parse_probe(measure, arg, input->error);
	case OPT_PROBE_IN:
		return parse_probe_file(measure, arg, input->error);
	case OPT_STACK_DUMP:
		return parse_stack_dump(measure, arg, input->error);
	case OPT_INJECT:
		return parse_inject(measure, arg, input->error);
	case OPTIONS_OPERAND:
		measure->argv = input->operands;
		return 0;
	default:
		return window_options__parse(&measure->session.window, key, arg, input->error);
	}
}

/* Chooses the engine that the environment names, if no option does. */
static int choose_engine(struct measure *measure, struct error *error)
{
	const char *variable = getenv("ALLOCPROF_ENGINE");

	if (measure->has_engine || !variable || !*variable)
		return 0;
	return parse_engine(measure, variable, "ALLOCPROF_ENGINE", error);
}

/* What probes tell of are samples, so all is recorded as with --sample, of which 1 leaves nothing out. */
static int weigh(struct measure *measure, struct error *error)
{
	struct session_options *session = &measure->session;

	if (!measure->estimates)
		return error__set(
			error, -EINVAL,
			"weight= makes estimates of samples, and stat and check count calls; "
			"use record");
	if (session->resident || session->reachable ||
	    (session->live && definitions__has_mappings(&measure->definitions)))
		return error__set(error, -EINVAL, "weight= and %s cannot be used together; %s",
				  session->resident    ? "--resident"
				  : session->reachable ? "--reachable"
						       : "--allocator mmap with --live",
				  "that takes all blocks, and not samples: leave one of them out");
	if (!session->sample_bytes)
		session->sample_bytes = 1;
	return 0;
}

int measure__resolve(struct measure *measure, struct error *error)
{
	int err;

	if (measure->session.live && definitions__has_mappings(&measure->definitions) &&
	    !measure->follows_mappings)
		return error__set(
			error, -EINVAL,
			"only record --live follows mappings, which are unmapped in parts; do not use "
			"--allocator mmap with stat --live or check");
	if (measure->session.live && definitions__has_faults(&measure->definitions))
		return error__set(
			error, -EINVAL,
			"page faults hand out no blocks that --live and check could follow; do not "
			"use --faults or --allocator faults, or record without --live");
	err = choose_engine(measure, error);
	if (!err)
		err = define_probes(measure, error);
	return !err && definitions__any_weight(&measure->definitions) ? weigh(measure, error) : err;
}

bool measure__attaches(const struct measure *measure)
{
	return measure->pid || measure->all || measure->choice.name || measure->group_option;
}

/* How long it waits between two looks for processes. A program that begins has its libraries by then. */
#define LOOK_MS 200

/* Searches for the processes of the choice. For an owner that waits it does so until there are some, and
 * once more, so that they are no programs that only begin. */
static int search_processes(struct measure *measure, struct error *error)
{
	const struct recorder_owner *owner = measure->owner;
	bool has_said = false, was_found = false;

	for (;;) {
		struct error why = { 0 };
		int err;

		measure->set = process_set__new();
		err = measure->set ? process_set__search(measure->set, &measure->choice, &why)
				   : -ENOMEM;
		if (!owner || !owner->waits || recorder_owner__has_left(owner) ||
		    (err && err != -ESRCH) || (!err && (was_found || !has_said))) {
			*error = why;
			return err;
		}
		if (!has_said)
			message__print("%s; waiting until there is one", why.text);
		has_said = true;
		was_found = !err;
		process_set__free(measure->set);
		measure->set = NULL;
		poll(NULL, 0, LOOK_MS);
	}
}

int measure__find_processes(struct measure *measure, struct error *error)
{
	int err = 0;

	if (!measure__attaches(measure))
		return 0;
	if (!measure->set)
		err = search_processes(measure, error);
	if (err)
		return err;
	measure->pid = process_set__first(measure->set);
	measure->session.joins = process_set__joining(measure->set);
	if (measure->session.joins && measure->session.joins->is_unknown && !measure->quiet)
		message__print(
			"the control group is of version 1: of the processes that come into it "
			"later those are measured that the others start");
	measure->session.follow =
		measure->follows || measure->session.joins || process_set__size(measure->set) > 1;
	if (measure->session.joins && measure->session.engine == SESSION_ENGINE_PRELOAD)
		return error__set(
			error, -EINVAL,
			"--engine=inside does not notice processes that start later; give their numbers "
			"with -p, or leave out --engine");
	return 0;
}

void measure__release(struct measure *measure)
{
	process_set__free(measure->set);
	measure->set = NULL;
}

static int check_target(const struct measure *measure, const char *command, struct error *error)
{
	const struct process_choice *choice = &measure->choice;
	const char *search = choice->name ? "--name" : measure->group_option;

	if (measure->all && search)
		return error__set(
			error, -EINVAL,
			"-a and %s cannot be used together; the one is for all processes, "
			"the other for some",
			search);
	search = search ?: measure->all ? "-a" : NULL;
	if (measure__attaches(measure) && measure->argv)
		return error__set(
			error, -EINVAL,
			"%s and the command '%s' cannot be used together; give one target or the "
			"other",
			search ?: "-p", measure->argv[0]);
	if (!measure__attaches(measure) && !measure->argv)
		return choice->user
			       ? error__set(
					 error, -EINVAL,
					 "no target; give a command to run as '%s', or -a for all "
					 "processes of that user",
					 choice->user)
			       : error__set(
					 error, -EINVAL,
					 "no target; give a command (allocprof %s ./app) or a process "
					 "(-p PID)",
					 command);
	if (measure->set && (search || choice->user))
		return error__set(
			error, -EINVAL,
			"-p and %s cannot be used together; the one names processes, the other "
			"searches for them",
			search ?: "--user");
	if (measure->follows && !measure->set)
		return error__set(
			error, -EINVAL,
			"--follow is for -p; children of commands and of processes that are "
			"searched for are followed anyway");
	return 0;
}

/* Checks that the options go together. Returns 0, or -EINVAL with @error set. */
static int window_options__check(const struct window_options *options, struct error *error)
{
	if (options->delay_ns && options->start_on)
		return error__set(
			error, -EINVAL,
			"--delay and --start-on cannot be used together; give one beginning or the other");
	if (options->delay_ns && options->paused)
		return error__set(
			error, -EINVAL,
			"--delay and --paused cannot be used together; give one beginning or the other");
	return 0;
}

int measure__check(struct measure *measure, const char *command, struct error *error)
{
	int err;

	/* Without a command the user is that of the processes. */
	if (!measure->argv) {
		measure->choice.user = measure->user;
		measure->user = NULL;
	}
	err = check_target(measure, command, error);
	if (err)
		return err;
	if (measure->session.stop_limit_ns &&
	    (!measure->pid || measure->session.engine != SESSION_ENGINE_PRELOAD))
		return error__set(
			error, -EINVAL,
			"--stop-limit means nothing without -p and --engine=preload, which "
			"stops the threads of the process for a short time");
	if (measure->session.live && measure->selected)
		return error__set(
			error, -EINVAL,
			"-e and --live cannot be used together; --live has to see every function to "
			"know what becomes of a block");
	err = measure__resolve(measure, error);
	if (measure->faults && !measure->selected)
		measure->selected = "minor-fault,major-fault";
	if (!err && measure->selected)
		err = select_functions(measure, error);
	return err ? err : window_options__check(&measure->session.window, error);
}

int window_options__status(const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;

	if (totals->window.asked_for && !totals->window.opened &&
	    totals->run.exit_status == EXIT_GOOD)
		return EXIT_OURS;
	return totals->run.exit_status;
}
