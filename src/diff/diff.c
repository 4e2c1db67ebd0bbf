// SPDX-License-Identifier: GPL-3.0-or-later
/* Compares two profiles, and finds names of functions without the parts that differ between two
 * builds. */
#include "diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clone_suffix.h"
#include "diff_internal.h"
#include "error.h"
#include "filter.h"
#include "hash_table.h"
#include "profile.h"

static const char *const section_names[DIFF_SECTIONS] = {
	[DIFF_ONLY_BEFORE] = "only_in_before",
	[DIFF_ONLY_AFTER] = "only_in_after",
	[DIFF_CHANGED] = "changed",
	[DIFF_PAIRED] = "paired",
	[DIFF_ALIKE] = "alike",
	[DIFF_BELOW_MIN] = "below_min",
};

const char *diff__section_name(enum diff_section section)
{
	return (unsigned int)section < DIFF_SECTIONS ? section_names[section] : "unknown";
}

__s64 diff__difference(const __u64 costs[DIFF_SIDES])
{
	/* This cannot overflow, since both are at most PROFILE_MAX. */
	return (__s64)costs[DIFF_AFTER] - (__s64)costs[DIFF_BEFORE];
}

struct diff_cost diff_entry__cost(const struct diff *diff, const struct diff_entry *entry,
				  enum diff_side side)
{
	if (!entry->stacks[side])
		return (struct diff_cost){ 0 };
	return diff->stacks[entry->stacks[side] - 1].costs[side];
}

int diff__compare_stacks(const struct diff *diff, __u32 a, __u32 b)
{
	return diff->ranks[a] < diff->ranks[b] ? -1 : diff->ranks[a] > diff->ranks[b];
}

static __u64 magnitude(__s64 difference)
{
	return difference < 0 ? -(__u64)difference : (__u64)difference;
}

/* Unchanged stacks have no difference, so the minimum does not apply to them. */
static enum diff_section section_of(const struct diff *diff, const struct diff_entry *entry)
{
	__u32 before = entry->stacks[DIFF_BEFORE], after = entry->stacks[DIFF_AFTER];

	if (before == after && !entry->difference)
		return DIFF_ALIKE;
	if (magnitude(entry->difference) < diff->options.min)
		return DIFF_BELOW_MIN;
	if (!after)
		return DIFF_ONLY_BEFORE;
	if (!before)
		return DIFF_ONLY_AFTER;
	return before == after ? DIFF_CHANGED : DIFF_PAIRED;
}

bool diff_profile__has_range(const struct diff_profile *profile)
{
	return profile->n_runs > 1 || profile->is_sampled;
}

/* Returns whether the ranges of both sides' runs overlap. */
static bool is_noise(const struct diff *diff, const struct diff_entry *entry)
{
	struct diff_cost before = diff_entry__cost(diff, entry, DIFF_BEFORE);
	struct diff_cost after = diff_entry__cost(diff, entry, DIFF_AFTER);

	if (!diff_profile__has_range(&diff->profiles[DIFF_BEFORE]) &&
	    !diff_profile__has_range(&diff->profiles[DIFF_AFTER]))
		return false;
	return before.median != after.median && before.min <= after.max && after.min <= before.max;
}

static void add_entry(struct diff *diff, __u32 before, __u32 after, __u16 similarity)
{
	struct diff_entry *entry = &diff->entries[diff->n_entries++];
	__u64 costs[DIFF_SIDES];

	*entry = (struct diff_entry){ .stacks = { before, after }, .similarity = similarity };
	for (int side = 0; side < DIFF_SIDES; side++)
		costs[side] = diff_entry__cost(diff, entry, side).median;
	entry->difference = diff__difference(costs);
	entry->section = section_of(diff, entry);
	entry->is_noise = is_noise(diff, entry);
}

/* The keys by which entries are sorted, stored side by side, since the stacks to which entries
 * refer are scattered in memory. */
struct entry_key {
	enum diff_section section;
	__u32 rank; /* rank of the stack: that of AFTER if AFTER has it */
	__u64 magnitude, cost_after;
	size_t entry; /* index of the entry */
};

