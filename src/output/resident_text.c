// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints what the resident memory of the recorded processes consists of, and the sentence that says
 * what holds most of it. */
#include "report_output.h"

#include <string.h>

#include "array.h"
#include "finding_text.h"
#include "heap_text.h"
#include "profile.h"
#include "terminal.h"
#include "text.h"

/* The parts in the order in which they are printed, and what they are. */
static const struct {
	enum rss_kind kind;
	const char *text;
} parts[] = {
	{ RSS_BLOCKS, "live blocks" },
	{ RSS_SLACK, "the rest of the pages with live blocks: headers, rounding, freed blocks" },
	{ RSS_FREE, "pages of the allocator without a live block" },
	{ RSS_BEFORE, "the allocator's pages that were there before the recording began" },
	{ RSS_MAPPINGS, "other anonymous mappings without a live block" },
	{ RSS_INHERITED, "of forked processes, without a live block of their own" },
	{ RSS_STACKS, "stacks of threads" },
	{ RSS_DATA, "data of the program and its libraries" },
	{ RSS_FILES, "mapped files" },
	{ RSS_SHARED, "shared mappings, and pages shared after a fork" },
	{ RSS_OWN, "mapped by allocprof" },
	{ RSS_CHANGED, "came or went while it was read" },
};

/* Blocks that are not resident are named from this share of the resident memory on. */
#define WORTH_SAYING 0.01
/* So many names are printed of processes whose memory was not read. */
#define MOST_NAMES 3
/* Stacks are counted until they have this share of a sum. */
#define MOST 0.8

/* A peak is named that is higher by this share than the sum. */
#define PEAK_ABOVE 0.05

const char *resident_text__part(enum rss_kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].kind == kind)
			return parts[i].text;
	return "";
}

struct resident_sums {
	__u64 bytes[RSS_ROWS];
	__u64 all;
	enum rss_kind largest;
	const struct profile_rss_sample *peak; /* the highest sum before; NULL: none is higher */
	__u64 peak_bytes;
};

static struct resident_sums add_up_parts(const struct profile *profile)
{
	struct resident_sums sums = { .all = 0 };

	for (size_t i = 0; i < profile->n_rss; i++) {
		const struct profile_rss *rss = &profile->rss[i];
		__u64 *sum = &sums.bytes[rss->kind];

		*sum = profile__add_up(*sum, rss->size_bytes);
		if (rss->kind < RSS_KINDS)
			sums.all = profile__add_up(sums.all, rss->size_bytes);
	}
	for (enum rss_kind kind = 0; kind < RSS_KINDS; kind++)
		/* What holds the memory is asked of the program, not of its recording. */
		if (kind != RSS_OWN && sums.bytes[kind] > sums.bytes[sums.largest])
			sums.largest = kind;
	sums.peak_bytes = sums.all * (1 + PEAK_ABOVE);
	for (size_t i = 0; i < profile->n_rss_samples; i++) {
		__u64 sum = profile_rss_sample__sum(&profile->rss_samples[i]);

		if (sum > sums.peak_bytes) {
			sums.peak = &profile->rss_samples[i];
			sums.peak_bytes = sum;
		}
	}
	return sums;
}

/* Returns how many stacks have most of the slack on pages that are theirs alone. */
static size_t count_pinning(const struct report *report)
{
	double sum = report->total.unique_slack_bytes, share = 0;
	size_t n = 0;

	while (n < report->n_entries && share < MOST * sum)
		share += report->entries[n++].selected.unique_slack_bytes;
	return n;
}

static void print_pinned(const struct report_output *output, const struct resident_sums *sums)
{
	const struct report *report = output->report;
	size_t n = count_pinning(report);

	fprintf(output->terminal.to,
		"Fragmentation: %s lie unused on pages that %s of live blocks hold",
		report_output__bytes(output, sums->bytes[RSS_SLACK]).text,
		report_output__bytes(output, sums->bytes[RSS_BLOCKS]).text);
	if (n)
		fprintf(output->terminal.to, ", most of it those of %s %s", number__count(n).text,
			plural__of("stack{|s}", n).text);
	fputs(".\n", output->terminal.to);
}

