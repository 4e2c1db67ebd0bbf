// SPDX-License-Identifier: GPL-3.0-or-later
/* Puts the calls of an event log in order, and sums them up by column and count. */
#include "event_chart.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "event_blocks.h"
#include "profile.h"

/* A call that returned a block. */
struct call {
	__u64 time_ns;
	double cost;
	__u32 count;
};

struct calls {
	enum cost cost;
	struct call *list;
	size_t n, room;
};

int event_chart__check_cost(enum cost cost, struct error *error)
{
	switch (cost) {
	case COST_ALLOCATIONS:
	case COST_BYTES:
	case COST_LIVE:
	case COST_LIVE_BYTES:
	case COST_TEMPORARY:
		return 0;
	default:
		return error__set(error, -EINVAL,
				  "--chart is of single calls, of which none has '%s'; give "
				  "--cost=bytes, allocations, live, live-bytes or temporary",
				  cost__name(cost));
	}
}

static double cost_of(enum cost cost, const struct event_block *block)
{
	double bytes = (double)block->weight * block->size_bytes;

	switch (cost) {
	case COST_BYTES:
		return bytes;
	case COST_LIVE:
		return block->fate == BLOCK_ALIVE ? block->weight : 0;
	case COST_LIVE_BYTES:
		return block->fate == BLOCK_ALIVE ? bytes : 0;
	case COST_TEMPORARY:
		return block->temporary ? block->weight : 0;
	default:
		return block->weight;
	}
}

static int add_call(void *context, const struct event_block *block)
{
	struct calls *calls = context;
	double cost = cost_of(calls->cost, block);

	if (!(cost > 0))
		return 0;
	if (array__reserve(&calls->list, &calls->room, calls->n + 1, sizeof(*calls->list)))
		return -ENOMEM;
	calls->list[calls->n++] = (struct call){ block->born_ns, cost, block->count };
	return 0;
}

static int compare_calls(const void *left, const void *right)
{
	const struct call *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->count < b->count ? -1 : a->count > b->count;
}

/* Returns the column of what lies at @at of @whole. */
static __u32 column_of(double at, double whole)
{
	__u32 column = EVENT_CHART_COLUMNS * (at / whole);

	return (column < EVENT_CHART_COLUMNS ? column : EVENT_CHART_COLUMNS - 1) + 1;
}

/* Sums up the calls, which are in order. @latest: by count's id - 1, the index + 1 of its last part. */
static int add_parts(struct event_chart *chart, const struct calls *calls, __u32 *latest)
{
	double whole = 0, at = 0;
	size_t room = 0;

	for (size_t i = 0; i < calls->n; i++)
		whole += calls->list[i].cost;
	for (size_t i = 0; i < calls->n; i++) {
		const struct call *call = &calls->list[i];
		__u32 column = column_of(at, whole), *part = &latest[call->count - 1];

		at += call->cost;
		if (*part && chart->parts[*part - 1].column == column) {
			chart->parts[*part - 1].cost += call->cost;
			chart->parts[*part - 1].last_ns = call->time_ns;
			continue;
		}
		if (array__reserve(&chart->parts, &room, chart->n + 1, sizeof(*chart->parts)))
			return -ENOMEM;
		chart->parts[chart->n++] = (struct event_chart_part){
			.column = column,
			.count = call->count,
			.cost = call->cost,
			.first_ns = call->time_ns,
			.last_ns = call->time_ns,
		};
		*part = chart->n;
	}
	return 0;
}

static int make_chart(struct event_chart *chart, const struct calls *calls,
		      const struct profile *profile)
{
	_cleanup_(free_ptr) __u32 *latest = calloc(profile->n_counts + 1, sizeof(*latest));

	return latest ? add_parts(chart, calls, latest) : -ENOMEM;
}

int event_chart__read(struct event_log_reader *log, const struct profile *profile,
		      const struct stack_groups *groups, struct filter_options *filter,
		      enum cost cost, struct event_chart *out, struct error *error)
{
	struct calls calls = { .cost = cost };
	struct event_chart chart = { 0 };
	const struct event_blocks_options wanted = {
		.filter = filter,
		.each = add_call,
		.context = &calls,
		/* An array that grows has room for twice as many. */
		.each_bytes = 2 * sizeof(struct call),
	};
	struct event_blocks sums = { 0 };
	int err = event_blocks__read(log, profile, groups, &wanted, &sums, error);

	if (!err) {
		if (calls.n)
			qsort(calls.list, calls.n, sizeof(*calls.list), compare_calls);
		chart.unknown = sums.unknown;
		err = make_chart(&chart, &calls, profile);
		if (err)
			error__set(error, err, "cannot put the calls in order: out of memory");
	}
	event_blocks__release(&sums);
	free(calls.list);
	if (err)
		event_chart__release(&chart);
	else
		*out = chart;
	return err;
}

void event_chart__release(struct event_chart *chart)
{
	free(chart->parts);
	*chart = (struct event_chart){ 0 };
}
