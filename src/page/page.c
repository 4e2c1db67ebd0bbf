// SPDX-License-Identifier: GPL-3.0-or-later
#include "page.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"
#include "json.h"
#include "page_data.h"
#include "page_text.h"
#include "profile.h"
#include "recording_text.h"

/* Writes the page up to its data, for which page_data.h is used. page__end() reports errors of
 * @to. */
static void page__begin(const struct page *page, const char *title, FILE *to)
{
	errno = 0;
	fputs(page->head, to);
	page_text__print(title, to);
	fputs(page->middle, to);
}

/* Writes the rest and flushes. 0 or the negative errno of a write. */
static int page__end(const struct page *page, FILE *to)
{
	fputs(page->tail, to);
	if (fflush(to) || ferror(to))
		return errno ? -errno : -EIO;
	return 0;
}

int report_page__write(const struct report_page *page, FILE *to)
{
	_cleanup_(free_ptr) char *title = page_recording__title(page->after);
	int err;

	if (!title)
		return -ENOMEM;
	page__begin(&page_report, title, to);
	err = page_trie__write(page->trie, to);
	if (!err)
		err = page_recording__write(page->after, "after", to);
	if (!err && page->before)
		err = page_recording__write(page->before, "before", to);
	return err ? err : page__end(&page_report, to);
}

/* The page that `flamegraph` writes. */

/* Returns the sentences of @text, which has one per line, as a list. */
static json_object *sentences(char *text)
{
	json_object *list = json_object_new_array();
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			json_object_array_add(list, json__string(line));
	return list;
}

char *flamegraph__title(const struct flamegraph *flamegraph)
{
	const char *given = flamegraph->options.title;

	return given ? strdup(given)
		     : recording_text__title(flamegraph->graphs.inputs[DIFF_AFTER]->profile);
}

/* @title: NULL if there is no memory for it. */
static int describe(const struct page_input *input, const char *title, json_object **described)
{
	_cleanup_(free_ptr) char *remarks = NULL;
	const char *start = profile__meta(input->profile, "start_time");
	int err = title ? recording_text__remarks(input->profile, &remarks) : -ENOMEM;
	json_object *object;

	if (err)
		return err;
	object = json_object_new_object();
	json__add(object, "title", json__string(title));
	json__add(object, "start", start ? json__string(start) : NULL);
	json__add(object, "remarks", sentences(remarks));
	*described = object;
	return 0;
}

/* The trie of a chart is reversed and merged already. */
static json_object *json_options(const struct flamegraph_options *options, bool is_chart)
{
	json_object *object = json_object_new_object();

	json__add(object, "layout", json_object_new_string(options->is_flame ? "flame" : "icicle"));
	json__add(object, "colour", json_object_new_string(options->by_module ? "module" : "kind"));
	json__add(object, "isChart", json_object_new_boolean(is_chart));
	json__add(object, "isOfCallers", json_object_new_boolean(is_chart && options->reversed));
	json__add(object, "reversed", json_object_new_boolean(!is_chart && options->reversed));
	json__add(object, "merged", json_object_new_boolean(!is_chart && options->merged));
	return object;
}

static int write_about(const struct flamegraph *flamegraph, const char *title, FILE *to)
{
	const struct page_graphs *graphs = &flamegraph->graphs;
	json_object *page = json_object_new_object(), *after = NULL, *before = NULL;
	_cleanup_(free_ptr) char *of_base = NULL;
	int err = describe(graphs->inputs[DIFF_AFTER], title, &after);

	if (!err && graphs->inputs[DIFF_BEFORE]) {
		of_base = recording_text__title(graphs->inputs[DIFF_BEFORE]->profile);
		err = describe(graphs->inputs[DIFF_BEFORE], of_base, &before);
	}
	json__add(page, "recording", after);
	json__add(page, "base", before);
	json__add(page, "graphs", page_graphs__json(graphs));
	json__add(page, "graph", json_object_new_string(cost__name(flamegraph->options.cost)));
	json__add(page, "options", json_options(&flamegraph->options, graphs->chart));
	json__add(page, "version", json_object_new_string(ALLOCPROF_VERSION));
	if (err) {
		json_object_put(page);
		return err;
	}
	return page_data__json("page", page, to);
}

int flamegraph__write_page(const struct flamegraph *flamegraph, FILE *to)
{
	_cleanup_(free_ptr) char *title = flamegraph__title(flamegraph);
	int err;

	if (!title)
		return -ENOMEM;
	page__begin(&page_flamegraph, title, to);
	err = write_about(flamegraph, title, to);
	if (!err)
		err = page_trie__write(flamegraph->graphs.trie, to);
	if (!err)
		err = page_graphs__write(&flamegraph->graphs, to);
	return err ? err : page__end(&page_flamegraph, to);
}
