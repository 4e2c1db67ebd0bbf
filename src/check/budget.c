// SPDX-License-Identifier: GPL-3.0-or-later
#include "budget.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "budget_json.h"
#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "path.h"
#include "pattern.h"
#include "text.h"

#define MAX_NAME_BYTES 200

static const char *const figure_names[BUDGET_FIGURES] = {
	[BUDGET_TOTAL_ALLOCATIONS] = "total_allocations",
	[BUDGET_TOTAL_ALLOCATED_BYTES] = "total_allocated_bytes",
	[BUDGET_REMAINING_ALLOCATIONS] = "remaining_allocations",
	[BUDGET_REMAINING_BYTES] = "remaining_bytes",
	[BUDGET_PEAK_BYTES] = "peak_bytes",
	[BUDGET_TEMPORARY_ALLOCATIONS] = "temporary_allocations",
	[BUDGET_CALLS] = "calls",
	[BUDGET_LOST_ALLOCATIONS] = "lost_allocations",
	[BUDGET_LOST_BYTES] = "lost_bytes",
};

static const char *const condition_names[BUDGET_CONDITIONS] = {
	[BUDGET_MACHINE] = "machine",	[BUDGET_SYSTEM] = "system",   [BUDGET_LIBC] = "libc",
	[BUDGET_COMPILER] = "compiler", [BUDGET_LIBRARY] = "library",
};

const char *budget__condition_name(enum budget_condition condition)
{
	return condition_names[condition];
}

bool budget_limit__is_any(const struct budget_limit *limit)
{
	return limit->has_max || limit->has_min || limit->has_growth;
}

const char *budget__figure_name(enum budget_figure figure)
{
	return figure_names[figure];
}

/* Position of an error in the file, for messages. */
struct budget_context {
	const char *path, *test;
	const char *part; /* NULL: outside of parts */
	enum budget_part_kind part_kind;
	size_t when;	 /* as in struct budget_part */
	const char *key; /* NULL: the position is the test itself */
	struct error *error;
};

static const struct {
	const char *name; /* in errors, and as a key of JSON */
	const char *one;
	const char *words;
} kinds[] = {
	[BUDGET_REGION] = { "region", "region", "in region" },
	[BUDGET_THROUGH] = { "through", "function", "through" },
	[BUDGET_COUNT] = { "count", "counted function", "of" },
	[BUDGET_WHERE] = { "where", "expression", "where" },
};

#define fail(context, ...) fail_at(context, __VA_ARGS__)

__attribute__((format(printf, 2, 3))) static int fail_at(const struct budget_context *context,
							 const char *fmt, ...)
{
	struct error said;
	va_list args;

	va_start(args, fmt);
	vsnprintf(said.text, sizeof(said.text), fmt, args);
	va_end(args);
	return error__set(
		context->error, -EINVAL, "%.256s, test '%.64s'%s%s%s%s%.64s%s%s%.64s%s: %.400s",
		context->path, context->test, context->when ? ", \"when\"" : "",
		context->part ? ", " : "", context->part ? kinds[context->part_kind].name : "",
		context->part ? " '" : "", context->part ? context->part : "",
		context->part ? "'" : "", context->key ? ", \"" : "",
		context->key ? context->key : "", context->key ? "\"" : "", said.text);
}

static int read_text(const struct budget_context *context, json_object *value, const char **text)
{
	if (!json_object_is_type(value, json_type_string))
		return fail(context, "it has to be a string");
	if (strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value))
		return fail(context, "no word of a command and no path can have a zero byte");
	*text = json_object_get_string(value);
	return 0;
}

static int read_command(const struct budget_context *context, json_object *value,
			struct budget_test *test)
{
	size_t n;
	int err = 0;

	if (!json_object_is_type(value, json_type_array) || !json_object_array_length(value))
		return fail(context, "it has to be a list of words, such as [\"./test\", \"-v\"]");
	n = json_object_array_length(value);
	test->command = calloc(n + 1, sizeof(*test->command));
	if (!test->command)
		return error__set(context->error, -ENOMEM, "cannot read %.256s: out of memory",
				  context->path);
	for (size_t i = 0; i < n && !err; i++)
		err = read_text(context, json_object_array_get_idx(value, i), &test->command[i]);
	return err;
}

/* Reads a number that must be @least or more. */
static int read_number(const struct budget_context *context, const char *what, json_object *value,
		       __s64 least, __s64 most, __s64 *number)
{
	__s64 read = json_object_get_int64(value);

	if (!json_object_is_type(value, json_type_int))
		return fail(context, "%s has to be a whole number", what);
	if (read < 0 && least >= 0)
		return fail(context, "%s is %lld; it cannot be negative", what, read);
	if (read < least || read > most)
		return fail(context, "%s is %lld; it has to be from %lld to %lld", what, read,
			    least, most);
	*number = read;
	return 0;
}

