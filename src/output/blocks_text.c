// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints single blocks of an event log, and what became of them. */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "event_blocks.h"
#include "number.h"
#include "profile.h"
#include "report_output.h"
#include "stack_groups.h"
#include "stack_view.h"
#include "table.h"
#include "text.h"

#define INDENT "        "

enum column {
	COLUMN_ADDRESS,
	COLUMN_BYTES,
	COLUMN_AT,
	COLUMN_LIVED,
	COLUMN_STACK,
	COLUMN_THREAD,
	COLUMN_PROCESS,
	COLUMNS,
};

static __u32 group_of(const struct report_output *output, __u32 count)
{
	return output->groups->by_stack[output->profile->counts[count - 1].stack - 1];
}

__u32 report_output__stack_id(const struct report_output *output, __u32 count)
{
	return output->groups->groups[group_of(output, count)].id;
}

static struct number_text numbered(const char *name, __u32 number)
{
	struct number_text text;

	snprintf(text.text, sizeof(text.text), "%.24s (%u)", name, number);
	return text;
}

static void fill_row(const struct report_output *output, const struct event_block *block,
		     struct table_cell *cells)
{
	const struct profile *profile = output->profile;
	const struct profile_count *count = &profile->counts[block->count - 1];
	const struct profile_process *process = &profile->processes[count->process - 1];
	__u64 until_ns = block->fate == BLOCK_ALIVE ? output->report->end_ns : block->died_ns;
	__u64 lived_ns = until_ns > block->born_ns ? until_ns - block->born_ns : 0;

	memset(cells, 0, COLUMNS * sizeof(*cells));
	snprintf(cells[COLUMN_ADDRESS].text.text, sizeof(cells[COLUMN_ADDRESS].text.text), "0x%llx",
		 block->address);
	cells[COLUMN_BYTES].text = number__bytes(block->size_bytes, !output->terminal.is_terminal);
	cells[COLUMN_AT].text = number__time(block->born_ns);
	cells[COLUMN_LIVED].text = number__time(lived_ns);
	snprintf(cells[COLUMN_STACK].text.text, sizeof(cells[COLUMN_STACK].text.text), "%u",
		 report_output__stack_id(output, block->count));
	cells[COLUMN_THREAD].text =
		numbered(profile->threads[count->thread - 1].name, block->thread);
	cells[COLUMN_PROCESS].text = numbered(process->comm, process->pid);
}

static void print_thread(const struct report_output *output, const struct event_block *block)
{
	const struct profile *profile = output->profile;

	if (!block->ended_by)
		return;
	if (block->ended_by == block->thread)
		fputs(" by the same thread", output->terminal.to);
	else
		fprintf(output->terminal.to, " by thread %u", block->ended_by);
	if (block->ended_by == block->thread || !block->ended_thread)
		return;
	fputs(", ", output->terminal.to);
	terminal__print(&output->terminal, profile->threads[block->ended_thread - 1].name, 24);
}

/* Prints the type of a block, if it is known, and what became of it, on a line of its own. */
static void print_fate(const struct report_output *output, const struct event_block *block)
{
	static const char *const words[BLOCK_FATES] = {
		[BLOCK_ALIVE] = "alive at the end",
		[BLOCK_FREED] = "freed",
		[BLOCK_REALLOCATED] = "reallocated",
		[BLOCK_UNSEEN] = "its end was not seen: the address was returned again",
		[BLOCK_DISCARDED] = "gone with its address space, by an exec",
	};
	__u32 stack = output->profile->counts[block->count - 1].stack;
	const char *type = stack_view__type(output->view, stack);
	FILE *to = output->terminal.to;

	fputs(INDENT, to);
	if (type)
		terminal__print(&output->terminal, type, 0);
	if (type)
		fputs(", ", to);
	fputs(words[block->fate], to);
	if (block->fate == BLOCK_FREED || block->fate == BLOCK_REALLOCATED)
		print_thread(output, block);
	if (block->fate == BLOCK_REALLOCATED)
		fprintf(to, " to %s at 0x%llx",
			report_output__bytes(output, block->next_bytes).text, block->next_address);
	if (block->fate == BLOCK_REALLOCATED && block->next_count)
		fprintf(to, ", in stack %u", report_output__stack_id(output, block->next_count));
	if (block->temporary)
		fputs(", before it allocated again", to);
	if (block->weight > 1)
		fprintf(to, "; stands for %s blocks", number__count(block->weight).text);
	fputc('\n', to);
}

