// SPDX-License-Identifier: GPL-3.0-or-later
/* Names of functions without what differs between two builds of them, and which names of two profiles are the same
 * then. */
#include "diff_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clone_suffix.h"
#include "hash_table.h"

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
	/* Only brackets, such as "(anonymous namespace)", or unbalanced ones. */
	if (!len || depth)
		strcpy(text, name);
}

/* Rust's legacy mangling ends in "::h" and 16 hexadecimal digits. */
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
	/* Unnamed code has no comparable text, nor has a frame and the allocator's function. */
	return *a->function != '[' && *b->function != '[' && !*a->module == !*b->module;
}

static int compare_names(const void *left, const void *right)
{
	const struct diff_name *a = left, *b = right;
	int order = strcmp(a->function, b->function);

	return order ? order : strcmp(a->module, b->module);
}

/* Sorts the names by text, so that the result does not depend on the order of the files. Index + 1
 * in frames becomes the index. */
static int sort_names(struct diff *diff)
{
	_cleanup_(free_ptr) __u32 *ranks = calloc(diff->n_names + 1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	/* The old index is kept in a field that is filled in later. */
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
