// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof top`: shows what running processes allocate, while they do. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "command.h"
#include "data_options.h"
#include "error.h"
#include "measure_options.h"
#include "message.h"
#include "options.h"
#include "proc.h"
#include "profile.h"
#include "recorder.h"
#include "top_screen.h"
#include "top_view.h"
#include "user_terminal.h"

#define DEFAULT_INTERVAL_NS (2 * NS_PER_S)
#define LEAST_INTERVAL_NS   (100 * NS_PER_MS)
/* A copy is due no sooner than so many times its processor time after the last one: 5 % of a
 * processor. */
#define COPY_COST 19

enum {
	OPT_BY_KIND = 256,
	OPT_SORT,
	OPT_COLUMNS,
	OPT_TOTALS,
	OPT_NO_LIVE,
	OPT_ROWS,
};

static const struct argp_option top_options[] = {
	OPTIONS_GROUP("Target:"),
	RECORDER_OPTIONS_TARGET,
	OPTIONS_GROUP("What is shown:"),
	{ "by", OPT_BY_KIND, "KIND", 0, "Rows of these: function (default), stack, thread, process",
	  0 },
	{ "sort", OPT_SORT, "COLUMN", 0, "By calls, bytes (default), live, growth or peak", 0 },
	{ "columns", OPT_COLUMNS, "LIST", 0, "Only these columns, separated by commas", 0 },
	{ "totals", OPT_TOTALS, NULL, 0,
	  "Show calls and bytes in all since the beginning, instead of by second", 0 },
	{ "rows", OPT_ROWS, "N", 0, "With --batch, print N rows at the most (default: all)", 0 },
	OPTIONS_GROUP("When:"),
	{ "delay", 'd', "TIME", 0, "Look every TIME (default 2s), or less often if that costs much",
	  0 },
	{ "batch", 'b', NULL, 0, "Print text each time, and draw nothing", 0 },
	{ "iterations", 'n', "N", 0, "With --batch, end after N times", 0 },
	OPTIONS_GROUP("What is recorded:"),
	{ "no-live", OPT_NO_LIVE, NULL, 0, "Do not follow memory until it is freed: costs less",
	  0 },
	RECORDER_OPTIONS_MEASURE,
	SYMBOL_OPTION_DEBUG_DIR,
	OPTIONS_GROUP("How it is recorded:"),
	RECORDER_OPTIONS_HOW,
	VIEW_FRAME_OPTIONS,
	{ NULL, 0, NULL, 0, "What to select; all of these must hold:", 1 },
	FILTER_NAME_OPTIONS,
	{ 0 },
};

struct top_command {
	struct top_view view;
	struct recorder_words words;
	bool has_target, is_searched, has_engine, has_event, no_live, is_batch;
	__u64 interval_ns, iterations, rows;
	/* The rest is of the run. */
	struct recorder *recorder;
	struct top_screen *screen; /* NULL with --batch */
	bool tries_inside;	   /* with an engine that was not asked for, which may refuse */
	struct error refusal;	   /* why it did, until that is said with the first copy */
	bool has_asked;
	__u64 asked_cpu_ns, due_ns, n_shown;
	int signal_fd;
};

static int parse_by_kind(struct top_command *command, const char *name, struct error *error)
{
	int by = top_by__by_name(name);

	if (by < 0)
		return error__set(error, -EINVAL,
				  "unknown kind '%s'; --by is function, stack, thread or process",
				  name);
	command->view.wish.by = by;
	return 0;
}

static int parse_column(const char *name, const char *option, int *column, struct error *error)
{
	*column = top_column__by_name(name);
	return *column < 0 ? error__set(error, -EINVAL,
					"unknown column '%s'; %s takes calls, bytes, live, growth "
					"and peak",
					name, option)
			   : 0;
}

static int parse_columns(struct top_command *command, char *list, struct error *error)
{
	const char *name;
	int column;

	memset(command->view.hidden, true, sizeof(command->view.hidden));
	while ((name = strsep(&list, ","))) {
		if (parse_column(name, "--columns", &column, error))
			return -EINVAL;
		command->view.hidden[column] = false;
	}
	return 0;
}

