// SPDX-License-Identifier: GPL-3.0-or-later
#include "folded.h"

#include <errno.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "diff_output.h"
#include "filter.h"
#include "list_sort.h"
#include "profile.h"
#include "stack_view.h"
#include "text.h"

/*
 * Lines are sorted and summed as lists of ranks, without building them. No name contains ';' or ' ',
 * so lines sort by their names, each with its terminating character.
 */
struct folded_names {
	char **texts; /* indexed as given */
	__u32 *order; /* indexes into texts, sorted */
	__u32 *ranks; /* indexed like @texts; equal texts have equal ranks */
	size_t n;
};

static inline const char *folded_names__text(const struct folded_names *names, __u32 rank)
{
	return names->texts[names->order[rank]];
}

/* The rank after the last name of a line. */
#define FOLDED_END UINT32_MAX

/* Lines are compared as lists of ranks, without building them. */
struct folded_lines {
	struct folded_names names;
	__u32 *order; /* numbers of the lines, which the user fills in; owned */
	size_t n;     /* number of elements that are filled in */
	/* Returns the rank of name number @at of @line, counted from the root; FOLDED_END after
	 * the last one. */
	__u32 (*rank)(const void *owner, __u32 line, size_t at);
	/* Adds the costs of @line, of which there are n_costs, to @costs. */
	void (*add)(const void *owner, __u32 line, __u64 *costs);
	const void *owner; /* first argument of the functions */
	size_t n_costs;
	bool is_upright; /* as in struct folded_options */
};

#define FOLDED_MAX_COSTS 2

/* Replaces unsafe characters (allocprof-folded(1)) and appends @terminator, for which there must be
 * room. */
static void make_safe(char *name, char terminator)
{
	unsigned char *to = (unsigned char *)name;
	const unsigned char *at = to;

	while (*at) {
		size_t size = *at < 0x80 ? 0 : utf8__printable((const char *)at);

		if (size) {
			memmove(to, at, size);
			to += size;
			at += size;
			continue;
		}
		if (*at == ' ' && to != (unsigned char *)name && to[-1] == ',') {
			at++;
			continue;
		}
		if (*at == ';')
			*to = ':';
		else if (strchr(" \t\n\v\f\r", *at))
			*to = '_';
		else if (*at < 0x20 || *at >= 0x7f)
			*to = '?';
		else
			*to = *at;
		to++;
		at++;
	}
	*to++ = terminator;
	*to = '\0';
}

/* An escaped copy of @name followed by @terminator, ';' or ' '. To be freed; NULL on ENOMEM. */
static char *folded_name__new(const char *name, char terminator)
{
	size_t len;
	char *copy;

	if (!*name)
		name = "[unknown]";
	len = strlen(name);
	copy = malloc(len + 2);
	if (!copy)
		return NULL;
	memcpy(copy, name, len + 1);
	make_safe(copy, terminator);
	return copy;
}

static int compare_texts(const void *a, const void *b, void *context)
{
	const struct folded_names *names = context;

	return strcmp(names->texts[*(const __u32 *)a], names->texts[*(const __u32 *)b]);
}

/* Makes names of @n texts, each of which @text allocates by its index. Returns 0 or -ENOMEM; the
 * caller releases @names in either case. */
static int folded_names__make(struct folded_names *names, size_t n,
			      char *(*text)(size_t index, const void *context), const void *context)
{
	__u32 rank = 0;

	*names = (struct folded_names){ .n = n };
	if (n > UINT32_MAX)
		return -ENOMEM;
	names->texts = calloc(n + 1, sizeof(*names->texts));
	names->order = calloc(n + 1, sizeof(*names->order));
	names->ranks = calloc(n + 1, sizeof(*names->ranks));
	if (!names->texts || !names->order || !names->ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		names->texts[i] = text(i, context);
		if (!names->texts[i])
			return -ENOMEM;
		names->order[i] = i;
	}
	qsort_r(names->order, n, sizeof(*names->order), compare_texts, names);
	for (size_t i = 0; i < n; i++) {
		if (i && strcmp(folded_names__text(names, i), folded_names__text(names, i - 1)))
			rank = i;
		names->ranks[names->order[i]] = rank;
	}
	return 0;
}

