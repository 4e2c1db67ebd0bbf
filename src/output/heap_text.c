// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints what heaps have of the resident memory, and live blocks by size class. */
#include "heap_text.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "profile.h"
#include "report_output.h"
#include "text.h"

/* glibc's word before each block. */
#define GLIBC_HEADER 8
/* So many rows are printed; the others are added up in one. */
#define MOST_ROWS 8

static struct number_text bytes_of(const struct report_output *output, __u64 bytes)
{
	return number__bytes(bytes, !output->terminal.is_terminal);
}

struct heap_row {
	struct profile_heap heap;
	size_t n; /* number of heaps that are added up */
};

static void add_heap(struct heap_row *to, const struct profile_heap *heap)
{
	to->heap.kind = heap->kind;
	profile_heap__add(&to->heap, heap);
	to->n++;
}

static int compare_heaps(const void *a, const void *b)
{
	const struct heap_row *first = a, *second = b;

	if (first->heap.resident_bytes == second->heap.resident_bytes)
		return 0;
	return first->heap.resident_bytes > second->heap.resident_bytes ? -1 : 1;
}

static bool has_jemalloc(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_size_classes; i++)
		if (profile->size_classes[i].rule == SIZE_RULE_JEMALLOC)
			return true;
	return false;
}

/* Prints what the heap is, after its numbers. */
static void print_heap_name(const struct profile *profile, const struct heap_row *row, FILE *to)
{
	const struct profile_heap *heap = &row->heap;
	__u64 n = heap->kind == HEAP_OTHER ? heap->mappings : row->n;

	switch (heap->kind) {
	case HEAP_MAIN:
		fputs(n > 1 ? "main heaps of glibc (brk)" : "main heap of glibc (brk)", to);
		break;
	case HEAP_BREAK:
		fputs("brk, of another allocator than glibc's", to);
		break;
	case HEAP_ARENA:
		if (n == 1)
			fprintf(to, "arena of threads of glibc at 0x%llx, %s %s", heap->address,
				number__count(heap->mappings).text,
				plural__of("heap{|s}", heap->mappings).text);
		else
			fprintf(to, "%s arenas of threads of glibc", number__count(n).text);
		break;
	case HEAP_MAPPED:
		fputs("mapped by glibc for single large blocks", to);
		break;
	default:
		fprintf(to, "%s other %s with live blocks: %s", number__count(n).text,
			plural__of("mapping{|s}", n).text,
			has_jemalloc(profile)
				? "jemalloc's"
				: "of large and aligned blocks side by side, or another allocator's");
	}
}

static void print_heap_row(const struct report_output *output, const struct heap_row *row)
{
	const struct profile_heap *heap = &row->heap;
	FILE *to = output->terminal.to;

	fprintf(to, "%14s  %14s  %14s  %14s  %10s  ", bytes_of(output, heap->resident_bytes).text,
		bytes_of(output, heap->block_bytes).text, bytes_of(output, heap->slack_bytes).text,
		bytes_of(output, heap->free_bytes).text, number__count(heap->blocks).text);
	print_heap_name(output->profile, row, to);
	fputc('\n', to);
}

static void print_heaps(const struct report_output *output)
{
	const struct profile *profile = output->profile;
	_cleanup_(free_ptr) struct heap_row *rows = calloc(profile->n_heaps + 1, sizeof(*rows));
	struct heap_row more[HEAP_KINDS] = { 0 };
	size_t n = 0;

	if (!rows || !profile->n_heaps)
		return;
	for (size_t i = 0; i < profile->n_heaps; i++) {
		const struct profile_heap *heap = &profile->heaps[i];

		if (heap->kind != HEAP_ARENA)
			add_heap(&more[heap->kind], heap);
		else
			rows[n++] = (struct heap_row){ *heap, 1 };
	}
	qsort(rows, n, sizeof(*rows), compare_heaps);
	for (; n > MOST_ROWS; n--)
		add_heap(&more[HEAP_ARENA], &rows[n - 1].heap);
	for (int kind = 0; kind < HEAP_KINDS; kind++)
		if (more[kind].n)
			rows[n++] = more[kind];
	qsort(rows, n, sizeof(*rows), compare_heaps);
	fprintf(output->terminal.to, "\n%14s  %14s  %14s  %14s  %10s  by heap\n", "resident",
		"live blocks", "slack", "free", "blocks");
	for (size_t i = 0; i < n; i++)
		print_heap_row(output, &rows[i]);
}

static __u64 rounding_of(const struct profile_size_class *sizes)
{
	return sizes->usable_bytes ? sizes->usable_bytes - sizes->size_bytes : 0;
}

