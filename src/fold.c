// SPDX-License-Identifier: GPL-3.0-or-later
#include "fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "profile.h"

/*
 * Lines are never built to be compared: each is a list of ranks, and a million lines cost 24 MB.
 * Names hold neither ';' nor ' ', so the order of lines is that of their names, first to last, each
 * with the character that ends it.
 */
struct line {
	__u32 comm; /* ranks */
	__u32 leaf;
	const struct profile_stack *stack;
	__u64 cost;
};

struct fold {
	const struct profile *profile;
	const struct fold_options *options;
	char **names; /* by index: frames, then processes, then functions; ended by ';' or ' ' */
	__u32 *order; /* indexes into names, sorted */
	__u32 *ranks; /* by index */
	size_t n_names;
	struct line *lines;
	size_t n_lines;
};

static size_t process_name(const struct fold *fold, __u32 process)
{
	return fold->profile->n_frames + process - 1;
}

static size_t function_name(const struct fold *fold, enum ap_function function)
{
	return fold->profile->n_frames + fold->profile->n_processes + function;
}

/* Bytes of the well-formed UTF-8 sequence at @at, or 0. */
static size_t utf8_sequence(const unsigned char *at)
{
	size_t size;

	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		size = 2;
	else if (at[0] >= 0xe0 && at[0] <= 0xef)
		size = 3;
	else if (at[0] >= 0xf0 && at[0] <= 0xf4)
		size = 4;
	else
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Overlong forms, surrogates, beyond U+10FFFF, and the C1 controls. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f) ||
	    (at[0] == 0xc2 && at[1] < 0xa0))
		return 0;
	return size;
}

/* Makes @name safe in place, as allocprof-folded(1) tells, and ends it with @terminator, for which
 * there must be room. */
