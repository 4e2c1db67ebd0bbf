// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes the unwind table of a file: segments, rows and rules, each distinct rule once. */
#include "cfi_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* Largest number of rows; libLLVM has two million. */
#define MAX_ROWS (1u << 26)

/* Limit of code per file; its index has 1/64 of that size. */
#define MAX_TEXT_BYTES (1ull << 31)

#define RULE_NONE 0
/* These rules are added first, so that they exist when there is no room for further ones. */
#define RULE_FULL    1
#define RULE_BAD_FDE 2

/* Slots for finding equal rules: at least twice the maximum number of rules, which keeps look-ups
 * short. */
#define INTERN_SLOTS (1u << 17)
/* How many slots are looked at: far more than real files need, and a limit of the work for rules
 * whose hashes collide on purpose. */
#define INTERN_PROBES 64

struct cfi_builder {
	const struct cfi_arch *arch;
	struct cfi_table *table;
	struct unwind_segment *segment; /* the current segment */
	__u32 next_block;		/* next block of the segment; earlier blocks are final */
	size_t row_room;
	size_t rule_room;
	bool signal_frame;
	__u16 slots[INTERN_SLOTS]; /* rule index, 0: free (RULE_NONE is never looked up) */
};

static __u32 rule_hash(const struct unwind_rule *rule)
{
	__u64 words[2];

	memcpy(words, rule, sizeof(words));
	words[0] *= 0x9e3779b97f4a7c15ull;
	words[0] ^= words[0] >> 32;
	words[0] = (words[0] + words[1]) * 0xd6e8feb86659fd93ull;
	return (__u32)(words[0] >> 40) & (INTERN_SLOTS - 1);
}

static int add_rule(struct cfi_builder *b, const struct unwind_rule *rule, __u16 *out)
{
	struct cfi_table *table = b->table;

	if (array__reserve(&table->rules, &b->rule_room, (size_t)table->rule_count + 1,
			   sizeof(*table->rules)))
		return -ENOMEM;
	*out = (__u16)table->rule_count;
	table->rules[table->rule_count++] = *rule;
	return 0;
}

static int intern_rule(struct cfi_builder *b, const struct unwind_rule *rule, __u16 *out)
{
	__u32 slot = rule_hash(rule);
	int err;

	for (int probe = 0; probe < INTERN_PROBES; probe++) {
		__u16 index = b->slots[slot];

		if (!index) {
			if (b->table->rule_count == UNWIND_MAX_RULES)
				break;
			err = add_rule(b, rule, &index);
			if (err)
				return err;
			b->slots[slot] = index;
			*out = index;
			return 0;
		}
		if (!memcmp(&b->table->rules[index], rule, sizeof(*rule))) {
			*out = index;
			return 0;
		}
		slot = (slot + 1) & (INTERN_SLOTS - 1);
	}
	*out = RULE_FULL;
	return 0;
}

static int add_fixed_rules(struct cfi_builder *b)
{
	struct unwind_rule none = { 0 };
	struct unwind_rule full = { .cfa = UNWIND_CFA_UNSUPPORTED,
				    .cfa_offset = UNWIND_UNSUPPORTED_RULES };
	struct unwind_rule bad = { .cfa = UNWIND_CFA_UNSUPPORTED,
				   .cfa_offset = UNWIND_UNSUPPORTED_BAD_FDE };
	__u16 index;
	int err;

	err = add_rule(b, &none, &index);
	if (!err)
		err = intern_rule(b, &full, &index);
	if (!err)
		err = intern_rule(b, &bad, &index);
	return err;
}

/* Adds a row. Rows come in ascending order; one that repeats the previous rule is dropped. */
static int add_row(struct cfi_builder *b, __u64 pc, __u16 rule)
{
	struct cfi_table *table = b->table;
	struct unwind_segment *segment = b->segment;
	__u32 offset = (__u32)(pc - segment->vaddr);
	__u32 block = offset >> UNWIND_BLOCK_SHIFT;

	if (offset && table->rows[table->row_count - 1].rule == rule)
		return 0;
	if (table->row_count == MAX_ROWS)
		return -EFBIG;
	if (array__reserve(&table->rows, &b->row_room, (size_t)table->row_count + 1,
			   sizeof(*table->rows)))
		return -ENOMEM;
	while (b->next_block <= block)
		table->blocks[segment->first_block + b->next_block++] = table->row_count;
	table->rows[table->row_count++] = (struct unwind_row){ (__u16)offset, rule };
	return 0;
}

