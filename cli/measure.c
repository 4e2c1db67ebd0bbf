// SPDX-License-Identifier: GPL-3.0-or-later
#include "measure.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "allocator.h"
#include "cleanup.h"
#include "command.h"
#include "completeness.h"
#include "controlled.h"
#include "error.h"
#include "measure_progress.h"
#include "message.h"
#include "number.h"
#include "options.h"
#include "pattern.h"
#include "probes.h"
#include "profile.h"
#include "reasons.h"
#include "stat_regions.h"
#include "window_options.h"
#include "unprobed.h"

static int parse_pid(struct measure *measure, const char *text, struct error *error)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || end == text || *end || pid <= 0 || pid > INT_MAX) {
		error__set(error, -EINVAL, "'%s' is no process id; give one number, as ps shows it",
			   text);
		return EINVAL;
	}
	measure->pid = pid;
	return 0;
}

/* When all sources are known. */
static int select_functions(struct measure *measure, struct error *error)
{
	const struct source_names *sources = &measure->sources.names;
	const char *names[AP_FUNCTIONS + 1] = { NULL };
	char name[SOURCE_NAME_MAX + 16];

	measure->session.functions = 0;
	for (int i = 0; i < source_names__n_functions(sources); i++)
		names[i] = source_names__function(sources, i);
	for (const char *word = measure->selected;; word++) {
		size_t len = strcspn(word, ",");
		const char *nearest;
		int function;

		snprintf(name, sizeof(name), "%.*s", (int)(len < 46 ? len : 46), word);
		function = source_names__find(sources, name);
		if (function < 0) {
			nearest = options__nearest(name, names);
			if (nearest)
				error__set(error, -EINVAL,
					   "unknown function '%s'; did you mean '%s'?", name,
					   nearest);
			else
				error__set(error, -EINVAL,
					   "unknown function '%s'; -e takes names such as "
					   "malloc,calloc",
					   name);
			return EINVAL;
		}
		measure->session.functions |= 1ULL << function;
		word += len;
		if (!*word)
			return 0;
	}
}

static int parse_depth(struct measure *measure, const char *text, struct error *error)
{
	char *end;
	long depth = strtol(text, &end, 10);

	if (end == text || *end || depth < 1 || depth > AP_MAX_DEPTH) {
		error__set(error, -EINVAL, "'%s' is no stack depth; --max-depth takes 1 to %d",
			   text, AP_MAX_DEPTH);
		return EINVAL;
	}
	measure->session.max_depth = depth;
	return 0;
}

static int parse_expected(struct measure *measure, const char *name, struct error *error)
{
	if (measure->n_expected == MEASURE_MAX_EXPECTED) {
		error__set(error, -EINVAL, "--expect takes %d files at the most",
			   MEASURE_MAX_EXPECTED);
		return EINVAL;
	}
	measure->expected[measure->n_expected++] = name;
	return 0;
}

static int parse_ignored(struct measure *measure, const char *pattern, struct error *error)
{
	struct pattern parsed;

	if (measure->n_ignored == MEASURE_MAX_EXPECTED) {
		error__set(error, -EINVAL, "--ignore takes %d functions at the most",
			   MEASURE_MAX_EXPECTED);
		return EINVAL;
	}
	if (pattern__parse(&parsed, pattern, error))
		return EINVAL;
	pattern__release(&parsed);
	measure->ignored[measure->n_ignored++] = pattern;
	return 0;
}

/* Where it is looked for may come behind it. */
static int parse_probe(struct measure *measure, const char *text, struct error *error)
{
	if (measure->n_probes == AP_MAX_SOURCES) {
		error__set(error, -EINVAL, "--probe can be given %d times at the most",
			   AP_MAX_SOURCES);
		return EINVAL;
	}
	measure->probes[measure->n_probes++] = text;
	return 0;
}

