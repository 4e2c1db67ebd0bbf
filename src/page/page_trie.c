// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_trie.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "array.h"
#include "page_data.h"

/* A node by where it is. */
struct node_key {
	__u32 parent, frame;
};

static bool match_node(const void *owner, __u32 id, const void *key)
{
	const struct page_trie *trie = owner;
	const struct node_key *wanted = key;

	return trie->parents[id] == wanted->parent && trie->node_frames[id] == wanted->frame;
}

static int add_node(struct page_trie *trie, __u32 parent, __u32 frame)
{
	size_t room = trie->room;

	if (trie->n_nodes >= UINT32_MAX ||
	    array__reserve(&trie->parents, &room, trie->n_nodes + 1, sizeof(*trie->parents)) ||
	    array__reserve(&trie->node_frames, &trie->room, trie->n_nodes + 1,
			   sizeof(*trie->node_frames)))
		return -ENOMEM;
	trie->parents[trie->n_nodes] = parent;
	trie->node_frames[trie->n_nodes] = frame;
	trie->n_nodes++;
	return 0;
}

int page_trie__init(struct page_trie *trie, const struct page_trie_options *options)
{
	*trie = (struct page_trie){ .seed = hash_seed(), .options = *options };
	return add_node(trie, 0, 0);
}

static int enter(struct page_trie *trie, __u32 frame, __u32 *at)
{
	struct node_key key = { *at, frame };
	__u64 hash = hash_mix(trie->seed, (__u64)key.parent << 32 | key.frame);
	__u32 found = hash_table__find(&trie->index, hash, match_node, trie, &key);
	int err;

	if (!found) {
		found = trie->n_nodes;
		err = add_node(trie, key.parent, frame);
		if (!err)
			err = hash_table__insert(&trie->index, hash, found);
		if (err)
			return err;
	}
	*at = found;
	return 0;
}

/* The node on the way to @at that has @frame; 0 if there is none. */
static __u32 find_above(const struct page_trie *trie, __u32 at, __u32 frame)
{
	while (at && trie->node_frames[at] != frame)
		at = trie->parents[at];
	return at;
}

int page_trie__add(struct page_trie *trie, const __u32 *frames, size_t n, __u32 *node)
{
	__u32 at = 0;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		__u32 frame = frames[trie->options.reversed ? n - 1 - i : i];
		__u32 above = trie->options.merged ? find_above(trie, at, frame) : 0;

		if (above)
			at = above;
		else
			err = enter(trie, frame, &at);
	}
	*node = at;
	return err;
}

int page_trie__write(const struct page_trie *trie, FILE *to)
{
	int err = page_data__u32("trie.parent", trie->parents, trie->n_nodes, to);

	if (!err)
		err = page_data__u32("trie.frame", trie->node_frames, trie->n_nodes, to);
	return err ? err : page_frames__write(&trie->frames, to);
}

void page_trie__release(struct page_trie *trie)
{
	page_frames__release(&trie->frames);
	free(trie->parents);
	free(trie->node_frames);
	hash_table__release(&trie->index);
}
