// SPDX-License-Identifier: GPL-3.0-or-later
/* Judges figures by the limits of a budget, and writes new limits into its file. */
#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "budget.h"
#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "json_text.h"
#include "new_file.h"

/* As in SwiftNIO: max - 1000 < total <= max, and limits from 1000 on are multiples of 50. */
#define SLACK_BELOW 1000
#define SLACK_STEP  50

bool budget_limit__lower(const struct budget_limit *limit, enum budget_figure figure, __s64 *min)
{
	if (limit->has_min)
		*min = limit->min;
	else if (figure == BUDGET_TOTAL_ALLOCATIONS && limit->has_max && limit->max >= SLACK_BELOW)
		*min = limit->max - SLACK_BELOW + 1;
	else
		return false;
	return true;
}

enum budget_verdict budget_limit__judge(const struct budget_limit *limit, enum budget_figure figure,
					__s64 value)
{
	__s64 min;

	if (limit->has_max && value > limit->max)
		return BUDGET_OVER;
	if (budget_limit__lower(limit, figure, &min) && value < min)
		return BUDGET_STALE;
	return BUDGET_WITHIN;
}

struct budget_limit budget__slack(__s64 value)
{
	struct budget_limit limit = { .has_max = true, .has_min = true };

	/* The program freed more than it allocated, for example blocks from before the start. */
	if (value < 0)
		return (struct budget_limit){ .has_max = true };
	limit.max = limit.min = value;
	if (value >= SLACK_BELOW) {
		limit.max = (value / SLACK_STEP + 1) * SLACK_STEP;
		limit.min = limit.max - SLACK_BELOW + 1;
	}
	return limit;
}

/* Runs that differ may differ by as much again beyond the greatest of them. */
struct budget_limit budget__slack_of(const struct budget_measured *measured)
{
	struct budget_limit limit = budget__slack(measured->value);
	__s64 spread = measured->greatest - measured->value;

	if (spread > 0)
		limit.max = budget__slack(measured->greatest + spread).max;
	if (spread > 0 && limit.has_min && limit.min > measured->least - spread)
		limit.min = measured->least > spread ? measured->least - spread : 0;
	return limit;
}