static int compare_keys(const void *left, const void *right)
{
	const struct entry_key *a = left, *b = right;

	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	if (a->magnitude != b->magnitude)
		return a->magnitude > b->magnitude ? -1 : 1;
	if (a->cost_after != b->cost_after)
		return a->cost_after > b->cost_after ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int sort_entries(struct diff *diff)
{
	_cleanup_(free_ptr) struct entry_key *keys = calloc(diff->n_entries + 1, sizeof(*keys));
	struct diff_entry *sorted = calloc(diff->n_entries + 1, sizeof(*sorted));

	if (!keys || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];
		enum diff_side side = entry->stacks[DIFF_AFTER] ? DIFF_AFTER : DIFF_BEFORE;

		keys[i] = (struct entry_key){
			.section = entry->section,
			.rank = diff->ranks[entry->stacks[side] - 1],
			.magnitude = magnitude(entry->difference),
			.cost_after = diff_entry__cost(diff, entry, DIFF_AFTER).median,
			.entry = i,
		};
	}
	qsort(keys, diff->n_entries, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < diff->n_entries; i++)
		sorted[i] = diff->entries[keys[i].entry];
	free(diff->entries);
	diff->entries = sorted;
	return 0;
}

static void sum_sections(struct diff *diff)
{
	for (size_t i = 0; i < diff->n_entries; i++) {
		const struct diff_entry *entry = &diff->entries[i];
		struct diff_sum *sum = &diff->sections[entry->section];

		if (!sum->n++)
			sum->first = i;
		for (int side = 0; side < DIFF_SIDES; side++)
			sum->costs[side] = diff__add_up(diff, sum->costs[side],
							diff_entry__cost(diff, entry, side).median);
	}
}

static int make_entries(struct diff *diff)
{
	_cleanup_(free_ptr) bool *is_paired = calloc(diff->n_stacks + 1, sizeof(*is_paired));
	_cleanup_(free_ptr) struct diff_pair *pairs = NULL;
	size_t n_pairs = 0;
	int err = 0;

	diff->entries = calloc(diff->n_stacks + 1, sizeof(*diff->entries));
	if (!is_paired || !diff->entries)
		return -ENOMEM;
	if (!diff->options.no_pairing) {
		diff->aligner = diff_aligner__new(diff);
		err = diff->aligner
			      ? diff_pair__find(diff, &pairs, &n_pairs, &diff->stopped_pairing)
			      : -ENOMEM;
	}
	if (err)
		return err;
	for (size_t i = 0; i < n_pairs; i++) {
		__u32 before = pairs[i].stacks[DIFF_BEFORE], after = pairs[i].stacks[DIFF_AFTER];

		is_paired[before] = is_paired[after] = true;
		add_entry(diff, before + 1, after + 1, pairs[i].similarity);
	}
	for (size_t i = 0; i < diff->n_stacks; i++) {
		const struct diff_stack *stack = &diff->stacks[i];

		if (!is_paired[i])
			add_entry(diff, stack->is_in[DIFF_BEFORE] ? i + 1 : 0,
				  stack->is_in[DIFF_AFTER] ? i + 1 : 0, 1000);
	}
	err = sort_entries(diff);
	if (!err)
		sum_sections(diff);
	return err;
}

int diff__new(const struct diff_input inputs[DIFF_SIDES], const struct diff_options *options,
	      struct diff **diff, struct error *error)
{
	struct diff *created;
	int err;

	for (int side = 0; side < DIFF_SIDES; side++) {
		err = filter__check_cost(inputs[side].profile, options->cost, error);
		if (err)
			return err;
	}
	created = calloc(1, sizeof(*created));
	if (created) {
		created->options = *options;
		err = diff__read_stacks(created, inputs);
		if (!err)
			err = make_entries(created);
		if (!err) {
			*diff = created;
			return 0;
		}
	}
	diff__free(created);
	return error__set(error, -ENOMEM, "cannot compare: out of memory");
}

void diff__free(struct diff *diff)
{
	if (!diff)
		return;
	for (size_t i = 0; i < diff->n_names; i++) {
		free(diff->names[i].function);
		free(diff->names[i].module);
	}
	for (int side = 0; side < DIFF_SIDES; side++)
		free(diff->count_stacks[side]);
	free(diff->names);
	free(diff->frames);
	free(diff->stacks);
	free(diff->ranks);
	free(diff->entries);
	diff_aligner__free(diff->aligner);
	free(diff);
}

static void mark(const struct diff *diff, struct diff_mark *to, __u32 name, bool before, bool after)
{
	*to = (struct diff_mark){ &diff->names[name], { before, after } };
}