static void folded_names__release(struct folded_names *names)
{
	for (size_t i = 0; names->texts && i < names->n; i++)
		free(names->texts[i]);
	free(names->texts);
	free(names->order);
	free(names->ranks);
}

/* A line as text. The next line often begins with the same names, so these stay. */
struct text {
	char *bytes;
	size_t room;
	__u32 *ranks;
	size_t *ends; /* indexed by name: where the name ends in @bytes */
	size_t n_names, ranks_room, ends_room;
};

static int append_name(struct text *text, const struct folded_names *names, __u32 rank)
{
	size_t begin = text->n_names ? text->ends[text->n_names - 1] : 0;
	const char *name = folded_names__text(names, rank);
	size_t size = strlen(name);

	if (array__reserve(&text->ranks, &text->ranks_room, text->n_names + 1,
			   sizeof(*text->ranks)) ||
	    array__reserve(&text->ends, &text->ends_room, text->n_names + 1, sizeof(*text->ends)) ||
	    array__reserve(&text->bytes, &text->room, begin + size, 1))
		return -ENOMEM;
	memcpy(text->bytes + begin, name, size);
	text->ranks[text->n_names] = rank;
	text->ends[text->n_names++] = begin + size;
	return 0;
}

/* Returns how many names @line shares with @text, from the root. *@rank is the rank of its next
 * name. */
static size_t share(const struct folded_lines *lines, __u32 line, const struct text *text,
		    __u32 *rank)
{
	size_t at = 0;

	while ((*rank = lines->rank(lines->owner, line, at)) != FOLDED_END && at < text->n_names &&
	       text->ranks[at] == *rank)
		at++;
	return at;
}

/* Changes @text, whose first @at names are those of @line, to @line; the next name has @rank. */
static int build(const struct folded_lines *lines, __u32 line, size_t at, __u32 rank,
		 struct text *text)
{
	int err = 0;

	text->n_names = at;
	while (rank != FOLDED_END && !err) {
		err = append_name(text, &lines->names, rank);
		rank = lines->rank(lines->owner, line, ++at);
	}
	return err;
}

static void print_text(const struct folded_lines *lines, const struct text *text,
		       const __u64 *costs, FILE *to)
{
	errno = 0;
	if (text->n_names)
		fwrite_unlocked(text->bytes, 1, text->ends[text->n_names - 1], to);
	for (size_t i = 0; i < lines->n_costs; i++)
		fprintf(to, i ? " %llu" : "%llu", costs[i]);
	putc_unlocked('\n', to);
}

/* Scripts tell frames from numbers by their digits. */
static bool is_number(const char *name, size_t size)
{
	size_t n = 0;

	while (n < size && name[n] >= '0' && name[n] <= '9')
		n++;
	return n == size;
}

static void print_upright(const struct text *text, __u64 cost, FILE *to)
{
	errno = 0;
	for (size_t i = text->n_names; i-- > 0;) {
		size_t begin = i ? text->ends[i - 1] : 0, size = text->ends[i] - begin - 1;
		const char *name = text->bytes + begin;
		bool in_brackets = is_number(name, size);

		fprintf(to, "              %s%.*s%s", in_brackets ? "[" : "", (int)size, name,
			in_brackets ? "]" : "");
		/* Scripts cut off an offset at the last plus sign. */
		fputs(memchr(name, '+', size) ? "+0x0\n" : "\n", to);
	}
	fprintf(to, " %15llu\n\n", cost);
}

static void print(const struct folded_lines *lines, const struct text *text, const __u64 *costs,
		  FILE *to)
{
	if (lines->is_upright)
		print_upright(text, costs[0], to);
	else
		print_text(lines, text, costs, to);
}

static int print_lines(const struct folded_lines *lines, struct text *text, FILE *to)
{
	__u64 costs[FOLDED_MAX_COSTS] = { 0 };

	for (size_t i = 0; i < lines->n && !ferror(to); i++) {
		__u32 line = lines->order[i], rank;
		size_t n_shared = share(lines, line, text, &rank);
		int err;

		if (rank != FOLDED_END || n_shared != text->n_names) {
			if (i)
				print(lines, text, costs, to);
			err = build(lines, line, n_shared, rank, text);
			if (err)
				return err;
			memset(costs, 0, sizeof(costs));
		}
		lines->add(lines->owner, line, costs);
	}
	if (lines->n && !ferror(to))
		print(lines, text, costs, to);
	if (ferror(to))
		return errno ? -errno : -EIO;
	return fflush(to) ? -errno : 0;
}

