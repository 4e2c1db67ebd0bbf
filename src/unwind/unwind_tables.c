// SPDX-License-Identifier: GPL-3.0-or-later
#include "unwind_tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "cleanup.h"

/* pc_lo has 16 bits, so slices begin at multiples of 64 KiB. */
#define BLOCKS_PER_64K (65536 >> UNWIND_BLOCK_SHIFT)

/* Inserting a chunk into the map of maps waits for an RCU grace period, which lasts as long as any
 * probe waits for the table that needs the chunk. So some are inserted ahead of need. */
#define CHUNKS_AHEAD 12

struct unwind_tables {
	unwind_write_t write;
	void *context;
	struct unwind_tables_fds fds;
	int chunk_fd; /* fd of the last chunk, -1: none */
	/* Chunks that are already in the map, for later use. */
	int ready_fds[CHUNKS_AHEAD];
	__u32 n_ready;
	__u32 n_slices, n_rules;
	__u32 n_chunks;
	__u32 used_words;	    /* in the last chunk */
	struct unwind_chunk *chunk; /* copy of the last chunk */
};

static int publish(const struct unwind_tables *tables, const __u32 *indexes, const int *fds,
		   __u32 n)
{
	__u32 done = n;

	/* One grace period for all, if the kernel supports batches. */
	if (!bpf_map_update_batch(tables->fds.chunks, indexes, fds, &done, NULL))
		return 0;
	for (__u32 i = 0; i < n; i++)
		if (bpf_map_update_elem(tables->fds.chunks, &indexes[i], &fds[i], BPF_ANY))
			return -errno;
	return 0;
}

static int make_ready(struct unwind_tables *tables)
{
	__u32 indexes[CHUNKS_AHEAD], first = tables->n_ready, n = 0;
	int err;

	while (first + n < CHUNKS_AHEAD && tables->n_chunks + first + n < UNWIND_MAX_CHUNKS) {
		int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(__u32),
					sizeof(struct unwind_chunk), 1, NULL);

		if (fd < 0)
			break;
		indexes[n] = tables->n_chunks + first + n;
		tables->ready_fds[first + n] = fd;
		n++;
	}
	if (!n)
		return first ? 0 : -ENOMEM;
	err = publish(tables, indexes, tables->ready_fds + first, n);
	if (err)
		while (n)
			close(tables->ready_fds[first + --n]);
	tables->n_ready += n;
	return err;
}

/* Opens the next chunk; its index is @tables->n_chunks. */
static int open_chunk(struct unwind_tables *tables)
{
	int err = tables->n_ready ? 0 : make_ready(tables);

	if (err)
		return err;
	close_fd(&tables->chunk_fd);
	tables->chunk_fd = tables->ready_fds[0];
	tables->n_ready--;
	memmove(tables->ready_fds, tables->ready_fds + 1,
		tables->n_ready * sizeof(tables->ready_fds[0]));
	return 0;
}

/* Only the last chunk is written; programs may read its older part meanwhile, which is rewritten
 * with the same bytes. */
static int write_to_kernel(void *context, enum unwind_map map, __u32 index, const void *value)
{
	struct unwind_tables *tables = context;
	int fd = -1;

	switch (map) {
	case UNWIND_MAP_CHUNKS:
		if (!value)
			return open_chunk(tables);
		fd = tables->chunk_fd;
		index = 0;
		break;
	case UNWIND_MAP_TABLES:
		fd = tables->fds.tables;
		break;
	case UNWIND_MAP_SLICES:
		fd = tables->fds.slices;
		break;
	case UNWIND_MAP_RULES:
		fd = tables->fds.rules;
		break;
	}
	return bpf_map_update_elem(fd, &index, value, BPF_ANY) ? -errno : 0;
}

int unwind_tables__prepare(struct unwind_tables *tables)
{
	if (tables->write != write_to_kernel || !tables->n_chunks ||
	    tables->n_ready > CHUNKS_AHEAD / 2)
		return 0;
	return make_ready(tables);
}

struct unwind_tables *unwind_tables__new_for(unwind_write_t write, void *context)
{
	struct unwind_tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return NULL;
	tables->write = write;
	tables->context = context;
	tables->chunk_fd = -1;
	tables->chunk = calloc(1, sizeof(*tables->chunk));
	if (!tables->chunk) {
		free(tables);
		return NULL;
	}
	return tables;
}

