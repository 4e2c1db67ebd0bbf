// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads copies of a recording, and makes profiles of them. */
#include "served_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleanup.h"
#include "clock.h"
#include "count_keys.h"
#include "data_file.h"
#include "error.h"
#include "hash_table.h"
#include "profile.h"
#include "stack_groups.h"
#include "stack_view.h"

static int select_all(struct served_profile *served, const struct wrappers *wrappers,
		      struct error *error)
{
	const struct stack_view_options view = { .with_locations = true, .wrappers = wrappers };
	struct filter_options all = { 0 };
	int err = stack_view__new(served->profile, &view, &served->view);

	if (!err) {
		served->groups = stack_groups__new(served->profile, served->view);
		err = served->groups ? 0 : -ENOMEM;
	}
	if (err)
		return error__set(error, err, "no memory for the copy of the recording");
	return filter__apply(served->profile, served->groups, &all, &served->filtered, error);
}

int served_profile__read(int fd, const struct wrappers *wrappers, const struct http_costs *costs,
			 struct served_profile **out, struct error *error)
{
	struct served_profile *served = calloc(1, sizeof(*served));
	int err;

	if (!served)
		return error__set(error, -ENOMEM, "no memory for the copy of the recording");
	served->references = 1;
	served->received_ns = clock__now_ns();
	served->taken_ns = clock__ns(CLOCK_REALTIME);
	served->costs = *costs;
	err = data_file__read_open(fd, "the copy of the recording", &served->profile, error);
	if (!err)
		err = select_all(served, wrappers, error);
	if (err) {
		served_profile__drop(served);
		return err;
	}
	*out = served;
	return 0;
}

struct served_profile *served_profile__hold(struct served_profile *served)
{
	served->references++;
	return served;
}

void served_profile__drop(struct served_profile *served)
{
	if (!served || --served->references)
		return;
	filtered__release(&served->filtered);
	stack_groups__free(served->groups);
	stack_view__free(served->view);
	profile__free(served->profile);
	free(served);
}

/* The key of a count, and its index. */
struct key {
	__u64 key;
	size_t index;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* Returns the keys of all counts, sorted, or NULL if there is no memory. */
static struct key *sort_counts(const struct profile *profile, __u64 seed)
{
	_cleanup_(free_ptr) __u64 *unsorted = count_keys__make(profile, seed);
	struct key *keys = unsorted ? calloc(profile->n_counts + 1, sizeof(*keys)) : NULL;

	for (size_t i = 0; keys && i < profile->n_counts; i++)
		keys[i] = (struct key){ unsorted[i], i };
	if (keys)
		qsort(keys, profile->n_counts, sizeof(*keys), compare_keys);
	return keys;
}

/* Subtracts what @base had. A recording only adds, so whatever that had is there. */
static int subtract(struct selection *counts, const struct served_profile *served,
		    const struct served_profile *base, bool keeps_live)
{
	__u64 seed = hash_seed();
	_cleanup_(free_ptr) struct key *keys = sort_counts(served->profile, seed);
	_cleanup_(free_ptr) __u64 *wanted = count_keys__make(base->profile, seed);

	if (!keys || !wanted)
		return -ENOMEM;
	for (size_t i = 0; i < base->profile->n_counts; i++) {
		const struct selection *less = &base->filtered.counts[i];
		const struct key sought = { wanted[i], 0 };
		const struct key *key = bsearch(&sought, keys, served->profile->n_counts,
						sizeof(*keys), compare_keys);

		if (!key)
			return -ESTALE;
		counts[key->index].allocations -= less->allocations;
		counts[key->index].size_bytes -= less->size_bytes;
		if (keeps_live)
			continue;
		counts[key->index].live -= less->live;
		counts[key->index].live_bytes -= less->live_bytes;
	}
	return 0;
}

void served_profile__drop_ended(const struct profile *profile, struct selection *counts)
{
	for (size_t i = 0; i < profile->n_counts; i++)
		if (profile->processes[profile->counts[i].process - 1].end_ns)
			counts[i].live = counts[i].live_bytes = 0;
}

int served_profile__write(const struct served_profile *served, const struct served_profile *base,
			  const struct served_form *form, char **bytes, size_t *size)
{
	size_t n = served->profile->n_counts;
	_cleanup_(free_ptr) struct selection *counts = calloc(n + 1, sizeof(*counts));
	struct export_input input = {
		.profile = served->profile,
		.view = served->view,
		.counts = counts,
		.total = &served->filtered.total,
		.end_ns = served->filtered.end_ns,
		.taken_ns = served->taken_ns,
		.by_default = form->by_default,
		.attributes = form->attributes,
		.n_attributes = form->n_attributes,
	};
	struct error error = { 0 };
	char *made = NULL;
	size_t made_size = 0;
	FILE *to;
	int err;

	if (!counts)
		return -ENOMEM;
	memcpy(counts, served->filtered.counts, n * sizeof(*counts));
	if (base) {
		err = subtract(counts, served, base, form->has_all_live);
		if (err)
			return err;
		input.duration_ns = served->received_ns - base->received_ns;
	}
	if (form->has_all_live)
		served_profile__drop_ended(served->profile, counts);
	err = export__check(form->format, &input, &error);
	if (err)
		return err;
	to = open_memstream(&made, &made_size);
	if (!to)
		return -ENOMEM;
	err = export__write(form->format, &input, to);
	if (fclose(to) && !err)
		err = -ENOMEM;
	if (err) {
		free(made);
		return err;
	}
	*bytes = made;
	*size = made_size;
	return 0;
}