static int compare_classes(const void *a, const void *b)
{
	const struct profile_size_class *first = a, *second = b;

	if (first->size_bytes == second->size_bytes)
		return 0;
	return first->size_bytes > second->size_bytes ? -1 : 1;
}

static void print_class(const struct report_output *output, const struct profile_size_class *sizes,
			const char *name)
{
	FILE *to = output->terminal.to;

	fprintf(to, "%14s  %10s  %14s  ", name ? name : number__count(sizes->most_bytes).text,
		number__count(sizes->blocks).text, bytes_of(output, sizes->size_bytes).text);
	if (sizes->usable_bytes)
		fprintf(to, "%14s  %14s  %6s\n", bytes_of(output, sizes->usable_bytes).text,
			bytes_of(output, rounding_of(sizes)).text,
			number__share(rounding_of(sizes), sizes->usable_bytes).text);
	else
		fprintf(to, "%14s\n", "unknown");
}

/* Prints the classes of one rule, sorted. */
static void print_rule(const struct report_output *output, enum size_rule rule,
		       const struct profile_size_class *classes, size_t n)
{
	static const char *const texts[SIZE_RULES] = {
		[SIZE_RULE_GLIBC] = "as glibc rounds them, and 8 bytes before each",
		[SIZE_RULE_JEMALLOC] = "as jemalloc rounds them",
		[SIZE_RULE_UNKNOWN] = "requested, of an allocator whose rounding is not known",
	};
	struct profile_size_class rest = { 0 }, all = { 0 };

	fprintf(output->terminal.to, "\nLive blocks by size, %s:\n%14s  %10s  %14s  %14s  %14s\n",
		texts[rule], "up to", "blocks", "requested", "usable", "rounding");
	for (size_t i = 0; i < n; i++) {
		profile_size_class__add(&all, &classes[i]);
		if (i < MOST_ROWS)
			print_class(output, &classes[i], NULL);
		else
			profile_size_class__add(&rest, &classes[i]);
	}
	if (n > MOST_ROWS)
		print_class(output, &rest, "others");
	if (n > 1)
		print_class(output, &all, "all");
}

static void print_classes(const struct report_output *output)
{
	const struct profile *profile = output->profile;
	_cleanup_(free_ptr) struct profile_size_class *classes =
		calloc(profile->n_size_classes + 1, sizeof(*classes));

	if (!classes)
		return;
	for (int rule = SIZE_RULES - 1; rule >= 0; rule--) {
		size_t n = 0;

		for (size_t i = 0; i < profile->n_size_classes; i++)
			if (profile->size_classes[i].rule == (enum size_rule)rule)
				classes[n++] = profile->size_classes[i];
		qsort(classes, n, sizeof(*classes), compare_classes);
		if (n)
			print_rule(output, rule, classes, n);
	}
}

/* Says how much of the slack was freed, if all blocks' rounding is known. */
static void print_slack(const struct report_output *output)
{
	const struct profile *profile = output->profile;
	__u64 needed = 0, slack = 0;

	for (size_t i = 0; i < profile->n_size_classes; i++) {
		const struct profile_size_class *sizes = &profile->size_classes[i];

		if (sizes->rule == SIZE_RULE_UNKNOWN)
			return;
		needed = profile__add_up(needed, rounding_of(sizes));
		if (sizes->rule == SIZE_RULE_GLIBC)
			needed = profile__add_up(needed, sizes->blocks * GLIBC_HEADER);
	}
	for (size_t i = 0; i < profile->n_rss; i++)
		if (profile->rss[i].kind == RSS_SLACK)
			slack = profile__add_up(slack, profile->rss[i].size_bytes);
	if (needed < slack)
		fprintf(output->terminal.to,
			"Of the slack about %s are headers and rounding; the other %s were freed, or no block yet.\n",
			report_output__bytes(output, needed).text,
			report_output__bytes(output, slack - needed).text);
}

void heap_text__print(const struct report_output *output)
{
	print_heaps(output);
	print_classes(output);
	print_slack(output);
}

const char *heap_text__remedy(const struct profile *profile)
{
	bool has_others = !profile->n_heaps;

	if (has_jemalloc(profile))
		return "arena.<i>.purge of jemalloc gives them back";
	for (size_t i = 0; i < profile->n_heaps; i++)
		has_others |= profile->heaps[i].kind == HEAP_BREAK ||
			      profile->heaps[i].kind == HEAP_OTHER;
	return has_others
		       ? "malloc_trim(3) of glibc, MallocExtension_ReleaseFreeMemory() of tcmalloc "
			 "give them back"
		       : "malloc_trim(3) gives them back";
}