/* Makes @n_names names, whose texts @name makes by index, and room for @n lines. Returns 0 or
 * -ENOMEM; the caller releases @lines in either case. */
static int folded_lines__init(struct folded_lines *lines, size_t n, size_t n_names,
			      char *(*name)(size_t index, const void *owner))
{
	lines->order = calloc(n + 1, sizeof(*lines->order));
	lines->n = 0;
	return lines->order && n <= UINT32_MAX
		       ? folded_names__make(&lines->names, n_names, name, lines->owner)
		       : -ENOMEM;
}

/* Sorts the lines and prints them; lines with the same names become one. Returns 0 or a negative
 * errno. */
static int folded_lines__print(struct folded_lines *lines, FILE *to)
{
	struct text text = { 0 };
	int err = list_sort(lines->order, lines->n, lines->rank, lines->owner);

	if (!err)
		err = print_lines(lines, &text, to);
	free(text.bytes);
	free(text.ranks);
	free(text.ends);
	return err;
}

/* Frees the names and the order. */
static void folded_lines__release(struct folded_lines *lines)
{
	folded_names__release(&lines->names);
	free(lines->order);
}

struct line {
	__u32 comm; /* ranks */
	__u32 thread;
	__u32 leaf;
	__u32 stack; /* id */
	__u64 cost;
};

struct fold {
	const struct profile *profile;
	const struct stack_view *view;
	const struct folded_options *options;
	struct folded_lines
		folded; /* its names are the view's labels, then processes, threads, functions */
	struct line *lines;
};

static size_t process_name(const struct fold *fold, __u32 process)
{
	return fold->view->n_labels + process - 1;
}

static size_t thread_name(const struct fold *fold, __u32 thread)
{
	return process_name(fold, fold->profile->n_processes + 1) + thread - 1;
}

static size_t function_name(const struct fold *fold, enum ap_function function)
{
	return thread_name(fold, fold->profile->n_threads + 1) + function;
}

/* stackcollapse-perf.pl appends "_[i]" to inlined functions; flamegraph.pl recognizes it. */
static char *label_name(const struct stack_label *label)
{
	_cleanup_(free_ptr) char *marked = NULL;

	if (!label->inlined)
		return folded_name__new(label->text, ';');
	if (asprintf(&marked, "%s_[i]", label->text) < 0) {
		marked = NULL;
		return NULL;
	}
	return folded_name__new(marked, ';');
}

/* Returns the name number @index with its terminator: ';', or ' ' after the innermost name. */
static char *make_name(size_t index, const void *context)
{
	const struct fold *fold = context;
	const struct profile *profile = fold->profile;

	if (index < fold->view->n_labels)
		return label_name(&fold->view->labels[index]);
	index -= fold->view->n_labels;
	if (index < profile->n_processes)
		return folded_name__new(profile_process__label(&profile->processes[index]), ';');
	index -= profile->n_processes;
	if (index < profile->n_threads)
		return folded_name__new(profile->threads[index].name, ';');
	index -= profile->n_threads;
	return folded_name__new(definition_names__function(&profile->definitions, index), ' ');
}

static __u32 rank_at(const void *owner, __u32 number, size_t at)
{
	const struct fold *fold = owner;
	const struct line *line = &fold->lines[number];
	const __u32 *frames;
	size_t n;

	if (!fold->options->no_comm && !at--)
		return line->comm;
	if (fold->options->by_thread && !at--)
		return line->thread;
	frames = stack_view__frames(fold->view, line->stack, &n);
	if (at < n)
		return fold->folded.names.ranks[frames[n - 1 - at]];
	return at == n ? line->leaf : FOLDED_END;
}

static void add_cost(const void *owner, __u32 number, __u64 *costs)
{
	const struct fold *fold = owner;

	if (__builtin_add_overflow(*costs, fold->lines[number].cost, costs))
		*costs = UINT64_MAX;
}

