// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * SQLite's table "blocks": the counts of a profile, their live and freed blocks, or their lifetimes, whichever an
 * expression can tell apart; or single blocks of an event log.
 *
 * A time is known by epoch. What an expression compares with a constant, the table compares itself, with the earliest and the
 * latest time at once; all else is evaluated for each of both.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "event_blocks.h"
#include "profile.h"
#include "profile_runs.h"
#include "stack_groups.h"
#include "where_internal.h"

const char *const where_columns[] = {
	[WHERE_THREAD] = "thread",
	[WHERE_PROCESS] = "process",
	[WHERE_PID] = "pid",
	[WHERE_ARGUMENTS] = "arguments",
	[WHERE_CGROUP] = "cgroup",
	[WHERE_RUN] = "run",
	[WHERE_DURATION] = "duration",
	[WHERE_FUNCTION] = "function",
	[WHERE_STACK] = "stack",
	[WHERE_CALLER] = "caller",
	[WHERE_MODULE] = "module",
	[WHERE_TYPE] = "type",
	[WHERE_SIZE] = "size",
	[WHERE_ALLOCATIONS] = "allocations",
	[WHERE_LEAKED] = "leaked",
	[WHERE_ALIVE] = "alive",
	[WHERE_FREED] = "freed",
	[WHERE_AGE] = "age",
	[WHERE_LIFETIME] = "lifetime",
	[WHERE_ALIVE_FOR] = "alive_for",
	[WHERE_ALLOCATED_AT] = "allocated_at",
	[WHERE_FREED_AT] = "freed_at",
	[WHERE_FREED_AFTER] = "freed_after",
	[WHERE_COLUMNS] = NULL,
};

/* SQLite casts pointers to these to ones to their first members. */
struct table {
	sqlite3_vtab base;
	struct where_scan *scan;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct where_scan *scan;
};

static struct where_scan *scan_of(sqlite3_vtab_cursor *cursor)
{
	return ((struct cursor *)cursor)->scan;
}

/* Reads the size that a count's blocks have on average, since single ones are known only by bucket. */
static void read_size(struct where_scan *scan)
{
	const struct profile *profile = scan->data->profile;
	const struct profile_count *count = &profile->counts[scan->count - 1];
	struct profile_blocks blocks;
	bool has_blocks;
	__u64 size_bytes;

	if (scan->sized_count == scan->count)
		return;
	has_blocks = profile__count_blocks(profile, count, &blocks);
	scan->allocations = has_blocks ? blocks.allocations : count->calls;
	size_bytes = has_blocks ? blocks.size_bytes : count->size_bytes;
	scan->size = scan->allocations ? (double)size_bytes / scan->allocations : 0;
	scan->sized_count = scan->count;
}

static const struct run_clock *clock_of(const struct where_scan *scan)
{
	const struct profile *profile = scan->data->profile;

	return &scan->data->clocks[profile__count_run(profile, &profile->counts[scan->count - 1]) -
				   1];
}

static __u64 between(__u64 from, __u64 to)
{
	return to > from ? to - from : 0;
}

/* Returns the value of a column of times for a block that was allocated and freed then, or false for NULL. */
static bool time_at(const struct where_scan *scan, enum where_column column, __u64 born_ns,
		    __u64 died_ns, double *value)
{
	__u64 end_ns = clock_of(scan)->end_ns;

	switch (column) {
	case WHERE_AGE:
		*value = between(born_ns, end_ns) / 1e9;
		return scan->is_alive || scan->is_leaked;
	case WHERE_LIFETIME:
	case WHERE_ALIVE_FOR:
		*value = between(born_ns, died_ns) / 1e9;
		return column == WHERE_ALIVE_FOR || !scan->is_alive;
	case WHERE_ALLOCATED_AT:
		*value = born_ns / 1e9;
		return true;
	case WHERE_FREED_AT:
		*value = died_ns / 1e9;
		return !scan->is_alive;
	default:
		*value = end_ns ? (double)died_ns / end_ns : 0;
		return !scan->is_alive;
	}
}

/* Returns whether a value from @least to @most is within the bound. */
static enum answer compare(int op, double least, double most, double bound)
{
	bool all, any;

	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_GT:
		all = least > bound;
		any = most > bound;
		break;
	case SQLITE_INDEX_CONSTRAINT_GE:
		all = least >= bound;
		any = most >= bound;
		break;
	case SQLITE_INDEX_CONSTRAINT_LT:
		all = most < bound;
		any = least < bound;
		break;
	default:
		all = most <= bound;
		any = least <= bound;
		break;
	}
	return all ? YES : any ? UNSURE : NO;
}

