// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs a target under a session, once or several times, with a line that shows the progress and a
 * list of what is probed. */
#include "measure.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "command.h"
#include "controlled.h"
#include "error.h"
#include "measure_options.h"
#include "message.h"
#include "number.h"
#include "process_set.h"
#include "options.h"
#include "proc.h"
#include "probed_file.h"
#include "profile.h"
#include "session.h"
#include "text.h"
#include "user_terminal.h"

/* Room for a path and the text after it; longer lines are truncated. */
#define LINE_BYTES 8192

__attribute__((format(printf, 2, 3))) static void print_line(void (*print)(const char *line),
							     const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	utf8__clean(line);
	print(line);
}

static void print_function(const struct probed_function *function, void (*print)(const char *line))
{
	char names[LINE_BYTES / 2] = "";
	size_t used = 0;

	for (size_t i = 0; i < function->n_aliases && used < sizeof(names); i++)
		used += snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : " (also ",
				 function->aliases[i]);
	print_line(print, "  %s%s%s", profile__function_name(function->function), names,
		   function->n_aliases ? ")" : "");
	print_line(print, "      entry 0x%llx, probe at +%llu: %s", function->entry_offset,
		   function->distance_bytes, function->instruction);
	if (function->slow_reason)
		print_line(print, "      single-stepped, two traps a call: %s",
			   function->slow_reason);
	else
		print_line(print, "      emulated by the kernel: one trap a call%s",
			   function->is_slow_with_live
				   ? "; with --live the entry is probed, two traps a call"
				   : "");
}

void probed_text__print(const struct probed_file *file, void (*print)(const char *line))
{
	struct probed_function function;

	print_line(print, "%s%s%s", file->path, file->build_id[0] ? ", build id " : "",
		   file->build_id);
	if (file->gap[0])
		print_line(print, "  %s", file->gap);
	for (size_t i = 0; probed_file__function(file, i, &function); i++)
		print_function(&function, print);
}

struct measure_progress {
	const struct measure *measure;
	const struct session_attendant *next; /* the attendant that this one wraps, or NULL */
	struct session_attendant attendant;   /* to be passed to session__run() */
	struct progress progress;
};

static void show_progress(const struct session *session, __u64 duration_ns)
{
	struct session_progress now;
	char limit[48] = "", live[48] = "";

	session__progress(session, &now);
	if (duration_ns)
		snprintf(limit, sizeof(limit), " of %s", number__time(duration_ns).text);
	if (now.has_live)
		snprintf(live, sizeof(live), ", %s live",
			 number__bytes(now.live_size_bytes, false).text);
	progress__draw("%s%s: %s calls, %s lost%s%s", number__time(now.elapsed_ns).text, limit,
		       number__count(now.calls).text, number__count(now.lost).text, live,
		       now.is_counting ? "" : ", not counting");
}

static int attend_progress(struct session *session, void *context)
{
	struct measure_progress *progress = context;
	const struct measure *measure = progress->measure;

	if (!measure->quiet && progress__is_due(&progress->progress))
		show_progress(session, measure->duration_ns);
	return progress->next ? progress->next->attend(session, progress->next->context) : 0;
}

/* Begins to show progress. @next is the attendant that is wrapped, or NULL. */
static void begin_progress(struct measure_progress *progress, const struct measure *measure,
			   const struct session_attendant *next)
{
	*progress = (struct measure_progress){
		.measure = measure,
		.next = next,
		.attendant = {
			.fd = next ? next->fd : -1,
			.attend = attend_progress,
			.context = progress,
		},
	};
	progress__begin(&progress->progress);
}

static bool has_terminal(pid_t pid, void *context)
{
	return terminal_users__has(context, pid);
}

static bool is_in_use(void *context)
{
	struct terminal_users terminal;

	return !terminal_users__of(STDERR_FILENO, &terminal) &&
	       session__visit_processes(context, has_terminal, &terminal);
}

/*
 * Suppresses the progress line while a process that @session follows may write to allocprof's
 * terminal. To be called with NULL before the session is closed.
 */
static void yield_progress_to(const struct session *session)
{
	progress__share(session ? is_in_use : NULL, (void *)session);
}

/* Blocks the signals that failing writes cause, so that a closed pipe and a limit of file sizes
 * become errors of the writes. The command inherits the former mask; the signals' dispositions
 * stay unchanged. */
static void block_write_signals(struct measure_surroundings *surroundings)
{
	sigset_t set;

	if (surroundings->has_mask)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, &surroundings->inheritance.signal_mask);
	surroundings->has_mask = true;
}

/* Blocks signals and returns a descriptor to read them from: signals that end a recording, and
 * signals that a command may send to its process group. */