static int read_growth(const struct budget_context *context, json_object *value,
		       struct budget_limit *limit)
{
	limit->has_growth = true;
	if (json_object_is_type(value, json_type_int))
		return read_number(context, "growth", value, 0, INT64_MAX - 1, &limit->growth.most);
	if (json_object_is_type(value, json_type_string) &&
	    !growth_limit__parse(json_object_get_string(value), &limit->growth, NULL))
		return 0;
	return fail(context, "growth has to be a share, such as \"1%%\", or a whole number");
}

static int read_limit(const struct budget_context *context, json_object *value,
		      struct budget_limit *limit)
{
	int err = 0;

	if (!json_object_is_type(value, json_type_object))
		return fail(context, "it has to be an object, such as {\"max\": 1000}");
	json_object_object_foreach(value, key, number)
	{
		if (!strcmp(key, "max")) {
			limit->has_max = true;
			err = read_number(context, "max", number, 0, INT64_MAX - 1, &limit->max);
		} else if (!strcmp(key, "min")) {
			limit->has_min = true;
			err = read_number(context, "min", number, 0, INT64_MAX - 1, &limit->min);
		} else if (!strcmp(key, "growth")) {
			err = read_growth(context, number, limit);
		} else {
			err = fail(context,
				   "unknown key \"%.64s\"; limits are \"max\", \"min\" and "
				   "\"growth\"",
				   key);
		}
		if (err)
			return err;
	}
	if (!budget_limit__is_any(limit))
		return fail(context, "it has none of \"max\", \"min\" and \"growth\"");
	if (limit->has_max && limit->has_min && limit->max < limit->min)
		return fail(context, "max %lld is less than min %lld", limit->max, limit->min);
	return 0;
}

static int figure_by_name(const char *name)
{
	for (int i = 0; i < BUDGET_FIGURES; i++)
		if (!strcmp(figure_names[i], name))
			return i;
	return -ENOENT;
}

static int read_runs(const struct budget_context *context, json_object *value, __s64 least,
		     __u64 *runs)
{
	__s64 number;
	int err = read_number(context, "it", value, least, BUDGET_MAX_RUNS, &number);

	if (!err)
		*runs = number;
	return err;
}

/* Returns whether parts of the kind have the figure. */
static bool part_has(enum budget_part_kind kind, int figure)
{
	if (kind == BUDGET_COUNT || figure == BUDGET_CALLS)
		return kind == BUDGET_COUNT && figure == BUDGET_CALLS;
	return kind == BUDGET_THROUGH || figure <= BUDGET_REMAINING_BYTES;
}

static int read_part(const struct budget_context *at, json_object *object, struct budget_part *part)
{
	struct budget_context context = *at;
	const char *ignored;
	int err = 0;

	context.part = part->name;
	context.part_kind = part->kind;
	context.key = NULL;
	if (!json_object_is_type(object, json_type_object))
		return fail(&context, "it has to be an object, such as {\"%s\": {\"max\": 1000}}",
			    budget__figure_name(part->kind == BUDGET_COUNT
							? BUDGET_CALLS
							: BUDGET_TOTAL_ALLOCATIONS));
	json_object_object_foreach(object, key, value)
	{
		int figure = figure_by_name(key);

		context.key = key;
		if (figure >= 0 && part_has(part->kind, figure))
			err = read_limit(&context, value, &part->limits[figure]);
		else if (!strcmp(key, "comment"))
			err = read_text(&context, value, &ignored);
		else if (part->kind == BUDGET_COUNT)
			err = fail(&context,
				   "unknown key; a counted function has calls and comment");
		else
			err = fail(&context,
				   "unknown key; a %s has total_allocations, "
				   "total_allocated_bytes, remaining_allocations, "
				   "remaining_bytes%s and comment",
				   kinds[part->kind].one,
				   part_has(part->kind, BUDGET_PEAK_BYTES)
					   ? ", peak_bytes, temporary_allocations, "
					     "lost_allocations, lost_bytes"
					   : "");
		if (err)
			return err;
	}
	return 0;
}

static int read_parts(const struct budget_context *context, json_object *value,
		      enum budget_part_kind kind, struct budget_test *test)
{
	size_t n =
		json_object_is_type(value, json_type_object) ? json_object_object_length(value) : 0;
	int err;

