// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the totals of a recording, to which each of its engines adds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "profile_internal.h"

void site_counts__add(struct ap_site_counts *sum, const struct ap_site_counts *more)
{
	__u64 *to = (__u64 *)sum;
	const __u64 *from = (const __u64 *)more;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] = profile__add_up(to[i], from[i]);
}

__u64 live_totals__frees_unknown(const struct live_totals *live)
{
	__u64 sum = 0;

	for (int i = 0; i < AP_FAMILIES; i++)
		sum += live->stats[AP_STAT_FREES_UNKNOWN + i];
	return sum;
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

int profile__set_aliases(struct profile *profile, enum ap_function function, char *const *names,
			 size_t n)
{
	struct function_totals *totals = &profile->totals.functions[function];
	char **copies = calloc(n + 1, sizeof(*copies));

	for (size_t i = 0; copies && i < n; i++)
		if (!(copies[i] = strdup(names[i]))) {
			free_names(copies, i);
			return -ENOMEM;
		}
	if (!copies)
		return -ENOMEM;
	free_names(totals->aliases, totals->n_aliases);
	totals->aliases = copies;
	totals->n_aliases = n;
	return 0;
}

/* Returns the region of that name; NULL if there is no memory. */
static struct region *find_region(struct profile_totals *totals, const char *name)
{
	struct region *list;
	size_t at = 0;

	while (at < totals->n_regions && strcmp(totals->regions[at].name, name) < 0)
		at++;
	if (at < totals->n_regions && !strcmp(totals->regions[at].name, name))
		return &totals->regions[at];
	name = strdup(name);
	if (!name || array__reserve(&totals->regions, &totals->regions_room, totals->n_regions + 1,
				    sizeof(*totals->regions))) {
		free((char *)name);
		return NULL;
	}
	list = totals->regions;
	memmove(&list[at + 1], &list[at], (totals->n_regions++ - at) * sizeof(*list));
	list[at] = (struct region){ .name = name };
	return &list[at];
}

int profile__add_region(struct profile *profile, const struct region *more)
{
	struct region *region = find_region(&profile->totals, more->name);

	if (!region)
		return -ENOMEM;
	region->entered += more->entered;
	for (int i = 0; i < AP_FUNCTIONS; i++)
		site_counts__add(&region->counts[i], &more->counts[i]);
	for (int i = 0; i < AP_STATS; i++)
		region->stats[i] += more->stats[i];
	return 0;
}

int profile__note_window(struct profile *profile, const char *why)
{
	struct profile_totals *totals = &profile->totals;

	totals->window.asked_for = true;
	if (why && !totals->window.opened && !totals->window.why)
		return (totals->window.why = strdup(why)) ? 0 : -ENOMEM;
	if (why)
		return 0;
	totals->window.opened = true;
	free(totals->window.why);
	totals->window.why = NULL;
	return 0;
}

static void release_allocator(struct profile_allocator *allocator)
{
	free(allocator->path);
	free(allocator->build_id);
	free(allocator->gap);
	free(allocator->live_gap);
}

int profile__add_allocator(struct profile *profile, const struct profile_allocator *allocator)
{
	struct profile_totals *totals = &profile->totals;
	struct profile_allocator copy = {
		.path = strdup(allocator->path),
		.build_id = strdup(allocator->build_id),
		.gap = strdup(allocator->gap),
		.live_gap = strdup(allocator->live_gap),
	};

	if (!copy.path || !copy.build_id || !copy.gap || !copy.live_gap ||
	    array__reserve(&totals->allocators, &totals->allocators_room, totals->n_allocators + 1,
			   sizeof(copy))) {
		release_allocator(&copy);
		return -ENOMEM;
	}
	totals->allocators[totals->n_allocators++] = copy;
	return 0;
}

int profile__add_uprobe_program(struct profile *profile, const struct uprobe_program *program)
{
	struct profile_totals *totals = &profile->totals;
	struct uprobe_program copy = *program;

	copy.name = strdup(program->name);
	if (!copy.name || array__reserve(&totals->uprobe_programs, &totals->uprobe_programs_room,
					 totals->n_uprobe_programs + 1, sizeof(copy))) {
		free(copy.name);
		return -ENOMEM;
	}
	totals->uprobe_programs[totals->n_uprobe_programs++] = copy;
	return 0;
}

int profile__add_numbers(struct profile *profile, const __u64 *numbers, size_t n)
{
	int err = 0;

	for (size_t kind = 0; kind < n && !err; kind++) {
		const struct profile_gap gap = { .kind = (enum gap)kind, .number = numbers[kind] };

		err = gap.number ? profile__add_gap(profile, &gap) : 0;
	}
	return err;
}

void profile__add_engine_calls(struct profile *profile, const struct engine_calls *calls,
			       bool has_stacks)
{
	struct engine_calls *sum = &profile->totals.calls;
	__u64 known = calls->not_sampled + calls->attributed, events = calls->events;

	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++) {
		known += calls->lost[reason];
		sum->lost[reason] += calls->lost[reason];
	}
	if (!has_stacks)
		return;
	if (events < known && calls->may_be_short)
		events = known;
	sum->lost[AP_LOST_UNACCOUNTED] += events - known;
	sum->events += events;
	sum->not_sampled += calls->not_sampled;
	sum->attributed += calls->attributed;
}

bool profile__is_complete(const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;

	if (totals->window.asked_for &&
	    (!totals->window.opened || profile__ledger(profile, "undecided")))
		return false;
	return !profile__ledger(profile, "lost") && !profile__ledger(profile, "untracked") &&
	       !profile__ledger(profile, "blocks_dropped") && !profile__has_gaps(profile, false);
}

void profile__free_totals(struct profile *profile)
{
	struct profile_totals *totals = &profile->totals;

	for (int i = 0; i < AP_FUNCTIONS; i++)
		free_names(totals->functions[i].aliases, totals->functions[i].n_aliases);
	for (size_t i = 0; i < totals->n_regions; i++)
		free((char *)totals->regions[i].name);
	for (size_t i = 0; i < totals->n_allocators; i++)
		release_allocator(&totals->allocators[i]);
	for (size_t i = 0; i < totals->n_uprobe_programs; i++)
		free(totals->uprobe_programs[i].name);
	free(totals->regions);
	free(totals->allocators);
	free(totals->uprobe_programs);
	free(totals->window.why);
}
