// SPDX-License-Identifier: GPL-3.0-or-later
/* Prints what of the live blocks the program can still reach. */
#include "report_output.h"

#include "profile.h"
#include "terminal.h"
#include "text.h"

static void print_reached(const struct report_output *output, const struct profile_reached *reached,
			  const char *text)
{
	const struct terminal *terminal = &output->terminal;

	if (reached->blocks)
		fprintf(terminal->to, "%14s  %10s %s %s\n",
			number__bytes(reached->size_bytes, !terminal->is_terminal).text,
			number__count(reached->blocks).text,
			plural__of("block{|s}", reached->blocks).text, text);
}

void report_output__reach(const struct report_output *output)
{
	static const char *const texts[PROFILE_REACHES] = {
		[PROFILE_LOST] = "lost: no pointer leads to them",
		[PROFILE_INDIRECTLY_LOST] = "indirectly lost: only lost blocks point to them",
		[PROFILE_POSSIBLY_LOST] =
			"possibly lost: each way to them passes a pointer to the inside of a block",
		[PROFILE_REACHABLE] = "reachable",
	};
	const struct selection *total = &output->report->total;
	struct profile_reached unknown = { total->live, total->live_bytes };

	for (int i = 0; i < PROFILE_REACHES; i++) {
		print_reached(output, &total->reached[i], texts[i]);
		unknown.blocks -= total->reached[i].blocks;
		unknown.size_bytes -= total->reached[i].size_bytes;
	}
	print_reached(output, &unknown, "not looked at: mappings, or of other processes");
}
