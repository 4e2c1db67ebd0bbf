// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes the sentences of findings, of advice and of costs that moved, as text and as JSON. */
#include "finding_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advice_text.h"
#include "array.h"
#include "json.h"
#include "number.h"
#include "report_output.h"
#include "stack_groups.h"
#include "terminal.h"
#include "text.h"

/* A sentence: its function, what it does, and the numbers that say so. */
struct finding_text {
	const char *function; /* borrowed; NULL: the sentence has none */
	char *says, *detail;
};

/* A function's name has so many columns on a terminal at most. */
#define NAME_COLUMNS 60
/* From so many times as much on, the number of times reads better than a percentage. */
#define MANY_FOLD 10

static const char *bytes_of(__u64 bytes, struct number_text *text)
{
	*text = number__bytes(bytes, false);
	return text->text;
}

static void print_blocks(__u64 blocks, FILE *to)
{
	fprintf(to, "%s %s", number__count(blocks).text, plural__of("block{|s}", blocks).text);
}

/* Prints what the function does. */
static void print_says(const struct finding *finding, FILE *to)
{
	struct number_text bytes, all;

	switch (finding->kind) {
	case FINDING_INCOMPLETE:
		fputs("Not complete", to);
		break;
	case FINDING_LOST:
		fprintf(to, "has lost %s", bytes_of(finding->bytes, &bytes));
		break;
	case FINDING_GROWING:
		fprintf(to, "grows by %s a second",
			bytes_of(number__of(finding->bytes_per_second), &bytes));
		break;
	case FINDING_PEAK:
		fprintf(to, "holds %s of the peak",
			number__share(finding->bytes, finding->whole).text);
		break;
	case FINDING_CHURN:
		fprintf(to, "makes %s of all blocks",
			number__share(finding->blocks, finding->whole).text);
		break;
	case FINDING_RESIDENT:
		fprintf(to, "Of %s in memory %s are live blocks", bytes_of(finding->whole, &all),
			bytes_of(finding->bytes, &bytes));
		break;
	case FINDING_ADVICE:
		/* "Keep a buffer" becomes "could keep a buffer". */
		fprintf(to, "could %c%s", advice_text__remedy(finding->advice.kind)[0] | 0x20,
			advice_text__remedy(finding->advice.kind) + 1);
		break;
	case FINDING_KINDS:
		break;
	}
}

/* Prints the numbers that say so. */
static void print_detail(const struct report *report, const struct finding *finding, FILE *to)
{
	struct number_text bytes, all;

	switch (finding->kind) {
	case FINDING_INCOMPLETE:
		if (!finding->blocks) {
			fputs("what is missing is said with the numbers", to);
			break;
		}
		fprintf(to, "%s %s missing, %s of all", number__count(finding->blocks).text,
			plural__of("call{ is|s are}", finding->blocks).text,
			number__share(finding->blocks, finding->whole).text);
		break;
	case FINDING_LOST:
		print_blocks(finding->blocks, to);
		fputs(" to which no pointer leads", to);
		if (finding->bytes_per_second > 0)
			fprintf(to, ", and grows by %s a second",
				bytes_of(number__of(finding->bytes_per_second), &bytes));
		break;
	case FINDING_GROWING:
		fprintf(to, "%s in ", bytes_of(finding->bytes, &bytes));
		print_blocks(finding->blocks, to);
		fprintf(to, " %s not freed", plural__of("{was|were}", finding->blocks).text);
		break;
	case FINDING_PEAK:
		fprintf(to, "%s of %s, in ", bytes_of(finding->bytes, &bytes),
			bytes_of(finding->whole, &all));
		print_blocks(finding->blocks, to);
		break;
	case FINDING_CHURN:
		fprintf(to, "%s, nine of ten freed within %s", number__count(finding->blocks).text,
			number__time(finding->lifetime_ns).text);
		break;
	case FINDING_RESIDENT:
		fprintf(to, "the largest other part, %s: %s", bytes_of(finding->part_bytes, &bytes),
			resident_text__part(finding->part));
		break;
	case FINDING_ADVICE:
		advice_text__print_saved(report, &finding->advice, false, to);
		break;
	case FINDING_KINDS:
		break;
	}
}

