/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tells what kind of code a frame is: the program's own, a library, a runtime. */
#ifndef ALLOCPROF_FRAME_KIND_H
#define ALLOCPROF_FRAME_KIND_H

#include <stdbool.h>

/* Kinds of frames, in the order of `kinds` in web/trie.js. */
enum frame_kind {
	FRAME_KIND_OWN,	    /* programs, and libraries that the system did not install */
	FRAME_KIND_LIBRARY, /* libraries that the system or a package manager installed */
	/* Runtimes of languages: libc, libstdc++, Rust's std, Go's runtime, interpreters. */
	FRAME_KIND_RUNTIME,
	FRAME_KIND_ALLOCATOR, /* malloc and its kin, and libraries that define them */
	FRAME_KIND_UNKNOWN,   /* code without a file and without a name */
	FRAME_KIND_PROCESS,   /* no code, but the name of a process */
	FRAME_KIND_THREAD,    /* no code, but the name of a thread */
	FRAME_KIND_MISSING,   /* no code, but the reason why frames are missing */
	FRAME_KINDS,
};

struct frame_code {
	const char *name;   /* of the function, as in the source; "": it has none */
	const char *module; /* path of the file; NULL: it is in none */
	const char *source; /* path of the source file; NULL: unknown */
	bool is_internal; /* allocprof-wrappers(5) has it: it only asks for memory, or is a library's own */
};

/* Returns the kind. This is the one place that tells own code from others'. */
enum frame_kind frame_kind__of(const struct frame_code *code);
/* Returns how little a stack belongs to a frame: to the innermost of those with the least number. An address of a stripped
 * program tells less than a name of a library. */
int frame_kind__rank(enum frame_kind kind, bool has_name);
/* Returns the kind's title for legends: "own code", "runtime". */
const char *frame_kind__title(enum frame_kind kind);

#endif