static int take_signals(void)
{
	static const int signals[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM
	};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void measure__allow_many_files(struct rlimit *before)
{
	struct rlimit more;

	getrlimit(RLIMIT_NOFILE, before);
	more = *before;
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

/* Blocks the signals that end the recording. That comes after the session was loaded, so that
 * Ctrl-C ends allocprof at once until then. */
static int take_surroundings(struct measure_surroundings *surroundings, struct error *error)
{
	int fd;

	if (surroundings->has_signal_fd)
		return 0;
	fd = take_signals();
	if (fd < 0)
		return error__set(error, -errno, "cannot receive signals: %s", strerror(errno));
	surroundings->signal_fd = fd;
	surroundings->has_signal_fd = true;
	return 0;
}

/* Looks up the user of --user once for all runs of a series. */
static int take_user(struct measure_surroundings *surroundings, const char *name,
		     struct error *error)
{
	int err;

	if (!name || surroundings->inheritance.user)
		return 0;
	err = target_user__find(name, &surroundings->user, error);
	if (!err)
		surroundings->inheritance.user = &surroundings->user;
	return err;
}

bool measure_surroundings__was_interrupted(const struct measure_surroundings *surroundings)
{
	struct signalfd_siginfo info;
	bool was = false;

	while (surroundings->has_signal_fd &&
	       read(surroundings->signal_fd, &info, sizeof(info)) == sizeof(info))
		was |= !own_signals__have(surroundings->own_signals, info.ssi_signo);
	return was;
}

void measure_surroundings__release(struct measure_surroundings *surroundings)
{
	if (surroundings->has_signal_fd)
		close(surroundings->signal_fd);
	surroundings->has_signal_fd = false;
	surroundings->inheritance.user = NULL;
	target_user__release(&surroundings->user);
}

static void print_log(const char *line)
{
	message__print("%s", line);
}

static void print_found(const struct probed_file *file)
{
	probed_text__print(file, print_log);
}

/* Says with --verbose that the engine is not the usual one. Who did not ask for uprobes loses nothing
 * that the report does not name. */
static void say_engine(const struct measure *measure, const struct session *session)
{
	if (measure->verbose && measure->session.engine == SESSION_ENGINE_AUTO &&
	    !strcmp(session__engine(session), "preload"))
		message__print("no uprobes can be set here (allocprof doctor says why): "
			       "--engine=preload counts");
}

/* Available memory that is enough for most targets and allocprof beside them; the second is with
 * --live. */
#define AMPLE_BYTES	 (256ULL << 20)
#define AMPLE_LIVE_BYTES (1ULL << 30)

static void say_memory(const struct measure *measure, const struct session *session)
{
	bool is_probed = !strcmp(session__engine(session), "uprobe");
	struct session_memory memory;

	if (measure->quiet || !measure->session.stacks ||
	    !session__memory_group(session, &memory) ||
	    memory.free_bytes >= (measure->session.live ? AMPLE_LIVE_BYTES : AMPLE_BYTES))
		return;
	message__print(
		"the control group %s has %s left below its limit of %s, for what is measured and "
		"allocprof, which has %s%s%s: %s",
		memory.group[0] ? memory.group : "/", number__bytes(memory.free_bytes, false).text,
		number__bytes(memory.limit_bytes, false).text,
		number__bytes(memory.own_bytes, false).text,
		memory.most_bytes ? " and takes up to " : "",
		memory.most_bytes ? number__bytes(memory.most_bytes, false).text : "",
		is_probed ? "if that is too much, run it outside of the group (-p PID)"
			  : "if that is too much, use --sample, or no --live");
}

#define LOOK_MS 100

/* Waits until the processes have the memory of --begin-at. */
static int await_memory(const struct measure *measure,
			const struct measure_surroundings *surroundings, struct error *error)
{
	struct number_text most = number__bytes(measure->begin_rss_bytes, false);
	struct pollfd signals = { .fd = surroundings->signal_fd, .events = POLLIN };
	char who[64] = "the processes";
	__u64 rss_bytes;

	if (process_set__size(measure->set) == 1)
		snprintf(who, sizeof(who), "process %d", measure->pid);
	if (!measure->quiet)
		message__print("waits until there are %s of resident memory of %s", most.text, who);
	while ((rss_bytes = process_set__rss_bytes(measure->set))) {
		if (rss_bytes >= measure->begin_rss_bytes)
			return 0;
		if (poll(&signals, 1, LOOK_MS) > 0 &&
		    measure_surroundings__was_interrupted(surroundings))
			return error__set(
				error, -EINTR,
				"ended before %s had %s of resident memory: nothing was recorded",
				who, most.text);
	}
	return error__set(error, -ESRCH,
			  "%s ended before there were %s of resident memory: nothing was recorded",
			  who, most.text);
}

static void close_session(struct session *session)
{
	progress__clear();
	yield_progress_to(NULL);
	session__close(session);
}

/*
 * Opens a session, runs the target under it and finishes it. Returns 0 with *@session open; or a
 * negative errno with @error set, the exit status in *@status, and nothing open. The first run
 * fills @surroundings; the caller releases them after the last run.
 */
static int run_session(const struct measure *measure, struct measure_surroundings *surroundings,
		       struct session **out, int *status, struct error *error)
{
	struct session_options options = measure->session;
	struct controlled *controlled = NULL;
	struct measure_progress progress;
	struct session *session = NULL;
	int err;

	*status = EXIT_OURS;
	surroundings->own_signals = measure->session.own_signals;
	block_write_signals(surroundings);
	if (!surroundings->has_signal_fd)
		measure__allow_many_files(&surroundings->inheritance.files);
	options.launches = !measure->pid;
	options.command = measure->pid ? NULL : measure->argv;
	options.expected = measure->expected;
	options.ignored = measure->ignored;
	options.definitions =
		definitions__any(&measure->definitions) ? &measure->definitions : NULL;
	options.log = measure->verbose ? print_log : NULL;
	options.found = measure->verbose ? print_found : NULL;
	err = take_user(surroundings, measure->user, error);
	if (!err)
		err = session__open(&options, &session, error);
	if (!err && !surroundings->has_signal_fd)
		say_engine(measure, session);
	if (!err && !surroundings->has_signal_fd)
		say_memory(measure, session);
	if (!err)
		err = take_surroundings(surroundings, error);
	if (!err && measure->begin_rss_bytes)
		err = await_memory(measure, surroundings, error);
	if (!err && !measure->repeats)
		err = controlled__begin(measure, &controlled, error);
	if (err)
		goto fail;
	if (measure->pid)
		err = session__attach(session, measure->set, error);
	else
		err = session__launch(session, measure->argv, &surroundings->inheritance, error);
	if (err) {
		*status = status_of_start(measure, err);
		goto fail;
	}
	yield_progress_to(session);
	begin_progress(&progress, measure, controlled__attendant(controlled));
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
	close_session(session);
	return err;
}

static int parse_runs(const char *text, const char *option, __u64 least, __u64 *runs,
		      struct error *error)
{
	__u64 value;

	if (number__parse_count(text, &value, error))
		return -EINVAL;
	if (value < least || value > SERIES_MAX_RUNS)
		return error__set(error, -EINVAL,
				  "'%.64s' is no number of runs; %s takes %llu to %d", text, option,
				  least, SERIES_MAX_RUNS);
	*runs = value;
	return 0;
}

int series__parse(struct series *series, int key, const char *arg, struct error *error)
{
	switch (key) {
	case 'r':
		return parse_runs(arg, "-r", 1, &series->runs, error);
	case OPT_WARMUP:
		series->has_warmup = true;
		return parse_runs(arg, "--warmup", 0, &series->warmup, error);
	default:
		return OPTIONS_UNKNOWN;
	}
}

int series__check(struct series *series, const struct measure *measure, struct error *error)
{
	int err = 0;

	if (series->has_warmup && !series->runs)
		err = error__set(error, -EINVAL, "--warmup means nothing without -r");
	else if (series->runs && measure__attaches(measure))
		err = error__set(
			error, -EINVAL,
			"-r is for a command: running processes, as -p, --name, --cgroup and "
			"-a choose them, cannot be run again");
	else if (series->runs && measure->duration_ns)
		err = error__set(
			error, -EINVAL,
			"-r and --duration cannot be used together; the command may still run after "
			"that time, and would be run again beside itself");
	else if (series->runs && measure->session.window.paused)
		err = error__set(
			error, -EINVAL,
			"-r and --paused cannot be used together; only a single run can be controlled");
	if (series->runs && !series->has_warmup)
		series->warmup = 1;
	return err;
}

/* Does one run. Returns 1 if it counts, 0 if it does not, or a negative errno. */
static int run_once(const struct measure *measure, struct measure_surroundings *surroundings,
		    bool is_single, bool is_warmup, series_take take, void *context,
		    struct series_end *end, struct error *error)
{
	const struct profile *profile;
	struct measure one = *measure;
	struct session *session;
	int status, err;

	one.repeats = !is_single;
	err = run_session(&one, surroundings, &session, &status, error);
	if (err) {
		end->status = status;
		return err;
	}
	profile = session__profile(session);
	end->interrupted = profile->totals.run.interrupted;
	if (measure_surroundings__was_interrupted(surroundings))
		end->interrupted = true;
	if (!end->status)
		end->status = window_options__status(profile);
	if (is_single || (!is_warmup && !end->interrupted)) {
		err = take(context, session, end->counted + 1, error);
		if (err)
			end->status = EXIT_OURS;
		else
			err = 1;
	}
	close_session(session);
	return err;
}

int series__run(const struct series *series, const struct measure *measure,
		struct measure_surroundings *surroundings, series_take take, void *context,
		struct series_end *end, struct error *error)
{
	off_t input = series->runs ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
	__u64 runs = series->warmup + (series->runs ? series->runs : 1);
	int err = 0;

	*end = (struct series_end){ 0 };
	for (__u64 run = 0; run < runs && !end->interrupted; run++) {
		if (input >= 0)
			lseek(STDIN_FILENO, input, SEEK_SET);
		err = run_once(measure, surroundings, !series->runs, run < series->warmup, take,
			       context, end, error);
		if (err < 0)
			break;
		end->counted += err;
		err = 0;
		/* A signal may have arrived while @take handled the run. */
		if (run + 1 < runs && measure_surroundings__was_interrupted(surroundings))
			end->interrupted = true;
	}
	if (!err && !end->counted) {
		if (!end->status)
			end->status = 128 + SIGINT;
		err = error__set(error, -EINTR,
				 "interrupted before a run that counts was over; nothing is kept");
	}
	return err;
}