struct unwind_tables *unwind_tables__new(const struct unwind_tables_fds *fds)
{
	struct unwind_tables *tables = unwind_tables__new_for(write_to_kernel, NULL);

	if (!tables)
		return NULL;
	tables->context = tables;
	tables->fds = *fds;
	return tables;
}

void unwind_tables__free(struct unwind_tables *tables)
{
	if (!tables)
		return;
	close_fd(&tables->chunk_fd);
	while (tables->n_ready)
		close(tables->ready_fds[--tables->n_ready]);
	free(tables->chunk);
	free(tables);
}

__u64 unwind_tables__size_bytes(const struct unwind_tables *tables)
{
	return (__u64)(tables->n_chunks + tables->n_ready) * sizeof(struct unwind_chunk);
}

static int add_chunk(struct unwind_tables *tables)
{
	int err;

	if (tables->n_chunks == UNWIND_MAX_CHUNKS)
		return -ENOSPC;
	err = tables->write(tables->context, UNWIND_MAP_CHUNKS, tables->n_chunks, NULL);
	if (err)
		return err;
	memset(tables->chunk, 0, sizeof(*tables->chunk));
	tables->n_chunks++;
	tables->used_words = 0;
	return 0;
}

static int flush_chunk(struct unwind_tables *tables)
{
	return tables->write(tables->context, UNWIND_MAP_CHUNKS, tables->n_chunks - 1,
			     tables->chunk);
}

static int load_rules(struct unwind_tables *tables, const struct cfi_table *table,
		      __u32 *first_rule)
{
	int err;

	if (table->rule_count > UNWIND_MAX_RULES_LOADED - tables->n_rules)
		return -ENOSPC;
	for (__u32 i = 0; i < table->rule_count; i++) {
		err = tables->write(tables->context, UNWIND_MAP_RULES, tables->n_rules + i,
				    &table->rules[i]);
		if (err)
			return err;
	}
	*first_rule = tables->n_rules;
	tables->n_rules += table->rule_count;
	return 0;
}

/* A part of a segment: a range of its blocks, and of the table's rows. */
struct part {
	__u32 first_block, end_block; /* relative to the segment */
	__u32 first_row, end_row;
	bool carry; /* begins with a copy of the previous row, as no row begins at its offset 0 */
};

static __u32 part_words(const struct part *part)
{
	return part->end_block - part->first_block + part->end_row - part->first_row + part->carry;
}

static __u32 segment_blocks(const struct unwind_segment *segment)
{
	return segment->size ? ((segment->size - 1) >> UNWIND_BLOCK_SHIFT) + 1 : 0;
}

/* The largest multiple of 64 KiB from @first_block on that fits in @room words; at least one, or an
 * empty part. */
static struct part find_part(const struct cfi_table *table, const struct unwind_segment *segment,
			     __u32 first_block, __u32 room)
{
	const __u32 *blocks = table->blocks + segment->first_block;
	__u32 n_blocks = segment_blocks(segment);
	struct part part = { .first_block = first_block, .end_block = first_block };

	part.first_row = part.end_row = blocks[first_block];
	part.carry =
		part.first_row >= blocks[first_block + 1] || table->rows[part.first_row].pc_lo != 0;
	while (part.end_block < n_blocks) {
		struct part longer = part;

		longer.end_block = part.end_block + BLOCKS_PER_64K < n_blocks
					   ? part.end_block + BLOCKS_PER_64K
					   : n_blocks;
		longer.end_row = blocks[longer.end_block];
		if (part_words(&longer) > room)
			break;
		part = longer;
	}
	return part;
}

static void write_part(struct unwind_tables *tables, const struct cfi_table *table,
		       const struct unwind_segment *segment, const struct part *part,
		       struct unwind_slice *slice)
{
	const __u32 *blocks = table->blocks + segment->first_block;
	__u32 *words = tables->chunk->words + tables->used_words;
	__u32 n_blocks = part->end_block - part->first_block, at = n_blocks;
	__u64 offset = (__u64)part->first_block << UNWIND_BLOCK_SHIFT;
	__u64 size = (__u64)n_blocks << UNWIND_BLOCK_SHIFT;

