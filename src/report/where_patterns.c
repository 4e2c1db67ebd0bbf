// SPDX-License-Identifier: GPL-3.0-or-later
/* The functions of expressions: through(), through_module() and matches(). */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "profile.h"
#include "stack_view.h"
#include "where_internal.h"

const char *const where_functions[] = { "through", "through_module", "matches", NULL };

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

static bool frame_matches(bool of_modules, const bool *matched, const struct profile_frame *frame)
{
	if (of_modules)
		return frame->module && matched[frame->module - 1];
	for (__u32 i = 0; i < frame->n_lines; i++) {
		if (matched[frame->lines[i].function - 1])
			return true;
	}
	return false;
}

static bool *match_stacks(const struct profile *profile, const struct pattern *pattern,
			  bool of_modules, bool *found)
{
	_cleanup_(free_ptr) bool *matched =
		of_modules ? match_modules(profile, pattern) : match_functions(profile, pattern);
	_cleanup_(free_ptr) bool *frames = calloc(profile->n_frames + 1, sizeof(*frames));
	bool *stacks = calloc(profile->n_stacks + 1, sizeof(*stacks));

	if (!matched || !frames || !stacks) {
		free(stacks);
		return NULL;
	}
	for (size_t i = 0; i < profile->n_frames; i++)
		frames[i] = frame_matches(of_modules, matched, &profile->frames[i]);
	for (size_t i = 0; i < profile->n_stacks; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		for (__u32 j = 0; j < stack->n_frames && !stacks[i]; j++)
			stacks[i] = frames[stack->frames[j] - 1];
		*found |= stacks[i];
	}
	return stacks;
}

/* A name that is put together for each block is no pattern: it would take a look at all frames each. */
#define MAX_PATTERNS	1024
#define MAX_STACK_BYTES (1ULL << 30)

static int add(struct where_patterns *patterns, const char *text, bool of_stacks, bool of_modules,
	       struct where_pattern **out, struct error *error)
{
	struct where_pattern pattern = { .of_modules = of_modules };
	size_t n = patterns->n;
	int err;

	if (n >= MAX_PATTERNS ||
	    (of_stacks && (n + 1) * patterns->profile->n_stacks > MAX_STACK_BYTES))
		return error__set(error, -E2BIG,
				  "there are more than %zu patterns; a pattern is a constant text",
				  n);
	if (array__reserve(&patterns->list, &patterns->room, n + 1, sizeof(pattern)))
		return error__set(error, -ENOMEM, "out of memory");
	pattern.text = strdup(text);
	err = pattern.text ? pattern__parse(&pattern.pattern, pattern.text, error) : -ENOMEM;
	if (err) {
		free(pattern.text);
		return err;
	}
	if (of_stacks)
		pattern.stacks = match_stacks(patterns->profile, &pattern.pattern, of_modules,
					      &pattern.found);
	*out = &patterns->list[n];
	**out = pattern;
	patterns->n++;
	return !of_stacks || pattern.stacks ? 0 : error__set(error, -ENOMEM, "out of memory");
}

static struct where_pattern *find(sqlite3_context *context, sqlite3_value *value, bool of_stacks,
				  bool of_modules, const char *function)
{
	struct where_patterns *patterns = sqlite3_user_data(context);
	const char *text = sqlite3_value_type(value) == SQLITE_TEXT
				   ? (const char *)sqlite3_value_text(value)
				   : NULL;
	struct where_pattern *pattern = NULL;
	struct error error = { 0 };

	if (!text) {
		snprintf(error.text, sizeof(error.text),
			 "%s() takes a name or pattern as a text in quotes", function);
		sqlite3_result_error(context, error.text, -1);
		return NULL;
	}
	for (size_t i = 0; i < patterns->n; i++) {
		pattern = &patterns->list[i];
		if (!pattern->stacks == !of_stacks && pattern->of_modules == of_modules &&
		    !strcmp(pattern->text, text))
			return pattern;
	}
	if (!add(patterns, text, of_stacks, of_modules, &pattern, &error))
		return pattern;
	sqlite3_result_error(context, error.text, -1);
	return NULL;
}

static void match_stack(sqlite3_context *context, sqlite3_value **values, bool of_modules,
			const char *name)
{
	const struct where_patterns *patterns = sqlite3_user_data(context);
	const struct where_pattern *pattern = find(context, values[0], true, of_modules, name);

	if (pattern)
		sqlite3_result_int(context, pattern->stacks[*patterns->stack - 1]);
}

static void through(sqlite3_context *context, int n, sqlite3_value **values)
{
	match_stack(context, values, false, "through");
}

static void through_module(sqlite3_context *context, int n, sqlite3_value **values)
{
	match_stack(context, values, true, "through_module");
}

static void matches(sqlite3_context *context, int n, sqlite3_value **values)
{
	const struct where_pattern *pattern = find(context, values[1], false, false, "matches");
	const char *text = (const char *)sqlite3_value_text(values[0]);

	if (pattern && text)
		sqlite3_result_int(context, pattern__match(&pattern->pattern, text));
}

int where_patterns__define(struct where_patterns *patterns, struct sqlite3 *db)
{
	static void (*const calls[])(sqlite3_context *, int,
				     sqlite3_value **) = { through, through_module, matches };
	static const int n_arguments[] = { 1, 1, 2 };
	int result = SQLITE_OK;

	/* SQLite would call a deterministic function before the first row, for which there is no stack. */
	for (int i = 0; where_functions[i] && result == SQLITE_OK; i++)
		result = sqlite3_create_function(db, where_functions[i], n_arguments[i],
						 SQLITE_UTF8, patterns, calls[i], NULL, NULL);
	return result;
}

void where_patterns__release(struct where_patterns *patterns)
{
	for (size_t i = 0; i < patterns->n; i++) {
		pattern__release(&patterns->list[i].pattern);
		free(patterns->list[i].text);
		free(patterns->list[i].stacks);
	}
	free(patterns->list);
}
