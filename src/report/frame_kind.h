/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tells what kind of code a frame is: the program's own, a library, a runtime. */
#ifndef ALLOCPROF_FRAME_KIND_H
#define ALLOCPROF_FRAME_KIND_H

/* Kinds of frames, in the order of `kinds` in web/trie.js. */
enum frame_kind {
	FRAME_KIND_OWN,	    /* programs, and libraries that the system did not install */
	FRAME_KIND_LIBRARY, /* libraries that the system installed */
	/* Runtimes of languages: libc, libstdc++, Rust's std, Go's runtime, interpreters. */
	FRAME_KIND_RUNTIME,
	FRAME_KIND_ALLOCATOR, /* malloc and its kin, and libraries that define them */
	FRAME_KIND_UNKNOWN,   /* code without a file and without a name */
	FRAME_KIND_PROCESS,   /* no code, but the name of a process */
	FRAME_KIND_THREAD,    /* no code, but the name of a thread */
	FRAME_KIND_MISSING,   /* no code, but the reason why frames are missing */
	FRAME_KINDS,
};

/* Returns the kind of the function @name of the file @module (a path; NULL: unknown). @source is
 * the path of its source file; NULL: unknown. */
enum frame_kind frame_kind__of(const char *name, const char *module, const char *source);
/* Returns the kind's title for legends: "own code", "runtime". */
const char *frame_kind__title(enum frame_kind kind);

#endif