/* What the search for pointers says of live blocks; @all_bytes is 0 where it says nothing. */
struct searched {
	__u64 lost_bytes, all_bytes;
};

static void add_searched(struct searched *to, const struct selection *selection)
{
	for (int i = 0; i < PROFILE_REACHES; i++) {
		__u64 bytes = selection->reached[i].size_bytes;

		to->all_bytes = profile__add_up(to->all_bytes, bytes);
		if (i == PROFILE_LOST || i == PROFILE_INDIRECTLY_LOST)
			to->lost_bytes = profile__add_up(to->lost_bytes, bytes);
	}
}

static bool is_lost(const struct searched *searched)
{
	return searched->lost_bytes > searched->all_bytes / 2;
}

/* Says how many of @whose bytes are lost if that is most of them, else how many are not. */
static void print_searched(const struct report_output *output, const struct searched *searched,
			   const char *whose)
{
	__u64 bytes = is_lost(searched) ? searched->lost_bytes
					: searched->all_bytes - searched->lost_bytes;

	if (searched->all_bytes)
		fprintf(output->terminal.to, "; %s %s of %s %s",
			is_lost(searched) ? "no pointer leads to" : "pointers lead to",
			report_output__bytes(output, bytes).text, whose,
			report_output__bytes(output, searched->all_bytes).text);
}

/* A leak that pointers lead to cannot be told from a cache. */
static const char *name_growing(const struct searched *searched)
{
	if (!searched->all_bytes)
		return "A leak, or a cache that still fills";
	return is_lost(searched) ? "A leak"
				 : "A cache that still fills, or blocks that are kept for nothing";
}

static void print_live(const struct report_output *output, const struct resident_sums *sums)
{
	const struct report *report = output->report;
	struct searched growing = { 0 }, all = { 0 };
	struct number_text bytes = report_output__bytes(output, sums->bytes[RSS_BLOCKS]);
	FILE *to = output->terminal.to;
	double bytes_per_second = 0;
	size_t n = 0;

	for (size_t i = 0; i < report->n_entries; i++)
		if (report->entries[i].growth.verdict == GROWTH_GROWING) {
			bytes_per_second += report->entries[i].growth.bytes_per_second;
			if (output->knows_reach)
				add_searched(&growing, &report->entries[i].selected);
			n++;
		}
	if (output->knows_reach)
		add_searched(&all, &report->total);
	if (n) {
		fprintf(to, "%s: live blocks hold %s, and %s %s growing, by %s a second",
			name_growing(&growing), bytes.text, number__count(n).text,
			plural__of("{stack was|stacks were}", n).text,
			report_output__bytes(output, number__of(bytes_per_second)).text);
		print_searched(output, &growing, plural__of("{its|their}", n).text);
	} else {
		fprintf(to, "%s: live blocks hold %s, and no stack was growing for sure",
			is_lost(&all) ? "A leak" : "In use", bytes.text);
		print_searched(output, &all, "their");
	}
	fputs(".\n", to);
}

/* Says who has mapped memory without a live block, as far as mappings were followed. */
static void print_mappings(const struct report_output *output, const struct resident_sums *sums)
{
	const struct report *report = output->report;
	double most = MOST * sums->bytes[RSS_MAPPINGS], share = 0;
	FILE *to = output->terminal.to;
	size_t n = 0;

	for (size_t i = 0; i < report->n_entries && share < most; i++)
		if (profile__function_maps(report->entries[i].function)) {
			share += report->entries[i].selected.resident_bytes;
			n++;
		}
	fprintf(to, "Mappings: %s are anonymous memory without a live block, ",
		report_output__bytes(output, sums->bytes[RSS_MAPPINGS]).text);
	if (n && share >= most)
		fprintf(to, "most of it mapped by %s %s.\n", number__count(n).text,
			plural__of("stack{|s}", n).text);
	else
		fprintf(to, "the program's own or what an allocator other than glibc's keeps%s.\n",
			output->profile->n_mappings
				? ""
				: "; record with --allocator mmap to see who maps it");
}