static void print_title(const struct report_output *output)
{
	static const char *const orders[BLOCKS_SORTS] = {
		[BLOCKS_LARGEST] = "the largest first",
		[BLOCKS_OLDEST] = "in the order of their allocation",
		[BLOCKS_LONGEST] = "those that lived longest first",
	};
	const struct event_blocks *blocks = output->blocks;
	FILE *to = output->terminal.to;

	fputc('\n', to);
	terminal__set_colour(&output->terminal, COLOUR_BOLD);
	fputs("Single blocks", to);
	terminal__set_colour(&output->terminal, COLOUR_NONE);
	if (!blocks->blocks) {
		fprintf(to, ": none of %s\n", number__count(blocks->logged).text);
		return;
	}
	fprintf(to, ": %s in %s of %s in the event log, %s\n",
		report_output__bytes(output, blocks->size_bytes).text,
		number__count(blocks->blocks).text, number__count(blocks->logged).text,
		orders[output->block_sort]);
}

/* Prints the frames of a stack where it comes first; the rows after it have its number. */
static void print_stack(const struct report_output *output, const struct event_block *block,
			bool *printed)
{
	__u32 group = group_of(output, block->count);

	if (!printed[group])
		report_output__stack(output, group, REPORT_NO_ROOT);
	printed[group] = true;
}

static void print_rows(const struct report_output *output, struct table_column *columns, size_t n,
		       bool *printed)
{
	const struct event_blocks *blocks = output->blocks;
	struct table_cell cells[COLUMNS];

	for (size_t i = 0; i < blocks->n && !ferror(output->terminal.to); i++) {
		const struct event_block *block = &blocks->list[i];

		fill_row(output, block, cells);
		fputc('\n', output->terminal.to);
		table__print_row(columns, n, cells, &output->terminal);
		fputc('\n', output->terminal.to);
		print_fate(output, block);
		print_stack(output, block, printed);
	}
}

static void print_notes(const struct report_output *output)
{
	const struct event_blocks *blocks = output->blocks;
	FILE *to = output->terminal.to;

	if (blocks->is_cut)
		fprintf(to, "\nThese are %s; --top=0 prints all\n", number__count(blocks->n).text);
	if (blocks->unknown)
		fprintf(to,
			"\n%s %s of calls that the data file does not have, so that nothing selects "
			"them\n",
			number__count(blocks->unknown).text,
			plural__of("more block{ is|s are}", blocks->unknown).text);
}

void report_output__blocks(const struct report_output *output)
{
	struct table_column columns[COLUMNS] = {
		[COLUMN_ADDRESS] = { .title = "address" },
		[COLUMN_BYTES] = { .title = "bytes", .gap = 2 },
		[COLUMN_AT] = { .title = "allocated", .gap = 2 },
		[COLUMN_LIVED] = { .title = "lived", .gap = 2 },
		[COLUMN_STACK] = { .title = "stack", .gap = 2 },
		[COLUMN_THREAD] = { .title = "thread", .gap = 2, .left = true },
		[COLUMN_PROCESS] = { .title = "process", .gap = 2, .left = true },
	};
	size_t n = output->profile->n_processes > 1 ? COLUMNS : COLUMN_PROCESS;
	_cleanup_(free_ptr) bool *printed = calloc(output->groups->n_groups + 1, sizeof(*printed));
	struct table_cell cells[COLUMNS];

	print_title(output);
	for (size_t i = 0; i < output->blocks->n; i++) {
		fill_row(output, &output->blocks->list[i], cells);
		/* Blanks behind the last column would be for nothing. */
		table__fit(columns, n - 1, cells);
	}
	if (output->blocks->n && printed) {
		fputc('\n', output->terminal.to);
		table__fit_titles(columns, n);
		table__print_titles(columns, n, &output->terminal);
		fputc('\n', output->terminal.to);
		print_rows(output, columns, n, printed);
	}
	print_notes(output);
}