/* Merges the frames of both stacks; replaced frames come before those that replace them. */
static size_t weave(const struct diff *diff, const __u32 *before, const __u32 *after,
		    const enum diff_edit *edits, size_t n_edits, struct diff_mark *marks)
{
	size_t n = 0, i = 0, j = 0, at = 0;

	while (at < n_edits) {
		size_t from = at, from_j = j;

		if (edits[at] == DIFF_EDIT_SAME && before[i] == after[j]) {
			mark(diff, &marks[n++], before[i], true, true);
			i++;
			j++;
			at++;
			continue;
		}
		for (; at < n_edits && (edits[at] != DIFF_EDIT_SAME || before[i] != after[j]);
		     at++) {
			if (edits[at] != DIFF_EDIT_B_ONLY)
				mark(diff, &marks[n++], before[i++], true, false);
			j += edits[at] != DIFF_EDIT_A_ONLY;
		}
		for (j = from_j; from < at; from++) {
			if (edits[from] != DIFF_EDIT_A_ONLY)
				mark(diff, &marks[n++], after[j++], false, true);
		}
	}
	return n;
}

static int pair_marks(const struct diff *diff, const struct diff_stack *before,
		      const struct diff_stack *after, struct diff_mark *marks, size_t *n_marks)
{
	_cleanup_(free_ptr) enum diff_edit *edits = NULL;
	struct diff_alignment alignment;
	size_t n_edits;

	edits = calloc(before->n_frames + after->n_frames, sizeof(*edits));
	if (!edits)
		return -ENOMEM;
	/* The pair was aligned before, so this cannot fail. */
	if (!diff_aligner__align(diff->aligner, before - diff->stacks, after - diff->stacks,
				 &alignment, edits, &n_edits))
		return -EINVAL;
	*n_marks = weave(diff, diff_stack__frames(diff, before), diff_stack__frames(diff, after),
			 edits, n_edits, marks);
	return 0;
}

int diff_entry__marks(const struct diff *diff, const struct diff_entry *entry,
		      struct diff_mark **marks, size_t *n_marks)
{
	_cleanup_(free_ptr) struct diff_mark *list = NULL;
	const struct diff_stack *stacks[DIFF_SIDES] = { NULL };
	size_t n = 0;
	int err = 0;

	for (int side = 0; side < DIFF_SIDES; side++) {
		if (entry->stacks[side]) {
			stacks[side] = &diff->stacks[entry->stacks[side] - 1];
			n += stacks[side]->n_frames;
		}
	}
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	if (stacks[DIFF_BEFORE] && stacks[DIFF_AFTER] &&
	    stacks[DIFF_BEFORE] != stacks[DIFF_AFTER]) {
		err = pair_marks(diff, stacks[DIFF_BEFORE], stacks[DIFF_AFTER], list, &n);
	} else {
		const struct diff_stack *stack = stacks[!stacks[DIFF_BEFORE]];

		n = stack->n_frames;
		for (size_t i = 0; i < n; i++)
			mark(diff, &list[i], diff_stack__frames(diff, stack)[i],
			     stacks[DIFF_BEFORE], stacks[DIFF_AFTER]);
	}
	if (err)
		return err;
	*marks = list;
	*n_marks = n;
	list = NULL;
	return 0;
}

static const char *const prefixes[] = { "specialized ", "merged ", "outlined " };
static bool is_operator(const char *name, const char *at)
{
	return at - name >= 8 && !memcmp(at - 8, "operator", 8);
}

/* Copies @name without the text in <> and (). */
static void drop_brackets(const char *name, char *text)
{
	size_t len = 0;
	int depth = 0;

	for (const char *at = name; *at; at++) {
		bool opens = *at == '<' || *at == '(', closes = *at == '>' || *at == ')';

		if (opens && !depth && is_operator(name, at))
			opens = false;
		/* The '>' of "->" or of an operator is no bracket. */
		if (closes && (!depth || at[-1] == '-'))
			closes = false;
		if (closes)
			depth--;
		else if (opens)
			depth++;
		else if (!depth)
			text[len++] = *at;
	}
	text[len] = '\0';
	/* The name consists only of brackets, such as "(anonymous namespace)", or they are
	 * unbalanced. */
	if (!len || depth)
		strcpy(text, name);
}

/* Drops the hash of Rust's legacy mangling, "::h" and 16 hexadecimal digits at the end. */
static void drop_rust_hash(char *text)
{
	size_t len = strlen(text);

	if (len > 19 && !memcmp(text + len - 19, "::h", 3) &&
	    strspn(text + len - 16, "0123456789abcdef") == 16)
		text[len - 19] = '\0';
}

/*  */
static void canonical_text(const char *name, char *text)
{
	char *clone;

	if (*name == '[') {
		strcpy(text, name);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t size = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], size) && name[size])
			name += size;
	}
	drop_brackets(name, text);
	clone = strstr(text, " [clone .");
	if (clone && clone != text)
		*clone = '\0';
	text[clone_suffix__start(text, strlen(text))] = '\0';
	drop_rust_hash(text);
}

