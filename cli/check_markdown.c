// SPDX-License-Identifier: GPL-3.0-or-later
/* The results of `check` for reviewers: Markdown for a pull request. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cleanup.h"
#include "growth_text.h"
#include "number.h"
#include "page_text.h"

/* Prints text of a table's cell, in which nothing is Markdown or HTML. */
static void print_cell(const char *text, FILE *to)
{
	for (const char *c = text; *c; c++) {
		unsigned char byte = *c;

		if (byte == '\n')
			fputs("<br>", to);
		else if (byte < ' ' || byte == 0x7f)
			fputc('?', to);
		else if (byte < 0x80 && ispunct(byte) && !strchr(".,:;()/+-%'", byte))
			fprintf(to, "&#%u;", byte);
		else
			fputc(byte, to);
	}
}

static void print_count(__s64 value, FILE *to)
{
	fprintf(to, "%s%s", value < 0 ? "-" : "",
		number__count(value < 0 ? -(__u64)value : (__u64)value).text);
}

static void print_range(const struct budget_measured *figure, FILE *to)
{
	print_count(figure->value, to);
	if (figure->least == figure->greatest)
		return;
	fputs(" (", to);
	print_count(figure->least, to);
	fputs(" to ", to);
	print_count(figure->greatest, to);
	fputc(')', to);
}

/* Prints what a figure may be, and how it may grow. */
static void print_allowed(const struct check_result *result, size_t part, int figure, FILE *to)
{
	const struct budget_limit *limit = &check_result__limits(result, part)[figure];
	const struct growth_limit *allowed;
	const char *comma = "";
	__s64 min;

	if (budget_limit__lower(limit, figure, &min)) {
		fputs("at least ", to);
		print_count(min, to);
		comma = ", ";
	}
	if (limit->has_max) {
		fprintf(to, "%sat most ", comma);
		print_count(limit->max, to);
		comma = ", ";
	}
	if (check_result__growth(result, part, figure, &allowed) != CHECK_NOT_COMPARED)
		fprintf(to, "%s%s", comma, growth_limit__text(allowed).text);
}

static const char *verdict_of(const struct check_result *result, size_t part, int figure)
{
	const struct growth_limit *allowed;
	enum budget_verdict verdict = check_result__verdict(result, part, figure);
	enum check_growth growth = check_result__growth(result, part, figure, &allowed);

	if (verdict == BUDGET_OVER || growth == CHECK_GREW)
		return "**over**";
	if (verdict == BUDGET_STALE)
		return result->outcome == CHECK_STALE ? "**stale**" : "improved";
	return growth == CHECK_NOISE ? "within chance" : "within";
}

static void print_row(const struct check_result *result, size_t part, int figure, FILE *to)
{
	const struct budget_part *of = check_result__part(result, part);
	const struct budget_measured *head = &result->figures[CHECK_HEAD][part][figure], *base;
	const struct growth_limit *allowed;

	fprintf(to, "| %s | ", verdict_of(result, part, figure));
	print_cell(result->test->name, to);
	fputs(" | ", to);
	print_cell(budget__figure_name(figure), to);
	if (of) {
		fprintf(to, " %s ", budget_part__words(of->kind));
		print_cell(of->name, to);
	}
	fputs(" | ", to);
	print_range(head, to);
	fputs(" | ", to);
	if (check_result__growth(result, part, figure, &allowed) != CHECK_NOT_COMPARED) {
		base = &result->figures[CHECK_BASE][part][figure];
		print_range(base, to);
		fputs(" | ", to);
		fputs(base->value == head->value
			      ? "0"
			      : growth_text__difference(base->value, head->value).text,
		      to);
	} else {
		fputs(" | ", to);
	}
	fputs(" | ", to);
	print_allowed(result, part, figure, to);
	fputs(" |\n", to);
}

static void print_rows(const struct check_result *result, FILE *to)
{
	if (result->error.text[0] || !result->figures[CHECK_HEAD]) {
		fprintf(to, "| **%s** | ", check__outcome_name(result->outcome));
		print_cell(result->test->name, to);
		fputs(" | ", to);
		print_cell(result->error.text, to);
		fputs(" | | | | |\n", to);
		return;
	}
	for (size_t part = 0; part <= result->test->n_parts; part++)
		for (int i = 0; i < BUDGET_FIGURES; i++)
			if (check_result__shows(result, part, i))
				print_row(result, part, i, to);
}

static void print_folded(const struct check_result *result, const char *title, const char *text,
			 FILE *to)
{
	if (!text)
		return;
	fputs("\n<details><summary>", to);
	page_text__print(result->test->name, to);
	fprintf(to, ": %s</summary>\n\n<pre>\n", title);
	page_text__print_lines(text, "\n", to);
	fputs("</pre>\n\n</details>\n", to);
}

static void print_title(const struct check_result *results, size_t n, FILE *to)
{
	size_t failed = 0;

	for (size_t i = 0; i < n; i++)
		failed += results[i].outcome > CHECK_IMPROVED;
	fputs("### Allocations: ", to);
	if (failed)
		fprintf(to, "%zu of %zu %s not within limits\n\n", failed, n,
			n == 1 ? "test is" : "tests are");
	else
		fprintf(to, "%zu %s within limits\n\n", n, n == 1 ? "test is" : "tests are");
}

int check_markdown__write(const char *suite, const struct check_result *results, size_t n,
			  char **text, size_t *size)
{
	FILE *to = open_memstream(text, size);

	(void)suite;
	if (!to)
		return -ENOMEM;
	print_title(results, n, to);
	fputs("| | test | figure | value | base | change | allowed |\n"
	      "|---|---|---|--:|--:|--:|---|\n",
	      to);
	for (size_t i = 0; i < n; i++)
		print_rows(&results[i], to);
	for (size_t i = 0; i < n; i++) {
		print_folded(&results[i], "which stacks", results[i].details, to);
		print_folded(&results[i], "where its runs differ", results[i].spread, to);
	}
	if (!fclose(to))
		return 0;
	free(*text);
	return -ENOMEM;
}
