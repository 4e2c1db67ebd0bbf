// SPDX-License-Identifier: GPL-3.0-or-later
#include "report_page.h"

#include <errno.h>

#include "cleanup.h"
#include "page.h"

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
