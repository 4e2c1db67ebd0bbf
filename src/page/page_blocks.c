// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the columns of the table of single blocks into the page of `allocprof html`. */
#include "page_blocks.h"

#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cleanup.h"
#include "event_blocks.h"
#include "page_data.h"
#include "page_trie.h"
#include "profile.h"
#include "stack_view.h"

/* A column of the table: exact up to 2^53, as an address of a process is. */
struct column {
	const char *name;
	double (*of)(const struct event_block *block, const struct page_input *input,
		     const __u32 *nodes);
};

#define COLUMN(column, value)                                                                      \
	static double column##_of(const struct event_block *block, const struct page_input *input, \
				  const __u32 *nodes)                                              \
	{                                                                                          \
		(void)input;                                                                       \
		(void)nodes;                                                                       \
		return value;                                                                      \
	}

COLUMN(node, nodes[block->count - 1])
/* Indexes of threads in the page's list; that of who ended it is 0 if it is unknown, else one more. */
COLUMN(thread, input->profile->counts[block->count - 1].thread - 1)
COLUMN(tid, block->thread)
COLUMN(address, block->address)
COLUMN(bytes, block->size_bytes)
COLUMN(weight, block->weight)
COLUMN(born, block->born_ns)
COLUMN(died, block->died_ns)
COLUMN(fate, block->fate)
COLUMN(temporary, block->temporary)
COLUMN(ended_by, block->ended_by)
COLUMN(ended_thread, block->ended_thread)
COLUMN(next_address, block->next_address)
COLUMN(next_bytes, block->next_bytes)
/* Index of the type in the page's list. */
COLUMN(type, input->view->types[input->profile->counts[block->count - 1].stack - 1])

static const struct column columns[] = {
	{ "node", node_of },
	{ "thread", thread_of },
	{ "tid", tid_of },
	{ "address", address_of },
	{ "bytes", bytes_of },
	{ "weight", weight_of },
	{ "born", born_of },
	{ "died", died_of },
	{ "fate", fate_of },
	{ "temporary", temporary_of },
	{ "endedBy", ended_by_of },
	{ "endedThread", ended_thread_of },
	{ "nextAddress", next_address_of },
	{ "nextBytes", next_bytes_of },
	{ "type", type_of },
};

static json_object *sums_of(const struct event_blocks *blocks)
{
	json_object *object = json_object_new_object();

	json_object_object_add(object, "selected", json_object_new_uint64(blocks->blocks));
	json_object_object_add(object, "is_cut", json_object_new_boolean(blocks->is_cut));
	json_object_object_add(object, "unknown", json_object_new_uint64(blocks->unknown));
	json_object_object_add(object, "logged", json_object_new_uint64(blocks->logged));
	return object;
}

int page_blocks__write(const struct event_blocks *blocks, const struct page_input *input,
		       const __u32 *nodes, const char *prefix, FILE *to)
{
	_cleanup_(free_ptr) double *values = calloc(blocks->n + 1, sizeof(*values));
	char name[64];
	int err;

	if (!values)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%s.blocks.sums", prefix);
	err = page_data__json(name, sums_of(blocks), to);
	for (size_t i = 0; i < ARRAY_SIZE(columns) && !err; i++) {
		for (size_t j = 0; j < blocks->n; j++)
			values[j] = columns[i].of(&blocks->list[j], input, nodes);
		snprintf(name, sizeof(name), "%s.blocks.%s", prefix, columns[i].name);
		err = page_data__f64(name, values, blocks->n, to);
	}
	return err;
}
