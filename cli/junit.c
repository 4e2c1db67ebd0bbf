// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the results of `allocprof check` as the XML that JUnit's readers take. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "cleanup.h"
#include "page_text.h"

static void print_attribute(const char *name, const char *value, FILE *to)
{
	fprintf(to, " %s=\"", name);
	page_text__print_lines(value, "&#10;", to);
	fputc('"', to);
}

static void print_problem(const struct check_result *result, const char *summary, FILE *to)
{
	bool is_failure = result->outcome == CHECK_OVER || result->outcome == CHECK_STALE;
	const char *element = is_failure ? "failure" : "error";

	fprintf(to, "   <%s", element);
	print_attribute("type", check__outcome_name(result->outcome), to);
	print_attribute("message", summary, to);
	fputc('>', to);
	page_text__print_lines(result->details ? result->details : summary, "\n", to);
	fprintf(to, "</%s>\n", element);
}

static int print_case(const char *suite, const struct check_result *result, FILE *to)
{
	_cleanup_(free_ptr) char *summary = check_result__summary(result);

	if (!summary)
		return -ENOMEM;
	fputs("  <testcase", to);
	print_attribute("name", result->test->name, to);
	print_attribute("classname", suite, to);
	fprintf(to, " time=\"%.3f\">\n", result->seconds);
	if (result->outcome > CHECK_IMPROVED)
		print_problem(result, summary, to);
	fputs("   <system-out>", to);
	page_text__print_lines(summary, "\n", to);
	fputs("</system-out>\n  </testcase>\n", to);
	return 0;
}

static int print_suite(const char *suite, const struct check_result *results, size_t n, FILE *to)
{
	size_t failures = 0, errors = 0;
	double seconds = 0;
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		failures += results[i].outcome == CHECK_OVER || results[i].outcome == CHECK_STALE;
		errors += results[i].outcome > CHECK_OVER;
		seconds += results[i].seconds;
	}
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite", to);
	print_attribute("name", suite, to);
	fprintf(to, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"%.3f\">\n", n, failures,
		errors, seconds);
	for (size_t i = 0; !err && i < n; i++)
		err = print_case(suite, &results[i], to);
	fputs(" </testsuite>\n</testsuites>\n", to);
	return err;
}

int junit__write(const char *suite, const struct check_result *results, size_t n, char **text,
		 size_t *size)
{
	_cleanup_(free_ptr) char *written = NULL;
	size_t written_size;
	FILE *to = open_memstream(&written, &written_size);
	int err;

	if (!to)
		return -ENOMEM;
	err = print_suite(suite, results, n, to);
	if (fclose(to) || err)
		return -ENOMEM;
	*text = written;
	*size = written_size;
	written = NULL;
	return 0;
}
