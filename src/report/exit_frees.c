// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds what programs freed because they ended, by the epochs at the end of a recording. */
#include "exit_frees.h"

#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"
#include "error.h"
#include "profile.h"
#include "profile_runs.h"

bool exit_frees__leaves(const struct exit_frees *frees, const struct profile_lifetime *cell)
{
	if (!frees->epoch)
		return cell->died == PROFILE_LIVE;
	return cell->born < frees->epoch &&
	       (cell->died == PROFILE_LIVE || cell->died >= frees->epoch);
}

/* A shorter recording consists only of beginning and end. */
#define LEAST_EPOCHS 16
/* An epoch belongs to the end only if it frees so many times the bytes that it allocates. */
#define FREED_BY_ALLOCATED 4
/* --leaks goes back before the end only if the end freed a quarter (one part in LEAST_SHARE) of
 * what was live, and at least LEAST_BYTES. */
#define LEAST_SHARE 4
#define LEAST_BYTES (1ULL << 20)

/* The bytes that were allocated and freed in one epoch. */
struct change {
	__u64 allocated_bytes, freed_bytes;
};

static bool has_ended(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_processes; i++)
		if (!profile->processes[i].end_ns)
			return false;
	return profile->n_processes;
}

static void sum_up(const struct profile *profile, struct change *changes, __u64 n)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;

	while (profile__next_lifetime(profile, &at, &lifetime)) {
		__u32 end = profile_lifetime__end_epoch(&lifetime);

		if (lifetime.born < n)
			changes[lifetime.born].allocated_bytes = profile__add_up(
				changes[lifetime.born].allocated_bytes, lifetime.size_bytes);
		/* Blocks that went with their address space at an exec count as freed. */
		if (end < n)
			changes[end].freed_bytes =
				profile__add_up(changes[end].freed_bytes, lifetime.size_bytes);
	}
}

/* Looks for the moment in the second half at which most was live, and after which only the end
 * frees. */
static void look(const struct change *changes, __u64 n, __u64 epoch_ns, __u64 end_ns,
		 struct exit_frees *out)
{
	__s64 fallen_bytes = 0, most_bytes = 0;
	__u64 epoch = 0, live_bytes = 0;

	for (__u64 i = n; i-- > n / 2;) {
		const struct change *change = &changes[i];

		if (change->allocated_bytes > change->freed_bytes / FREED_BY_ALLOCATED &&
		    change->allocated_bytes > (__u64)most_bytes / 1024)
			break;
		fallen_bytes += (__s64)(change->freed_bytes - change->allocated_bytes);
		if (fallen_bytes > most_bytes) {
			most_bytes = fallen_bytes;
			epoch = i;
		}
	}
	for (__u64 i = 0; i < epoch; i++)
		live_bytes += changes[i].allocated_bytes - changes[i].freed_bytes;
	if (!epoch || (__u64)most_bytes < LEAST_BYTES ||
	    (__u64)most_bytes < live_bytes / LEAST_SHARE)
		return;
	*out = (struct exit_frees){ epoch, end_ns - epoch * epoch_ns, most_bytes };
}

int exit_frees__find(const struct profile *profile, struct exit_frees *out, struct error *error)
{
	_cleanup_(free_ptr) struct run_clock *clocks = NULL;
	_cleanup_(free_ptr) struct change *changes = NULL;
	int err = run_clocks__read(profile, &clocks, error);
	__u64 n;

	*out = (struct exit_frees){ 0 };
	if (err || profile__n_runs(profile) != 1 || !clocks[0].epoch_ns || !has_ended(profile))
		return err;
	n = clocks[0].end_ns / clocks[0].epoch_ns + !!(clocks[0].end_ns % clocks[0].epoch_ns);
	/* Either the recording went on for long after the last block, or the file is damaged. */
	if (n < LEAST_EPOCHS || n > 2 * AP_MAX_EPOCHS)
		return 0;
	changes = calloc(n, sizeof(*changes));
	if (!changes)
		return error__set(error, -ENOMEM, "cannot tell what the end freed: out of memory");
	sum_up(profile, changes, n);
	look(changes, n, clocks[0].epoch_ns, clocks[0].end_ns, out);
	return 0;
}