static void print_cause(const struct report_output *output, const struct resident_sums *sums)
{
	__u64 bytes = sums->bytes[sums->largest], pages = bytes / PROFILE_PAGE_BYTES;
	struct number_text text = report_output__bytes(output, bytes);
	FILE *to = output->terminal.to;

	switch (sums->largest) {
	case RSS_SLACK:
		print_pinned(output, sums);
		break;
	case RSS_BLOCKS:
		print_live(output, sums);
		break;
	case RSS_FREE:
		fprintf(to,
			"Retained: %s on %s %s hold no live block: the allocator keeps them (%s).\n",
			text.text, number__count(pages).text, plural__of("page{|s}", pages).text,
			heap_text__remedy(output->profile));
		break;
	case RSS_BEFORE:
		fprintf(to,
			"From before the recording: %s were there when it began, and what holds them is not "
			"known; record from the program's start.\n",
			text.text);
		break;
	case RSS_MAPPINGS:
		print_mappings(output, sums);
		break;
	case RSS_INHERITED:
		fprintf(to,
			"From a fork: %s are what forked processes have from their parents, or keep without a "
			"live block.\n",
			text.text);
		break;
	case RSS_STACKS:
		fprintf(to, "Stacks: %s are those of threads.\n", text.text);
		break;
	case RSS_SHARED:
		fprintf(to, "Shared: %s are memory that other processes may have, too.\n",
			text.text);
		break;
	default:
		fprintf(to, "Code and data: %s are of files, and of programs' data.\n", text.text);
	}
}

/* Says which live blocks take no memory, of the processes whose memory was read. */
static void print_untouched(const struct report_output *output, const struct resident_sums *sums)
{
	const struct profile *profile = output->profile;
	__u64 live = 0, resident = sums->bytes[RSS_BLOCKS], absent;

	for (size_t i = 0; i < profile->n_size_classes; i++)
		live = profile__add_up(live, profile->size_classes[i].size_bytes);
	absent = live > resident ? live - resident : 0;
	if (absent > resident && absent > sums->all * WORTH_SAYING)
		fprintf(output->terminal.to,
			"Of the %s in live blocks %s are not resident: never touched, or swapped out.\n",
			report_output__bytes(output, live).text,
			report_output__bytes(output, absent).text);
}

/* Says what is lost, where live blocks are not the largest part and the sentence is on another one. */
static void print_lost(const struct report_output *output, const struct resident_sums *sums)
{
	struct searched searched = { 0 };

	if (!output->knows_reach || sums->largest == RSS_BLOCKS)
		return;
	add_searched(&searched, &output->report->total);
	if (searched.lost_bytes > sums->all * WORTH_SAYING)
		fprintf(output->terminal.to,
			"Of the %s in live blocks %s are lost: no pointer leads to them, or only those of lost blocks.\n",
			report_output__bytes(output, searched.all_bytes).text,
			report_output__bytes(output, searched.lost_bytes).text);
}

static void print_huge(const struct report_output *output, const struct resident_sums *sums)
{
	__u64 huge = sums->bytes[RSS_HUGE];

	if (huge)
		fprintf(output->terminal.to,
			"%s of all that are transparent huge pages, each of which is resident as a "
			"whole.\n",
			report_output__bytes(output, huge).text);
}

/* Says that there was more before, and what tells what held it. */
static void print_peak(const struct report_output *output, const struct resident_sums *sums,
		       size_t n_processes)
{
	__u64 highest = sums->bytes[RSS_HIGHEST];
	FILE *to = output->terminal.to;

	if (sums->peak)
		fprintf(to, "It was %s after %s, the columns to the right.\n",
			report_output__bytes(output, sums->peak_bytes).text,
			number__time(sums->peak->time_ns).text);
	if (highest > sums->peak_bytes * (1 + PEAK_ABOVE))
		fprintf(to,
			"At %s highest %s %s%s: record with --dump-at=peak to see what held it.\n",
			n_processes > 1 ? "their" : "its",
			n_processes > 1 ? "the processes had" : "the process had",
			report_output__bytes(output, highest).text,
			n_processes > 1 ? ", each at a moment of its own" : "");
}

