// SPDX-License-Identifier: GPL-3.0-or-later
#include "data_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "message.h"
#include "number.h"
#include "options.h"
#include "profile.h"
#include "profile_runs.h"
#include "symbol_options.h"
#include "wrappers.h"

static int parse_demangle(struct view_choice *choice, const char *name, struct error *error)
{
	static const char *const names[] = {
		[STACK_NAMES_SIMPLE] = "simple",
		[STACK_NAMES_FULL] = "full",
		[STACK_NAMES_LINKED] = "none",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], name)) {
			choice->options.names = i;
			return 0;
		}
	}
	return error__set(error, -EINVAL,
			  "unknown form of names '%s'; --demangle is simple, full or none", name);
}

static int parse_by(struct view_choice *choice, const char *list, struct error *error)
{
	for (;;) {
		size_t len = strcspn(list, ",");

		if (len == strlen("thread") && !strncmp(list, "thread", len)) {
			choice->by_thread = true;
		} else if (len == strlen("process") && !strncmp(list, "process", len)) {
			choice->by_process = true;
		} else if (len == strlen("pid") && !strncmp(list, "pid", len)) {
			choice->by_process = choice->by_pid = true;
		} else if (len == strlen("cgroup") && !strncmp(list, "cgroup", len)) {
			choice->by_process = choice->by_group = true;
		} else if (len == strlen("arguments") && !strncmp(list, "arguments", len)) {
			choice->by_process = choice->by_arguments = true;
		} else if (len == strlen("type") && !strncmp(list, "type", len)) {
			choice->options.types = STACK_TYPES_OUTERMOST;
		} else {
			return error__set(
				error, -EINVAL,
				"unknown root '%.*s'; --by takes process, pid, arguments, cgroup, thread or type, "
				"or several of these with commas",
				(int)len, list);
		}
		if (choice->by_pid + choice->by_group + choice->by_arguments > 1)
			return error__set(
				error, -EINVAL,
				"--by takes one of pid, arguments and cgroup; leave the others out");
		if (!list[len])
			return 0;
		list += len + 1;
	}
}

int view_choice__parse(struct view_choice *choice, int key, char *arg, struct error *error)
{
	switch (key) {
	case OPT_BY:
		return parse_by(choice, arg, error);
	case OPT_DEMANGLE:
		return parse_demangle(choice, arg, error);
	case OPT_DEMANGLE_COMMAND:
		choice->demangle_command = arg;
		return 0;
	case OPT_LINES:
		choice->options.lines = true;
		return 0;
	case OPT_NO_INLINE:
		choice->options.no_inline = true;
		return 0;
	case OPT_RAW_STACKS:
		choice->options.all_frames = true;
		return 0;
	case OPT_WRAPPERS:
		choice->wrappers_path = arg;
		return 0;
	default:
		return OPTIONS_UNKNOWN;
	}
}

void view_choice__show_types_alone(struct view_choice *choice)
{
	if (choice->options.types != STACK_TYPES_NONE)
		choice->options.types = STACK_TYPES_ONLY;
}

int view_choice__check_no_comm(const struct view_choice *choice, bool no_comm, struct error *error)
{
	if (!no_comm || !choice->by_process)
		return 0;
	return error__set(error, -EINVAL,
			  "--no-comm leaves out the processes that --by=process begins with; leave "
			  "one out");
}

static void free_wrappers(struct wrappers **wrappers)
{
	wrappers__free(*wrappers);
}

static int make_view(const struct view_choice *choice, struct profile *profile,
		     struct stack_view **view, struct error *error)
{
	struct stack_view_options options = choice->options;
	_cleanup_(free_wrappers) struct wrappers *wrappers = NULL;
	int err;

	err = wrappers__load(choice->wrappers_path, &wrappers, error);
	if (err)
		return err;
	options.wrappers = wrappers;
	/*
	 * Demangle again: this machine may have more demanglers than the machine that recorded.
	 * Wrappers are matched by demangled names, whichever form is printed.
	 */
	err = demangling__apply(choice->demangle_command, profile, error);
	return err ? err : stack_view__new(profile, &options, view);
}

int view_choice__open(const struct view_choice *choice, struct profile *profile,
		      struct stack_view **view, struct error *error)
{
	int err = (choice->by_group	  ? profile__label_by_group(profile)
		   : choice->by_arguments ? profile__label_by_arguments(profile)
		   : choice->by_pid	  ? profile__label_by_pid(profile)
					  : 0)
			  ?: make_view(choice, profile, view, error);

	if (err == -ENOMEM)
		return error__set(error, err, "cannot group the stacks: out of memory");
	return err;
}

static const struct {
	int option;
	enum filter_kind kind;
	bool negated, list; /* the value is a comma-separated list */
	const char *what;
} rules[] = {
	{ OPT_THROUGH, FILTER_THROUGH, false, false, "function" },
	{ OPT_NOT_THROUGH, FILTER_THROUGH, true, false, "function" },
	{ OPT_MODULE, FILTER_MODULE, false, false, "module" },
	{ OPT_STACK, FILTER_STACK, false, true, "stack" },
	{ OPT_NOT_STACK, FILTER_STACK, true, true, "stack" },
	{ OPT_THREAD, FILTER_THREAD, false, false, "thread" },
	{ OPT_PROCESS, FILTER_PROCESS, false, false, "process" },
	{ OPT_FUNCTION, FILTER_FUNCTION, false, true, "function of the allocator" },
};

static int add_rule(struct filter_choice *choice, const struct filter_rule *rule,
		    struct error *error)
{
	struct filter_options *options = &choice->options;