	if (!n)
		return fail(context, "it has to be an object with a key for each %s",
			    kinds[kind].one);
	err = array__reserve(&test->parts, &test->parts_room, test->n_parts + n,
			     sizeof(*test->parts));
	if (err)
		return error__set(context->error, err, "cannot read %.256s: out of memory",
				  context->path);
	json_object_object_foreach(value, name, object)
	{
		struct budget_part *part = &test->parts[test->n_parts++];

		*part = (struct budget_part){
			.kind = kind, .name = name, .object = object, .when = context->when
		};
		err = read_part(context, object, part);
		if (err)
			return err;
	}
	return 0;
}

static int read_condition(const struct budget_context *context, json_object *value,
			  const char **condition)
{
	regex_t compiled;
	int err = read_text(context, value, condition);

	if (err)
		return err;
	if (!regex__is_bounded(*condition))
		return fail(context, "'%.64s' is too large once its repetitions are written out",
			    *condition);
	if (regcomp(&compiled, *condition, REG_EXTENDED | REG_NOSUB))
		return fail(context, "'%.64s' is no regular expression", *condition);
	regfree(&compiled);
	return 0;
}

static int condition_by_name(const char *name)
{
	for (int i = 0; i < BUDGET_CONDITIONS; i++)
		if (!strcmp(condition_names[i], name))
			return i;
	return -ENOENT;
}

/* Reads a key that tests and their "when" both have. Returns 1 if it is none. */
static int read_shared_key(const struct budget_context *context, json_object *value,
			   struct budget_limit limits[BUDGET_FIGURES], struct budget_test *test)
{
	int figure = figure_by_name(context->key);
	const char *ignored;

	if (figure >= 0 && figure != BUDGET_CALLS)
		return read_limit(context, value, &limits[figure]);
	if (!strcmp(context->key, "counts"))
		return read_parts(context, value, BUDGET_COUNT, test);
	if (!strcmp(context->key, "regions"))
		return read_parts(context, value, BUDGET_REGION, test);
	if (!strcmp(context->key, "through"))
		return read_parts(context, value, BUDGET_THROUGH, test);
	if (!strcmp(context->key, "where"))
		return read_parts(context, value, BUDGET_WHERE, test);
	if (!strcmp(context->key, "comment"))
		return read_text(context, value, &ignored);
	return 1;
}

static int read_when(const struct budget_context *at, json_object *object, struct budget_test *test)
{
	struct budget_when *when = &test->whens[test->n_whens++];
	struct budget_context context = *at;
	bool has_condition = false;
	int err;

	*when = (struct budget_when){ .object = object };
	context.when = test->n_whens;
	context.key = NULL;
	if (!json_object_is_type(object, json_type_object))
		return fail(&context, "each of its entries has to be an object, such as {\"libc\": "
				      "\"2[.]36\", \"total_allocations\": {\"max\": 1000}}");
	json_object_object_foreach(object, key, value)
	{
		int condition = condition_by_name(key);

		context.key = key;
		has_condition |= condition >= 0;
		err = condition >= 0 ? read_condition(&context, value, &when->conditions[condition])
				     : read_shared_key(&context, value, when->limits, test);
		if (err > 0)
			err = fail(&context,
				   "unknown key; here are machine, system, libc, compiler and "
				   "library, which are regular expressions, limits of figures, "
				   "regions, through, counts, where and comment");
		if (err)
			return err;
	}
	context.key = NULL;
	return has_condition ? 0
			     : fail(&context, "an entry has no condition: machine, system, libc, "
					      "compiler or library");
}

static int read_whens(const struct budget_context *context, json_object *value,
		      struct budget_test *test)
{
	size_t n =
		json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
	int err = 0;

	if (!n)
		return fail(context, "it has to be a list of objects with conditions and limits");
	test->whens = calloc(n, sizeof(*test->whens));
	if (!test->whens)
		return error__set(context->error, -ENOMEM, "cannot read %.256s: out of memory",
				  context->path);
	for (size_t i = 0; i < n && !err; i++)
		err = read_when(context, json_object_array_get_idx(value, i), test);
	return err;
}

static int read_key(const struct budget_context *context, json_object *value,
		    struct budget_test *test)
{
	int err = read_shared_key(context, value, test->limits, test);

