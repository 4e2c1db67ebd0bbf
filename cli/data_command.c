// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs a command that reads data files: parses its options, opens the files, selects data, has the
 * command write, and reports what is missing. */
#include "data_command.h"

#include <errno.h>
#include <string.h>

#include "completeness.h"
#include "completeness_messages.h"
#include "data_file.h"
#include "error.h"
#include "event_blocks.h"
#include "event_chart.h"
#include "event_log.h"
#include "event_log_file.h"
#include "message.h"
#include "output_file.h"
#include "profile_runs.h"
#include "recording_text.h"
#include "sql_limits.h"
#include "sql_time.h"
#include "stack_groups.h"
#include "text.h"

/* Takes the name of an input file. Of several -i the last one counts, as with other options; an
 * operand beside -i, or a second operand, is an error. */
static int take_input(struct data_paths *paths, const char *path, bool is_argument,
		      struct error *error)
{
	if (paths->has_argument && is_argument)
		return error__set(
			error, -EINVAL,
			"one data file is read, not both %.256s and %.256s; leave one out, or compare "
			"them with `allocprof diff`",
			paths->input, path);
	if (is_argument ? paths->has_option : paths->has_argument)
		return error__set(
			error, -EINVAL,
			"the data file is named twice, as %.256s with -i and as %.256s without; "
			"leave one out",
			is_argument ? paths->input : path, is_argument ? path : paths->input);
	paths->input = path;
	paths->has_option |= !is_argument;
	paths->has_argument |= is_argument;
	return 0;
}

int data_paths__parse(struct data_paths *paths, int key, char *arg, struct error *error)
{
	switch (key) {
	case 'i':
		return take_input(paths, arg, false, error);
	case 'o':
		paths->output = arg;
		return 0;
	case OPTIONS_OPERAND:
		return take_input(paths, arg, true, error);
	default:
		return OPTIONS_UNKNOWN;
	}
}

int symbol_command__parse(int key, char *arg, struct options_input *input)
{
	struct symbol_command *command = input->options;
	int err = data_paths__parse(&command->paths, key, arg, input->error);

	if (err != OPTIONS_UNKNOWN)
		return err;
	return symbol_options__parse(&command->symbols, key, arg, input->error);
}

int data_choice__parse(struct data_choice *choice, int key, char *arg, struct error *error)
{
	int err;

	switch (key) {
	case OPT_JSON:
		choice->json = true;
		return 0;
	case OPT_STRICT:
		choice->strict = true;
		return 0;
	case OPT_NO_PAGER:
		choice->no_pager = true;
		return 0;
	default:
		err = data_paths__parse(&choice->paths, key, arg, error);
		if (err != OPTIONS_UNKNOWN)
			return err;
		err = view_choice__parse(&choice->view, key, arg, error);
		if (err != OPTIONS_UNKNOWN)
			return err;
		return filter_choice__parse(&choice->filter, key, arg, error);
	}
}

int data_choice__parse_cost(const char *name, enum cost *cost, struct error *error)
{
	int found = cost__by_name(name);

	if (found >= 0) {
		*cost = found;
		return 0;
	}
	return error__set(
		error, -EINVAL,
		"unknown cost '%s'; --cost is allocations, bytes, live, live-bytes, temporary "
		"or peak",
		name);
}

int selected__open(struct selected *selected, struct data_choice *choice, enum cost cost,
		   struct error *error)
{
	int err = data_file__read(choice->paths.input, &selected->profile, error);

	return err ? err : selected__choose(selected, choice, cost, error);
}

/* Keeps only the requested run. */
static int choose_run(struct selected *selected, const struct filter_choice *filter,
		      struct error *error)
{
	__u32 run = filter->run, n = profile__n_runs(selected->profile);
	struct profile *taken;
	int err;

	if (!run && filter->is_of_one_run && n > 1)
		run = 1;
	if (run > n)
		return error__set(error, -EINVAL, "the recording has no run %u, but %u %s", run, n,
				  plural__of("run{|s}", n).text);
	if (!run || !selected->profile->n_runs)
		return 0;
	err = profile__take_run(selected->profile, run, &taken);
	if (err)
		return error__set(error, err, "cannot take a run out of the recording: %s",
				  strerror(-err));
	profile__free(selected->profile);
	selected->profile = taken;
	return 0;
}

static int choose_view(struct selected *selected, struct data_choice *choice, enum cost cost,
		       struct error *error)
{
	int err = filter_choice__read(&choice->filter, error);

	if (!err)
		err = choose_run(selected, &choice->filter, error);
	if (!err)
		err = filter__check_cost(selected->profile, cost, error);
	if (!err)
		err = view_choice__open(&choice->view, selected->profile, &selected->view, error);
	return err;
}

static void limit_time(const struct data_choice *choice)
{
	if (choice->filter.options.n_where)
		sql_time__limit(WHERE_CPU_NS, "allocprof: the expression of --where " SQL_OVER_TIME
					      "; " WHERE_TIME_REMEDY "\n");
}

static int filter_counts(struct selected *selected, struct data_choice *choice, struct error *error)
{
	int err;

	if (!choice->needs_no_groups || filter__needs_groups(&choice->filter.options)) {
		selected->groups = stack_groups__new(selected->profile, selected->view);
		if (!selected->groups)
			return error__set(error, -ENOMEM, "cannot group the stacks: out of memory");
	}
	limit_time(choice);
	err = filter__apply(selected->profile, selected->groups, &choice->filter.options,
			    &selected->filtered, error);
	sql_time__unlimit();
	return err;
}