int budget_test__read_environment(struct budget_test *test, struct error *error)
{
	static const char prefix[] = "MAX_ALLOCS_ALLOWED_";
	struct budget_limit *limit = &test->limits[BUDGET_TOTAL_ALLOCATIONS];
	char variable[sizeof(prefix) + 256];
	const char *text;
	long long max;
	char *end;

	snprintf(variable, sizeof(variable), "%s%s", prefix, test->name);
	for (char *c = variable; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
	text = getenv(variable);
	if (!text)
		return 0;
	errno = 0;
	max = strtoll(text, &end, 10);
	if (errno || !isdigit((unsigned char)text[0]) || *end)
		return error__set(error, -EINVAL,
				  "'%.64s' in the environment variable %s is no number of "
				  "allocations",
				  text, variable);
	*limit = (struct budget_limit){ .has_max = true, .max = max };
	for (size_t i = 0; i < test->n_whens; i++)
		test->whens[i].limits[BUDGET_TOTAL_ALLOCATIONS] = (struct budget_limit){ 0 };
	return 0;
}

/* Sets a number. An existing key keeps its position. */
static int set_number(json_object *object, const char *key, __s64 value, bool *changed)
{
	json_object *old = json_object_object_get(object, key), *fresh;

	if (old && json_object_get_int64(old) == value)
		return 0;
	*changed = true;
	if (old)
		return json_object_set_int64(old, value) ? 0 : -EINVAL;
	fresh = json_object_new_int64(value);
	if (!fresh || json_object_object_add(object, key, fresh)) {
		json_object_put(fresh);
		return -ENOMEM;
	}
	return 0;
}

/* Updates the limit @old of a figure in @parent, a test, a part or an entry of "when". */
static int update_limit(json_object *parent, struct budget_limit *old, int figure,
			const struct budget_measured *measured, bool *changed)
{
	const char *name = budget__figure_name(figure);
	__s64 value = measured->value;
	struct budget_limit fresh = budget__slack_of(measured);
	bool is_new = !old->has_max && !old->has_min;
	json_object *object = json_object_object_get(parent, name);
	int err = 0;

	if (!object) {
		object = json_object_new_object();
		if (!object || json_object_object_add(parent, name, object)) {
			json_object_put(object);
			return -ENOMEM;
		}
	}
	/* Kinds of limits that the file lacks are not added, nor is a lower limit of 0, which has
	 * no effect. */
	fresh.has_max = old->has_max || is_new;
	fresh.has_growth = old->has_growth;
	fresh.growth = old->growth;
	if (!old->has_min && (!is_new || value >= SLACK_BELOW))
		fresh.has_min = false;
	if (fresh.has_max)
		err = set_number(object, "max", fresh.max, changed);
	if (!err && fresh.has_min)
		err = set_number(object, "min", fresh.min, changed);
	else if (!err && old->has_min) {
		*changed = true;
		/* A lower limit cannot be below 0, and budget__parse() refuses an object without
		 * limits. */
		if (fresh.has_max || fresh.has_growth)
			json_object_object_del(object, "min");
		else
			json_object_object_del(parent, name);
	}
	if (!err)
		*old = fresh;
	return err;
}

/* Updates limits. @defaults is a mask of the figures that get a limit if none has one. */
static int update_limits(json_object *const owners[BUDGET_FIGURES],
			 struct budget_limit limits[BUDGET_FIGURES],
			 const struct budget_measured measured[BUDGET_FIGURES],
			 unsigned int defaults, bool *changed)
{
	bool has_growth = false;
	unsigned int wanted = 0;
	int err = 0;

	*changed = false;
	for (int i = 0; i < BUDGET_FIGURES; i++) {
		has_growth |= limits[i].has_growth;
		if (limits[i].has_max || limits[i].has_min)
			wanted |= 1U << i;
	}
	if (!wanted && !has_growth)
		wanted = defaults;
	for (int i = 0; i < BUDGET_FIGURES && !err; i++)
		if (wanted >> i & 1)
			err = update_limit(owners[i], &limits[i], i, &measured[i], changed);
	return err;
}

int budget_test__update(struct budget_test *test,
			const struct budget_measured measured[BUDGET_FIGURES], bool *changed)
{
	unsigned int defaults = 1U << BUDGET_TOTAL_ALLOCATIONS | 1U << BUDGET_REMAINING_ALLOCATIONS;

	return update_limits(test->owners, test->limits, measured, test->n_parts ? 0 : defaults,
			     changed);
}

int budget_part__update(struct budget_part *part,
			const struct budget_measured measured[BUDGET_FIGURES], bool *changed)
{
	json_object *owners[BUDGET_FIGURES];

	for (int i = 0; i < BUDGET_FIGURES; i++)
		owners[i] = part->object;
	return update_limits(
		owners, part->limits, measured,
		1U << (part->kind == BUDGET_COUNT ? BUDGET_CALLS : BUDGET_TOTAL_ALLOCATIONS),
		changed);
}

static int fail_to_write(struct error *error, int err, const char *path)
{
	return error__set(error, err, "cannot write the budget %.256s: %s", path,
			  new_file__reason(err));
}

int budget__check_writable(const char *path, struct error *error)
{
	_cleanup_(new_file__release) struct new_file file = NEW_FILE_NONE;
	int err = new_file__begin_output(&file, path);

	return err ? fail_to_write(error, err, path) : 0;
}

static int write_text(struct new_file *file, const char *text, size_t size)
{
	int err = new_file__empty(file);

	if (!err)
		err = fd__write_all(file->fd, text, size);
	if (!err)
		err = fd__write_all(file->fd, "\n", 1);
	if (!err && fsync(file->fd) && errno != EINVAL)
		err = -errno;
	return err ? err : new_file__finish(file);
}

int budget__write(const struct budget *budget, const char *path, struct error *error)
{
	_cleanup_(new_file__release) struct new_file file = NEW_FILE_NONE;
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	int err = json_text__make(budget->root, true, &text, &size);

	if (!err)
		err = new_file__begin_output(&file, path);
	if (!err)
		err = write_text(&file, text, size);
	return err ? fail_to_write(error, err, path) : 0;
}