static enum answer judge_bounds(const struct where_scan *scan)
{
	enum answer answer = YES;

	for (size_t i = 0; i < scan->n_bounds; i++) {
		const struct where_bound *bound = &scan->bounds[i];
		bool is_length = WHERE_BIT(bound->column) & WHERE_LENGTH_COLUMNS;
		double first, last;
		enum answer one;

		/* The longest life begins early and ends late; all else grows or falls with both. */
		if (!time_at(scan, bound->column, scan->born_ns[is_length], scan->died_ns[0],
			     &first))
			return NO;
		time_at(scan, bound->column, scan->born_ns[!is_length], scan->died_ns[1], &last);
		one = first < last ? compare(bound->op, first, last, bound->value)
				   : compare(bound->op, last, first, bound->value);
		if (one < answer)
			answer = one;
	}
	return answer;
}

/* Returns whether the corner is one that the expression can tell from those before it. */
static bool is_corner(const struct where_scan *scan, int corner)
{
	bool late_birth = corner & 1, late_death = corner & 2;
	bool births = scan->columns & WHERE_BIRTH_COLUMNS,
	     deaths = scan->columns & WHERE_DEATH_COLUMNS;
	bool lengths = scan->columns & WHERE_LENGTH_COLUMNS;

	/* The shortest and the longest. */
	if (lengths && !births && !deaths)
		return late_birth != late_death;
	if (late_birth && (!(births || lengths) || scan->born_ns[0] == scan->born_ns[1]))
		return false;
	return !late_death || ((deaths || lengths) && scan->died_ns[0] != scan->died_ns[1]);
}

static bool next_corner(struct where_scan *scan)
{
	while (++scan->corner < 4) {
		if (is_corner(scan, scan->corner)) {
			scan->n_corners++;
			return true;
		}
	}
	return false;
}

static void end_cell(struct where_scan *scan)
{
	enum answer answer = scan->n_true == scan->n_corners ? YES : scan->n_true ? UNSURE : NO;

	scan->answers[scan->index] = answer < scan->bounded ? answer : scan->bounded;
}

static bool read_cell(struct where_scan *scan)
{
	const struct run_clock *clock;
	struct profile_lifetime cell;

	if (!profile__next_lifetime(scan->data->profile, &scan->next_cell, &cell))
		return false;
	scan->count = cell.count;
	clock = clock_of(scan);
	scan->is_alive = cell.died == PROFILE_LIVE;
	scan->is_leaked = exit_frees__leaves(&scan->data->exit_frees, &cell);
	scan->born_ns[0] = run_clock__epoch_start(clock, cell.born);
	scan->born_ns[1] = run_clock__epoch_last(clock, cell.born);
	scan->died_ns[0] =
		scan->is_alive ? clock->end_ns : run_clock__epoch_start(clock, cell.died);
	scan->died_ns[1] = scan->is_alive ? clock->end_ns : run_clock__epoch_last(clock, cell.died);
	return true;
}

/* The times of a single block are known. */
static bool read_block(struct where_scan *scan)
{
	const struct event_block *block = &scan->data->blocks[scan->index];
	const struct run_clock *clock;
	__u64 epoch_ns;

	if (scan->index >= scan->data->n_blocks)
		return false;
	scan->count = block->count;
	clock = clock_of(scan);
	epoch_ns = clock->epoch_ns ?: 1;
	scan->is_alive = block->fate == BLOCK_ALIVE;
	scan->is_leaked = exit_frees__leaves(
		&scan->data->exit_frees,
		&(struct profile_lifetime){
			.born = block->born_ns / epoch_ns,
			.died = scan->is_alive ? PROFILE_LIVE : block->died_ns / epoch_ns,
		});
	scan->born_ns[0] = scan->born_ns[1] = block->born_ns;
	scan->died_ns[0] = scan->died_ns[1] = scan->is_alive ? clock->end_ns : block->died_ns;
	return true;
}

static bool read_timed(struct where_scan *scan)
{
	if (!(scan->level == WHERE_BLOCKS ? read_block(scan) : read_cell(scan)))
		return false;
	scan->corner = -1;
	scan->n_corners = scan->n_true = 0;
	scan->bounded = judge_bounds(scan);
	return true;
}

static void advance_in_timed(struct where_scan *scan, bool is_first)
{
	if (!is_first) {
		if (next_corner(scan))
			return;
		end_cell(scan);
		scan->index++;
	}
	while (read_timed(scan)) {
		if (scan->bounded != NO && next_corner(scan))
			return;
		scan->answers[scan->index++] = NO;
	}
	scan->is_over = true;
}