static int take_row(void *ctx, __u64 pc, const struct cfi_state *state)
{
	struct cfi_builder *b = ctx;
	struct unwind_rule rule = cfi_state__rule(b->arch, state, b->signal_frame);
	__u16 index;
	int err;

	err = intern_rule(b, &rule, &index);
	return err ? err : add_row(b, pc, index);
}

static int take_rule(void *ctx, __u64 pc, const struct unwind_rule *rule)
{
	struct cfi_builder *b = ctx;
	__u16 index = RULE_NONE;
	int err = 0;

	if (rule->cfa != UNWIND_CFA_NONE)
		err = intern_rule(b, rule, &index);
	return err ? err : add_row(b, pc, index);
}

static __u32 segment_blocks(__u64 size)
{
	return (__u32)((size - 1) >> UNWIND_BLOCK_SHIFT) + 2;
}

/* Adds the blocks after the last row, and the sentinel that ends the last block. */
static void finish_segment(struct cfi_builder *b)
{
	__u32 count = segment_blocks(b->segment->size);

	while (b->next_block < count)
		b->table->blocks[b->segment->first_block + b->next_block++] = b->table->row_count;
}

static int add_fde(struct cfi_builder *b, const struct cfi_section *section,
		   const struct cfi_cie *cie, const struct cfi_fde *fde)
{
	__u32 row_count = b->table->row_count, next_block = b->next_block;
	struct cfi_machine machine;
	struct dwarf_cursor program;
	struct cfi_state state;
	int err;

	if (section->go)
		return cfi_go__run(section->go, fde, take_rule, b);
	if (section->bare)
		return cfi_bare__run(section->bare, fde, take_rule, b);
	if (cie->reject) {
		b->table->stats.rejected[CFI_REJECT_CIE]++;
		return add_row(b, fde->lo, RULE_BAD_FDE);
	}
	b->signal_frame = cie->signal_frame;
	program = (struct dwarf_cursor){ fde->program, fde->program + fde->program_size, false };
	err = cfi_program__run(&machine, b->arch, cie, section, fde, program, &state, take_row, b);
	if (err <= 0)
		return err;

	/* A program with an error may have been wrong before it, so none of its rows is used. */
	b->table->stats.rejected[err]++;
	b->table->row_count = row_count;
	b->next_block = next_block;
	return add_row(b, fde->lo, RULE_BAD_FDE);
}

/* An FDE and its section. */
struct source_fde {
	const struct cfi_fde *fde;
	__u32 section;
};

/* FDEs of all sections, sorted by address; where they overlap, the earlier section wins. */
struct merged {
	struct source_fde *fdes;
	__u32 count;
};

static void merge_section(struct merged *merged, struct source_fde *spare,
			  const struct cfi_entries *entries, __u32 section, struct cfi_stats *stats)
{
	__u32 have = 0, count = 0;

	for (__u32 i = 0; i < entries->fde_count; i++) {
		const struct cfi_fde *fde = &entries->fdes[i];

		while (have < merged->count && merged->fdes[have].fde->hi <= fde->lo)
			spare[count++] = merged->fdes[have++];
		if (have < merged->count && merged->fdes[have].fde->lo < fde->hi)
			stats->rejected[CFI_REJECT_OVERLAP]++;
		else
			spare[count++] = (struct source_fde){ fde, section };
	}
	while (have < merged->count)
		spare[count++] = merged->fdes[have++];
	merged->count = count;
}

static int merge_sections(const struct cfi_entries *entries, __u32 section_count,
			  struct merged *merged, struct cfi_stats *stats)
{
	struct source_fde *spare;
	__u64 total = 0;

	for (__u32 i = 0; i < section_count; i++)
		total += entries[i].fde_count;
	if (!total)
		return -ENODATA;
	merged->fdes = calloc(total, sizeof(*merged->fdes));
	spare = calloc(total, sizeof(*spare));
	if (!merged->fdes || !spare) {
		free(merged->fdes);
		free(spare);
		return -ENOMEM;
	}
	for (__u32 i = 0; i < section_count; i++) {
		struct source_fde *swap = merged->fdes;

		merge_section(merged, spare, &entries[i], i, stats);
		merged->fdes = spare;
		spare = swap;
	}
	free(spare);
	stats->fdes = merged->count;
	return 0;
}

