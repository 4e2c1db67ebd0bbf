// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns the options of a filter into expressions, which where.c evaluates as it does the user's own. */
#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "clock.h"
#include "cleanup.h"
#include "error.h"
#include "filter_internal.h"
#include "pattern.h"
#include "profile.h"
#include "stack_groups.h"

static int fail_for_memory(struct error *error)
{
	return error__set(error, -ENOMEM, "cannot filter: out of memory");
}

static int add(struct conditions *conditions, const struct condition *condition,
	       struct error *error)
{
	if (array__reserve(&conditions->list, &conditions->room, conditions->n + 1,
			   sizeof(*condition)))
		return fail_for_memory(error);
	conditions->list[conditions->n++] = *condition;
	return 0;
}

/* Adds an expression, which it owns. */
static int add_text(struct conditions *conditions, char *text, struct filter_rule *rule,
		    struct error *error)
{
	struct condition condition = { .text = text, .rule = rule };
	int err =
		text ? filter_where__parse(&condition.where, text, error) : fail_for_memory(error);

	if (!err)
		err = add(conditions, &condition, error);
	if (err)
		sqlite3_free(text);
	return err;
}

__attribute__((format(printf, 3, 4))) static int
add_format(struct conditions *conditions, struct error *error, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = sqlite3_vmprintf(format, args);
	va_end(args);
	return add_text(conditions, text, NULL, error);
}

/* Adds that @column, in seconds, is @op "<=" or ">=" to @time. @end_ns: the duration, or 0 if it is not one of all runs. */
static int add_time(struct conditions *conditions, const char *column, const char *op,
		    const struct filter_time *time, __u64 end_ns, struct error *error)
{
	__u64 ns = time->is_share ? (__u64)(time->share * end_ns) : time->ns;
	char share[32];

	if (!time->is_given)
		return 0;
	/* SQLite's own function writes a few digits only. */
	snprintf(share, sizeof(share), "%.17g", time->share);
	if (time->is_share && !end_ns)
		return add_format(conditions, error, "%s %s %s * duration", column, op, share);
	/* A constant is compared at once with the earliest and the latest time. */
	return add_format(conditions, error, "%s %s %llu.%09llu", column, op, ns / NS_PER_S,
			  ns % NS_PER_S);
}

static int add_blocks(struct conditions *conditions, const struct filter_options *options,
		      __u64 end_ns, struct error *error)
{
	bool leaked = options->leaks && !options->at_exit;
	int err = 0;

	if (options->leaks)
		err = add_format(conditions, error, "%s", leaked ? "leaked" : "alive");
	if (!err && options->freed)
		err = add_format(conditions, error, "freed");
	if (!err)
		err = add_time(conditions, leaked ? "age" : "alive AND age", ">=", &options->older,
			       end_ns, error);
	if (!err)
		err = add_time(conditions, leaked ? "age" : "alive_for",
			       ">=", &options->min_lifetime, end_ns, error);
	if (!err)
		err = add_time(conditions, "lifetime", "<=", &options->max_lifetime, end_ns, error);
	if (!err)
		err = add_time(conditions, "freed_at", ">=", &options->freed_after, end_ns, error);
	if (!err && options->min_size_bytes)
		err = add_format(conditions, error, "size >= %llu", options->min_size_bytes);
	if (!err && options->has_max_size)
		err = add_format(conditions, error, "size <= %llu", options->max_size_bytes);
	return err;
}

/* Parses a number; the text must consist of digits only. */
static bool read_number(const char *text, __u64 *number)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && !*end;
}

static void find_threads(const struct profile *profile, struct filter_rule *rule,
			 const struct pattern *pattern)
{
	for (size_t i = 0; i < profile->n_threads && !rule->found; i++)
		rule->found = pattern__match(pattern, profile->threads[i].name);
}

static void find_processes(const struct profile *profile, struct filter_rule *rule,
			   const struct pattern *pattern)
{
	__u64 pid;
	bool is_number = read_number(rule->text, &pid);

	for (size_t i = 0; i < profile->n_processes && !rule->found; i++)
		rule->found = pattern__match(pattern, profile->processes[i].comm) ||
			      (is_number && profile->processes[i].pid == pid);
}

static void find_functions(const struct profile *profile, struct filter_rule *rule,
			   const struct pattern *pattern)
{
	const struct definition_names *definitions = &profile->definitions;

	for (int i = 0; i < definition_names__n_functions(definitions); i++) {
		bool *found = profile__function_frees(i) ? &rule->frees : &rule->found;

		*found |= pattern__match(pattern, definition_names__function(definitions, i));
	}
}

static int find_rule(const struct profile *profile, struct filter_rule *rule, struct error *error)
{
	struct pattern pattern;
	int err = pattern__parse(&pattern, rule->text, error);

	if (err)
		return err;
	if (rule->kind == FILTER_THREAD)
		find_threads(profile, rule, &pattern);
	else if (rule->kind == FILTER_PROCESS)
		find_processes(profile, rule, &pattern);
	else
		find_functions(profile, rule, &pattern);
	pattern__release(&pattern);
	return 0;
}

static int find_group(const struct profile *profile, const struct stack_groups *groups,
		      struct filter_rule *rule, __u32 *id, struct error *error)
{
	__u64 stack;

