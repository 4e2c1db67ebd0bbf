// SPDX-License-Identifier: GPL-3.0-or-later
#include "live_summary.h"

#include <stdio.h>

#include "message.h"
#include "number.h"
#include "selection.h"
#include "profile.h"

/* Kernel memory from which on the summary mentions it. */
#define MUCH_KERNEL_MEMORY (256ULL << 20)

struct part_text {
	char text[96];
};

/* ", within 1.2 % and 0.9 %": the errors of an estimate; "" if the numbers are exact. */
static struct part_text within(const struct profile_estimate *estimate, __u64 unseen, __u64 blocks,
			       __u64 bytes)
{
	struct part_text text = { "" };

	/* An error is a share of the estimate, but that of 0. */
	if (estimate && !blocks && unseen)
		snprintf(text.text, sizeof(text.text), ", less than %s",
			 number__bytes(unseen, false).text);
	else if (estimate && blocks && bytes)
		snprintf(text.text, sizeof(text.text), ", within %s and %s",
			 number__margin(profile_estimate__margin(estimate, false), blocks).text,
			 number__margin(profile_estimate__margin(estimate, true), bytes).text);
	return text;
}

/* " (1.2 % of the allocations)"; "" if there are none. */
static struct part_text share(__u64 blocks, __u64 allocations)
{
	struct part_text text = { "" };

	if (allocations)
		snprintf(text.text, sizeof(text.text), " (%s of the allocations)",
			 number__share(blocks, allocations).text);
	return text;
}

void live_summary__print(const struct live_totals *live, const struct selection *totals,
			 __u64 unseen, bool target_runs)
{
	const struct profile_estimate *of_allocations = totals ? &totals->of_allocations : NULL;
	const struct profile_estimate *of_live = totals ? &totals->of_live : NULL;
	const struct profile_estimate *of_temporary = totals ? &totals->of_temporary : NULL;
	__u64 allocated_bytes = live->stats[AP_STAT_ALLOCATED_BYTES];
	__u64 temporary_bytes = live->stats[AP_STAT_TEMPORARY_BYTES];
	__u64 allocations = live->stats[AP_STAT_ALLOCATIONS];
	__u64 temporary = live->stats[AP_STAT_TEMPORARY];
	const struct live_memory *memory = &live->memory;

	/* The peak of an estimate is too high, by how much nobody knows (docs/sampling.md). */
	message__print("allocations: %s of %s%s, at most %s%s at a time",
		       number__count(allocations).text, number__bytes(allocated_bytes, false).text,
		       within(of_allocations, unseen, allocations, allocated_bytes).text,
		       totals ? "about " : "", number__bytes(live->peak_bytes, false).text);
	/* At the peak those of ended processes are gone. */
	message__print("not freed:   %s of %s%s%s%s%s", number__count(live->blocks).text,
		       number__bytes(live->size_bytes, false).text,
		       within(of_live, unseen, live->blocks, live->size_bytes).text,
		       share(live->blocks, allocations).text,
		       live->size_bytes > live->peak_bytes ? ", with what ended processes left"
							   : "",
		       target_runs ? ", and may be freed yet" : "");
	message__print("temporary:   %s of %s%s%s", number__count(temporary).text,
		       number__bytes(temporary_bytes, false).text,
		       within(of_temporary, unseen, temporary, temporary_bytes).text,
		       share(temporary, allocations).text);
	if (memory->block_bytes + memory->record_bytes >= MUCH_KERNEL_MEMORY)
		message__print(
			"the kernel kept %s for %s live blocks, and %s for %s stacks of processes",
			number__bytes(memory->block_bytes, false).text,
			number__count(memory->entries).text,
			number__bytes(memory->record_bytes, false).text,
			number__count(memory->records).text);
}