static void make_safe(char *name, char terminator)
{
	unsigned char *to = (unsigned char *)name;
	const unsigned char *at = to;

	while (*at) {
		size_t size = utf8_sequence(at);

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

/* A safe copy with its terminator; to be freed. */
static char *safe_name(const char *name, char terminator)
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

static char *frame_name(const struct fold *fold, const struct profile_frame *frame)
{
	_cleanup_(free_ptr) char *place = NULL;
	const struct profile_function *function = profile__frame_function(fold->profile, frame);
	const struct profile_module *module;

	if (function && *function->name && !fold->options->addresses)
		return safe_name(function->name, ';');
	if (!frame->module)
		return safe_name("[unknown]", ';');
	module = &fold->profile->modules[frame->module - 1];
	if (asprintf(&place, fold->options->addresses ? "%s+0x%llx" : "[%s+0x%llx]",
		     profile_module__basename(module), frame->offset) < 0) {
		place = NULL;
		return NULL;
	}
	return safe_name(place, ';');
}

static int name_all(struct fold *fold)
{
	const struct profile *profile = fold->profile;

	for (size_t i = 0; i < profile->n_frames; i++) {
		fold->names[i] = frame_name(fold, &profile->frames[i]);
		if (!fold->names[i])
			return -ENOMEM;
	}
	for (size_t i = 0; i < profile->n_processes; i++) {
		size_t at = process_name(fold, i + 1);

		fold->names[at] = safe_name(profile->processes[i].comm, ';');
		if (!fold->names[at])
			return -ENOMEM;
	}
	for (int i = 0; i < AP_FUNCTIONS; i++) {
		size_t at = function_name(fold, i);

		fold->names[at] = safe_name(profile__function_name(i), ' ');
		if (!fold->names[at])
			return -ENOMEM;
	}
	return 0;
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct fold *fold = context;

	return strcmp(fold->names[*(const __u32 *)a], fold->names[*(const __u32 *)b]);
}

/* Equal names get equal ranks. */
static void rank_all(struct fold *fold)
{
	__u32 rank = 0;

	for (size_t i = 0; i < fold->n_names; i++)
		fold->order[i] = i;
	qsort_r(fold->order, fold->n_names, sizeof(*fold->order), compare_names, fold);
	for (size_t i = 0; i < fold->n_names; i++) {
		if (i && strcmp(fold->names[fold->order[i]], fold->names[fold->order[i - 1]]))
			rank = i;
		fold->ranks[fold->order[i]] = rank;
	}
}

static int compare_ranks(__u32 a, __u32 b)
{
	return a < b ? -1 : a > b;
}

/* The rank of the name at @at, counted from the root, and the leaf's behind the last frame. */
static __u32 rank_at(const struct fold *fold, const struct line *line, __u32 at)
{
	const struct profile_stack *stack = line->stack;

	if (at >= stack->n_frames)
		return line->leaf;
	return fold->ranks[stack->frames[stack->n_frames - 1 - at] - 1];
}

static int compare_lines(const void *left, const void *right, void *context)
{
	const struct line *a = left, *b = right;
	const struct fold *fold = context;
	__u32 shorter =
		a->stack->n_frames < b->stack->n_frames ? a->stack->n_frames : b->stack->n_frames;
	int order = compare_ranks(a->comm, b->comm);

	/* No frame's name ends like a leaf's, so lines of unequal length differ by then. */
	for (__u32 at = 0; at <= shorter && !order; at++)
		order = compare_ranks(rank_at(fold, a, at), rank_at(fold, b, at));
	return order;
}

static void collect_lines(struct fold *fold)
{
	const struct profile *profile = fold->profile;

	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		__u64 cost = fold->options->cost == FOLD_BYTES ? count->size_bytes : count->calls;

		if (count->function == AP_FREE || !cost)
			continue;
		fold->lines[fold->n_lines++] = (struct line){
			.comm = fold->options->no_comm
					? 0
					: fold->ranks[process_name(fold, count->process)],
			.leaf = fold->ranks[function_name(fold, count->function)],
			.stack = &profile->stacks[count->stack - 1],
			.cost = cost,
		};
	}
}

static void print_line(const struct fold *fold, const struct line *line, __u64 cost, FILE *to)
{
	if (!fold->options->no_comm)
		fputs_unlocked(fold->names[fold->order[line->comm]], to);
	for (__u32 at = 0; at <= line->stack->n_frames; at++)
		fputs_unlocked(fold->names[fold->order[rank_at(fold, line, at)]], to);
	fprintf(to, "%llu\n", cost);
}

static int print_lines(const struct fold *fold, FILE *to)
{
	for (size_t i = 0; i < fold->n_lines && !ferror(to);) {
		const struct line *first = &fold->lines[i];
		__u64 cost = 0;

		for (; i < fold->n_lines && !compare_lines(first, &fold->lines[i], (void *)fold);
		     i++) {
			if (__builtin_add_overflow(cost, fold->lines[i].cost, &cost))
				cost = UINT64_MAX;
		}
		errno = 0;
		print_line(fold, first, cost, to);
	}
	if (ferror(to))
		return errno ? -errno : -EIO;
	return fflush(to) ? -errno : 0;
}

int fold__write(const struct profile *profile, const struct fold_options *options, FILE *to)
{
	struct fold fold = { .profile = profile, .options = options };
	int err = -ENOMEM;

	fold.n_names = profile->n_frames + profile->n_processes + AP_FUNCTIONS;
	if (fold.n_names > UINT32_MAX)
		return -ENOMEM;
	fold.names = calloc(fold.n_names, sizeof(*fold.names));
	fold.order = calloc(fold.n_names, sizeof(*fold.order));
	fold.ranks = calloc(fold.n_names, sizeof(*fold.ranks));
	fold.lines = calloc(profile->n_counts + 1, sizeof(*fold.lines));
	if (!fold.names || !fold.order || !fold.ranks || !fold.lines)
		goto out;
	err = name_all(&fold);
	if (err)
		goto out;
	rank_all(&fold);
	collect_lines(&fold);
	qsort_r(fold.lines, fold.n_lines, sizeof(*fold.lines), compare_lines, &fold);
	err = print_lines(&fold, to);
out:
	for (size_t i = 0; fold.names && i < fold.n_names; i++)
		free(fold.names[i]);
	free(fold.names);
	free(fold.order);
	free(fold.ranks);
	free(fold.lines);
	return err;
}
