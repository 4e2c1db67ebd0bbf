/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What kind of code a frame is, by which a flame graph is coloured. */
#ifndef ALLOCPROF_PAGE_KIND_H
#define ALLOCPROF_PAGE_KIND_H

#include <stdbool.h>

/* In the order of `kinds` in web/trie.js. */
enum page_kind {
	PAGE_KIND_OWN,	   /* programs, and libraries that the system did not install */
	PAGE_KIND_LIBRARY, /* libraries that it did */
	PAGE_KIND_RUNTIME, /* of a language: libc, libstdc++, Rust's std, Go's runtime, interpreters */
	PAGE_KIND_ALLOCATOR, /* malloc and its kin, and libraries that define them */
	PAGE_KIND_UNKNOWN,   /* code without a file */
	PAGE_KIND_PROCESS,   /* no code: the name of a process, */
	PAGE_KIND_THREAD,    /* of a thread, */
	PAGE_KIND_MISSING,   /* or why frames are missing */
	PAGE_KINDS,
};

/* The kind of the function @name of the file @module (a path; NULL: unknown). */
enum page_kind page_kind__of(const char *name, const char *module);
/* For legends: "own code", "runtime". */
const char *page_kind__title(enum page_kind kind);

#endif