/* Makes a segment for each executable segment of the file with FDEs, from its first to its last
 * FDE. */
static int make_segments(struct cfi_table *table, const struct merged *merged,
			 const struct cfi_text *texts, __u32 text_count)
{
	__u64 blocks = 0, bytes = 0;
	__u32 i = 0;

	table->segments = calloc(text_count, sizeof(*table->segments));
	if (!table->segments)
		return -ENOMEM;
	for (__u32 t = 0; t < text_count; t++) {
		const struct cfi_text *text = &texts[t];
		struct unwind_segment *segment = &table->segments[table->segment_count];
		__u64 lo, hi;

		if (i == merged->count || merged->fdes[i].fde->lo - text->vaddr >= text->size)
			continue;
		lo = merged->fdes[i].fde->lo;
		do
			hi = merged->fdes[i++].fde->hi;
		while (i < merged->count && merged->fdes[i].fde->lo - text->vaddr < text->size);

		bytes += hi - lo;
		if (bytes > MAX_TEXT_BYTES)
			return -EFBIG;
		segment->vaddr = lo;
		segment->file_offset = lo - text->vaddr + text->file_offset;
		segment->size = (__u32)(hi - lo);
		segment->first_block = (__u32)blocks;
		blocks += segment_blocks(segment->size);
		table->segment_count++;
	}
	table->blocks = calloc(blocks, sizeof(*table->blocks));
	if (!table->blocks)
		return -ENOMEM;
	table->block_count = (__u32)blocks;
	return 0;
}

static int add_rows(struct cfi_builder *b, const struct merged *merged,
		    const struct cfi_section *sections, const struct cfi_entries *entries)
{
	struct cfi_table *table = b->table;
	__u32 i = 0;
	int err;

	for (__u32 s = 0; s < table->segment_count; s++) {
		__u64 end = table->segments[s].vaddr;

		b->segment = &table->segments[s];
		b->next_block = 0;
		while (i < merged->count &&
		       merged->fdes[i].fde->lo - b->segment->vaddr < b->segment->size) {
			const struct source_fde *source = &merged->fdes[i++];
			const struct cfi_fde *fde = source->fde;

			if (fde->lo > end) {
				err = add_row(b, end, RULE_NONE);
				if (err)
					return err;
			}
			err = add_fde(b, &sections[source->section],
				      &entries[source->section].cies[fde->cie], fde);
			if (err)
				return err;
			end = fde->hi;
		}
		finish_segment(b);
	}
	return 0;
}

static void count_rows(struct cfi_table *table)
{
	for (__u32 i = 0; i < table->row_count; i++) {
		const struct unwind_rule *rule = &table->rules[table->rows[i].rule];

		if (rule->cfa == UNWIND_CFA_NONE)
			table->stats.rows_none++;
		else if (rule->cfa == UNWIND_CFA_UNSUPPORTED)
			table->stats.rows_unsupported[rule->cfa_offset]++;
	}
}

/* Shrinks an array to @count elements; failure is harmless. */
static void *trim(void *array, __u32 count, size_t size)
{
	void *smaller = realloc(array, count * size);

	return smaller ? smaller : array;
}

int cfi_table__compile(const struct cfi_arch *arch, const struct cfi_section *sections,
		       __u32 section_count, const struct cfi_text *texts, __u32 text_count,
		       struct cfi_table **out)
{
	struct cfi_entries *entries = calloc(section_count, sizeof(*entries));
	struct cfi_builder *builder = calloc(1, sizeof(*builder));
	struct cfi_table *table = calloc(1, sizeof(*table));
	struct merged merged = { 0 };
	int err = -ENOMEM;

