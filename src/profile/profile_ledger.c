// SPDX-License-Identifier: GPL-3.0-or-later
/* The ledger of a profile: what happened to each event, and whether the sums agree. */
#include <stdio.h>
#include <string.h>

#include "profile.h"
#include "profile_internal.h"

static void sum_ends(const struct profile *profile, __u64 calls[AP_STACK_ENDS])
{
	memset(calls, 0, AP_STACK_ENDS * sizeof(*calls));
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		enum ap_stack_end end = profile->stacks[count->stack - 1].end;

		calls[end] = profile__add_up(calls[end], count->calls);
	}
}

int profile__settle_ledger(struct profile *profile, __u64 events, const __u64 lost[AP_LOST_REASONS])
{
	__u64 calls[AP_STACK_ENDS], incomplete = 0, all_lost = 0;
	char name[64];
	int err;

	sum_ends(profile, calls);
	for (int i = 0; i < AP_LOST_REASONS; i++) {
		snprintf(name, sizeof(name), "lost_%s", profile__lost_name(i));
		err = profile__set_ledger(profile, name, lost[i]);
		if (err)
			return err;
		all_lost = profile__add_up(all_lost, lost[i]);
	}
	for (int i = AP_END_COMPLETE + 1; i < AP_STACK_ENDS; i++) {
		snprintf(name, sizeof(name), "incomplete_%s", profile__stack_end_name(i));
		err = profile__set_ledger(profile, name, calls[i]);
		if (err)
			return err;
		incomplete = profile__add_up(incomplete, calls[i]);
	}
	err = profile__set_ledger(profile, "events", events);
	if (!err)
		err = profile__set_ledger(profile, "lost", all_lost);
	if (!err)
		err = profile__set_ledger(profile, "complete", calls[AP_END_COMPLETE]);
	if (!err)
		err = profile__set_ledger(profile, "incomplete", incomplete);
	if (!err)
		err = profile__set_ledger(profile, "attributed",
					  profile__add_up(calls[AP_END_COMPLETE], incomplete));
	return err;
}

__u64 profile__lost(const struct profile *profile, enum ap_lost reason)
{
	char name[64];

	snprintf(name, sizeof(name), "lost_%s", profile__lost_name(reason));
	return profile__ledger(profile, name);
}

/* Sum of all entries whose names begin with @prefix. */
static __u64 sum_ledger(const struct profile *profile, const char *prefix)
{
	size_t len = strlen(prefix);
	__u64 sum = 0;

	for (size_t i = 0; i < profile->n_ledger; i++) {
		if (!strncmp(profile->ledger[i].name, prefix, len))
			sum = profile__add_up(sum, profile->ledger[i].value);
	}
	return sum;
}

/* Sum of the calls of all counts. */
static __u64 counted_calls(const struct profile *profile)
{
	__u64 samples = 0;

	if (!profile__sample_bytes(profile))
		return profile__ledger(profile, "attributed");
	for (size_t i = 0; i < profile->n_samples; i++)
		samples = profile__add_up(samples,
					  profile->samples[i].of[PROFILE_SAMPLED_CALLS].samples);
	return samples;
}

int profile__settle_samples(struct profile *profile, __u64 not_sampled)
{
	int err = profile__set_ledger(profile, "sampled", counted_calls(profile));

	return err ? err : profile__set_ledger(profile, "not_sampled", not_sampled);
}

static bool has_entry(const struct profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->n_ledger; i++)
		if (!strcmp(profile->ledger[i].name, name))
			return true;
	return false;
}

static bool has_sums(const struct profile *profile)
{
	return has_entry(profile, "events") && has_entry(profile, "lost") &&
	       has_entry(profile, "attributed") && has_entry(profile, "complete") &&
	       has_entry(profile, "incomplete");
}

bool profile__ledger_adds_up(const struct profile *profile)
{
	__u64 counted =
		profile__add_up(counted_calls(profile), profile__ledger(profile, "not_sampled"));
	__u64 attributed = profile__ledger(profile, "attributed");
	__u64 complete = profile__ledger(profile, "complete");
	__u64 incomplete = profile__ledger(profile, "incomplete");
	__u64 lost = profile__ledger(profile, "lost");
	__u64 calls[AP_STACK_ENDS], not_complete = 0;
	char name[64];

	if (!has_sums(profile))
		return false;
	if (profile->index->is_without_stacks)
		return profile->index->ledger_adds_up;
	sum_ends(profile, calls);
	for (int i = AP_END_COMPLETE + 1; i < AP_STACK_ENDS; i++) {
		snprintf(name, sizeof(name), "incomplete_%s", profile__stack_end_name(i));
		if (profile__ledger(profile, name) != calls[i])
			return false;
		not_complete = profile__add_up(not_complete, calls[i]);
	}
	return calls[AP_END_COMPLETE] == complete && not_complete == incomplete &&
	       sum_ledger(profile, "incomplete_") == incomplete &&
	       attributed == profile__add_up(complete, incomplete) &&
	       lost == sum_ledger(profile, "lost_") &&
	       profile__ledger(profile, "events") == profile__add_up(counted, lost) &&
	       (!profile__sample_bytes(profile) ||
		profile__ledger(profile, "sampled") == counted_calls(profile));
}