/* Closes @to, which wrote *@text. Returns 0 or -ENOMEM. */
static int close_text(FILE *to, char **text)
{
	if (to && !fclose(to))
		return 0;
	if (to)
		free(*text);
	*text = NULL;
	return -ENOMEM;
}

/* Makes the sentence of @finding, to be released also where this fails. Returns 0 or -ENOMEM. */
static int finding_text__make(const struct report *report, const struct findings *findings,
			      const struct finding *finding, struct finding_text *text)
{
	size_t size;
	FILE *to;
	int err;

	*text = (struct finding_text){ 0 };
	if (finding->function) {
		__u32 label = findings->charges.functions[finding->function - 1].label;

		text->function = report->groups->labels[label].text;
	}
	to = open_memstream(&text->says, &size);
	if (to)
		print_says(finding, to);
	err = close_text(to, &text->says);
	to = open_memstream(&text->detail, &size);
	if (to)
		print_detail(report, finding, to);
	return close_text(to, &text->detail) ? -ENOMEM : err;
}

/* Does the same for a cost that moved. Its function is in the detail. */
static int finding_text__make_moved(const struct moved *moved, struct finding_text *text)
{
	static const char *const names[COSTS] = {
		[COST_ALLOCATIONS] = "Allocations",
		[COST_BYTES] = "Allocated bytes",
		[COST_LIVE_BYTES] = "What was not freed",
		[COST_PEAK] = "The peak",
	};
	bool is_bytes = cost__is_bytes(moved->cost), fell = moved->after < moved->before;
	struct number_text numbers[3];
	const __u64 values[] = { fell ? moved->before - moved->after : moved->after - moved->before,
				 moved->before, moved->after };
	char share[64] = ", from nothing";
	int n;

	*text = (struct finding_text){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		numbers[i] = is_bytes ? number__bytes(values[i], false) : number__count(values[i]);
	if (moved->before && !fell && moved->after / moved->before >= MANY_FOLD)
		snprintf(share, sizeof(share), ", %s-fold",
			 number__count(moved->after / moved->before).text);
	else if (moved->before)
		snprintf(share, sizeof(share), ", %.1f %%", 100.0 * values[0] / moved->before);
	n = asprintf(&text->says, "%s %s by %s%s", names[moved->cost], fell ? "fell" : "grew",
		     numbers[0].text, share);
	if (n < 0) {
		text->says = NULL;
		return -ENOMEM;
	}
	if (moved->function)
		n = asprintf(&text->detail, "%s to %s, most in %s: %c%s", numbers[1].text,
			     numbers[2].text, moved->function, moved->change < 0 ? '-' : '+',
			     is_bytes ? number__bytes(fabs(moved->change), false).text
				      : number__count(fabs(moved->change)).text);
	else
		n = asprintf(&text->detail, "%s to %s", numbers[1].text, numbers[2].text);
	if (n < 0)
		text->detail = NULL;
	return n < 0 ? -ENOMEM : 0;
}

static void finding_text__release(struct finding_text *text)
{
	free(text->says);
	free(text->detail);
}

/* Prints the sentence on a line. */
static void print_text(const struct finding_text *text, const struct terminal *terminal)
{
	size_t name = text->function ? terminal__columns_of(text->function) + 1 : 0;
	size_t columns;

	if (terminal->columns && name > NAME_COLUMNS)
		name = NAME_COLUMNS + 1;
	columns = name + strlen("  : ") + strlen(text->says) + terminal__columns_of(text->detail);
	fputs("  ", terminal->to);
	if (text->function) {
		terminal__set_colour(terminal, COLOUR_BOLD);
		terminal__print(terminal, text->function, terminal->columns ? NAME_COLUMNS : 0);
		terminal__set_colour(terminal, COLOUR_NONE);
		fputc(' ', terminal->to);
	}
	fprintf(terminal->to, "%s:%s", text->says,
		terminal->columns && columns > terminal->columns ? "\n    " : " ");
	terminal__print(terminal, text->detail, 0);
	fputc('\n', terminal->to);
}

void moved_text__print(const struct moved *list, size_t n, const struct terminal *terminal)
{
	for (size_t i = 0; i < n; i++) {
		struct finding_text text;

		if (!finding_text__make_moved(&list[i], &text))
			print_text(&text, terminal);
		finding_text__release(&text);
	}
	if (!n)
		fputs("  No cost moved by 1 % or more.\n", terminal->to);
}

void report_output__findings(const struct report_output *output)
{
	const struct findings *findings = output->findings;

	if (!findings || !findings->n)
		return;
	fputc('\n', output->terminal.to);
	for (size_t i = 0; i < findings->n; i++) {
		struct finding_text text;

		if (!finding_text__make(output->of_findings, findings, &findings->list[i], &text))
			print_text(&text, &output->terminal);
		finding_text__release(&text);
	}
}

static json_object *json_text(const char *kind, const struct finding_text *text)
{
	json_object *object = json_object_new_object();

	json__add(object, "kind", json_object_new_string(kind));
	json__add(object, "function", text->function ? json__string(text->function) : NULL);
	json__add(object, "says", json__string(text->says));
	json__add(object, "detail", json__string(text->detail));
	return object;
}

/* A number of which the finding does not speak is 0. */
static json_object *count_or_null(__u64 count)
{
	return count ? json__count(count) : NULL;
}

json_object *findings_text__json(const struct report *report, const struct findings *findings)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < findings->n; i++) {
		const struct finding *finding = &findings->list[i];
		struct finding_text text;
		json_object *object;

		if (!finding_text__make(report, findings, finding, &text)) {
			object = json_text(finding__name(finding->kind), &text);
			json__add(object, "blocks", count_or_null(finding->blocks));
			json__add(object, "bytes", count_or_null(finding->bytes));
			json__add(object, "whole", count_or_null(finding->whole));
			json__add(object, "bytes_per_second",
				  finding->bytes_per_second > 0
					  ? json__seconds(finding->bytes_per_second)
					  : NULL);
			json__add(object, "lifetime_ns", count_or_null(finding->lifetime_ns));
			json_object_array_add(list, object);
		}
		finding_text__release(&text);
	}
	return list;
}

