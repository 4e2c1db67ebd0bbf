// SPDX-License-Identifier: GPL-3.0-or-later
/* Parses limits of memory, and compares what a session's processes use with them. */
#include "dump_limits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "options.h"
#include "session.h"

/* A limit has been left when less than this share of it is used. */
#define LEFT_SHARE 0.9

static int fail_limit(const char *text, struct error *error)
{
	return error__set(error, -EINVAL,
			  "'%.64s' is no limit; --dump-at takes rss=SIZE, live=SIZE, "
			  "growth=SIZE/TIME, cgroup=N%%, oom, peak, signal=USR1 and signal=USR2",
			  text);
}

static int parse_growth(struct dump_limit *limit, char *value, struct error *error)
{
	char *slash = strchr(value, '/');

	if (!slash)
		return fail_limit(limit->text, error);
	*slash = '\0';
	return number__parse_size(value, &limit->bytes, error)
		       ?: number__parse_duration(slash + 1, &limit->window_ns, error);
}

static int parse_signal(struct dump_limit *limit, const char *value, struct error *error)
{
	if (!strncmp(value, "SIG", 3))
		value += 3;
	limit->signal_number = !strcmp(value, "USR1")	? SIGUSR1
			       : !strcmp(value, "USR2") ? SIGUSR2
							: 0;
	return limit->signal_number ? 0 : fail_limit(limit->text, error);
}

/* A limit of 0 would be reached at each look. */
static int check_limit(const struct dump_limit *limit, struct error *error)
{
	bool has_bytes = limit->kind == DUMP_AT_RSS || limit->kind == DUMP_AT_LIVE ||
			 limit->kind == DUMP_AT_GROWTH;

	if ((has_bytes && !limit->bytes) || (limit->kind == DUMP_AT_GROUP && limit->share <= 0))
		return fail_limit(limit->text, error);
	return 0;
}

static int parse_value(struct dump_limit *limit, char *value, struct error *error)
{
	switch (limit->kind) {
	case DUMP_AT_RSS:
	case DUMP_AT_LIVE:
		return number__parse_size(value, &limit->bytes, error);
	case DUMP_AT_GROWTH:
		return parse_growth(limit, value, error);
	case DUMP_AT_GROUP:
		return number__parse_share(value, &limit->share, error);
	case DUMP_AT_SIGNAL:
		return parse_signal(limit, value, error);
	case DUMP_AT_OOM:
	case DUMP_AT_PEAK:
		break;
	}
	return 0;
}

static int parse_limit(const char *text, struct dump_limit *limit, struct error *error)
{
	static const struct {
		const char *name;
		enum dump_limit_kind kind;
	} names[] = {
		{ "rss=", DUMP_AT_RSS },       { "live=", DUMP_AT_LIVE },
		{ "growth=", DUMP_AT_GROWTH }, { "cgroup=", DUMP_AT_GROUP },
		{ "signal=", DUMP_AT_SIGNAL },
	};
	char value[sizeof(limit->text)];

	*limit = (struct dump_limit){ .kind = DUMP_AT_OOM };
	if (strlen(text) >= sizeof(limit->text))
		return fail_limit(text, error);
	strcpy(limit->text, text);
	if (!strcmp(text, "peak"))
		limit->kind = DUMP_AT_PEAK;
	if (!strcmp(text, "oom") || !strcmp(text, "peak"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i].name);

		if (strncmp(text, names[i].name, len) != 0)
			continue;
		limit->kind = names[i].kind;
		strcpy(value, text + len);
		return parse_value(limit, value, error) ?: check_limit(limit, error);
	}
	return fail_limit(text, error);
}

int dump_limits__parse(struct dump_limits *limits, const char *text, struct error *error)
{
	char words[1024], *rest = words, *word;
	int err = 0;

	if (strlen(text) >= sizeof(words))
		return fail_limit(text, error);
	strcpy(words, text);
	while (!err && (word = strsep(&rest, ","))) {
		if (limits->n == DUMP_LIMITS_MAX)
			return error__set(error, -EINVAL, "--dump-at takes at most %d limits",
					  DUMP_LIMITS_MAX);
		err = parse_limit(word, &limits->limits[limits->n], error);
		if (!err)
			limits->n++;
	}
	return err;
}

int dump_limits__parse_begin(const char *text, __u64 *rss_bytes, struct error *error)
{
	struct dump_limit limit;

	if (parse_limit(text, &limit, NULL) || limit.kind != DUMP_AT_RSS)
		return error__set(error, -EINVAL, "'%.64s' is no limit; --begin-at takes rss=SIZE",
				  text);
	*rss_bytes = limit.bytes;
	return 0;
}

