// SPDX-License-Identifier: GPL-3.0-or-later
/* The results of `check` as JSON: its own, allocprof-check(1), and github-action-benchmark's. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cleanup.h"
#include "json_text.h"
#include "selection.h"

static int add(json_object *object, const char *key, json_object *value)
{
	if (value && !json_object_object_add(object, key, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

static const char *unit_of(int figure)
{
	bool is_bytes = cost__is_bytes(check__cost(figure)) && figure != BUDGET_LOST_ALLOCATIONS;

	return is_bytes ? "bytes" : figure == BUDGET_CALLS ? "calls" : "allocations";
}

static json_object *name_of(const struct check_result *result, size_t part, int figure)
{
	const struct budget_part *of = check_result__part(result, part);
	_cleanup_(free_ptr) char *name = NULL;

	if (asprintf(&name, "%s: %s%s%s%s%s", result->test->name, budget__figure_name(figure),
		     of ? " " : "", of ? budget_part__words(of->kind) : "", of ? " " : "",
		     of ? of->name : "") < 0) {
		name = NULL;
		return NULL;
	}
	return json_object_new_string(name);
}

static int add_benchmark(json_object *list, const struct check_result *result, size_t part,
			 int figure)
{
	const struct budget_measured *head = &result->figures[CHECK_HEAD][part][figure];
	json_object *object = json_object_new_object();
	char range[48];
	int err = object ? add(object, "name", name_of(result, part, figure)) : -ENOMEM;

	snprintf(range, sizeof(range), "+ %lld", head->greatest - head->value);
	if (!err)
		err = add(object, "unit", json_object_new_string(unit_of(figure)));
	if (!err)
		err = add(object, "value", json_object_new_int64(head->value));
	if (!err && head->greatest != head->value)
		err = add(object, "range", json_object_new_string(range));
	if (!err && !json_object_array_add(list, object))
		return 0;
	json_object_put(object);
	return -ENOMEM;
}

/* Calls @fn for each figure that has a limit, or is compared. */
static int for_each_figure(json_object *list, const struct check_result *result,
			   int (*fn)(json_object *list, const struct check_result *result,
				     size_t part, int figure))
{
	int err = 0;

	for (size_t part = 0; result->figures[CHECK_HEAD] && part <= result->test->n_parts; part++)
		for (int i = 0; i < BUDGET_FIGURES && !err; i++)
			if (check_result__shows(result, part, i))
				err = fn(list, result, part, i);
	return err;
}

int check_benchmark__write(const char *suite, const struct check_result *results, size_t n,
			   char **text, size_t *size)
{
	json_object *list = json_object_new_array();
	int err = list ? 0 : -ENOMEM;

	(void)suite;
	for (size_t i = 0; i < n && !err; i++)
		err = for_each_figure(list, &results[i], add_benchmark);
	if (!err)
		err = json_text__make(list, true, text, size);
	json_object_put(list);
	return err;
}

/* Adds null where there is no value. */
static int add_or_null(json_object *object, const char *key, bool is_there, json_object *value)
{
	return is_there ? add(object, key, value) : -!!json_object_object_add(object, key, NULL);
}

static int add_text(json_object *object, const char *key, const char *text)
{
	return add_or_null(object, key, text, text ? json_object_new_string(text) : NULL);
}

static int add_number(json_object *object, const char *key, __s64 number)
{
	return add(object, key, json_object_new_int64(number));
}

static int add_measured(json_object *object, const struct budget_measured *measured)
{
	int err = add_number(object, "value", measured->value);

	err = err ?: add_number(object, "least", measured->least);
	return err ?: add_number(object, "greatest", measured->greatest);
}