	if (!read_number(rule->text, &stack) || !stack || stack > profile->n_stacks)
		return error__set(error, -EINVAL,
				  "there is no stack '%.64s' in this recording; `allocprof report` "
				  "prints the numbers of stacks",
				  rule->text);
	rule->found = true;
	*id = groups->groups[groups->by_stack[stack - 1]].id;
	return 0;
}

/* Appends what one rule of several selects. */
static int append_rule(sqlite3_str *text, const struct profile *profile,
		       const struct stack_groups *groups, struct filter_rule *rule,
		       struct error *error)
{
	const char * or = sqlite3_str_length(text) ? " OR " : "";
	__u32 id = 0;
	__u64 pid;
	int err = rule->kind == FILTER_STACK ? find_group(profile, groups, rule, &id, error)
					     : find_rule(profile, rule, error);

	if (err)
		return err;
	switch (rule->kind) {
	case FILTER_STACK:
		sqlite3_str_appendf(text, "%sstack = %u", or, id);
		break;
	case FILTER_THREAD:
		sqlite3_str_appendf(text, "%smatches(thread, %Q)", or, rule->text);
		break;
	case FILTER_PROCESS:
		sqlite3_str_appendf(text, "%smatches(process, %Q)", or, rule->text);
		if (read_number(rule->text, &pid) && pid <= INT64_MAX)
			sqlite3_str_appendf(text, " OR pid = %llu", pid);
		break;
	default:
		sqlite3_str_appendf(text, "%smatches(function, %Q)", or, rule->text);
		break;
	}
	return 0;
}

/* Adds the rules of a kind of which one is enough; negated: of which none may hold. */
static int add_any(struct conditions *conditions, const struct profile *profile,
		   const struct stack_groups *groups, enum filter_kind kind, bool negated,
		   struct filter_options *options, struct error *error)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	char *any;
	int err = 0;

	for (size_t i = 0; i < options->n_rules && !err; i++) {
		struct filter_rule *rule = &options->rules[i];

		if (rule->kind == kind && rule->negated == negated)
			err = append_rule(text, profile, groups, rule, error);
	}
	if (!err && sqlite3_str_errcode(text) != SQLITE_OK)
		err = fail_for_memory(error);
	any = sqlite3_str_finish(text);
	if (!err && any)
		err = add_format(conditions, error, negated ? "NOT (%s)" : "%s", any);
	sqlite3_free(any);
	return err;
}

/* Each rule about frames must hold. */
static int add_frames(struct conditions *conditions, struct filter_options *options,
		      struct error *error)
{
	int err = 0;

	for (size_t i = 0; i < options->n_rules && !err; i++) {
		struct filter_rule *rule = &options->rules[i];

		if (rule->kind == FILTER_THROUGH || rule->kind == FILTER_MODULE)
			err = add_text(conditions,
				       sqlite3_mprintf("%s%s(%Q)", rule->negated ? "NOT " : "",
						       rule->kind == FILTER_MODULE
							       ? "through_module"
							       : "through",
						       rule->text),
				       rule, error);
	}
	return err;
}

int conditions__make(struct conditions *conditions, const struct profile *profile,
		     const struct stack_groups *groups, struct filter_options *options,
		     __u64 end_ns, struct error *error)
{
	static const struct {
		enum filter_kind kind;
		bool negated;
	} kinds[] = {
		{ FILTER_STACK, false }, { FILTER_STACK, true }, { FILTER_THREAD },
		{ FILTER_PROCESS },	 { FILTER_FUNCTION },
	};
	int err = add_blocks(conditions, options, end_ns, error);

	if (!err)
		err = add_frames(conditions, options, error);
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !err; i++)
		err = add_any(conditions, profile, groups, kinds[i].kind, kinds[i].negated, options,
			      error);
	for (size_t i = 0; i < options->n_where && !err; i++)
		err = add(conditions,
			  &(struct condition){ .where = options->where[i],
					       .given = &options->where[i] },
			  error);
	return err;
}

int conditions__evaluate(struct conditions *conditions, const struct where_data *data,
			 struct error *error)
{
	for (size_t i = 0; i < conditions->n; i++) {
		struct condition *condition = &conditions->list[i];
		int err;

		free(condition->answers.answers);
		condition->answers.answers = NULL;
		err = where__evaluate(data, &condition->where, condition->given,
				      &condition->answers, error);

		if (err)
			return err;
		if (condition->rule)
			condition->rule->found = !condition->where.unmatched[0];
		if (condition->given)
			*condition->given = condition->where;
	}
	return 0;
}

void conditions__release(struct conditions *conditions)
{
	for (size_t i = 0; i < conditions->n; i++) {
		sqlite3_free(conditions->list[i].text);
		free(conditions->list[i].answers.answers);
	}
	free(conditions->list);
	*conditions = (struct conditions){ 0 };
}

__u32 conditions__columns(const struct conditions *conditions)
{
	__u32 columns = 0;

	for (size_t i = 0; i < conditions->n; i++)
		columns |= conditions->list[i].where.columns;
	return columns;
}

enum answer conditions__answer(const struct conditions *conditions, enum where_level level,
			       size_t index)
{
	enum answer answer = YES;

	for (size_t i = 0; i < conditions->n && answer != NO; i++) {
		const struct where_answers *answers = &conditions->list[i].answers;

		if (answers->level == level && answers->answers[index] < answer)
			answer = answers->answers[index];
	}
	return answer;
}