static int parse_probe_file(struct measure *measure, const char *path, struct error *error)
{
	if (measure->n_probe_files == MEASURE_MAX_EXPECTED) {
		error__set(error, -EINVAL, "--probe-in takes %d files at the most",
			   MEASURE_MAX_EXPECTED);
		return EINVAL;
	}
	measure->probe_files[measure->n_probe_files++] = path;
	return 0;
}

static int define_probes(struct measure *measure, struct error *error)
{
	int err = 0;

	if (measure->n_probe_files && !measure->n_probes)
		return error__set(error, -EINVAL, "--probe-in means nothing without --probe");
	for (size_t i = 0; i < measure->n_probes && !err; i++)
		err = sources__add_probe(&measure->sources, measure->probes[i],
					 measure->probe_files, error);
	return err;
}

static int parse_stack_dump(struct measure *measure, const char *text, struct error *error)
{
	char *end;
	long bytes = strtol(text, &end, 10);

	if (end == text || *end || bytes < 0 || bytes > AP_MAX_STACK_DUMP) {
		error__set(error, -EINVAL, "'%s' is no size; --stack-dump takes 0 to %d bytes",
			   text, AP_MAX_STACK_DUMP);
		return EINVAL;
	}
	measure->session.stack_dump_bytes = bytes;
	return 0;
}

/* "counts=8,ring=4096,scratch=0": bounds so small that losses must happen. */
static int parse_inject(struct measure *measure, char *list, struct error *error)
{
	enum {
		COUNTS,
		RING,
		STACKS,
		TAIL_CALLS,
		PROCESSES,
		SCRATCH,
		THREADS,
		MULTI,
		SESSIONS,
		UNREAD,
		LAST_READ
	};
	static char *const names[] = {
		[COUNTS] = (char *)"counts",	   [RING] = (char *)"ring",
		[STACKS] = (char *)"stacks",	   [TAIL_CALLS] = (char *)"tail_calls",
		[PROCESSES] = (char *)"processes", [SCRATCH] = (char *)"scratch",
		[THREADS] = (char *)"threads",	   [MULTI] = (char *)"multi",
		[SESSIONS] = (char *)"sessions",   [UNREAD] = (char *)"unread",
		[LAST_READ] = (char *)"last_read", NULL,
	};
	struct session_limits *limits = &measure->session.limits;

	while (*list) {
		char *value = NULL;
		int name = getsubopt(&list, names, &value);
		char *end = NULL;
		unsigned long number = value ? strtoul(value, &end, 10) : 0;

		if (name >= 0 && (!value || end == value || *end)) {
			error__set(error, -EINVAL, "--inject needs a number for %s", names[name]);
			return EINVAL;
		}

		switch (name) {
		case COUNTS:
			limits->counts = number;
			break;
		case RING:
			limits->ring_bytes = number;
			break;
		case STACKS:
			limits->stacks_sent = number;
			break;
		case TAIL_CALLS:
			limits->tail_calls = number;
			break;
		case PROCESSES:
			limits->processes = number;
			break;
		case MULTI:
			limits->no_multi = !number;
			break;
		case SESSIONS:
			limits->no_sessions = !number;
			break;
		case UNREAD:
			limits->unread = number;
			break;
		case LAST_READ:
			limits->no_last_read = !number;
			break;
		case THREADS:
			limits->threads = number;
			break;
		case SCRATCH:
			limits->no_scratch = !number;
			break;
		default:
			error__set(error, -EINVAL, "--inject knows no '%s'", value ? value : "");
			return EINVAL;
		}
	}
	return 0;
}

