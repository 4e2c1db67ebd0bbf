/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker that reads the files of targets while they are recorded, one file for each call; the caller checks the
 * result. After a file that users other than root may write to, the worker is replaced: that file may have taken it
 * over, and it could then lie about libraries that all processes use.
 */
#ifndef ALLOCPROF_PARSER_H
#define ALLOCPROF_PARSER_H

#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

struct error;
struct parser;

/* A call as the function in the worker gets it. */
struct parser_task {
	int fd;
	const char *path;	       /* path of the file, for messages */
	struct wire_reader parameters; /* comes from the caller, so it may be trusted */
	struct wire_writer *result;
	struct error *error;
};

/* Runs in the worker, which was forked from this process, so that constants are at the same
 * addresses. Returns 0 with the result written, or a negative errno with task->error set. */
typedef int (*parser_fn)(struct parser_task *task);

struct parser_call {
	parser_fn run;
	int fd; /* descriptor of the file; the caller keeps it */
	const char *path;
	const char *name; /* name of the file in sentences; NULL: @path */
	/* Parameters for the function in the worker; NULL: none. */
	const struct wire_writer *parameters;
	/* The worker may open the file's debug file; the call gets a worker of its own for that. */
	bool needs_debug_file;
};

/* Starts the worker by a fork, so best before there are threads and BPF programs. A parser has one
 * caller at a time, and ends with the thread that started its worker. Returns 0 with *@out, which
 * the caller frees by parser__free(), or a negative errno. */
int parser__new(struct parser **out, struct error *error);
/* Accepts NULL. */
void parser__free(struct parser *parser);

/*
 * Has the worker run @call->run on the file. Returns 0, with *@result, which is valid until the
 * next call and must not be trusted; the negative errno that @call->run returned; or -ECHILD if
 * the worker crashed, took too long or sent an invalid reply. After an error *@error has a
 * sentence.
 */
int parser__call(struct parser *parser, const struct parser_call *call, struct wire_reader *result,
		 struct error *error);

/* Does the same, and fills @object, which is zeroed, from a result that consists of one struct of
 * @type; @context is passed to wire__get_struct(). The caller releases the object, also after an
 * error. Returns 0, -ENOMEM, or an error of parser__call(). */
int parser__call_struct(struct parser *parser, const struct parser_call *call,
			const struct wire_struct *type, void *object, const void *context,
			struct error *error);

/* Reports that the result of the last call is invalid; @name is the name of the file in sentences.
 * Returns -ECHILD, with *@error set. */
int parser__refuse(struct parser *parser, const char *name, struct error *error);

#endif
