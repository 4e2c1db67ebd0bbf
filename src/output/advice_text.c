// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints what the numbers of a recording advise: a sentence with what would be saved, the numbers
 * that say so, and the stack. */
#include "advice_text.h"

#include "advice.h"
#include "number.h"
#include "report.h"
#include "report_output.h"
#include "stack_groups.h"
#include "terminal.h"
#include "text.h"

const char *advice_text__remedy(enum advice_kind kind)
{
	static const char *const remedies[ADVICE_KINDS] = {
		[ADVICE_RESERVE] = "Reserve space before it is needed",
		[ADVICE_CAPACITY] = "Reserve the container's capacity",
		[ADVICE_REUSE] = "Keep a buffer in place of a new block each time",
		[ADVICE_ONE_BLOCK] = "Allocate many at once, as an array or from an arena",
		[ADVICE_HAND_BACK] = "Give blocks back to the thread that allocates them",
		[ADVICE_BOUND] = "Bound what is kept, or free it",
		[ADVICE_SIZES] = "Ask for sizes that are rounded less, or put several in one block",
	};

	return remedies[kind];
}

/* Prints " of 32 to 63 bytes". */
static void print_sizes(FILE *to, const struct advice *advice)
{
	fprintf(to, " of %s to %s bytes", number__count(advice->least_bytes).text,
		number__count(advice->most_bytes).text);
}

void advice_text__print_reason(const struct report *report, const struct advice *advice, bool exact,
			       FILE *to)
{
	/* The sentence ends so if it begins with a part of the blocks. */
	static const char *const happened[ADVICE_KINDS] = {
		[ADVICE_RESERVE] = "were made larger by realloc here again",
		[ADVICE_REUSE] = "ended before their thread allocated again",
		[ADVICE_ONE_BLOCK] = "stay until the end",
		[ADVICE_HAND_BACK] = "were freed by another thread than had allocated them",
	};
	const struct growth *growth = &report->entries[advice->entry].growth;
	struct number_text calls = number__count(advice->saved_calls);
	struct number_text all = number__count(advice->allocations);

	if (advice->kind == ADVICE_BOUND) {
		fprintf(to,
			"live bytes grow by %s a second until the end, and of %s blocks hardly any was freed",
			report_text__bytes(number__of(growth->bytes_per_second), exact).text,
			all.text);
	} else if (advice->kind == ADVICE_SIZES) {
		fprintf(to, "%s live blocks of %s take %s", number__count(advice->live).text,
			report_text__bytes(advice->live_bytes, exact).text,
			report_text__bytes(advice->live_bytes + advice->saved_bytes, exact).text);
	} else if (advice->kind == ADVICE_CAPACITY) {
		fprintf(to, "%s buffers", all.text);
		print_sizes(to, advice);
		fprintf(to, ", of which each container needs one; there are at least %s",
			number__count(advice->allocations - advice->saved_calls).text);
	} else {
		fprintf(to, "%s of %s blocks", calls.text, all.text);
		print_sizes(to, advice);
		fprintf(to, " %s", happened[advice->kind]);
	}
}

void advice_text__print_saved(const struct report *report, const struct advice *advice, bool exact,
			      FILE *to)
{
	struct number_text bytes = report_text__bytes(advice->saved_bytes, exact);

	if (advice->kind == ADVICE_BOUND) {
		fprintf(to, "%s, %s of all live bytes", bytes.text,
			number__share(advice->saved_bytes, report->left_bytes).text);
		return;
	}
	if (advice->kind == ADVICE_SIZES) {
		fprintf(to, "saves up to %s of headers and rounding", bytes.text);
		return;
	}
	fprintf(to, "saves up to %s %s, %s of all", number__count(advice->saved_calls).text,
		plural__of("allocation{|s}", advice->saved_calls).text,
		number__share(advice->saved_calls, report->whole.allocations).text);
	if (advice->saved_bytes)
		fprintf(to,
			advice->kind == ADVICE_RESERVE ? ", and copies of %s"
						       : ", and %s of headers and rounding",
			bytes.text);
}

static void print_advice(const struct report_output *output, const struct advice *advice)
{
	const struct report_entry *entry = &output->report->entries[advice->entry];
	const struct terminal *terminal = &output->terminal;

	fputc('\n', terminal->to);
	terminal__set_colour(terminal, COLOUR_BOLD);
	fputs(advice_text__remedy(advice->kind), terminal->to);
	terminal__set_colour(terminal, COLOUR_NONE);
	fputs(": ", terminal->to);
	advice_text__print_saved(output->report, advice, !terminal->is_terminal, terminal->to);
	fprintf(terminal->to, "\n  stack %u: ", output->groups->groups[entry->group].id);
	advice_text__print_reason(output->report, advice, !terminal->is_terminal, terminal->to);
	fputc('\n', terminal->to);
	report_output__frames(output, entry);
}

void report_output__advice(const struct report_output *output)
{
	size_t shown = output->top < output->n_advice ? output->top : output->n_advice;
	FILE *to = output->terminal.to;

	fputc('\n', to);
	terminal__set_colour(&output->terminal, COLOUR_BOLD);
	fputs("Advice", to);
	terminal__set_colour(&output->terminal, COLOUR_NONE);
	if (!output->n_advice) {
		fputs(": none; no stack would save a hundredth of the allocations or of what is live\n",
		      to);
		return;
	}
	fprintf(to, " on %s %s, by what it saves\n", number__count(output->n_advice).text,
		plural__of("point{|s}", output->n_advice).text);
	for (size_t i = 0; i < shown && !ferror(to); i++)
		print_advice(output, &output->advice[i]);
	if (shown < output->n_advice)
		fprintf(to, "\n%s more; --top=0 prints %s too\n",
			number__count(output->n_advice - shown).text,
			plural__of("{it|them}", output->n_advice - shown).text);
}