error_t measure__parse(struct measure *measure, int key, char *arg, struct argp_state *state)
{
	struct options_input *input = state->input;

	switch (key) {
	case 'p':
		return parse_pid(measure, arg, input->error);
	case 'e':
		measure->selected = arg;
		return 0;
	case 'q':
		measure->quiet = true;
		return 0;
	case OPT_NO_FOLLOW:
		measure->session.follow = false;
		return 0;
	case OPT_DURATION:
		return number__parse_duration(arg, &measure->duration_ns, input->error);
	case OPT_MAX_DEPTH:
		return parse_depth(measure, arg, input->error);
	case OPT_NO_CACHE:
		measure->session.no_cache = true;
		return 0;
	case OPT_EXPECT:
		return parse_expected(measure, arg, input->error);
	case OPT_IGNORE:
		return parse_ignored(measure, arg, input->error);
	case OPT_ALLOCATOR:
		return sources__add_files(&measure->sources, arg, input->error) ? EINVAL : 0;
	case OPT_USDT:
		return sources__add_usdt(&measure->sources, arg, input->error) ? EINVAL : 0;
	case OPT_PROBE:
		return parse_probe(measure, arg, input->error);
	case OPT_PROBE_IN:
		return parse_probe_file(measure, arg, input->error);
	case OPT_STACK_DUMP:
		return parse_stack_dump(measure, arg, input->error);
	case OPT_INJECT:
		return parse_inject(measure, arg, input->error);
	case ARGP_KEY_ARGS:
		measure->argv = state->argv + state->next;
		return 0;
	default:
		return window_options__parse(&measure->session.window, key, arg, input->error);
	}
}

error_t measure__check(struct measure *measure, const char *command, struct error *error)
{
	if (measure->pid && measure->argv)
		error__set(error, -EINVAL,
			   "-p %d and the command '%s' together; give one target or the other",
			   measure->pid, measure->argv[0]);
	else if (!measure->pid && !measure->argv)
		error__set(error, -EINVAL,
			   "no target; give a command (allocprof %s ./app) or a process (-p PID)",
			   command);
	else if (measure->session.live && measure->selected)
		error__set(error, -EINVAL,
			   "-e and --live together; --live has to see every function to know what "
			   "becomes of a block");
	else if (measure->session.live && sources__has_mappings(&measure->sources))
		error__set(
			error, -EINVAL,
			"--live and --allocator mmap together; mappings end in parts and several at "
			"a time, so that none of them is a block to follow: leave one of both away");
	else if (!define_probes(measure, error) &&
		 (!measure->selected || !select_functions(measure, error)))
		return window_options__check(&measure->session.window, error);
	return EINVAL;
}

/*
 * From here on signals come through the descriptor. The command gets back the mask, and its
 * dispositions were never touched; SIGPIPE and SIGXFSZ stay blocked, so that a closed
 * pipe and a file that may grow no more are errors to us.
 */
static int take_signals(struct target_inheritance *inheritance)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &inheritance->signal_mask);
	sigdelset(&set, SIGPIPE);
	sigdelset(&set, SIGXFSZ);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A descriptor per mapped file is held until its symbols have been read. */
static void allow_many_files(struct target_inheritance *inheritance)
{
	struct rlimit more;

	getrlimit(RLIMIT_NOFILE, &inheritance->files);
	more = inheritance->files;
	more.rlim_cur = more.rlim_max;
	setrlimit(RLIMIT_NOFILE, &more);
}

static int status_of_start(const struct measure *measure, int err)
{
	if (measure->pid)
		return EXIT_OURS;
	if (err == -ENOENT)
		return EXIT_NOT_FOUND;
	if (err == -EACCES || err == -ENOEXEC || err == -EISDIR)
		return EXIT_CANNOT_RUN;
	return EXIT_OURS;
}

/* A session is loaded with default signals, so that Ctrl-C ends us at once then. */
static int take_surroundings(struct measure_surroundings *surroundings, struct error *error)
{
	int fd;

	if (surroundings->is_taken)
		return 0;
	fd = take_signals(&surroundings->inheritance);
	if (fd < 0)
		return error__set(error, -errno, "cannot receive signals: %s", strerror(errno));
	surroundings->signal_fd = fd;
	surroundings->is_taken = true;
	return 0;
}

bool measure_surroundings__was_interrupted(const struct measure_surroundings *surroundings)
{
	struct signalfd_siginfo info;
	bool was = false;

	while (surroundings->is_taken &&
	       read(surroundings->signal_fd, &info, sizeof(info)) == sizeof(info))
		was = true;
	return was;
}