static int check_top(struct top_command *command, struct error *error)
{
	if (!command->has_target)
		return error__set(
			error, -EINVAL,
			"no processes; give -p PID, --name NAME, --unit UNIT, --container NAME, or "
			"-a for all");
	if (command->rows && !command->is_batch)
		return error__set(error, -EINVAL, "--rows means nothing without --batch");
	if (command->iterations && !command->is_batch)
		return error__set(error, -EINVAL, "-n means nothing without --batch");
	if (command->interval_ns < LEAST_INTERVAL_NS)
		return error__set(error, -EINVAL, "-d takes 100ms or more");
	return 0;
}

/* Passes the options that it does not know itself on to the recorder. */
static int pass_on(struct top_command *command, int key, char *arg, struct options_input *input)
{
	static const int searches[] = { 'a', OPT_NAME, OPT_CGROUP, OPT_UNIT, OPT_CONTAINER };
	bool searches_now = false;

	for (size_t i = 0; i < ARRAY_SIZE(searches); i++)
		searches_now |= key == searches[i];
	command->has_target |= key == 'p' || searches_now;
	/* The library does not notice processes that start later. */
	command->is_searched |= searches_now || key == OPT_FOLLOW;
	command->has_engine |= key == OPT_ENGINE;
	command->has_event |= key == 'e';
	return recorder_words__add(&command->words, key, arg);
}

static int parse_top(int key, char *arg, struct options_input *input)
{
	struct top_command *command = input->options;
	int column, err;

	switch (key) {
	case OPT_BY_KIND:
		return parse_by_kind(command, arg, input->error);
	case OPT_SORT:
		err = parse_column(arg, "--sort", &column, input->error);
		if (!err)
			command->view.wish.sort = column;
		return err;
	case OPT_COLUMNS:
		return parse_columns(command, arg, input->error);
	case OPT_TOTALS:
		command->view.wish.since_mark = true;
		return 0;
	case OPT_NO_LIVE:
		command->no_live = true;
		return 0;
	case OPT_ROWS:
		return number__parse_count(arg, &command->rows, input->error);
	case 'd':
		return number__parse_duration(arg, &command->interval_ns, input->error);
	case 'b':
		command->is_batch = true;
		return 0;
	case 'n':
		return number__parse_count(arg, &command->iterations, input->error);
	case OPTIONS_OPERAND:
		return error__set(input->error, -EINVAL,
				  "top starts no command, whose output would be in the way; start "
				  "'%.128s' and give its number with -p, or its name with --name",
				  arg);
	case OPTIONS_END:
		return check_top(command, input->error);
	}
	err = symbol_options__parse(&command->view.symbols, key, arg, input->error);
	/* Names are demangled when they are looked up, and again when they are selected by. */
	if (key == OPT_DEMANGLE_COMMAND ||
	    (err == OPTIONS_UNKNOWN && key >= OPT_VIEW_FIRST && key < OPT_DATA_FIRST))
		err = data_choice__parse(&command->view.choice, key, arg, input->error);
	return err == OPTIONS_UNKNOWN ? pass_on(command, key, arg, input) : err;
}

/* Starts the recorder, first with a library inside of the processes, which costs them the least, if
 * they are named and no engine is. */
static int start(struct top_command *command, struct error *error)
{
	const char *variable = getenv("ALLOCPROF_ENGINE");
	int err = 0;

	command->tries_inside =
		!command->is_searched && !command->has_engine && (!variable || !*variable);
	if (command->tries_inside)
		err = recorder_words__add(&command->words, OPT_ENGINE, "inside");
	return err ? error__set(error, err, "out of memory")
		   : recorder__start(&command->words, &command->recorder, error);
}

/* Starts it anew with uprobes, after the library was refused for the reason @why. */
static int start_outside(struct top_command *command, const struct error *why, struct error *error)
{
	recorder__free(command->recorder);
	command->recorder = NULL;
	command->tries_inside = command->has_asked = false;
	free(command->words.words[--command->words.n]);
	command->refusal = *why;
	return recorder__start(&command->words, &command->recorder, error);
}