static void advance_in_counts(struct where_scan *scan, bool is_first)
{
	bool has_halves = scan->level == WHERE_FATES;

	scan->index += !is_first;
	scan->is_over = scan->index >= scan->data->profile->n_counts << has_halves;
	scan->count = (scan->index >> has_halves) + 1;
	scan->is_alive = scan->is_leaked = !(scan->index & 1);
}

/* Goes to the next row, or to the first one. */
static void advance(struct where_scan *scan, bool is_first)
{
	if (scan->level >= WHERE_CELLS)
		advance_in_timed(scan, is_first);
	else
		advance_in_counts(scan, is_first);
	if (!scan->is_over)
		scan->stack = scan->data->profile->counts[scan->count - 1].stack;
}

void where_scan__take(struct where_scan *scan)
{
	if (scan->level >= WHERE_CELLS)
		scan->n_true++;
	else
		scan->answers[scan->index] = YES;
}

static int connect_table(sqlite3 *db, void *context, int n, const char *const *words,
			 sqlite3_vtab **made, char **error)
{
	char sql[1024] = "CREATE TABLE blocks(";
	struct table *table;
	int result;

	for (int i = 0; i < WHERE_COLUMNS; i++) {
		size_t len = strlen(sql);
		bool is_text =
			WHERE_BIT(i) & (WHERE_BIT(WHERE_THREAD) | WHERE_BIT(WHERE_PROCESS) |
					WHERE_BIT(WHERE_ARGUMENTS) | WHERE_BIT(WHERE_CGROUP) |
					WHERE_BIT(WHERE_FUNCTION) | WHERE_BIT(WHERE_CALLER) |
					WHERE_BIT(WHERE_MODULE) | WHERE_BIT(WHERE_TYPE));

		snprintf(sql + len, sizeof(sql) - len, "%s%s %s", i ? ", " : "", where_columns[i],
			 is_text ? "TEXT" : "NUMERIC");
	}
	strcat(sql, ")");
	result = sqlite3_declare_vtab(db, sql);
	table = result == SQLITE_OK ? sqlite3_malloc(sizeof(*table)) : NULL;
	if (!table)
		return result == SQLITE_OK ? SQLITE_NOMEM : result;
	*table = (struct table){ .scan = context };
	*made = &table->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
	sqlite3_free(table);
	return SQLITE_OK;
}

/* Returns whether the table compares this itself: a time with a constant number. */
static bool is_bound(sqlite3_index_info *info, int i)
{
	const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
	sqlite3_value *value;

	if (!constraint->usable || constraint->iColumn < 0 ||
	    !(WHERE_BIT(constraint->iColumn) & WHERE_TIME_COLUMNS))
		return false;
	switch (constraint->op) {
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		break;
	default:
		return false;
	}
	return sqlite3_vtab_rhs_value(info, i, &value) == SQLITE_OK &&
	       (sqlite3_value_type(value) == SQLITE_INTEGER ||
		sqlite3_value_type(value) == SQLITE_FLOAT);
}

static int choose_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
	char plan[2 * WHERE_MAX_BOUNDS + 1];
	int n = 0;

	for (int i = 0; i < info->nConstraint && n < WHERE_MAX_BOUNDS; i++) {
		if (!is_bound(info, i))
			continue;
		plan[2 * n] = 'a' + info->aConstraint[i].iColumn;
		plan[2 * n + 1] = info->aConstraint[i].op;
		info->aConstraintUsage[i].argvIndex = ++n;
		info->aConstraintUsage[i].omit = 1;
	}
	plan[2 * n] = '\0';
	info->idxStr = sqlite3_mprintf("%s", plan);
	info->needToFreeIdxStr = 1;
	/* Whatever is bounded costs as much, so that SQLite reads the table once and not for each side of an OR. */
	info->estimatedCost = 1e6;
	info->estimatedRows = 1000000;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **made)
{
	struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));

	if (!cursor)
		return SQLITE_NOMEM;
	*cursor = (struct cursor){ .scan = ((struct table *)table)->scan };
	*made = &cursor->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
	sqlite3_free(cursor);
	return SQLITE_OK;
}

static int begin_scan(sqlite3_vtab_cursor *cursor, int number, const char *plan, int n,
		      sqlite3_value **values)
{
	struct where_scan *scan = scan_of(cursor);

	scan->n_bounds = n;
	for (int i = 0; i < n; i++)
		scan->bounds[i] = (struct where_bound){ plan[2 * i] - 'a', plan[2 * i + 1],
							sqlite3_value_double(values[i]) };
	scan->index = scan->next_cell = scan->sized_count = 0;
	scan->is_over = false;
	advance(scan, true);
	return SQLITE_OK;
}