void measure_surroundings__release(struct measure_surroundings *surroundings)
{
	if (surroundings->is_taken)
		close(surroundings->signal_fd);
	surroundings->is_taken = false;
}

int measure__run(const struct measure *measure, struct measure_surroundings *surroundings,
		 struct session **out, int *status, struct error *error)
{
	struct session_options options = measure->session;
	struct controlled *controlled = NULL;
	struct measure_progress progress;
	struct session *session = NULL;
	int err;

	*status = EXIT_OURS;
	if (!surroundings->is_taken)
		allow_many_files(&surroundings->inheritance);
	options.expected = measure->expected;
	options.ignored = measure->ignored;
	options.sources = sources__any(&measure->sources) ? &measure->sources : NULL;
	err = session__open(&options, &session, error);
	if (!err)
		err = take_surroundings(surroundings, error);
	if (!err && !measure->repeats)
		err = controlled__begin(measure, &controlled, error);
	if (err)
		goto fail;
	if (measure->pid)
		err = session__attach(session, measure->pid, error);
	else
		err = session__launch(session, measure->argv, &surroundings->inheritance, error);
	if (err) {
		*status = status_of_start(measure, err);
		goto fail;
	}
	measure_progress__yield_to(session);
	measure_progress__begin(&progress, measure, controlled__attendant(controlled));
	err = session__run(session, measure->duration_ns, surroundings->signal_fd,
			   &progress.attendant, error);
	if (progress__is_shown())
		progress__draw("collecting what was counted");
	controlled__stop(controlled);
	if (!err)
		err = session__finish(session, error);
	if (err)
		goto fail;
	controlled__end(controlled, surroundings->signal_fd);
	progress__clear();
	*out = session;
	return 0;
fail:
	controlled__end(controlled, surroundings->signal_fd);
	if (!error->text[0])
		error__set(error, err, "cannot measure the target: %s", strerror(-err));
	measure__close(session);
	return err;
}

void measure__close(struct session *session)
{
	progress__clear();
	measure_progress__yield_to(NULL);
	session__close(session);
}

/* "not complete: " @before, the number, @after, and why. */
static void report_reason(__u64 n, const char *before, const char *after,
			  const struct reason *reason)
{
	message__print("not complete: %s%s %s (%s): %s%s%s", before, number__count(n).text, after,
		       reason->name, reason->sentence, reason->remedy ? "; " : "",
		       reason->remedy ? reason->remedy : "");
}

static void report_unknown(const struct session *session, const struct probed_allocator *entry)
{
	const struct allocator *allocator = entry->allocator;

	for (size_t i = 0; allocator && i < allocator->n_unknown; i++) {
		__u64 calls = session__unknown_calls(session, entry, i);

		if (calls && allocator->unknown[i].ends)
			message__print("not complete: " BLOCKS_ENDED, entry->path,
				       allocator->unknown[i].name, number__count(calls).text,
				       calls == 1 ? "" : "s");
		else if (calls)
			message__print("not complete: " UNKNOWN_FUNCTION, entry->path,
				       allocator->unknown[i].name, number__count(calls).text,
				       calls == 1 ? "" : "s", calls == 1 ? "is" : "are",
				       allocator->unknown[i].name);
	}
}

static void report_unprobed(const struct session_results *results)
{
	__u64 told = 0;

	for (size_t i = 0; i < results->n_unprobed; i++) {
		const struct unprobed_program *program = &results->unprobed[i];

		message__print("not complete: " UNPROBED_PROGRAM,
			       number__count(program->processes).text,
			       program->processes == 1 ? "" : "es", program->name, program->pid,
			       number__count(program->size_bytes).text);
		told += program->processes;
	}
	if (results->processes_unprobed > told)
		message__print("not complete: " UNPROBED_OTHERS,
			       number__count(results->processes_unprobed - told).text);
}

struct patterns_text patterns_text__of(const struct source *source)
{
	struct patterns_text patterns = { "" };
	size_t len = 0;

