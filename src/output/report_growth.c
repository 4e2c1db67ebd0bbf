// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints which stacks and functions still grew when the recording ended, and what the end freed. */
#include "number.h"
#include "profile_runs.h"
#include "report_output.h"
#include "text.h"

void report_output__growth(const struct report_output *output)
{
	const struct report *report = output->report;
	FILE *to = output->terminal.to;
	double bytes_per_second = 0;
	size_t n = 0, n_known = 0, n_undecided = 0;

	for (size_t i = 0; i < report->n_entries; i++) {
		const struct growth *growth = &report->entries[i].growth;

		n_known += growth->is_known;
		n_undecided += growth->verdict == GROWTH_UNDECIDED;
		if (growth->verdict == GROWTH_GROWING) {
			bytes_per_second += growth->bytes_per_second;
			n++;
		}
	}
	/* Shorter than the epochs of which growth takes some. Of several runs nothing is said. */
	if (!n_known && (!report->epoch_ns || profile__n_runs(output->profile) > 1))
		return;
	terminal__set_colour(&output->terminal, COLOUR_BOLD);
	fputs("Still growing at the end", to);
	terminal__set_colour(&output->terminal, COLOUR_NONE);
	if (n)
		fprintf(to, ": %s %s, by %s a second", number__count(n).text,
			plural__of("stack{|s}", n).text,
			report_output__bytes(output, number__of(bytes_per_second)).text);
	else
		fputs(n_known ? ": none" : ": not known, the recording is too short", to);
	if (n_undecided)
		fprintf(to, "%s %s undecided", n ? "," : ", but", number__count(n_undecided).text);
	fputc('\n', to);
	for (size_t i = 0; i < report->n_growing && i < output->top; i++) {
		const struct report_growing *growing = &report->growing[i];

		fprintf(to, "Growing in sum over %s stacks, by %s a second: ",
			number__count(growing->n_entries).text,
			report_output__bytes(output, number__of(growing->growth.bytes_per_second))
				.text);
		report_output__frame(output, growing->label, 0);
		fputc('\n', to);
	}
}

void report_output__exit_frees(const struct report_output *output)
{
	const struct report *report = output->report;

	if (!report->exit_frees.epoch)
		return;
	fprintf(output->terminal.to,
		"the last %s freed %s of it, as a program does that ends: what was there before is "
		"shown; --at-exit\nshows what was left, %s in %s %s\n",
		number__time(report->exit_frees.took_ns).text,
		report_output__bytes(output, report->exit_frees.freed_bytes).text,
		report_output__bytes(output, report->left_bytes).text,
		number__count(report->left).text, plural__of("block{|s}", report->left).text);
}
