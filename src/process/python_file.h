/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out, in a worker, where a file has CPython's interpreter. */
#ifndef ALLOCPROF_PYTHON_FILE_H
#define ALLOCPROF_PYTHON_FILE_H

#include <linux/types.h>
#include <stddef.h>

struct parser;

/* Bytes of _PyRuntime from its beginning that are read. */
#define PYTHON_FILE_WORDS 72

/* vaddrs of symbols; 0: there is none. */
struct python_file {
	__u64 runtime;		/* _PyRuntime */
	__u64 loop, loop_bytes; /* _PyEval_EvalFrameDefault */
	__u64 loop_offset;	/* of it in the file */
	__u64 code_type;	/* PyCode_Type */
	__u64 version;		/* value of Py_Version */
	__u64 *words; /* of _PyRuntime; PYTHON_FILE_WORDS, which are 0 if they are not in the file */
	size_t n_words;
};

void python_file__release(struct python_file *file);

/* Returns 0; -ENOENT if the file has no interpreter; an error of parser__call(). The caller releases *@out then, too. */
int python_file__parse(struct parser *parser, int fd, const char *path, struct python_file *out);

#endif
