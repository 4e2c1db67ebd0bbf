// SPDX-License-Identifier: GPL-3.0-or-later
/* The lines on stderr that end `record`. */
#include "record_summary.h"

#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "data_file.h"
#include "message.h"
#include "filter.h"
#include "number.h"
#include "profile.h"
#include "selection.h"
#include "text.h"

static void print_contents(const struct profile *profile, const struct selection *totals, FILE *to)
{
	__u64 calls = profile__ledger(profile, "attributed");
	__u64 complete = profile__ledger(profile, "complete");

	if (profile__sample_bytes(profile)) {
		fprintf(to, "%s of %s calls, which stand for %s",
			number__count(profile__ledger(profile, "sampled")).text,
			number__count(profile__ledger(profile, "events")).text,
			number__bytes(totals->size_bytes, false).text);
		if (totals->size_bytes)
			fprintf(to, " within %s",
				number__margin(
					profile_estimate__margin(&totals->of_allocations, true),
					totals->size_bytes)
					.text);
	} else {
		fprintf(to, "%s %s", number__count(calls).text, plural__of("call{|s}", calls).text);
	}
	if (complete < calls)
		fprintf(to, " (%s of the calls have a complete stack)",
			number__share(complete, calls).text);
}

static void print_file(const char *path, FILE *to)
{
	fprintf(to, ", in %s; next: allocprof report", path);
	if (strcmp(path, DATA_FILE_DEFAULT)) {
		fputs(path[0] == '-' ? " -i " : " ", to);
		shell_word__print(path, to);
	}
}

static void print(const struct profile *profile, const struct selection *totals, const char *what,
		  const char *path)
{
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	FILE *line = open_memstream(&text, &size);

	if (!line)
		return;
	fputs("recorded ", line);
	if (profile)
		print_contents(profile, totals, line);
	else
		fputs(what, line);
	print_file(path, line);
	if (!fclose(line))
		message__print("%s", text);
}

void record_summary__print_log(const struct profile *profile, const char *path)
{
	__u64 logged = profile__ledger(profile, "logged");
	__u64 left_out = profile__ledger(profile, "left_out");

	if (profile__meta(profile, "events_id"))
		message__print(
			"event log:   %s %s in %s%s%s; next: allocprof export --format=events",
			number__count(logged).text, plural__of("event{|s}", logged).text, path,
			left_out ? ", without those left out by --where: " : "",
			left_out ? number__count(left_out).text : "");
}

void record_summary__print_lost_events(const struct profile *profile, const char *path)
{
	__u64 lost = profile__ledger(profile, "not_logged");
	int err = profile->totals.events_err;

	if (err)
		message__print(
			"%s %s could not be written to %s: %s; the data file is not affected",
			number__count(lost).text, plural__of("event{|s}", lost).text, path,
			strerror(-err));
	else if (lost)
		message__print(
			"%s %s not in %s, since allocprof could not read %s; --throttle slows the "
			"target down instead. The data file is not affected",
			number__count(lost).text, plural__of("event{|s} {is|are}", lost).text, path,
			plural__of("{it|them} as fast as {it|they} came", lost).text);
}

struct selection record_summary__sum(const struct profile *profile)
{
	struct selection totals = selection_none, one;

	for (size_t i = 0; i < profile->n_counts; i++) {
		filter__whole(profile, NULL, &profile->counts[i], &one);
		selection__add(&totals, &one);
	}
	return totals;
}

void record_summary__print(const struct profile *profile, const struct selection *totals,
			   const char *path)
{
	print(profile, totals, NULL, path);
}

void record_summary__print_runs(const char *what, const char *path)
{
	print(NULL, NULL, what, path);
}

/* Kernel memory from which on the summary mentions it. */
#define MUCH_KERNEL_MEMORY (256ULL << 20)

struct part_text {
	char text[96];
};

/* Returns the errors of an estimate, such as ", within 1.2 % and 0.9 %"; "" if the numbers are
 * exact. */
static struct part_text within(const struct profile_estimate *estimate, __u64 unseen, __u64 blocks,
			       __u64 bytes)
{
	struct part_text text = { "" };

	/* An error is printed as a share of the estimate, unless the estimate is 0. */
	if (estimate && !blocks && unseen)
		snprintf(text.text, sizeof(text.text), ", less than %s",
			 number__bytes(unseen, false).text);
	else if (estimate && blocks && bytes)
		snprintf(text.text, sizeof(text.text), ", within %s and %s",
			 number__margin(profile_estimate__margin(estimate, false), blocks).text,
			 number__margin(profile_estimate__margin(estimate, true), bytes).text);
	return text;
}

/* Returns the share as text, such as " (1.2 % of the allocations)"; "" if there are no
 * allocations. */
static struct part_text share(__u64 blocks, __u64 allocations)
{
	struct part_text text = { "" };

	if (allocations)
		snprintf(text.text, sizeof(text.text), " (%s of the allocations)",
			 number__share(blocks, allocations).text);
	return text;
}

static void print_mappings(const struct mapping_totals *mappings)
{
	__u64 left = mappings->allocations - mappings->frees - mappings->discarded;
	__u64 left_bytes = mappings->size_bytes - mappings->freed_bytes - mappings->discarded_bytes;

	message__print("mappings:    %s of %s, at most %s at a time; %s of %s not unmapped",
		       number__count(mappings->allocations).text,
		       number__bytes(mappings->size_bytes, false).text,
		       number__bytes(mappings->peak_bytes, false).text, number__count(left).text,
		       number__bytes(left_bytes, false).text);
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

	/* The peak of an estimate is too high, and nobody knows by how much (docs/sampling.md). */
	message__print("allocations: %s of %s%s, at most %s%s at a time",
		       number__count(allocations).text, number__bytes(allocated_bytes, false).text,
		       within(of_allocations, unseen, allocations, allocated_bytes).text,
		       totals ? "about " : "", number__bytes(live->peak_bytes, false).text);
	/* The peak does not include the blocks of processes that had ended by then. */
	message__print("not freed:   %s of %s%s%s%s%s", number__count(live->blocks).text,
		       number__bytes(live->size_bytes, false).text,
		       within(of_live, unseen, live->blocks, live->size_bytes).text,
		       share(live->blocks, allocations).text,
		       live->size_bytes > live->peak_bytes ? ", including what ended processes left"
							   : "",
		       target_runs ? ", which may still be freed" : "");
	message__print("temporary:   %s of %s%s%s", number__count(temporary).text,
		       number__bytes(temporary_bytes, false).text,
		       within(of_temporary, unseen, temporary, temporary_bytes).text,
		       share(temporary, allocations).text);
	if (live->mappings.allocations)
		print_mappings(&live->mappings);
	if (memory->block_bytes + memory->record_bytes >= MUCH_KERNEL_MEMORY)
		message__print(
			"the kernel kept %s for %s live blocks, and %s for %s stacks of processes",
			number__bytes(memory->block_bytes, false).text,
			number__count(memory->entries).text,
			number__bytes(memory->record_bytes, false).text,
			number__count(memory->records).text);
}
