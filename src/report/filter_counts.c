// SPDX-License-Identifier: GPL-3.0-or-later
/* Selects counts by process, thread, function, module, frame and suppressions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "error.h"
#include "filter_internal.h"
#include "pattern.h"
#include "profile.h"
#include "stack_groups.h"
#include "stack_view.h"
#include "suppressions.h"

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

static bool match_function(const struct pattern *pattern, const struct profile_function *function)
{
	_cleanup_(free_ptr) char *without_tier = js_tier__remove(function->name);

	return (without_tier && pattern__match(pattern, without_tier)) ||
	       pattern__match(pattern, function->name) ||
	       pattern__match(pattern, function->full_name) ||
	       pattern__match(pattern, function->symbol);
}

/* Returns which functions match, indexed by the function's id - 1. */
static bool *match_functions(const struct profile *profile, const struct pattern *pattern)
{
	bool *matched = calloc(profile->n_functions + 1, sizeof(*matched));

	for (size_t i = 0; matched && i < profile->n_functions; i++)
		matched[i] = match_function(pattern, &profile->functions[i]);
	return matched;
}

static bool *match_modules(const struct profile *profile, const struct pattern *pattern)
{
	bool *matched = calloc(profile->n_modules + 1, sizeof(*matched));

	for (size_t i = 0; matched && i < profile->n_modules; i++) {
		const struct profile_module *module = &profile->modules[i];

		matched[i] = pattern__match(pattern, module->path) ||
			     pattern__match(pattern, profile_module__basename(module));
	}
	return matched;
}

static bool frame_matches(enum filter_kind kind, const bool *matched,
			  const struct profile_frame *frame)
{
	if (kind == FILTER_MODULE)
		return frame->module && matched[frame->module - 1];
	for (__u32 i = 0; i < frame->n_lines; i++) {
		if (matched[frame->lines[i].function - 1])
			return true;
	}
	return false;
}

/* Keeps stacks with a frame that matches the rule or, if the rule is negated, without one. */
static int narrow_by_frames(struct count_filter *filter, struct filter_rule *rule,
			    const struct pattern *pattern)
{
	const struct profile *profile = filter->profile;
	_cleanup_(free_ptr) bool *matched = NULL, *frames = NULL;

	matched = rule->kind == FILTER_MODULE ? match_modules(profile, pattern)
					      : match_functions(profile, pattern);
	frames = calloc(profile->n_frames + 1, sizeof(*frames));
	if (!matched || !frames)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		frames[i] = frame_matches(rule->kind, matched, &profile->frames[i]);
	for (size_t i = 0; i < profile->n_stacks; i++) {
		const struct profile_stack *stack = &profile->stacks[i];
		bool has = false;

		for (__u32 j = 0; j < stack->n_frames && !has; j++)
			has = frames[stack->frames[j] - 1];
		rule->found |= has;
		if (has == rule->negated)
			filter->stacks[i] = false;
	}
	return 0;
}

static void narrow_by_threads(struct count_filter *filter, struct filter_rule *rule,
			      const struct pattern *pattern, bool *allowed)
{
	const struct profile *profile = filter->profile;

	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct profile_thread *thread = &profile->threads[i];
		const struct profile_process *process = &profile->processes[thread->process - 1];
		__u64 pid;
		bool matches;

		if (rule->kind == FILTER_THREAD)
			matches = pattern__match(pattern, thread->name);
		else
			matches = pattern__match(pattern, process->comm) ||
				  (read_number(rule->text, &pid) && pid == process->pid);
		rule->found |= matches;
		allowed[i] |= matches;
	}
}

static void narrow_by_functions(const struct count_filter *filter, struct filter_rule *rule,
				const struct pattern *pattern, bool *allowed)
{
	const struct definition_names *definitions = &filter->profile->definitions;

	for (int i = 0; i < definition_names__n_functions(definitions); i++) {
		bool matches = pattern__match(pattern, definition_names__function(definitions, i));

		if (profile__function_frees(i)) {
			rule->frees |= matches;
			continue;
		}
		rule->found |= matches;
		allowed[i] |= matches;
	}
}

static int find_group(const struct profile *profile, const struct stack_groups *groups,
		      struct filter_rule *rule, __u32 *group, struct error *error)
{
	__u64 id;

	if (!read_number(rule->text, &id) || !id || id > profile->n_stacks)
		return error__set(error, -EINVAL,
				  "there is no stack '%.64s' in this recording; `allocprof report` "
				  "prints the numbers of stacks",
				  rule->text);
	rule->found = true;
	*group = groups->by_stack[id - 1];
	return 0;
}

static int narrow_by_ids(struct count_filter *filter, const struct stack_groups *groups,
			 const struct filter_options *options, struct error *error)
{
	const struct profile *profile = filter->profile;
	_cleanup_(free_ptr) bool *wanted = NULL;
	_cleanup_(free_ptr) bool *unwanted = NULL;
	bool any_wanted = false;

	if (!filter__names_stacks(options))
		return 0;
	wanted = calloc(groups->n_groups + 1, sizeof(bool));
	unwanted = calloc(groups->n_groups + 1, sizeof(bool));
	if (!wanted || !unwanted)
		return -ENOMEM;
	for (size_t i = 0; i < options->n_rules; i++) {
		struct filter_rule *rule = &options->rules[i];
		__u32 group = 0;
		int err;

		if (rule->kind != FILTER_STACK)
			continue;
		err = find_group(profile, groups, rule, &group, error);
		if (err)
			return err;
		(rule->negated ? unwanted : wanted)[group] = true;
		any_wanted |= !rule->negated;
	}
	for (size_t i = 0; i < profile->n_stacks; i++) {
		__u32 group = groups->by_stack[i];

		if (unwanted[group] || (any_wanted && !wanted[group]))
			filter->stacks[i] = false;
	}
	return 0;
}