	for (size_t i = 0; i < source->n_modules && len < sizeof(patterns.text); i++) {
		const char *before = " named ";

		if (i)
			before = i + 1 == source->n_modules ? " or " : ", ";
		len += snprintf(patterns.text + len, sizeof(patterns.text) - len, "%s%s", before,
				source->modules[i]);
	}
	return patterns;
}

static void report_sources(const struct session *session, const struct session_results *results)
{
	const struct sources *sources = session__sources(session);

	for (size_t i = 0; sources && i < sources->n; i++)
		if (session__lacks_source(session, &sources->list[i]))
			message__print("not complete: " LACKING_SOURCE,
				       patterns_text__of(&sources->list[i]).text,
				       sources->list[i].name, sources->list[i].functions[0].name);
	if (results->not_nested)
		message__print("not exact: " NOT_NESTED, number__count(results->not_nested).text);
}

void measure__report_gaps(const struct session *session, const struct session_results *results)
{
	const struct probed_allocator *allocators;
	size_t n;

	allocators = session__allocators(session, &n);
	for (size_t i = 0; i < n; i++) {
		if (allocators[i].gap[0])
			message__print("not complete: allocator %s was %s", allocators[i].path,
				       allocators[i].gap);
		if (allocators[i].live_gap[0])
			message__print("not complete: the blocks of allocator %s were %s",
				       allocators[i].path, allocators[i].live_gap);
	}
	for (size_t i = 0; i < n; i++)
		report_unknown(session, &allocators[i]);
	report_sources(session, results);
	for (int reason = 0; reason < AP_LOST_REASONS; reason++)
		if (results->lost[reason])
			report_reason(results->lost[reason], "", "calls lost",
				      reason__lost(reason));
	for (int reason = 0; reason < AP_UNTRACKED_REASONS; reason++)
		if (results->has_live && results->live.stats[AP_STAT_UNTRACKED + reason])
			report_reason(results->live.stats[AP_STAT_UNTRACKED + reason],
				      "the blocks of ", "calls are not followed",
				      reason__untracked(reason));
	if (results->counters_unread)
		message__print("not complete: %s of the kernel's counters could not be read, so "
			       "that numbers may be too small",
			       number__count(results->counters_unread).text);
	if (results->processes_unfollowed)
		message__print("not complete: %s processes could not be followed",
			       number__count(results->processes_unfollowed).text);
	if (results->processes_unnoticed)
		message__print(
			"not complete: %s beginnings or ends of processes went unnoticed, and "
			"with them perhaps an allocator",
			number__count(results->processes_unnoticed).text);
	if (results->has_live && results->live.stats[AP_STAT_DROPPED])
		message__print(
			"not complete: %s blocks that a failed realloc kept are not followed "
			"any more, and count as live",
			number__count(results->live.stats[AP_STAT_DROPPED]).text);
	report_unprobed(results);
	if (results->operands_unread)
		message__print("not exact: " OPERANDS_UNREAD,
			       number__count(results->operands_unread).text);
	if (results->mappings_unsure)
		message__print("not exact: " MAPPINGS_UNSURE,
			       number__count(results->mappings_unsure).text);
	if (results->relabelled)
		message__print(
			"not exact: %s calls are counted under the function that they led to",
			number__count(results->relabelled).text);
	if (results->mappings_lost)
		message__print("not complete: %s mappings of files went unnoticed, and with them "
			       "perhaps an allocator",
			       number__count(results->mappings_lost).text);
	if (results->python_arenas)
		message__print(PYTHON_NOTE, (int)strlen(results->python_arenas),
			       results->python_arenas);
	window_options__report_gaps(&results->window);
	stat_regions__report_gaps(session, results);
	if (results->target_runs)
		message__print("process %d goes on without probes", results->target_pid);
	else if (results->is_attached)
		message__print("process %d has ended, and the recording with it",
			       results->target_pid);
	if (results->processes_left)
		message__print("%s process%s that the command started go%s on without probes",
			       number__count(results->processes_left).text,
			       results->processes_left == 1 ? "" : "es",
			       results->processes_left == 1 ? "es" : "");
}