	for (__u32 i = 0; i < n_blocks; i++) {
		__u32 block = part->first_block + i;
		__u32 count = blocks[block + 1] - blocks[block];

		words[i] = (blocks[block] - part->first_row + part->carry) |
			   count << UNWIND_BLOCK_COUNT_SHIFT;
	}
	if (part->carry)
		words[at++] = (__u32)table->rows[part->first_row - 1].rule << 16;
	for (__u32 row = part->first_row; row < part->end_row; row++)
		words[at++] = table->rows[row].pc_lo | (__u32)table->rows[row].rule << 16;

	slice->file_offset = segment->file_offset + offset;
	slice->size = offset + size > segment->size ? segment->size - offset : size;
	slice->chunk = tables->n_chunks - 1;
	slice->first_block = tables->used_words;
	slice->first_row = tables->used_words + n_blocks;
	tables->used_words += part_words(part);
}

static int load_segment(struct unwind_tables *tables, const struct cfi_table *table,
			const struct unwind_segment *segment, __u32 first_rule)
{
	__u32 n_blocks = segment_blocks(segment);

	for (__u32 block = 0; block < n_blocks;) {
		struct unwind_slice slice = { .first_rule = first_rule };
		struct part part = { 0 };
		int err;

		if (tables->n_chunks)
			part = find_part(table, segment, block,
					 UNWIND_CHUNK_WORDS - tables->used_words);
		/* Prefer a new chunk to two slices, if it has room for all. */
		if (part.end_block < n_blocks && (tables->used_words || !tables->n_chunks)) {
			err = add_chunk(tables);
			if (err)
				return err;
			part = find_part(table, segment, block, UNWIND_CHUNK_WORDS);
		}
		if (part.end_block == block)
			return -ENOSPC; /* 64 KiB of code with more rows than bytes: a hostile
					 * file */
		if (tables->n_slices == UNWIND_MAX_SLICES)
			return -ENOSPC;
		write_part(tables, table, segment, &part, &slice);
		err = flush_chunk(tables);
		if (!err)
			err = tables->write(tables->context, UNWIND_MAP_SLICES, tables->n_slices,
					    &slice);
		if (err)
			return err;
		tables->n_slices++;
		block = part.end_block;
	}
	return 0;
}

static int compare_segments(const void *a, const void *b)
{
	const struct unwind_segment *left = a, *right = b;

	return (left->file_offset > right->file_offset) - (left->file_offset < right->file_offset);
}

int unwind_tables__load(struct unwind_tables *tables, const struct cfi_table *table,
			struct unwind_place *place)
{
	struct unwind_segment segments[UNWIND_MAX_SEGMENTS];
	__u32 first_slice = tables->n_slices, first_rule = 0;
	int err;

	if (table->segment_count > UNWIND_MAX_SEGMENTS)
		return -ENOSPC;
	err = load_rules(tables, table, &first_rule);
	/* The programs look slices up by file offset. */
	memcpy(segments, table->segments, table->segment_count * sizeof(segments[0]));
	qsort(segments, table->segment_count, sizeof(segments[0]), compare_segments);
	for (__u32 i = 0; i < table->segment_count && !err; i++)
		err = load_segment(tables, table, &segments[i], first_rule);
	if (err)
		return err;
	place->first_slice = first_slice;
	place->n_slices = tables->n_slices - first_slice;
	return 0;
}

int unwind_tables__assign(struct unwind_tables *tables, __u32 module,
			  const struct unwind_place *place)
{
	struct unwind_table table = {
		.state = UNWIND_TABLE_AWAITED,
		.first_slice = place->first_slice,
		.n_slices = place->n_slices,
		.entry_size = place->entry_size,
		.entry_offset = place->entry_offset,
	};

	int err;

	if (module >= UNWIND_MAX_MODULES)
		return -ENOSPC;
	/* Two updates: a program must see the slices before it sees the state. */
	err = tables->write(tables->context, UNWIND_MAP_TABLES, module, &table);
	if (err)
		return err;
	table.state = place->n_slices ? UNWIND_TABLE_READY : UNWIND_TABLE_NONE;
	return tables->write(tables->context, UNWIND_MAP_TABLES, module, &table);
}
