// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Sends the tables that a worker compiles to this process, which checks them before the programs
 * use them.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cfi.h"
#include "cfi_internal.h"
#include "error.h"
#include "parser.h"

/* Checks an unwind table that a worker has made, before the programs use it. */

/* MAX_TEXT_BYTES of cfi_table.c, for one segment. */
#define MAX_SEGMENT_BYTES (1u << 31)

static bool rule_is_sound(const struct unwind_rule *rule)
{
	if (rule->cfa > UNWIND_CFA_OTHER_STACK || rule->fp_where > UNWIND_AT_FP ||
	    rule->ra_where > UNWIND_AT_FP || rule->flags & ~(UNWIND_SIGNAL_FRAME | UNWIND_OF_CODE))
		return false;
	return rule->cfa != UNWIND_CFA_UNSUPPORTED ||
	       (rule->cfa_offset >= 0 && rule->cfa_offset < UNWIND_UNSUPPORTED_KINDS);
}

static bool rules_are_sound(const struct cfi_table *table)
{
	const struct unwind_rule *none = table->rules;

	if (!table->rule_count || table->rule_count > UNWIND_MAX_RULES)
		return false;
	if (none->cfa || none->fp_where || none->ra_where || none->flags || none->cfa_offset ||
	    none->fp_offset || none->ra_offset || none->cfa_add)
		return false;
	for (__u32 i = 0; i < table->rule_count; i++)
		if (!rule_is_sound(&table->rules[i]))
			return false;
	for (__u32 i = 0; i < table->row_count; i++)
		if (table->rows[i].rule >= table->rule_count)
			return false;
	return true;
}

/*
 * Checks that the rows of block @block of the segment ascend, and stay within block and segment.
 */
static bool block_is_sound(const struct cfi_table *table, const struct unwind_segment *segment,
			   __u32 block, __u32 first, __u32 end)
{
	__u64 offset = (__u64)block << UNWIND_BLOCK_SHIFT;

	if (end < first || end - first > UNWIND_BLOCK_SIZE || end > table->row_count)
		return false;
	for (__u32 row = first; row < end; row++) {
		__u32 behind = (__u16)(table->rows[row].pc_lo - offset);

		if (behind >= UNWIND_BLOCK_SIZE || offset + behind >= segment->size)
			return false;
		if (row > first && table->rows[row].pc_lo <= table->rows[row - 1].pc_lo)
			return false;
	}
	return true;
}

/* Returns whether the segment's blocks follow those of the previous one, and its rows begin at
 * @first_row, the first one at offset 0. */
static bool segment_is_sound(const struct cfi_table *table, const struct unwind_segment *segment,
			     __u32 first_block, __u32 first_row)
{
	const __u32 *blocks = table->blocks + first_block;
	__u32 n_blocks;

	if (!segment->size || segment->size > MAX_SEGMENT_BYTES ||
	    segment->vaddr + segment->size < segment->vaddr ||
	    segment->file_offset + segment->size < segment->file_offset ||
	    segment->first_block != first_block)
		return false;
	n_blocks = ((segment->size - 1) >> UNWIND_BLOCK_SHIFT) + 1;
	if (n_blocks >= table->block_count - first_block)
		return false;
	if (blocks[0] != first_row || blocks[1] <= first_row || first_row >= table->row_count ||
	    table->rows[first_row].pc_lo)
		return false;
	for (__u32 block = 0; block < n_blocks; block++)
		if (!block_is_sound(table, segment, block, blocks[block], blocks[block + 1]))
			return false;
	return true;
}

bool cfi_table__is_sound(const struct cfi_table *table)
{
	__u32 first_block = 0, first_row = 0;

	if (!table->segment_count || table->segment_count > UNWIND_MAX_SEGMENTS ||
	    !rules_are_sound(table))
		return false;
	for (__u32 i = 0; i < table->segment_count; i++) {
		const struct unwind_segment *segment = &table->segments[i];

		if (first_block >= table->block_count ||
		    !segment_is_sound(table, segment, first_block, first_row))
			return false;
		if (i && (segment->vaddr < segment[-1].vaddr ||
			  segment->vaddr - segment[-1].vaddr < segment[-1].size))
			return false;
		first_block += ((segment->size - 1) >> UNWIND_BLOCK_SHIFT) + 2;
		first_row = table->blocks[first_block - 1];
	}
	return first_block == table->block_count && first_row == table->row_count;
}

/* Tables that a worker compiles, and their way to this process. */

/* Returns whether the table is sound, and describes only code that is in its file. */
static bool table_is_sound(const void *object, const void *context)
{
	const struct cfi_table *table = object;
	__u64 file_bytes = *(const __u64 *)context;

	if (!table->segments || !table->blocks || !table->rows || !table->rules ||
	    !cfi_table__is_sound(table))
		return false;
	for (__u32 i = 0; i < table->segment_count; i++)
		if (table->segments[i].file_offset > file_bytes ||
		    table->segments[i].size > file_bytes - table->segments[i].file_offset)
			return false;
	return true;
}

static const struct wire_struct cfi_table_type = {
	.is_sound = table_is_sound,
	.fields = {
		{ WIRE_ARRAY(struct cfi_table, segments, segment_count, UINT32_MAX) },
		{ WIRE_ARRAY(struct cfi_table, blocks, block_count, UINT32_MAX) },
		{ WIRE_ARRAY(struct cfi_table, rows, row_count, UINT32_MAX) },
		{ WIRE_ARRAY(struct cfi_table, rules, rule_count, UINT32_MAX) },
	},
};

void cfi_table__write(const struct cfi_table *table, struct wire_writer *to)
{
	wire__put_struct(to, &cfi_table_type, table, NULL);
}

int cfi_table__read(struct wire_reader *from, __u64 file_bytes, struct cfi_table **out)
{
	struct cfi_table *table = calloc(1, sizeof(*table));
	int err;

	if (!table)
		return -ENOMEM;
	err = wire__get_struct(from, &cfi_table_type, table, &file_bytes);
	if (!err && !wire__is_read(from))
		err = -EPROTO;
	if (err)
		cfi_table__free(table);
	else
		*out = table;
	return err;
}

static int compile_table(struct parser_task *task)
{
	struct cfi_table *table;
	int err = cfi_table__build(task->fd, task->path, &table, task->error);

	if (err)
		return err;
	cfi_table__write(table, task->result);
	cfi_table__free(table);
	return 0;
}

int cfi_table__build_by(struct parser *parser, int fd, const char *path, struct cfi_table **out,
			struct error *error)
{
	const struct parser_call call = { .run = compile_table, .fd = fd, .path = path };
	struct wire_reader result;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	err = parser__call(parser, &call, &result, error);
	if (!err && cfi_table__read(&result, st.st_size, out))
		err = parser__refuse(parser, path, error);
	return err;
}