	if (err <= 0)
		return err;
	if (!strcmp(context->key, "command"))
		return read_command(context, value, test);
	if (!strcmp(context->key, "runs"))
		return read_runs(context, value, 1, &test->runs);
	if (!strcmp(context->key, "warmup"))
		return read_runs(context, value, 0, &test->warmup);
	if (!strcmp(context->key, "percentile")) {
		__s64 number;

		err = read_number(context, "it", value, 0, 100, &number);
		if (!err)
			test->percentile = number;
		return err;
	}
	if (!strcmp(context->key, "directory"))
		return read_text(context, value, &test->directory);
	if (!strcmp(context->key, "when"))
		return read_whens(context, value, test);
	return fail(
		context,
		"unknown key; a test has command, runs, warmup, percentile, directory, regions, "
		"through, counts, where, when, comment, total_allocations, total_allocated_bytes, "
		"remaining_allocations, remaining_bytes, peak_bytes, temporary_allocations, "
		"lost_allocations and lost_bytes");
}

/* Returns whether the name is valid; it becomes part of file names. */
static bool is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > MAX_NAME_BYTES || name[0] == '.')
		return false;
	for (const char *c = name; *c; c++)
		if (*c == '/' || iscntrl((unsigned char)*c))
			return false;
	return true;
}

static int read_test(const char *path, const char *name, json_object *object,
		     struct budget_test *test, struct error *error)
{
	struct budget_context context = { .path = path, .test = name, .error = error };
	int err;

	*test = (struct budget_test){
		.name = name,
		.object = object,
		.runs = BUDGET_DEFAULT_RUNS,
		.warmup = BUDGET_DEFAULT_WARMUP,
	};
	for (int i = 0; i < BUDGET_FIGURES; i++)
		test->owners[i] = object;
	if (!is_name(name))
		return fail(&context,
			    "the name has to be one that files can have: up to %d bytes without "
			    "'/', and no dot first",
			    MAX_NAME_BYTES);
	if (!json_object_is_type(object, json_type_object))
		return fail(&context,
			    "it has to be an object, such as {\"command\": [\"./test\"]}");
	json_object_object_foreach(object, key, value)
	{
		context.key = key;
		err = read_key(&context, value, test);
		if (err)
			return err;
	}
	return 0;
}

static int read_tests(struct budget *budget, json_object *tests, const char *path,
		      struct error *error)
{
	int err;

	if (!json_object_is_type(tests, json_type_object) || !json_object_object_length(tests))
		return error__set(error, -EINVAL,
				  "%.256s has no tests; \"tests\" has to be an object with a key "
				  "for each",
				  path);
	budget->tests = calloc(json_object_object_length(tests), sizeof(*budget->tests));
	if (!budget->tests)
		return error__set(error, -ENOMEM, "cannot read %.256s: out of memory", path);
	json_object_object_foreach(tests, name, test)
	{
		/* The test counts before it is complete, so that an error releases it. */
		err = read_test(path, name, test, &budget->tests[budget->n_tests++], error);
		if (err)
			return err;
	}
	return 0;
}

static int read_root(struct budget *budget, const char *path, struct error *error)
{
	json_object *tests = NULL;

	if (!json_object_is_type(budget->root, json_type_object))
		return error__set(error, -EINVAL,
				  "%.256s is no budget: it has to be {\"tests\": {...}}", path);
	json_object_object_foreach(budget->root, key, value)
	{
		if (!strcmp(key, "tests"))
			tests = value;
		else if (strcmp(key, "comment") != 0)
			return error__set(error, -EINVAL,
					  "%.256s: unknown key \"%.64s\" beside \"tests\"; only "
					  "\"comment\" may be there",
					  path, key);
	}
	return read_tests(budget, tests, path, error);
}

int budget__parse(const char *text, size_t size, const char *path, struct budget *budget,
		  struct error *error)
{
	struct budget made = { 0 };
	int err = budget_json__read(text, size, path, &made.root, error);

	if (!err)
		err = read_root(&made, path, error);
	if (err)
		budget__release(&made);
	else
		*budget = made;
	return err;
}

int budget__read(const char *path, struct budget *budget, struct error *error)
{
	enum {
		MOST = 16 << 20
	};
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(free_ptr) char *text = NULL;
	size_t size = 0;
	int err = fd < 0 ? -errno : text_file__read(fd, MOST, &text, &size);

	if (err)
		return error__set(error, err, "cannot read the budget %.256s: %s", path,
				  strerror(-err));
	if (size == MOST)
		return error__set(error, -EFBIG, "%.256s is too large to be a budget", path);
	return budget__parse(text, size, path, budget, error);
}

/* Returns @value, which @parent now owns, or NULL if there is no memory. */
static json_object *add_member(json_object *parent, const char *key, json_object *value)
{
	if (parent && value && !json_object_object_add(parent, key, value))
		return value;
	json_object_put(value);
	return NULL;
}

static int add_words(json_object *list, char *const words[])
{
	for (; list && *words; words++) {
		json_object *word = json_object_new_string(*words);

		if (!word || json_object_array_add(list, word)) {
			json_object_put(word);
			return -ENOMEM;
		}
	}
	return list ? 0 : -ENOMEM;
}

