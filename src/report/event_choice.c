// SPDX-License-Identifier: GPL-3.0-or-later
/* Has SQLite evaluate the expression once for each size and thread, and keeps the answers. */
#include "event_choice.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "hash_table.h"
#include "sql_limits.h"
#include "where_internal.h"

#define COLUMNS (WHERE_BIT(WHERE_THREAD) | WHERE_BIT(WHERE_SIZE))
/* The expression is one in brackets, as filter_where__parse() has found out. */
#define SQL                                                                                        \
	"WITH block (size, thread) AS (SELECT CAST(?1 AS NUMERIC), CAST(?2 AS TEXT)) SELECT 1 FROM block WHERE (%s\n)"
/* The processor time for one block. */
#define BLOCK_CPU_NS (1000000000ULL)
/* Programs with more sizes have their expressions evaluated again. */
#define MOST_ANSWERS (1 << 20)

/* The expression holds, or does not, for blocks of a size that a thread of some name allocates. */
struct choice_answer {
	char *thread; /* owned */
	__u64 size_bytes;
	bool has;
};

struct event_choice {
	const char *text;
	sqlite3 *db;
	sqlite3_stmt *statement;
	struct where_patterns patterns; /* of matches() */
	bool asks_stacks;
	struct hash_table index;
	struct choice_answer *answers;
	size_t n_answers, room;
	__u64 seed;
	char failure[256];
};

static int authorize(void *context, int action, const char *first, const char *second,
		     const char *database, const char *view)
{
	struct event_choice *choice = context;

	if (action == SQLITE_FUNCTION && !strncmp(second, "through", strlen("through")))
		choice->asks_stacks = true;
	return choice->asks_stacks ? SQLITE_DENY : SQLITE_OK;
}

static int prepare(struct event_choice *choice, struct error *error)
{
	char *sql = sqlite3_mprintf(SQL, choice->text);
	int result =
		sql && sqlite3_open(":memory:", &choice->db) == SQLITE_OK &&
				where_patterns__define(&choice->patterns, choice->db) == SQLITE_OK
			? SQLITE_OK
			: SQLITE_NOMEM;

	if (result == SQLITE_OK) {
		sqlite3_db_config(choice->db, SQLITE_DBCONFIG_DQS_DML, 1, NULL);
		sqlite3_set_authorizer(choice->db, authorize, choice);
		result = sqlite3_prepare_v2(choice->db, sql, -1, &choice->statement, NULL);
	}
	sqlite3_free(sql);
	if (result == SQLITE_OK)
		return 0;
	if (choice->asks_stacks)
		return error__set(
			error, -EINVAL,
			"--where of a log asks for size and thread only: stacks are known "
			"later; report, html and export select by them");
	return error__set(error, result == SQLITE_NOMEM ? -ENOMEM : -EINVAL, "--where: %.512s",
			  choice->db ? sqlite3_errmsg(choice->db) : "out of memory");
}

int event_choice__new(const char *text, struct event_choice **out, struct error *error)
{
	struct filter_where where;
	struct event_choice *choice;
	int err = filter_where__parse(&where, text, error);

	if (err)
		return err;
	if (where.columns & ~COLUMNS)
		return error__set(
			error, -EINVAL,
			"--where of a log asks for size and thread only: the rest is known "
			"later; report, html and export select by it");
	choice = calloc(1, sizeof(*choice));
	if (!choice)
		return error__set(error, -ENOMEM, "out of memory");
	choice->text = text;
	choice->seed = hash_seed();
	err = prepare(choice, error);
	if (err)
		event_choice__free(choice);
	else
		*out = choice;
	return err;
}

static void forget_answers(struct event_choice *choice)
{
	for (size_t i = 0; i < choice->n_answers; i++)
		free(choice->answers[i].thread);
	choice->n_answers = 0;
	hash_table__release(&choice->index);
	choice->index = (struct hash_table){ 0 };
}

void event_choice__free(struct event_choice *choice)
{
	if (!choice)
		return;
	sqlite3_finalize(choice->statement);
	sqlite3_close_v2(choice->db);
	where_patterns__release(&choice->patterns);
	forget_answers(choice);
	free(choice->answers);
	free(choice);
}

static bool is_answer(const void *owner, __u32 id, const void *key)
{
	const struct event_choice *choice = owner;
	const struct choice_answer *answer = &choice->answers[id - 1], *wanted = key;

	return answer->size_bytes == wanted->size_bytes && !strcmp(answer->thread, wanted->thread);
}

static void keep_answer(struct event_choice *choice, __u64 hash, const char *thread,
			__u64 size_bytes, bool has)
{
	struct choice_answer answer = { .size_bytes = size_bytes, .has = has };

	if (choice->n_answers >= MOST_ANSWERS)
		forget_answers(choice);
	answer.thread = strdup(thread);
	/* What cannot be kept is evaluated again. */
	if (!answer.thread || array__reserve(&choice->answers, &choice->room, choice->n_answers + 1,
					     sizeof(answer))) {
		free(answer.thread);
		return;
	}
	choice->answers[choice->n_answers++] = answer;
	if (hash_table__insert(&choice->index, hash, choice->n_answers))
		free(choice->answers[--choice->n_answers].thread);
}

static bool evaluate(struct event_choice *choice, const char *thread, __u64 size_bytes)
{
	struct sql_limits limits = { 0 };
	sqlite3_stmt *statement = choice->statement;
	int result;

	sql_limits__bound_memory(&limits);
	sql_limits__set(&limits, choice->db, BLOCK_CPU_NS);
	sqlite3_bind_int64(statement, 1, size_bytes <= INT64_MAX ? (__s64)size_bytes : INT64_MAX);
	sqlite3_bind_text(statement, 2, thread, -1, SQLITE_STATIC);
	result = sqlite3_step(statement);
	if (result != SQLITE_ROW && result != SQLITE_DONE && !choice->failure[0])
		snprintf(choice->failure, sizeof(choice->failure), "%s",
			 sqlite3_errmsg(choice->db));
	sqlite3_reset(statement);
	sqlite3_progress_handler(choice->db, 0, NULL, NULL);
	sql_limits__release(&limits);
	return result != SQLITE_DONE;
}

bool event_choice__has(struct event_choice *choice, const char *thread, __u64 size_bytes)
{
	const struct choice_answer key = { .thread = (char *)thread, .size_bytes = size_bytes };
	__u64 hash = hash_string(hash_mix(choice->seed, size_bytes), thread);
	__u32 id = hash_table__find(&choice->index, hash, is_answer, choice, &key);
	bool has;

	if (id)
		return choice->answers[id - 1].has;
	has = evaluate(choice, thread, size_bytes);
	keep_answer(choice, hash, thread, size_bytes, has);
	return has;
}

const char *event_choice__failure(const struct event_choice *choice)
{
	return choice->failure[0] ? choice->failure : NULL;
}