bool dump_limits__has(const struct dump_limits *limits, enum dump_limit_kind kind)
{
	for (unsigned int i = 0; i < limits->n; i++)
		if (limits->limits[i].kind == kind)
			return true;
	return false;
}

/* Returns whether the limit was not reached before, and is now. */
static bool goes_over(struct dump_limit *limit, __u64 bytes, __u64 most)
{
	bool was_over = limit->is_over;

	limit->is_over = bytes >= most || (was_over && bytes >= most * LEFT_SHARE);
	return limit->is_over && !was_over;
}

/* Returns whether a count has risen since the last time. */
static bool counts_on(struct dump_limit *limit, __u64 count)
{
	__u64 last = limit->count;

	limit->count = count;
	return count > last;
}

/* Forgets parts of which all is longer ago than the time. A part ends where the next one begins. */
static void forget_parts(struct dump_limit *limit, __u64 now_ns)
{
	while (limit->n_parts > 1 &&
	       limit->begins_ns[(limit->part_index + 1) % DUMP_LIMIT_PARTS] + limit->window_ns <
		       now_ns) {
		limit->part_index = (limit->part_index + 1) % DUMP_LIMIT_PARTS;
		limit->n_parts--;
	}
}

static void add_part(struct dump_limit *limit, __u64 bytes, __u64 now_ns)
{
	unsigned int newest;

	if (limit->n_parts == DUMP_LIMIT_PARTS) {
		limit->part_index = (limit->part_index + 1) % DUMP_LIMIT_PARTS;
		limit->n_parts--;
	}
	newest = (limit->part_index + limit->n_parts++) % DUMP_LIMIT_PARTS;
	limit->least[newest] = bytes;
	limit->begins_ns[newest] = now_ns;
}

/* Returns the least resident memory within the time, and adds the present one to its newest part. */
static __u64 least_within(struct dump_limit *limit, __u64 bytes, __u64 now_ns)
{
	unsigned int newest =
		(limit->part_index + limit->n_parts + DUMP_LIMIT_PARTS - 1) % DUMP_LIMIT_PARTS;
	__u64 least = bytes;

	if (!limit->n_parts ||
	    now_ns >= limit->begins_ns[newest] + limit->window_ns / (DUMP_LIMIT_PARTS - 1))
		add_part(limit, bytes, now_ns);
	else if (bytes < limit->least[newest])
		limit->least[newest] = bytes;
	forget_parts(limit, now_ns);
	for (unsigned int i = 0; i < limit->n_parts; i++) {
		__u64 of_part = limit->least[(limit->part_index + i) % DUMP_LIMIT_PARTS];

		if (of_part < least)
			least = of_part;
	}
	return least;
}

static bool has_grown(struct dump_limit *limit, __u64 bytes, __u64 now_ns)
{
	if (bytes - least_within(limit, bytes, now_ns) < limit->bytes)
		return false;
	/* The next growth is measured from here on. */
	limit->n_parts = 0;
	(void)least_within(limit, bytes, now_ns);
	return true;
}

static bool is_reached(struct dump_limit *limit, const struct session_use *use, __u64 now_ns)
{
	switch (limit->kind) {
	case DUMP_AT_RSS:
		return goes_over(limit, use->rss_bytes, limit->bytes);
	case DUMP_AT_LIVE:
		return goes_over(limit, use->live_bytes, limit->bytes);
	case DUMP_AT_GROWTH:
		return has_grown(limit, use->rss_bytes, now_ns);
	case DUMP_AT_GROUP:
		return use->group_limit_bytes &&
		       goes_over(limit, use->group_bytes, use->group_limit_bytes * limit->share);
	case DUMP_AT_OOM:
		return counts_on(limit, use->oom_kills);
	case DUMP_AT_SIGNAL:
		return counts_on(limit, use->signals[limit->signal_number == SIGUSR2]);
	case DUMP_AT_PEAK:
		break;
	}
	return false;
}

/* Returns whether @word is in a list with commas between. */
static bool is_in(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (!strncmp(list, word, len) && (!list[len] || list[len] == ','))
			return true;
	return false;
}

void dump_limits__add_reached(struct dump_limits *limits, const struct session_use *use,
			      __u64 now_ns, char text[DUMP_LIMITS_TEXT])
{
	for (unsigned int i = 0; i < limits->n; i++) {
		struct dump_limit *limit = &limits->limits[i];
		size_t len = strlen(text);

		if (is_reached(limit, use, now_ns) && !is_in(text, limit->text))
			snprintf(text + len, DUMP_LIMITS_TEXT - len, "%s%s", len ? "," : "",
				 limit->text);
	}
}