static int compare_pairs(const void *a, const void *b)
{
	return (int)*(const __u16 *)a - *(const __u16 *)b;
}

size_t diff_name__pairs(const char *name, __u16 pairs[DIFF_NAME_PAIRS])
{
	size_t n = 0;

	for (const unsigned char *at = (const unsigned char *)name; *at && at[1]; at++) {
		if (n == DIFF_NAME_PAIRS)
			break;
		pairs[n++] = at[0] << 8 | at[1];
	}
	qsort(pairs, n, sizeof(*pairs), compare_pairs);
	return n;
}

unsigned int diff_name__shared_pairs(const __u16 *a, size_t n_a, const __u16 *b, size_t n_b)
{
	size_t shared = 0;

	for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
		if (a[i] == b[j]) {
			shared++;
			i++;
			j++;
		} else if (a[i] < b[j]) {
			i++;
		} else {
			j++;
		}
	}
	return n_a + n_b ? shared * 2 * 1000 / (n_a + n_b) : 0;
}

bool diff_name__is_comparable(const struct diff_name *a, const struct diff_name *b)
{
	/* Unnamed code has no text to compare, and a frame and the allocator's function are never
	 * alike. */
	return *a->function != '[' && *b->function != '[' && !*a->module == !*b->module;
}

static int compare_names(const void *left, const void *right)
{
	const struct diff_name *a = left, *b = right;
	int order = strcmp(a->function, b->function);

	return order ? order : strcmp(a->module, b->module);
}

/* Sorts the names by text, so that the result does not depend on the order of the files. Frames,
 * which have index + 1, get the new index. */
static int sort_names(struct diff *diff)
{
	_cleanup_(free_ptr) __u32 *ranks = calloc(diff->n_names + 1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	/* The old index is kept in a field that gets its value only later. */
	for (size_t i = 0; i < diff->n_names; i++)
		diff->names[i].canonical = i;
	if (diff->n_names)
		qsort(diff->names, diff->n_names, sizeof(*diff->names), compare_names);
	for (size_t i = 0; i < diff->n_names; i++)
		ranks[diff->names[i].canonical] = i;
	for (size_t i = 0; i < diff->n_frames; i++)
		diff->frames[i] = ranks[diff->frames[i] - 1];
	return 0;
}

struct canonical_names {
	char **texts;
	size_t n;
};

static bool match_canonical(const void *owner, __u32 id, const void *key)
{
	const struct canonical_names *names = owner;

	return !strcmp(names->texts[id - 1], key);
}

static int set_canonical(struct diff *diff)
{
	__u64 seed = hash_seed();
	struct canonical_names names = { calloc(diff->n_names + 1, sizeof(*names.texts)), 0 };
	struct hash_table index = { 0 };
	int err = names.texts ? 0 : -ENOMEM;

	for (size_t i = 0; i < diff->n_names && !err; i++) {
		_cleanup_(free_ptr) char *text = malloc(strlen(diff->names[i].function) + 1);
		__u32 id;

		if (!text) {
			err = -ENOMEM;
			break;
		}
		canonical_text(diff->names[i].function, text);
		id = hash_table__find(&index, hash_string(seed, text), match_canonical, &names,
				      text);
		if (!id) {
			err = hash_table__insert(&index, hash_string(seed, text), names.n + 1);
			if (err)
				break;
			names.texts[names.n++] = text;
			text = NULL;
			id = names.n;
		}
		diff->names[i].canonical = id;
	}
	for (size_t i = 0; i < names.n; i++)
		free(names.texts[i]);
	free(names.texts);
	hash_table__release(&index);
	return err;
}

static void note_sides(struct diff *diff)
{
	for (size_t i = 0; i < diff->n_stacks; i++) {
		const struct diff_stack *stack = &diff->stacks[i];
		const __u32 *frames = diff_stack__frames(diff, stack);

		for (__u32 at = 0; at < stack->n_frames; at++) {
			struct diff_name *name = &diff->names[frames[at]];

			name->is_in[DIFF_BEFORE] |= stack->is_in[DIFF_BEFORE];
			name->is_in[DIFF_AFTER] |= stack->is_in[DIFF_AFTER];
		}
	}
}

int diff__order_names(struct diff *diff)
{
	int err = sort_names(diff);

	if (!err)
		err = set_canonical(diff);
	if (!err)
		note_sides(diff);
	return err;
}