int selected__choose_lifetimes(const struct selected *selected, struct data_choice *choice,
			       bool **lifetimes, struct error *error)
{
	int err;

	limit_time(choice);
	err = filter__select_lifetimes(selected->profile, selected->groups, &choice->filter.options,
				       lifetimes, error);
	sql_time__unlimit();
	return err;
}

int selected__choose(struct selected *selected, struct data_choice *choice, enum cost cost,
		     struct error *error)
{
	int err = choose_view(selected, choice, cost, error);

	return err ? err : filter_counts(selected, choice, error);
}

int selected__choose_part(struct selected *selected, struct data_choice *choice, enum cost cost,
			  struct error *error)
{
	int err = choose_view(selected, choice, cost, error);

	return err || filter__selects_all(&choice->filter.options)
		       ? err
		       : filter_counts(selected, choice, error);
}

void selected__release(struct selected *selected)
{
	filtered__release(&selected->filtered);
	stack_groups__free(selected->groups);
	stack_view__free(selected->view);
	profile__free(selected->profile);
}

static int open_log(struct data_run *run, struct error *error)
{
	return event_log_file__open_of(run->selected[DIFF_AFTER].profile, run->choice.paths.input,
				       &run->log, error);
}

static void drop_log(struct data_run *run)
{
	event_log_reader__free(run->log);
	run->log = NULL;
}

/* Reading a log may take longer than expressions may, of which each has a limit of its own. */
int data_run__read_blocks(struct data_run *run, struct event_blocks_options *wanted,
			  struct event_blocks *out, struct error *error)
{
	const struct selected *selected = &run->selected[DIFF_AFTER];
	int err = open_log(run, error);

	if (err)
		return err;
	wanted->filter = &run->choice.filter.options;
	err = event_blocks__read(run->log, selected->profile, selected->groups, wanted, out, error);
	if (err)
		drop_log(run);
	return err;
}

int data_run__read_chart(struct data_run *run, enum cost cost, struct event_chart *out,
			 struct error *error)
{
	const struct selected *selected = &run->selected[DIFF_AFTER];
	int err = open_log(run, error);

	if (err)
		return err;
	err = event_chart__read(run->log, selected->profile, selected->groups,
				&run->choice.filter.options, cost, out, error);
	if (err)
		drop_log(run);
	return err;
}

static int write_output(const struct data_command *command, const struct data_run *run,
			struct error *error)
{
	const struct data_choice *choice = &run->choice;
	const char *output = choice->paths.output;
	int err = run->base ? output_file__check_data(output, run->base, error) : 0;

	if (!err)
		err = output_file__check(output, "-o", choice->filter.suppressions_path,
					 "the file of --suppressions", error);
	if (!err)
		err = output_file__check(output, "-o", choice->view.wrappers_path,
					 "the file of --wrappers", error);
	return err ? err
		   : output_file__write(output, choice->paths.input, !choice->no_pager,
					command->write, run, error);
}

/* Prints which run is shown, for a command that cannot add up runs and shows the first one. */
static void print_run(const struct profile *profile, const char *name)
{
	char run[RUNS_TEXT_SIZE];

	if (runs_text__taken(profile, run))
		message__print("%s%s%s is shown; --run names another", name ?: "", name ? ": " : "",
			       run);
}

static int report_completeness(const struct data_command *command, const struct data_run *run)
{
	const struct data_choice *choice = &run->choice;
	const char *names[DIFF_SIDES] = { run->base, run->base ? choice->paths.input : NULL };
	unsigned int needs = run->needs | (choice->strict ? COMPLETENESS_STRICT : 0);
	int status = EXIT_GOOD;

	if (filter__needs_times(&choice->filter.options))
		needs |= COMPLETENESS_TIMES;
	for (int side = 0; side < DIFF_SIDES; side++) {
		const struct profile *profile = run->selected[side].profile;
		int verdict;

		if (!profile)
			continue;
		if (command->hides_run && !choice->filter.run)
			print_run(profile, names[side]);
		completeness_messages__print_frees(profile, names[side]);
		if (!command->tells_all)
			completeness_messages__print_sampled(profile, names[side]);
		verdict = completeness_messages__print(profile, names[side], needs);
		if (verdict)
			status = verdict;
	}
	return status;
}

static int do_run(const struct data_command *command, struct data_run *run)
{
	struct error error = { 0 };
	int err = command->prepare(run, &error), status, of_log = EXIT_GOOD;

	if (!err)
		err = write_output(command, run, &error);
	if (err)
		return output_file__status(err, &error);
	filter_choice__report_unmatched(&run->choice.filter);
	if (!command->tells_all)
		filter_choice__report_exit(&run->choice.filter);
	if (command->tell)
		command->tell(run);
	if (run->log)
		event_log_file__report_choice(run->selected[DIFF_AFTER].profile);
	if (run->log)
		of_log = event_log_file__report_missing(run->log, run->choice.strict);
	status = report_completeness(command, run);
	if (status == EXIT_GOOD && command->judge)
		status = command->judge(run);
	return status == EXIT_GOOD ? of_log : status;
}

int data_command__run(const struct data_command *command, void *context, char **argv)
{
	struct data_run *run = context;
	int status = options__read(command->command, command->parse, run, argv);

	if (status == OPTIONS_READ && command->instead)
		status = command->instead(run);
	if (status == OPTIONS_READ)
		status = do_run(command, run);
	if (command->release)
		command->release(run);
	for (int side = 0; side < DIFF_SIDES; side++)
		selected__release(&run->selected[side]);
	filter_choice__release(&run->choice.filter);
	event_log_reader__free(run->log);
	return status;
}