/* Removes from @all the elements that no rule of the kind permits; @some has those that a rule
 * permits. */
static void intersect(bool *all, const bool *some, size_t n)
{
	for (size_t i = 0; i < n; i++)
		all[i] = all[i] && some[i];
}

static int narrow_by_kind(struct count_filter *filter, enum filter_kind kind,
			  const struct filter_options *options, struct error *error)
{
	size_t n = kind == FILTER_FUNCTION ? AP_FUNCTIONS : filter->profile->n_threads;
	_cleanup_(free_ptr) bool *allowed = calloc(n + 1, sizeof(*allowed));
	bool any = false;

	if (!allowed)
		return -ENOMEM;
	for (size_t i = 0; i < options->n_rules; i++) {
		struct filter_rule *rule = &options->rules[i];
		struct pattern pattern;
		int err;

		if (rule->kind != kind)
			continue;
		err = pattern__parse(&pattern, rule->text, error);
		if (err)
			return err;
		if (kind == FILTER_FUNCTION)
			narrow_by_functions(filter, rule, &pattern, allowed);
		else
			narrow_by_threads(filter, rule, &pattern, allowed);
		pattern__release(&pattern);
		any = true;
	}
	if (any)
		intersect(kind == FILTER_FUNCTION ? filter->functions : filter->threads, allowed,
			  n);
	return 0;
}

static int narrow(struct count_filter *filter, const struct stack_groups *groups,
		  struct filter_options *options, struct error *error)
{
	int err = 0;

	for (size_t i = 0; i < options->n_rules && !err; i++) {
		struct filter_rule *rule = &options->rules[i];
		struct pattern pattern;

		if (rule->kind != FILTER_THROUGH && rule->kind != FILTER_MODULE)
			continue;
		err = pattern__parse(&pattern, rule->text, error);
		if (err)
			return err;
		err = narrow_by_frames(filter, rule, &pattern);
		pattern__release(&pattern);
	}
	if (!err)
		err = narrow_by_ids(filter, groups, options, error);
	if (!err)
		err = narrow_by_kind(filter, FILTER_THREAD, options, error);
	if (!err)
		err = narrow_by_kind(filter, FILTER_PROCESS, options, error);
	if (!err)
		err = narrow_by_kind(filter, FILTER_FUNCTION, options, error);
	return err;
}

int count_filter__init(struct count_filter *filter, const struct profile *profile,
		       const struct stack_groups *groups, struct filter_options *options,
		       struct error *error)
{
	int err;

	*filter = (struct count_filter){
		.profile = profile,
		.stacks = malloc(profile->n_stacks + 1),
		.threads = malloc(profile->n_threads + 1),
		.functions = malloc(AP_FUNCTIONS),
	};
	if (!filter->stacks || !filter->threads || !filter->functions) {
		count_filter__release(filter);
		return error__set(error, -ENOMEM, "cannot filter: out of memory");
	}
	memset(filter->stacks, true, profile->n_stacks + 1);
	memset(filter->threads, true, profile->n_threads + 1);
	memset(filter->functions, true, AP_FUNCTIONS);
	err = narrow(filter, groups, options, error);
	if (err)
		count_filter__release(filter);
	if (err == -ENOMEM)
		error__set(error, err, "cannot filter: out of memory");
	return err;
}

void count_filter__release(struct count_filter *filter)
{
	free(filter->stacks);
	free(filter->threads);
	free(filter->functions);
	*filter = (struct count_filter){ 0 };
}

bool count_filter__passes(const struct count_filter *filter, const struct profile_count *count)
{
	return filter->functions[count->function] && filter->threads[count->thread - 1] &&
	       filter->stacks[count->stack - 1];
}

/* Matches in LeakSanitizer's order: the module, then functions and source files. */
static int suppress_frame(const struct profile *profile, const struct profile_frame *frame,
			  const struct suppressions *suppressions)
{
	int found = -1;

	if (frame->module)
		found = suppressions__find(suppressions, profile->modules[frame->module - 1].path);
	for (__u32 i = 0; i < frame->n_lines && found < 0; i++) {
		const struct profile_line *line = &frame->lines[i];
		const struct profile_function *function = &profile->functions[line->function - 1];

		found = suppressions__find(suppressions, function->name);
		if (found < 0)
			found = suppressions__find(suppressions, function->full_name);
		if (found < 0)
			found = suppressions__find(suppressions, function->symbol);
		if (found < 0 && line->file)
			found = suppressions__find(suppressions,
						   profile->files[line->file - 1].path);
	}
	return found;
}

int *filter__suppressed_stacks(const struct profile *profile,
			       const struct suppressions *suppressions)
{
	int *stacks = malloc((profile->n_stacks + 1) * sizeof(*stacks));
	_cleanup_(free_ptr) int *frames = malloc((profile->n_frames + 1) * sizeof(*frames));

	if (!stacks || !frames) {
		free(stacks);
		return NULL;
	}
	for (size_t i = 0; i < profile->n_frames; i++)
		frames[i] = suppress_frame(profile, &profile->frames[i], suppressions);
	for (size_t i = 0; i < profile->n_stacks; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		stacks[i] = -1;
		for (__u32 j = 0; j < stack->n_frames && stacks[i] < 0; j++)
			stacks[i] = frames[stack->frames[j] - 1];
	}
	return stacks;
}
