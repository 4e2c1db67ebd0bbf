// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the functions of libarchive that is linked in. */
#include "archive_library.h"

/*
 * libarchive's writer of this format calls this for what is neither a file, a directory nor a link, of which allocprof adds
 * none. Its own has a table of all formats beside it, and these need libxml2, ICU and Nettle.
 */
void __archive_write_entry_filetype_unsupported(struct archive *archive,
						struct archive_entry *entry, const char *format);
void __archive_write_entry_filetype_unsupported(struct archive *archive,
						struct archive_entry *entry, const char *format)
{
}

#define ARCHIVE_FUNCTION(name) .name = name,

int archive_library__open(struct archive_library *library, struct error *error)
{
	*library = (struct archive_library){ ARCHIVE_FUNCTIONS(ARCHIVE_FUNCTION) };
	return 0;
}