/* Adds how the figure compares with the base; null where it does not. */
static int add_base(json_object *object, const struct check_result *result, size_t part, int figure)
{
	const struct growth_limit *allowed;
	bool is_compared =
		check_result__growth(result, part, figure, &allowed) != CHECK_NOT_COMPARED;
	json_object *base;
	int err;

	if (!is_compared)
		return add_or_null(object, "base", false, NULL);
	base = json_object_new_object();
	err = add(object, "base", base);
	err = err ?: add_measured(base, &result->figures[CHECK_BASE][part][figure]);
	if (allowed->is_share)
		return err ?: add(base, "growth_percent", json_object_new_double(allowed->percent));
	return err ?: add_number(base, "growth", allowed->most);
}

static const char *verdict_of(const struct check_result *result, size_t part, int figure)
{
	const struct growth_limit *allowed;
	enum budget_verdict verdict = check_result__verdict(result, part, figure);
	enum check_growth growth = check_result__growth(result, part, figure, &allowed);

	if (verdict == BUDGET_OVER || growth == CHECK_GREW)
		return "over";
	if (verdict == BUDGET_STALE)
		return "improved";
	return growth == CHECK_NOISE ? "chance" : "within";
}

static int add_figure(json_object *list, const struct check_result *result, size_t part, int figure)
{
	const struct budget_limit *limit = &check_result__limits(result, part)[figure];
	const struct budget_part *of = check_result__part(result, part);
	json_object *object = json_object_new_object();
	__s64 min = 0;
	bool has_min = budget_limit__lower(limit, figure, &min);
	int err = object ? add_text(object, "figure", budget__figure_name(figure)) : -ENOMEM;

	if (!err && of)
		err = add_text(object, budget_part__key(of->kind), of->name);
	err = err ?: add_text(object, "unit", unit_of(figure));
	err = err ?: add_text(object, "verdict", verdict_of(result, part, figure));
	err = err ?: add_measured(object, &result->figures[CHECK_HEAD][part][figure]);
	err = err
		      ?: add_or_null(object, "min", has_min,
				     has_min ? json_object_new_int64(min) : NULL);
	err = err
		      ?: add_or_null(object, "max", limit->has_max,
				     limit->has_max ? json_object_new_int64(limit->max) : NULL);
	err = err ?: add_base(object, result, part, figure);
	if (!err && !json_object_array_add(list, object))
		return 0;
	json_object_put(object);
	return -ENOMEM;
}

static int add_test(json_object *tests, const struct check_result *result)
{
	json_object *object = json_object_new_object(), *list;
	bool has_error = result->error.text[0];
	int err = object ? add_text(object, "name", result->test->name) : -ENOMEM;

	err = err ?: add_text(object, "result", check_result__name(result));
	err = err ?: add_number(object, "status", check_result__status(result));
	err = err ?: add_text(object, "why", has_error ? result->error.text : NULL);
	err = err ?: add_number(object, "runs", result->n_runs);
	err = err ?: add_number(object, "elapsed_ms", result->seconds * 1000);
	err = err ?: add_text(object, "runs_differ", result->spread);
	err = err ?: add_text(object, "details", result->details);
	list = err ? NULL : json_object_new_array();
	err = err ?: add(object, "figures", list);
	if (!err && !has_error)
		err = for_each_figure(list, result, add_figure);
	if (!err && !json_object_array_add(tests, object))
		return 0;
	json_object_put(object);
	return -ENOMEM;
}

int check_json__write(const char *suite, const struct check_result *results, size_t n, char **text,
		      size_t *size)
{
	json_object *root = json_object_new_object(), *tests;
	int err = root ? add_text(root, "schema", "allocprof-check/1") : -ENOMEM;

	err = err ?: add_text(root, "suite", suite);
	err = err ?: add_number(root, "status", check__status(results, n));
	tests = err ? NULL : json_object_new_array();
	err = err ?: add(root, "tests", tests);
	for (size_t i = 0; i < n && !err; i++)
		err = add_test(tests, &results[i]);
	if (!err)
		err = json_text__make(root, true, text, size);
	json_object_put(root);
	return err;
}
