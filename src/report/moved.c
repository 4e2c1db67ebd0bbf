// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds what moved between two recordings, and by which function. */
#include "moved.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "charges.h"
#include "filter.h"
#include "profile.h"
#include "stack_groups.h"

/* A cost that changes by less did not move. */
#define LEAST_MOVE 0.01

static __u64 cost_of(const struct charged_function *function, enum cost cost)
{
	switch (cost) {
	case COST_ALLOCATIONS:
		return function->allocations;
	case COST_BYTES:
		return function->size_bytes;
	case COST_LIVE_BYTES:
		return function->live_bytes;
	default:
		return function->peak_bytes;
	}
}

/* A function of either recording. It may be in another file in the other one: a program that was
 * renamed. */
struct both {
	const char *text;
	__s64 change[COSTS];
};

static int compare_both(const void *left, const void *right)
{
	return strcmp(((const struct both *)left)->text, ((const struct both *)right)->text);
}

static const enum cost moved_costs[MOVED_COSTS] = { COST_PEAK, COST_LIVE_BYTES, COST_BYTES,
						    COST_ALLOCATIONS };

static void add_changes(const struct moved_side *side, const struct charges *charges, int sign,
			struct both *list)
{
	for (size_t i = 0; i < charges->n; i++) {
		list[i].text = side->groups->labels[charges->functions[i].label].text;
		for (size_t j = 0; j < MOVED_COSTS; j++)
			list[i].change[moved_costs[j]] =
				sign * (__s64)cost_of(&charges->functions[i], moved_costs[j]);
	}
}

static size_t merge(struct both *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), compare_both);
	for (size_t i = 0; i < n; i++) {
		if (!kept || compare_both(&list[kept - 1], &list[i]) != 0) {
			list[kept++] = list[i];
			continue;
		}
		for (size_t j = 0; j < MOVED_COSTS; j++)
			list[kept - 1].change[moved_costs[j]] += list[i].change[moved_costs[j]];
	}
	return kept;
}

static __u64 total_of(const struct charges *charges, enum cost cost)
{
	__u64 sum = 0;

	for (size_t i = 0; i < charges->n; i++)
		sum = profile__add_up(sum, cost_of(&charges->functions[i], cost));
	return sum;
}

static double share_of(const struct moved *moved)
{
	double greater = moved->before > moved->after ? moved->before : moved->after;

	return greater > 0 ? fabs((double)moved->after - moved->before) / greater : 0;
}

static int compare_moved(const void *left, const void *right)
{
	const struct moved *a = left, *b = right;
	double x = share_of(a), y = share_of(b);

	return x != y ? (x > y ? -1 : 1) : (int)a->cost - (int)b->cost;
}

/* Adds @cost to the list if it moved, with the function that moved it most. */
static int add_moved(const struct moved *found, const struct both *functions, size_t n_functions,
		     struct moved *list, size_t *n)
{
	const struct both *most = NULL;
	struct moved *moved = &list[*n];
	int sign = found->after < found->before ? -1 : 1;

	if (share_of(found) < LEAST_MOVE)
		return 0;
	for (size_t i = 0; i < n_functions; i++)
		if (sign * functions[i].change[found->cost] >
		    (most ? sign * most->change[found->cost] : 0))
			most = &functions[i];
	*moved = *found;
	if (most) {
		moved->function = strdup(most->text);
		moved->change = most->change[found->cost];
		if (!moved->function)
			return -ENOMEM;
	}
	(*n)++;
	return 0;
}

int moved__find(const struct moved_side *before, const struct moved_side *after,
		struct moved list[MOVED_COSTS], size_t *n)
{
	bool has_live = filter__has_live(before->profile) && filter__has_live(after->profile);
	struct charges old = { 0 }, new = { 0 };
	struct both *functions = NULL;
	size_t n_functions;
	int err = charges__make(before->profile, before->groups, before->counts, &old);

	*n = 0;
	if (!err)
		err = charges__make(after->profile, after->groups, after->counts, &new);
	if (!err) {
		functions = calloc(old.n + new.n + 1, sizeof(*functions));
		err = functions ? 0 : -ENOMEM;
	}
	if (!err) {
		add_changes(before, &old, -1, functions);
		add_changes(after, &new, 1, functions + old.n);
		n_functions = merge(functions, old.n + new.n);
	}
	for (size_t i = 0; i < MOVED_COSTS && !err; i++) {
		struct moved moved = {
			.cost = moved_costs[i],
			.before = total_of(&old, moved_costs[i]),
			.after = total_of(&new, moved_costs[i]),
		};

		if (moved.cost == COST_PEAK && before->peak_bytes && after->peak_bytes) {
			moved.before = before->peak_bytes;
			moved.after = after->peak_bytes;
		}
		if (has_live || !cost__needs_live(moved.cost))
			err = add_moved(&moved, functions, n_functions, list, n);
	}
	if (!err)
		qsort(list, *n, sizeof(*list), compare_moved);
	free(functions);
	charges__release(&old);
	charges__release(&new);
	return err;
}

void moved__release(struct moved list[MOVED_COSTS], size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].function);
}