/* Returns the processor time that this process, its helpers and the recorder have had. */
static __u64 cpu_ns(const struct top_command *command)
{
	struct proc_stat recorder = { 0 };
	struct rusage helpers;

	if (!recorder__pid(command->recorder) ||
	    proc_stat__read(recorder__pid(command->recorder), &recorder))
		recorder.cpu_ticks = 0;
	getrusage(RUSAGE_CHILDREN, &helpers);
	return recorder.cpu_ticks * (NS_PER_S / sysconf(_SC_CLK_TCK)) +
	       clock__ns(CLOCK_PROCESS_CPUTIME_ID) +
	       (helpers.ru_utime.tv_sec + helpers.ru_stime.tv_sec) * NS_PER_S +
	       (helpers.ru_utime.tv_usec + helpers.ru_stime.tv_usec) * 1000ULL;
}

/* Says when the next copy is due: not so soon that copies take more of a processor than they may. */
static void plan(struct top_command *command)
{
	struct top_view *view = &command->view;
	__u64 now_cpu_ns = cpu_ns(command), cost_ns;

	cost_ns = now_cpu_ns > command->asked_cpu_ns ? now_cpu_ns - command->asked_cpu_ns : 0;
	/* Ticks are coarse, and one copy may meet what is rare. The first one has all names to look up. */
	view->cost_ns = view->top.n_copies < 3 ? cost_ns : (3 * view->cost_ns + cost_ns) / 4;
	view->every_ns = command->interval_ns;
	if (view->every_ns < view->cost_ns * COPY_COST)
		view->every_ns = view->cost_ns * COPY_COST;
	/* What names cost once is no reason to wait long for the second copy. */
	command->due_ns =
		clock__now_ns() + (view->top.n_copies > 1 ? view->every_ns : command->interval_ns);
}

static int show(struct top_command *command, struct error *error)
{
	struct terminal terminal;

	if (command->screen) {
		top_screen__draw(command->screen);
		return 0;
	}
	terminal = terminal__of(stdout);
	/* The first copy is what the next is compared with. */
	if (command->view.top.n_copies < 2 && !command->view.has_ended)
		return 0;
	top_view__print(&command->view, command->rows, &terminal);
	if (fflush(stdout) || ferror(stdout))
		return error__set(error, -EIO, "cannot write standard output: %s; write elsewhere",
				  strerror(errno));
	command->n_shown++;
	return 0;
}

static int take_copy(struct top_command *command, bool has_ended, struct error *error)
{
	struct profile *profile;
	int err = recorder__read(command->recorder, &profile, error);

	command->has_asked = false;
	if (command->refusal.text[0])
		message__print("not counted inside of the processes: %s", command->refusal.text);
	command->refusal.text[0] = '\0';
	if (!err)
		err = top_view__take(&command->view, profile, has_ended, error);
	if (err)
		return err;
	plan(command);
	return show(command, error);
}

static void take_messages(struct top_command *command)
{
	char line[TOP_TEXT];

	/* Until then the last of them may be the reason for which nothing is recorded. */
	if (!command->view.top.n_copies)
		return;
	while (recorder__next_message(command->recorder, line, sizeof(line)))
		message__print("%s", line);
}

/* Returns 1 if the command goes on, 0 at its end, or a negative errno with @error set. */
static int take_end(struct top_command *command, const struct error *why, struct error *error)
{
	int status = recorder__status(command->recorder);

	if (!why->text[0])
		return take_copy(command, true, error) ?: !!command->screen;
	if (command->view.top.n_copies) {
		command->view.has_ended = true;
		if (!command->screen)
			return error__set(error, -ECHILD, "%s", why->text);
		message__error(why, -ECHILD);
		top_screen__draw(command->screen);
		return 1;
	}
	if (command->tries_inside && status != EXIT_USAGE)
		return start_outside(command, why, error) ?: 1;
	return error__set(error, status == EXIT_USAGE ? -EINVAL : -ECHILD, "%s", why->text);
}

static int attend_recorder(struct top_command *command, struct error *error)
{
	struct error why = { 0 };
	enum recorder_news news = recorder__attend(command->recorder, &why);

	take_messages(command);
	switch (news) {
	case RECORDER_COPIED:
		return take_copy(command, false, error) ?: 1;
	case RECORDER_REFUSED:
		command->has_asked = false;
		message__error(&why, -EIO);
		plan(command);
		return 1;
	case RECORDER_ENDED:
		return take_end(command, &why, error);
	default:
		return 1;
	}
}