/* Adds a name to those that are printed, unless it is among them. */
static size_t add_name(const char *names[MOST_NAMES + 1], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return n;
	if (n <= MOST_NAMES)
		names[n++] = name;
	return n;
}

/* Says how many programs ended whose memory was not read: the end of the first process alone is seen. */
static void print_others(const struct report_output *output)
{
	const struct profile *profile = output->profile;
	const char *names[MOST_NAMES + 1];
	size_t n = 0, n_names = 0, at = 0;
	FILE *to = output->terminal.to;

	for (size_t i = 0; i < profile->n_processes; i++) {
		const struct profile_process *process = &profile->processes[i];

		while (at < profile->n_rss && profile->rss[at].process < process->id)
			at++;
		if (process->execed ||
		    (at < profile->n_rss && profile->rss[at].process == process->id))
			continue;
		n++;
		n_names = add_name(names, n_names, process->comm);
	}
	if (!n)
		return;
	fprintf(to, "%s more %s before (", number__count(n).text,
		plural__of("process{|es} ended", n).text);
	for (size_t i = 0; i < n_names && i < MOST_NAMES; i++) {
		fputs(i ? ", " : "", to);
		terminal__print(&output->terminal, names[i], 0);
	}
	fprintf(to,
		"%s): what %s had in memory then is not known; record that program by itself, or with --dump-at=peak what runs at the peak.\n",
		n_names > MOST_NAMES ? " and others" : "", plural__of("{it|they}", n).text);
}

static void print_part(const struct report_output *output, __u64 bytes, __u64 all)
{
	const struct terminal *terminal = &output->terminal;

	fprintf(terminal->to, "%14s  %6s  ", number__bytes(bytes, !terminal->is_terminal).text,
		number__share(bytes, all).text);
}

static void print_parts(const struct report_output *output, const struct resident_sums *sums)
{
	FILE *to = output->terminal.to;
	char when[64];

	fputc('\n', to);
	if (sums->peak) {
		snprintf(when, sizeof(when), "after %s", number__time(sums->peak->time_ns).text);
		fprintf(to, "%14s  %6s  %14s\n", "at the end", "", when);
	}
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		enum rss_kind kind = parts[i].kind;

		if (!sums->bytes[kind] && (!sums->peak || !sums->peak->bytes[kind]))
			continue;
		print_part(output, sums->bytes[kind], sums->all);
		if (sums->peak)
			print_part(output, sums->peak->bytes[kind], sums->peak_bytes);
		fprintf(to, "%s\n", parts[i].text);
	}
}

void report_output__resident(const struct report_output *output)
{
	struct resident_sums sums = add_up_parts(output->profile);
	const struct terminal *terminal = &output->terminal;
	size_t n_processes = 0;

	for (size_t i = 0; i < output->profile->n_rss; i++)
		n_processes += !i || output->profile->rss[i].process !=
					     output->profile->rss[i - 1].process;
	fputc('\n', terminal->to);
	terminal__set_colour(terminal, COLOUR_BOLD);
	fputs("Resident memory", terminal->to);
	terminal__set_colour(terminal, COLOUR_NONE);
	fprintf(terminal->to, ": %s", report_output__bytes(output, sums.all).text);
	if (n_processes > 1)
		fprintf(terminal->to, " of %s processes, each with what it shares with others",
			number__count(n_processes).text);
	fputc('\n', terminal->to);
	print_cause(output, &sums);
	print_untouched(output, &sums);
	print_lost(output, &sums);
	print_huge(output, &sums);
	print_peak(output, &sums, n_processes);
	print_others(output);
	print_parts(output, &sums);
	heap_text__print(output);
}