static int move_cursor(sqlite3_vtab_cursor *cursor)
{
	advance(scan_of(cursor), false);
	return SQLITE_OK;
}

static int is_over(sqlite3_vtab_cursor *cursor)
{
	return scan_of(cursor)->is_over;
}

static int get_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id)
{
	*id = scan_of(cursor)->index;
	return SQLITE_OK;
}

static void set_text(sqlite3_context *context, const char *text)
{
	sqlite3_result_text(context, text, -1, SQLITE_STATIC);
}

static void set_group(const struct where_scan *scan, sqlite3_context *context,
		      enum where_column column)
{
	const struct stack_groups *groups = scan->data->groups;
	const struct stack_group *group = &groups->groups[groups->by_stack[scan->stack - 1]];
	__u32 innermost = groups->view->innermost[scan->stack - 1];
	/* What rows show may be types. */
	const struct stack_label *label =
		&groups->labels[innermost ? innermost - 1 : group->frames[0]];
	const char *type = stack_view__type(groups->view, scan->stack);

	if (column == WHERE_STACK)
		sqlite3_result_int64(context, group->id);
	else if (column == WHERE_CALLER)
		set_text(context, label->text);
	else if (column == WHERE_TYPE && type)
		set_text(context, type);
	else if (column == WHERE_MODULE && label->module)
		set_text(context, profile_module__basename(
					  &scan->data->profile->modules[label->module - 1]));
}

static void set_size(struct where_scan *scan, sqlite3_context *context, enum where_column column)
{
	read_size(scan);
	if (column == WHERE_SIZE && scan->level == WHERE_BLOCKS)
		sqlite3_result_int64(context, scan->data->blocks[scan->index].size_bytes);
	else if (column == WHERE_SIZE)
		sqlite3_result_double(context, scan->size);
	else
		sqlite3_result_int64(context, scan->allocations);
}

static void set_time(const struct where_scan *scan, sqlite3_context *context,
		     enum where_column column)
{
	double value;

	if (time_at(scan, column, scan->born_ns[scan->corner & 1], scan->died_ns[scan->corner >> 1],
		    &value))
		sqlite3_result_double(context, value);
}

static int get_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
	struct where_scan *scan = scan_of(cursor);
	const struct profile *profile = scan->data->profile;
	const struct profile_count *count = &profile->counts[scan->count - 1];

	switch (column) {
	case WHERE_THREAD:
		set_text(context, profile->threads[count->thread - 1].name);
		break;
	case WHERE_PROCESS:
		set_text(context, profile->processes[count->process - 1].comm);
		break;
	case WHERE_ARGUMENTS:
		if (profile->processes[count->process - 1].arguments)
			set_text(context, profile->processes[count->process - 1].arguments);
		break;
	case WHERE_CGROUP:
		if (profile->processes[count->process - 1].group_name)
			set_text(context, profile->processes[count->process - 1].group_name);
		break;
	case WHERE_PID:
		sqlite3_result_int64(context, profile->processes[count->process - 1].pid);
		break;
	case WHERE_RUN:
		sqlite3_result_int64(context, profile__count_run(profile, count));
		break;
	case WHERE_FUNCTION:
		set_text(context,
			 definition_names__function(&profile->definitions, count->function));
		break;
	case WHERE_STACK:
	case WHERE_CALLER:
	case WHERE_MODULE:
	case WHERE_TYPE:
		set_group(scan, context, column);
		break;
	case WHERE_SIZE:
	case WHERE_ALLOCATIONS:
		set_size(scan, context, column);
		break;
	case WHERE_DURATION:
		sqlite3_result_double(context, clock_of(scan)->end_ns / 1e9);
		break;
	case WHERE_LEAKED:
		sqlite3_result_int(context, scan->is_leaked);
		break;
	case WHERE_ALIVE:
		sqlite3_result_int(context, scan->is_alive);
		break;
	case WHERE_FREED:
		sqlite3_result_int(context, !scan->is_alive);
		break;
	default:
		set_time(scan, context, column);
		break;
	}
	return SQLITE_OK;
}

int where_scan__define(struct where_scan *scan, struct sqlite3 *db)
{
	static const sqlite3_module module = {
		.xConnect = connect_table,
		.xBestIndex = choose_plan,
		.xDisconnect = disconnect_table,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = begin_scan,
		.xNext = move_cursor,
		.xEof = is_over,
		.xColumn = get_column,
		.xRowid = get_rowid,
	};

	return sqlite3_create_module(db, "blocks", &module, scan);
}