	if (!entries || !builder || !table)
		goto out;
	builder->arch = arch;
	builder->table = table;
	for (__u32 i = 0; i < section_count; i++) {
		if (sections[i].go)
			table->stats.go_table_bytes += sections[i].go->table.size;
		else if (!sections[i].bare && sections[i].debug_frame)
			table->stats.debug_frame_bytes += sections[i].size;
		else
			table->stats.eh_frame_bytes += sections[i].size;
		err = cfi_entries__read(arch, &sections[i], texts, text_count, &table->stats,
					&entries[i]);
		if (err)
			goto out;
	}
	err = merge_sections(entries, section_count, &merged, &table->stats);
	if (err)
		goto out;
	err = make_segments(table, &merged, texts, text_count);
	if (err)
		goto out;
	err = add_fixed_rules(builder);
	if (err)
		goto out;
	err = add_rows(builder, &merged, sections, entries);
	if (err)
		goto out;
	table->rows = trim(table->rows, table->row_count, sizeof(*table->rows));
	table->rules = trim(table->rules, table->rule_count, sizeof(*table->rules));
	count_rows(table);
	*out = table;
	table = NULL;
out:
	for (__u32 i = 0; entries && i < section_count; i++)
		cfi_entries__free(&entries[i]);
	free(merged.fdes);
	free(entries);
	free(builder);
	cfi_table__free(table);
	return err;
}

void cfi_table__free(struct cfi_table *table)
{
	if (!table)
		return;
	free(table->segments);
	free(table->blocks);
	free(table->rows);
	free(table->rules);
	free(table);
}

size_t cfi_table__size_bytes(const struct cfi_table *table)
{
	return table->segment_count * sizeof(*table->segments) +
	       table->block_count * sizeof(*table->blocks) +
	       table->row_count * sizeof(*table->rows) + table->rule_count * sizeof(*table->rules);
}

static const struct unwind_segment *find_segment(const struct cfi_table *table, __u64 vaddr)
{
	for (__u32 i = 0; i < table->segment_count; i++)
		if (vaddr - table->segments[i].vaddr < table->segments[i].size)
			return &table->segments[i];
	return NULL;
}

/* Finds a row by the search that unwind_abi.h describes, with the same bound. */
static __u32 find_row(const struct cfi_table *table, const struct unwind_segment *segment,
		      __u32 offset)
{
	__u32 block = segment->first_block + (offset >> UNWIND_BLOCK_SHIFT);
	__u32 first = table->blocks[block];
	__u32 count = table->blocks[block + 1] - first;
	__u16 pc_lo = (__u16)offset;

	/* Invariant: rows before @first are at or below the address, rows from @first + @count on
	 * are above it. */
	for (int step = 0; step < UNWIND_SEARCH_STEPS && count; step++) {
		__u32 half = count / 2;

		if (table->rows[first + half].pc_lo <= pc_lo) {
			first += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return first - 1;
}

bool cfi_table__lookup(const struct cfi_table *table, __u64 vaddr, struct unwind_rule *out)
{
	const struct unwind_segment *segment = find_segment(table, vaddr);
	const struct unwind_rule *rule;
	__u32 row;

	if (!segment)
		return false;
	row = find_row(table, segment, (__u32)(vaddr - segment->vaddr));
	rule = &table->rules[table->rows[row].rule];
	if (rule->cfa == UNWIND_CFA_NONE)
		return false;
	*out = *rule;
	return true;
}

/* Returns the full offset of a row, of which only 16 bits are stored, given that it is in or after
 * @block. */
static __u32 row_offset(const struct cfi_table *table, __u32 row, __u32 block, __u32 first_block)
{
	__u32 offset;

	while (table->blocks[block + 1] <= row)
		block++;
	offset = (block - first_block) << UNWIND_BLOCK_SHIFT;
	return (offset & ~0xffffu) | table->rows[row].pc_lo;
}

bool cfi_table__range(const struct cfi_table *table, __u64 vaddr, struct cfi_range *out)
{
	const struct unwind_segment *segment = find_segment(table, vaddr);
	__u32 offset, block, row, last_block;

	if (!segment)
		return false;
	offset = (__u32)(vaddr - segment->vaddr);
	row = find_row(table, segment, offset);
	block = segment->first_block + (offset >> UNWIND_BLOCK_SHIFT);
	last_block = segment->first_block + segment_blocks(segment->size) - 1;
	out->rule = table->rules[table->rows[row].rule];
	out->hi = segment->vaddr + segment->size;
	if (row + 1 < table->blocks[last_block])
		out->hi = segment->vaddr + row_offset(table, row + 1, block, segment->first_block);
	while (table->blocks[block] > row)
		block--;
	out->lo = segment->vaddr + row_offset(table, row, block, segment->first_block);
	return true;
}