static void collect_lines(struct fold *fold)
{
	const struct folded_options *options = fold->options;
	const struct profile *profile = fold->profile;
	const __u32 *ranks = fold->folded.names.ranks;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		struct selection selection;
		__u64 cost;

		if (options->counts)
			selection = options->counts[i];
		else
			filter__whole(profile, NULL, count, &selection);
		cost = cost__of(options->cost, &selection);

		if (profile__function_frees(count->function) || !cost)
			continue;
		fold->folded.order[fold->folded.n] = fold->folded.n;
		fold->lines[fold->folded.n++] = (struct line){
			.comm = ranks[process_name(fold, count->process)],
			.thread = ranks[thread_name(fold, count->thread)],
			.leaf = ranks[function_name(fold, count->function)],
			.stack = count->stack,
			.cost = cost,
		};
	}
}

int folded__write(const struct profile *profile, const struct stack_view *view,
		  const struct folded_options *options, FILE *to)
{
	struct fold fold = {
		.profile = profile,
		.view = view,
		.options = options,
		.folded = { .rank = rank_at,
			    .add = add_cost,
			    .owner = &fold,
			    .n_costs = 1,
			    .is_upright = options->is_upright },
	};
	int err = folded_lines__init(&fold.folded, profile->n_counts,
				     function_name(&fold, AP_FUNCTIONS), make_name);

	fold.lines = calloc(profile->n_counts + 1, sizeof(*fold.lines));
	if (!fold.lines)
		err = -ENOMEM;
	if (!err) {
		collect_lines(&fold);
		err = folded_lines__print(&fold.folded, to);
	}
	free(fold.lines);
	folded_lines__release(&fold.folded);
	return err;
}

/* The difference of two profiles as folded stacks. */

struct diff_fold {
	const struct diff *diff;
	/* folded.names has each name of the diff twice: with ';' behind it for all frames of a
	 * line but the last, and with ' ' for the last one. folded.lines are indexes of the diff's
	 * entries. */
	struct folded_lines folded;
};

static char *make_entry_name(size_t index, const void *owner)
{
	const struct diff_fold *fold = owner;

	return folded_name__new(fold->diff->names[index / 2].function, index % 2 ? ' ' : ';');
}

static __u32 entry_rank_at(const void *owner, __u32 line, size_t at)
{
	const struct diff_fold *fold = owner;
	const struct diff *diff = fold->diff;
	const struct diff_entry *entry = &diff->entries[line];
	__u32 number =
		entry->stacks[DIFF_AFTER] ? entry->stacks[DIFF_AFTER] : entry->stacks[DIFF_BEFORE];
	const struct diff_stack *stack = &diff->stacks[number - 1];
	const __u32 *frames = diff_stack__frames(diff, stack);

	if (at >= stack->n_frames)
		return FOLDED_END;
	return fold->folded.names
		.ranks[2 * (size_t)frames[stack->n_frames - 1 - at] + (at + 1 == stack->n_frames)];
}

static void add_entry_costs(const void *owner, __u32 line, __u64 *costs)
{
	const struct diff_fold *fold = owner;

	for (int side = 0; side < DIFF_SIDES; side++)
		costs[side] = profile__add_up(
			costs[side],
			diff_entry__cost(fold->diff, &fold->diff->entries[line], side).median);
}

static void collect_entries(struct diff_fold *fold)
{
	const struct diff *diff = fold->diff;

	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];

		if (diff_entry__cost(diff, entry, DIFF_BEFORE).median ||
		    diff_entry__cost(diff, entry, DIFF_AFTER).median)
			fold->folded.order[fold->folded.n++] = i;
	}
}

int diff_output__folded(const struct diff *diff, FILE *to)
{
	struct diff_fold fold = {
		.diff = diff,
		.folded = { .rank = entry_rank_at,
			    .add = add_entry_costs,
			    .owner = &fold,
			    .n_costs = DIFF_SIDES },
	};
	int err = folded_lines__init(&fold.folded, diff->n_entries, 2 * diff->n_names,
				     make_entry_name);

	if (!err) {
		collect_entries(&fold);
		err = folded_lines__print(&fold.folded, to);
	}
	folded_lines__release(&fold.folded);
	return err;
}