static void ask(struct top_command *command)
{
	if (command->has_asked || command->view.is_paused || command->view.has_ended ||
	    clock__now_ns() < command->due_ns)
		return;
	command->asked_cpu_ns = cpu_ns(command);
	/* An error is told as the recorder's end. */
	(void)recorder__ask(command->recorder);
	command->has_asked = true;
}

static int until_due_ms(const struct top_command *command)
{
	__u64 now_ns = clock__now_ns();

	if (command->has_asked || command->view.is_paused || command->view.has_ended)
		return -1;
	return command->due_ns > now_ns ? (command->due_ns - now_ns) / NS_PER_MS + 1 : 0;
}

/* Runs until the user quits, a signal comes, or the target ends. Returns 0 or a negative errno with
 * @error set. */
static int run(struct top_command *command, struct error *error)
{
	int goes_on = 1;

	while (goes_on > 0) {
		struct pollfd fds[] = {
			{ .fd = command->signal_fd, .events = POLLIN },
			{ .fd = command->view.has_ended ? -1 : recorder__fd(command->recorder),
			  .events = POLLIN },
			{ .fd = command->screen ? STDIN_FILENO : -1, .events = POLLIN },
		};
		int n;

		ask(command);
		n = poll(fds, ARRAY_SIZE(fds), until_due_ms(command));
		if (n > 0 && fds[0].revents)
			return 0;
		if (n > 0 && fds[1].revents)
			goes_on = attend_recorder(command, error);
		/* The terminal may be gone. */
		if (n > 0 && fds[2].revents & (POLLHUP | POLLERR))
			return 0;
		/* A change of size interrupts, and is read as a key. */
		if (goes_on > 0 && command->screen && (n < 0 || fds[2].revents) &&
		    !top_screen__attend(command->screen))
			return 0;
		if (command->iterations && command->n_shown >= command->iterations)
			return 0;
	}
	return goes_on;
}

static int take_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* What would be printed would be lost on the screen. */
static void take_note(const char *text, void *context)
{
	struct top_view *view = context;

	snprintf(view->note, sizeof(view->note), "%s", text);
}

static int begin(struct top_command *command, struct error *error)
{
	int err = command->is_batch ? 0 : top_screen__check(error);

	/* They end what looks names up as well. */
	progress__forbid();
	command->view.symbols.no_debuginfod = true;
	command->view.every_ns = command->interval_ns;
	command->view.n_given_rules = command->view.choice.filter.options.n_rules;
	if (!err && !command->no_live && !command->has_event)
		err = recorder_words__add(&command->words, OPT_LIVE, NULL);
	if (!err)
		err = start(command, error);
	if (err)
		return err;
	command->signal_fd = take_signals();
	if (command->signal_fd < 0)
		return error__set(error, -errno, "cannot receive signals: %s", strerror(errno));
	if (command->is_batch)
		return 0;
	err = top_screen__open(&command->view, &command->screen, error);
	if (err)
		return err;
	message__divert(take_note, &command->view);
	top_screen__draw(command->screen);
	return 0;
}

static int run_top(char **argv)
{
	struct top_command command = {
		.view.wish.sort = TOP_BYTES,
		.interval_ns = DEFAULT_INTERVAL_NS,
		.signal_fd = -1,
	};
	struct error error = { 0 };
	int status, err;

	status = options__read(&cmd_top, parse_top, &command, argv);
	if (status != OPTIONS_READ) {
		recorder_words__release(&command.words);
		return status;
	}
	err = begin(&command, &error);
	if (!err)
		err = run(&command, &error);
	message__divert(NULL, NULL);
	top_screen__close(command.screen);
	recorder__free(command.recorder);
	recorder_words__release(&command.words);
	top_view__release(&command.view);
	if (command.signal_fd >= 0)
		close(command.signal_fd);
	if (err)
		message__error(&error, err);
	return !err ? EXIT_GOOD : err == -EINVAL ? EXIT_USAGE : EXIT_OURS;
}

const struct command cmd_top = {
	.name = "top",
	.summary = "Watch what running processes allocate",
	.doc = "Show what running processes allocate, by function, stack, thread or process, while "
	       "they do; h is the help on keys.\v"
	       "For example: allocprof top -p $(pidof postgres | tr ' ' ,)\n"
	       "Memory counts from when it began on: what was allocated before is not known.",
	.options = top_options,
	.run = run_top,
};
