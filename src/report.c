// SPDX-License-Identifier: GPL-3.0-or-later
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "profile.h"
#include "stack_groups.h"

/* Where the entry of each function of a group is, + 1. */
typedef __u32 slots_t[AP_FUNCTIONS];

static bool ran_to_exit(const struct profile *profile, const struct profile_count *count)
{
	const struct profile_process *process = &profile->processes[count->process - 1];

	return process->end_ns && !process->execed && !profile__meta(profile, "attached_pid");
}

static bool is_empty(const struct selection *selection)
{
	return !selection->allocations && !selection->unsure;
}

/* One entry per group and function that has counts, in the order of the counts. */
static int add_up(struct report *report, const struct filtered *filtered)
{
	const struct profile *profile = report->profile;
	_cleanup_(free_ptr) slots_t *slots = calloc(report->groups->n_groups + 1, sizeof(*slots));

	report->entries = calloc(profile->n_counts + 1, sizeof(*report->entries));
	if (!slots || !report->entries)
		return -ENOMEM;
	report->at_exit = true;
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		const struct selection *selected = &filtered->counts[i];
		__u32 group = report->groups->by_stack[count->stack - 1];
		__u32 *slot = &slots[group][count->function];
		struct report_entry *entry;
		struct selection whole;

		if (count->function == AP_FREE)
			continue;
		if (!*slot) {
			report->entries[report->n_entries] = (struct report_entry){
				.group = group,
				.function = count->function,
				.selected = selection_none,
				.whole = selection_none,
				.at_exit = true,
			};
			*slot = ++report->n_entries;
		}
		entry = &report->entries[*slot - 1];
		filter__whole(profile, count, &whole);
		selection__add(&entry->whole, &whole);
		selection__add(&entry->selected, selected);
		if (selected->live && !ran_to_exit(profile, count))
			entry->at_exit = report->at_exit = false;
	}
	return 0;
}

static void drop_empty(struct report *report)
{
	size_t n = 0;

	report->n_whole = report->n_entries;
	for (size_t i = 0; i < report->n_entries; i++) {
		if (!is_empty(&report->entries[i].selected))
			report->entries[n++] = report->entries[i];
	}
	report->n_entries = n;
}

struct order {
	const struct stack_groups *groups;
	int sort;
};

static int compare(__u64 a, __u64 b)
{
	return a < b ? -1 : a > b;
}

static int compare_entries(const void *left, const void *right, void *context)
{
	const struct report_entry *a = left, *b = right;
	const struct order *order = context;
	enum cost second = COST_BYTES;
	int difference;

	if (order->sort == REPORT_OLDEST) {
		difference = compare(a->selected.oldest_ns, b->selected.oldest_ns);
	} else {
		difference = compare(cost__of(order->sort, &b->selected),
				     cost__of(order->sort, &a->selected));
		/* Equal bytes by blocks and equal blocks by bytes. */
		if (!difference && cost__is_bytes(order->sort))
			difference = compare(cost__blocks(order->sort, &b->selected),
					     cost__blocks(order->sort, &a->selected));
		else if (!difference)
			difference = compare(cost__bytes(order->sort, &b->selected),
					     cost__bytes(order->sort, &a->selected));
	}
	if (!difference)
		difference =
			compare(cost__of(second, &b->selected), cost__of(second, &a->selected));
	if (!difference)
		difference = compare(order->groups->groups[a->group].id,
				     order->groups->groups[b->group].id);
	return difference ? difference : (int)a->function - (int)b->function;
}

struct report *report__new(const struct profile *profile, const struct stack_groups *groups,
			   const struct filtered *filtered, int sort)
{
	struct report *report = calloc(1, sizeof(*report));
	struct order order = { groups, sort };

	if (!report)
		return NULL;
	report->profile = profile;
	report->groups = groups;
	report->total = filtered->total;
	report->whole = filtered->whole;
	report->end_ns = filtered->end_ns;
	report->epoch_ns = filtered->epoch_ns;
	if (add_up(report, filtered)) {
		report__free(report);
		return NULL;
	}
	drop_empty(report);
	qsort_r(report->entries, report->n_entries, sizeof(*report->entries), compare_entries,
		&order);
	return report;
}

void report__free(struct report *report)
{
	if (!report)
		return;
	free(report->entries);
	free(report);
}

void report__histograms(const struct report *report, const struct filtered *filtered, __u64 *sizes,
			__u64 *lifetimes)
{
	const struct profile *profile = report->profile;

	memset(sizes, 0, PROFILE_BUCKETS * sizeof(*sizes));
	memset(lifetimes, 0, PROFILE_BUCKETS * sizeof(*lifetimes));
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_blocks *blocks =
			profile__count_blocks(profile, &profile->counts[i]);

		if (!blocks || is_empty(&filtered->counts[i]))
			continue;
		for (int j = 0; j < PROFILE_BUCKETS; j++) {
			sizes[j] = profile__add_up(sizes[j], blocks->sizes[j]);
			lifetimes[j] = profile__add_up(lifetimes[j], blocks->lifetimes[j]);
		}
	}
}