static int check_words(char *const words[], struct error *error)
{
	for (; *words; words++)
		if (!utf8__is_valid(*words))
			return error__set(error, -EINVAL,
					  "'%.64s' is not UTF-8, as a budget has to be; put the "
					  "command into a script",
					  *words);
	return 0;
}

/* Returns the tests of the budget, which are made if there are none; NULL if there is no memory. */
static json_object *tests_of(json_object *root)
{
	json_object *tests = NULL;

	if (root && json_object_object_get_ex(root, "tests", &tests))
		return tests;
	return add_member(root, "tests", json_object_new_object());
}

int budget__add(struct budget *budget, const char *path, const char *name, char *const command[],
		struct error *error)
{
	struct budget made = { 0 };
	json_object *tests, *test;
	int err = check_words(command, error);

	if (err)
		return err;
	if (!name)
		name = path__name(command[0]);
	made.root = budget->root ? json_object_get(budget->root) : json_object_new_object();
	tests = tests_of(made.root);
	test = add_member(tests, name, json_object_new_object());
	err = add_words(add_member(test, "command", json_object_new_array()), command);
	if (err)
		error__set(error, err, "cannot make a test in %.256s: out of memory", path);
	else
		err = read_root(&made, path, error);
	if (err && test)
		json_object_object_del(tests, name);
	budget__release(err ? &made : budget);
	if (!err)
		*budget = made;
	return err;
}

void budget__release(struct budget *budget)
{
	for (size_t i = 0; i < budget->n_tests; i++) {
		free(budget->tests[i].command);
		free(budget->tests[i].parts);
		free(budget->tests[i].whens);
	}
	free(budget->tests);
	json_object_put(budget->root);
	*budget = (struct budget){ 0 };
}

struct budget_test *budget__find(const struct budget *budget, const char *name, struct error *error)
{
	_cleanup_(free_ptr) char *names = NULL;
	size_t size;
	FILE *text;

	for (size_t i = 0; i < budget->n_tests; i++)
		if (!strcmp(budget->tests[i].name, name))
			return &budget->tests[i];
	text = open_memstream(&names, &size);
	for (size_t i = 0; text && i < budget->n_tests; i++)
		fprintf(text, "%s%s", i ? ", " : "", budget->tests[i].name);
	if (text)
		fclose(text);
	error__set(error, -ENOENT, "no test '%.64s' in the budget; it has %.400s%s", name,
		   names ? names : "others", names && size > 400 ? "..." : "");
	return NULL;
}

static bool has_limits(const struct budget_limit limits[BUDGET_FIGURES])
{
	for (int i = 0; i < BUDGET_FIGURES; i++)
		if (limits[i].has_max || limits[i].has_min)
			return true;
	return false;
}

/* Returns whether it is so for the limits of the test, of a part that is not off, or of a place. */
static bool is_anywhere(const struct budget_test *test,
			bool (*says)(const struct budget_limit limits[BUDGET_FIGURES]))
{
	for (size_t i = 0; i < test->n_parts; i++)
		if (!test->parts[i].is_off && says(test->parts[i].limits))
			return true;
	for (size_t i = 0; i < test->n_whens; i++)
		if (says(test->whens[i].limits))
			return true;
	return says(test->limits);
}

bool budget_test__has_limits(const struct budget_test *test)
{
	return is_anywhere(test, has_limits);
}

static bool limits_growth(const struct budget_limit limits[BUDGET_FIGURES])
{
	for (int i = 0; i < BUDGET_FIGURES; i++)
		if (limits[i].has_growth)
			return true;
	return false;
}

bool budget_test__limits_growth(const struct budget_test *test)
{
	return is_anywhere(test, limits_growth);
}

static bool limits_lost(const struct budget_limit limits[BUDGET_FIGURES])
{
	return budget_limit__is_any(&limits[BUDGET_LOST_ALLOCATIONS]) ||
	       budget_limit__is_any(&limits[BUDGET_LOST_BYTES]);
}

bool budget_test__limits_lost(const struct budget_test *test)
{
	return is_anywhere(test, limits_lost);
}

const char *budget_part__key(enum budget_part_kind kind)
{
	return kinds[kind].name;
}

const char *budget_part__words(enum budget_part_kind kind)
{
	return kinds[kind].words;
}

bool budget_test__has_part(const struct budget_test *test, enum budget_part_kind kind)
{
	for (size_t i = 0; i < test->n_parts; i++)
		if (test->parts[i].kind == kind && !test->parts[i].is_off)
			return true;
	return false;
}
