// SPDX-License-Identifier: GPL-3.0-or-later
/* Says what the live mappings of a report are for. */
#include "mapping_text.h"

#include "array.h"
#include "definition_names.h"
#include "mapping_sums.h"
#include "report_output.h"
#include "profile.h"

static const struct {
	enum mapping_kind kind;
	const char *name;
} named_kinds[] = {
	{ MAPPING_STACK, "thread stacks" },
	{ MAPPING_CODE, "executable" },
	{ MAPPING_RESERVED, "reserved (PROT_NONE)" },
	{ MAPPING_HEAP, "heap of brk" },
};

/* Prints "12.3 MiB thread stacks, 4.0 KiB executable". */
static void print_kinds(const struct report_output *output, const struct mapping_sums *sums)
{
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_SIZE(named_kinds); i++) {
		if (!sums->bytes[named_kinds[i].kind])
			continue;
		fprintf(output->terminal.to, "%s%s %s", separator,
			report_output__bytes(output, sums->bytes[named_kinds[i].kind]).text,
			named_kinds[i].name);
		separator = ", ";
	}
}

void mapping_text__function(const struct report_output *output, const struct report_entry *entry)
{
	FILE *to = output->terminal.to;
	struct mapping_sums sums = { 0 };
	__u64 total;

	fputs(definition_names__function(&output->profile->definitions, entry->function), to);
	report_entry__add_mappings(output->report, entry, &sums);
	total = mapping_sums__total(&sums);
	/* The function's name, brk, says already that these are the heap. */
	if (!total || total == sums.bytes[MAPPING_OTHER] || total == sums.bytes[MAPPING_HEAP])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(named_kinds); i++) {
		if (sums.bytes[named_kinds[i].kind] == total) {
			fprintf(to, " (%s)", named_kinds[i].name);
			return;
		}
	}
	fputs(" (", to);
	print_kinds(output, &sums);
	fputc(')', to);
}

static void print_live(const struct report_output *output)
{
	const struct report *report = output->report;
	struct mapping_sums sums = { 0 };

	for (size_t i = 0; i < report->n_entries; i++)
		report_entry__add_mappings(report, &report->entries[i], &sums);
	if (mapping_sums__total(&sums) == sums.bytes[MAPPING_OTHER])
		return;
	fputs("live mappings: ", output->terminal.to);
	print_kinds(output, &sums);
	if (sums.bytes[MAPPING_OTHER])
		fprintf(output->terminal.to, ", %s other",
			report_output__bytes(output, sums.bytes[MAPPING_OTHER]).text);
	if (sums.given_back_bytes)
		fprintf(output->terminal.to, "; madvise gave %s of them back",
			report_output__bytes(output, sums.given_back_bytes).text);
	fputc('\n', output->terminal.to);
}

void mapping_text__live(const struct report_output *output)
{
	const struct profile *profile = output->profile;

	if (!output->report->mappings)
		return;
	if (output->cost == COST_LIVE || output->cost == COST_LIVE_BYTES)
		print_live(output);
	else if (output->cost == COST_PEAK && profile__meta_number(profile, "peak_bytes"))
		fputs("the peaks of mappings and of blocks are at different moments\n",
		      output->terminal.to);
}
