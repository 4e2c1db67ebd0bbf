// SPDX-License-Identifier: GPL-3.0-or-later
#include <errno.h>
#include <libxml/xmlwriter.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cleanup.h"
#include "utf8.h"

/* XML allows no control characters but tab and newline, not even escaped. */
static void clean(char *text)
{
	for (char *at = text; *at; at++) {
		size_t n = utf8__sequence(at);

		if (!n || ((unsigned char)*at < ' ' && *at != '\n' && *at != '\t'))
			*at = '?';
		/* U+FFFE and U+FFFF are no characters. */
		else if (!strncmp(at, "\xef\xbf\xbe", 3) || !strncmp(at, "\xef\xbf\xbf", 3))
			memset(at, '?', 3);
		else
			at += n - 1;
	}
}

static int write_attribute(xmlTextWriterPtr writer, const char *name, const char *value)
{
	_cleanup_(free_ptr) char *text = strdup(value);

	if (!text)
		return -1;
	clean(text);
	return xmlTextWriterWriteAttribute(writer, BAD_CAST name, BAD_CAST text);
}

static int write_problem(xmlTextWriterPtr writer, const struct check_result *result,
			 const char *summary)
{
	bool is_failure = result->outcome == CHECK_OVER || result->outcome == CHECK_STALE;
	_cleanup_(free_ptr) char *text = strdup(result->details ? result->details : summary);

	if (!text ||
	    xmlTextWriterStartElement(writer, BAD_CAST(is_failure ? "failure" : "error")) < 0)
		return -1;
	clean(text);
	if (write_attribute(writer, "type", check__outcome_name(result->outcome)) < 0 ||
	    write_attribute(writer, "message", summary) < 0 ||
	    xmlTextWriterWriteString(writer, BAD_CAST text) < 0)
		return -1;
	return xmlTextWriterEndElement(writer);
}

static int write_case(xmlTextWriterPtr writer, const char *suite, const struct check_result *result)
{
	_cleanup_(free_ptr) char *summary = check_result__summary(result);
	_cleanup_(free_ptr) char *output = summary ? strdup(summary) : NULL;

	if (!output || xmlTextWriterStartElement(writer, BAD_CAST "testcase") < 0 ||
	    write_attribute(writer, "name", result->test->name) < 0 ||
	    write_attribute(writer, "classname", suite) < 0 ||
	    xmlTextWriterWriteFormatAttribute(writer, BAD_CAST "time", "%.3f", result->seconds) < 0)
		return -1;
	if (result->outcome > CHECK_IMPROVED && write_problem(writer, result, summary) < 0)
		return -1;
	clean(output);
	if (xmlTextWriterWriteElement(writer, BAD_CAST "system-out", BAD_CAST output) < 0)
		return -1;
	return xmlTextWriterEndElement(writer);
}

static int write_suite(xmlTextWriterPtr writer, const char *suite,
		       const struct check_result *results, size_t n)
{
	size_t failures = 0, errors = 0;
	double seconds = 0;

	for (size_t i = 0; i < n; i++) {
		failures += results[i].outcome == CHECK_OVER || results[i].outcome == CHECK_STALE;
		errors += results[i].outcome > CHECK_OVER;
		seconds += results[i].seconds;
	}
	if (xmlTextWriterStartDocument(writer, NULL, "UTF-8", NULL) < 0 ||
	    xmlTextWriterStartElement(writer, BAD_CAST "testsuites") < 0 ||
	    xmlTextWriterStartElement(writer, BAD_CAST "testsuite") < 0 ||
	    write_attribute(writer, "name", suite) < 0 ||
	    xmlTextWriterWriteFormatAttribute(writer, BAD_CAST "tests", "%zu", n) < 0 ||
	    xmlTextWriterWriteFormatAttribute(writer, BAD_CAST "failures", "%zu", failures) < 0 ||
	    xmlTextWriterWriteFormatAttribute(writer, BAD_CAST "errors", "%zu", errors) < 0 ||
	    xmlTextWriterWriteFormatAttribute(writer, BAD_CAST "time", "%.3f", seconds) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (write_case(writer, suite, &results[i]) < 0)
			return -1;
	return xmlTextWriterEndDocument(writer);
}

int junit__write(const char *suite, const struct check_result *results, size_t n, char **text,
		 size_t *size)
{
	xmlBufferPtr buffer = xmlBufferCreate();
	xmlTextWriterPtr writer = buffer ? xmlNewTextWriterMemory(buffer, 0) : NULL;
	int err = -ENOMEM;

	if (writer) {
		xmlTextWriterSetIndent(writer, 1);
		if (write_suite(writer, suite, results, n) >= 0)
			err = 0;
		xmlFreeTextWriter(writer);
	}
	if (!err) {
		*size = xmlBufferLength(buffer);
		*text = strndup((const char *)xmlBufferContent(buffer), *size);
		err = *text ? 0 : -ENOMEM;
	}
	xmlBufferFree(buffer);
	return err;
}
