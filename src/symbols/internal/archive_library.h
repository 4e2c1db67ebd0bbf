/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loads libarchive when an archive is written: it and the libraries that it needs (libxml2, ICU
 * and others) took half of the time in which any command starts. */
#ifndef ALLOCPROF_ARCHIVE_LIBRARY_H
#define ALLOCPROF_ARCHIVE_LIBRARY_H

#include <archive.h>
#include <archive_entry.h>

/* Calls X with each function of libarchive that is used. */
#define ARCHIVE_FUNCTIONS(X)                                                                       \
	X(archive_entry_free)                                                                      \
	X(archive_entry_new)                                                                       \
	X(archive_entry_set_filetype)                                                              \
	X(archive_entry_set_mtime)                                                                 \
	X(archive_entry_set_pathname)                                                              \
	X(archive_entry_set_perm)                                                                  \
	X(archive_entry_set_size)                                                                  \
	X(archive_errno)                                                                           \
	X(archive_write_add_filter_gzip)                                                           \
	X(archive_write_close)                                                                     \
	X(archive_write_data)                                                                      \
	X(archive_write_free)                                                                      \
	X(archive_write_header)                                                                    \
	X(archive_write_new)                                                                       \
	X(archive_write_open_fd)                                                                   \
	X(archive_write_set_bytes_in_last_block)                                                   \
	X(archive_write_set_format_pax_restricted)                                                 \
	X(archive_write_set_options)
#define ARCHIVE_MEMBER(name) __typeof__(name) *name;

struct archive_library {
	ARCHIVE_FUNCTIONS(ARCHIVE_MEMBER)
};

struct error;

/* Returns 0; -ENOENT with @error set: the library is not installed, or lacks a function. The
 * library stays loaded. */
int archive_library__open(struct archive_library *library, struct error *error);

#endif
