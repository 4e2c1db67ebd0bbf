// SPDX-License-Identifier: GPL-3.0-or-later
#include "unwind_tables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"

/* Slices begin at multiples of 64 KiB, since pc_lo has 16 bits. */
#define BLOCKS_PER_64K (65536 >> UNWIND_BLOCK_SHIFT)

struct unwind_tables {
	struct unwind_writer writer;
	__u32 n_slices, n_rules;
	__u32 n_chunks;
	__u32 used_words;	    /* used words of the last chunk */
	struct unwind_chunk *chunk; /* copy of the last chunk */
};

int unwind_tables__prepare(struct unwind_tables *tables)
{
	return tables->n_chunks && tables->writer.prepare
		       ? tables->writer.prepare(tables->writer.context)
		       : 0;
}

struct unwind_tables *unwind_tables__new(const struct unwind_writer *writer)
{
	struct unwind_tables *tables = calloc(1, sizeof(*tables));
	struct unwind_chunk *chunk = calloc(1, sizeof(*chunk));

	if (!tables || !chunk) {
		free(tables);
		free(chunk);
		if (writer->release)
			writer->release(writer->context);
		return NULL;
	}
	tables->writer = *writer;
	tables->chunk = chunk;
	return tables;
}

void unwind_tables__free(struct unwind_tables *tables)
{
	if (!tables)
		return;
	if (tables->writer.release)
		tables->writer.release(tables->writer.context);
	free(tables->chunk);
	free(tables);
}

static int write_to(const struct unwind_tables *tables, enum unwind_map map, __u32 index,
		    const void *value)
{
	return tables->writer.write(tables->writer.context, map, index, value);
}

static int add_chunk(struct unwind_tables *tables)
{
	int err;

	if (tables->n_chunks == UNWIND_MAX_CHUNKS)
		return -ENOSPC;
	err = write_to(tables, UNWIND_MAP_CHUNKS, tables->n_chunks, NULL);
	if (err)
		return err;
	memset(tables->chunk, 0, sizeof(*tables->chunk));
	tables->n_chunks++;
	tables->used_words = 0;
	return 0;
}

static int flush_chunk(struct unwind_tables *tables)
{
	return write_to(tables, UNWIND_MAP_CHUNKS, tables->n_chunks - 1, tables->chunk);
}

static int load_rules(struct unwind_tables *tables, const struct cfi_table *table,
		      __u32 *first_rule)
{
	int err;

	if (table->rule_count > UNWIND_MAX_RULES_LOADED - tables->n_rules)
		return -ENOSPC;
	for (__u32 i = 0; i < table->rule_count; i++) {
		err = write_to(tables, UNWIND_MAP_RULES, tables->n_rules + i, &table->rules[i]);
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
	/* Begins with a copy of the previous row, since no row begins at its offset 0. */
	bool carry;
};

static __u32 part_words(const struct part *part)
{
	return part->end_block - part->first_block + part->end_row - part->first_row + part->carry;
}

static __u32 segment_blocks(const struct unwind_segment *segment)
{
	return segment->size ? ((segment->size - 1) >> UNWIND_BLOCK_SHIFT) + 1 : 0;
}

/* Returns the largest part, a multiple of 64 KiB from @first_block on, that fits in @room words;
 * it has at least one such multiple, or is empty. */
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
		/* A new chunk that has room for everything is better than two slices. */
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
			err = write_to(tables, UNWIND_MAP_SLICES, tables->n_slices, &slice);
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
			struct loaded_table *loaded)
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
	loaded->first_slice = first_slice;
	loaded->n_slices = tables->n_slices - first_slice;
	return 0;
}

int unwind_tables__assign(struct unwind_tables *tables, __u32 module,
			  const struct loaded_table *loaded)
{
	struct unwind_table table = {
		.state = UNWIND_TABLE_AWAITED,
		.first_slice = loaded->first_slice,
		.n_slices = loaded->n_slices,
		.entry_size = loaded->entry_size,
		.entry_offset = loaded->entry_offset,
	};

	int err;

	if (module >= UNWIND_MAX_MODULES)
		return -ENOSPC;
	/* These are two updates, since a program must see the slices before it sees the state. */
	err = write_to(tables, UNWIND_MAP_TABLES, module, &table);
	if (err)
		return err;
	table.state = loaded->n_slices ? UNWIND_TABLE_READY : UNWIND_TABLE_NONE;
	return write_to(tables, UNWIND_MAP_TABLES, module, &table);
}
