// SPDX-License-Identifier: GPL-3.0-or-later
#include "page.h"

#include <errno.h>

#include "page_text.h"

void page__begin(const struct page *page, const char *title, FILE *to)
{
	errno = 0;
	fputs(page->head, to);
	page_text__print(title, to);
	fputs(page->middle, to);
}

int page__end(const struct page *page, FILE *to)
{
	fputs(page->tail, to);
	if (fflush(to) || ferror(to))
		return errno ? -errno : -EIO;
	return 0;
}