	if (array__reserve(&options->rules, &choice->rules_room, options->n_rules + 1,
			   sizeof(*rule)))
		return error__set(error, -ENOMEM, "cannot read the options: out of memory");
	options->rules[options->n_rules++] = *rule;
	return 0;
}

static int parse_rule(struct filter_choice *choice, int key, char *arg, struct error *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct filter_rule rule = { .kind = rules[i].kind, .negated = rules[i].negated };
		char *words = arg;
		int err = 0;

		if (rules[i].option != key)
			continue;
		if (!rules[i].list) {
			rule.text = arg;
			return add_rule(choice, &rule, error);
		}
		while (!err && (rule.text = strsep(&words, ",")))
			err = add_rule(choice, &rule, error);
		return err;
	}
	return OPTIONS_UNKNOWN;
}

static int parse_where(struct filter_choice *choice, const char *text, struct error *error)
{
	struct filter_options *options = &choice->options;
	struct filter_where where;
	int err = filter_where__parse(&where, text, error);

	if (err)
		return err;
	if (array__reserve(&options->where, &choice->where_room, options->n_where + 1,
			   sizeof(where)))
		return error__set(error, -ENOMEM, "cannot read the options: out of memory");
	options->where[options->n_where++] = where;
	return 0;
}

static int parse_time(struct filter_time *time, const char *text, struct error *error)
{
	size_t len = strlen(text);
	int err;

	time->is_share = len && text[len - 1] == '%';
	err = time->is_share ? number__parse_share(text, &time->share, error)
			     : number__parse_duration(text, &time->ns, error);
	time->is_given = !err;
	return err;
}

int filter_choice__read(struct filter_choice *choice, struct error *error)
{
	int err = choice->suppressions_path && !choice->suppressions_are_read
			  ? suppressions__read(choice->suppressions_path, &choice->suppressions,
					       error)
			  : 0;

	choice->suppressions_are_read = true;
	return err;
}

static int parse_run(struct filter_choice *choice, const char *text, struct error *error)
{
	__u64 run = 0;

	choice->all_runs = !strcmp(text, "all");
	choice->run = 0;
	if (choice->all_runs)
		return 0;
	if (!number__parse_between(text, 1, PROFILE_MAX_RUNS, &run))
		return error__set(error, -EINVAL,
				  "'%.64s' is no run; --run takes its number, from 1, or all",
				  text);
	choice->run = run;
	return 0;
}

int filter_choice__parse(struct filter_choice *choice, int key, char *arg, struct error *error)
{
	struct filter_options *options = &choice->options;

	switch (key) {
	case OPT_LEAKS:
		options->leaks = true;
		return 0;
	case OPT_AT_EXIT:
		options->at_exit = true;
		return 0;
	case OPT_FREED:
		options->freed = true;
		return 0;
	case OPT_OLDER:
		return parse_time(&options->older, arg, error);
	case OPT_MIN_LIFETIME:
		return parse_time(&options->min_lifetime, arg, error);
	case OPT_MAX_LIFETIME:
		return parse_time(&options->max_lifetime, arg, error);
	case OPT_FREED_AFTER:
		return parse_time(&options->freed_after, arg, error);
	case OPT_MIN_SIZE:
		return number__parse_size(arg, &options->min_size_bytes, error);
	case OPT_MAX_SIZE:
		options->has_max_size = true;
		return number__parse_size(arg, &options->max_size_bytes, error);
	case OPT_WHERE:
		return parse_where(choice, arg, error);
	case OPT_RUN:
		return parse_run(choice, arg, error);
	case OPT_SUPPRESSIONS:
		choice->suppressions_path = arg;
		choice->options.suppressions = &choice->suppressions;
		return 0;
	default:
		return parse_rule(choice, key, arg, error);
	}
}

static void report_unmatched(const char *what, const char *text)
{
	message__print("no %s in this recording is '%s'%s", what, text,
		       text[0] == '/' ? "" : "; /.../ looks for a part of a name");
}

void filter_choice__report_unmatched(const struct filter_choice *choice)
{
	for (size_t i = 0; i < choice->options.n_where; i++) {
		const struct filter_where *where = &choice->options.where[i];

		if (where->unmatched[0])
			report_unmatched(where->unmatched_is_module ? "module" : "function",
					 where->unmatched);
	}
	for (size_t i = 0; i < choice->options.n_rules; i++) {
		const struct filter_rule *rule = &choice->options.rules[i];

		for (size_t j = 0; j < ARRAY_SIZE(rules) && !rule->found; j++) {
			if (rules[j].kind != rule->kind || rules[j].negated != rule->negated)
				continue;
			if (rule->frees) {
				message__print(
					"'%s' only frees: such calls have no size and no cost; "
					"`allocprof query 'SELECT * FROM calls'` shows them",
					rule->text);
				continue;
			}
			report_unmatched(rules[j].what, rule->text);
		}
	}
}

void filter_choice__report_exit(const struct filter_choice *choice)
{
	const struct exit_frees *frees = &choice->options.exit_frees;

	if (frees->epoch)
		message__print(
			"in its last %s the program freed %s: what was live before that is shown, and "
			"--at-exit selects what was left at the end",
			number__time(frees->took_ns).text,
			number__bytes(frees->freed_bytes, false).text);
}

void filter_choice__release(struct filter_choice *choice)
{
	free(choice->options.rules);
	free(choice->options.where);
	suppressions__release(&choice->suppressions);
	*choice = (struct filter_choice){ 0 };
}