json_object *advice_text__json(const struct report *report, const struct findings *findings)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < findings->n_advice; i++) {
		const struct advice *advice = &findings->advice[i];
		const struct report_entry *entry = &report->entries[advice->entry];
		__u32 function = findings->charges.of_groups[entry->group];
		struct finding_text text = { 0 };
		char *reason = NULL;
		size_t size;
		FILE *to = open_memstream(&text.detail, &size);

		if (to)
			advice_text__print_saved(report, advice, false, to);
		if (!close_text(to, &text.detail)) {
			to = open_memstream(&reason, &size);
			if (to)
				advice_text__print_reason(report, advice, false, to);
		}
		text.says = strdup(advice_text__remedy(advice->kind));
		text.function =
			report->groups->labels[findings->charges.functions[function - 1].label]
				.text;
		if (text.detail && !close_text(to, &reason) && text.says) {
			json_object *object = json_text(advice__name(advice->kind), &text);

			json__add(object, "reason", json__string(reason));
			json_object_array_add(list, object);
		}
		free(reason);
		finding_text__release(&text);
	}
	return list;
}

json_object *moved_text__json(const struct moved *list, size_t n)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		struct finding_text text;
		json_object *object;

		if (!finding_text__make_moved(&list[i], &text)) {
			object = json_text(cost__name(list[i].cost), &text);
			json__add(object, "before", json__count(list[i].before));
			json__add(object, "after", json__count(list[i].after));
			json_object_array_add(array, object);
		}
		finding_text__release(&text);
	}
	return array;
}
