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

/* What a call asks for, in the worker. */
struct parser_task {
	int fd;
	const char *path;	       /* for messages */
	struct wire_reader parameters; /* from the caller, so to be trusted */
	struct wire_writer *result;
	struct error *error;
};

/* Runs in the worker, which was forked from this process, so that constants are at the same addresses. 0, with the result
 * written, or a negative errno with task->error. */
typedef int (*parser_fn)(struct parser_task *task);

struct parser_call {
	parser_fn run;
	int fd; /* stays the caller's */
	const char *path;
	const char *name;		      /* what sentences call the file; NULL: @path */
	const struct wire_writer *parameters; /* or NULL */
	/* The file's debug file may be opened, by a worker of this call's own. */
	bool needs_debug_file;
};

/* Starts the worker: by a fork, so best before there are threads and BPF programs. A parser has one caller at a time, and
 * ends with the thread that started its worker. 0 or a negative errno. */
int parser__new(struct parser **out, struct error *error);
/* Accepts NULL. */
void parser__free(struct parser *parser);

/*
 * 0, with *@result valid until the next call, to be read without trust; what @call->run returned; or -ECHILD: the worker
 * crashed, took too long or sent an invalid reply. Errors have a sentence.
 */
int parser__call(struct parser *parser, const struct parser_call *call, struct wire_reader *result,
		 struct error *error);

/* Calls, and fills @object, which is zeroed, by a result that is a struct of @type alone; wire__get_struct() has @context.
 * The object is to be released also after an error. 0, -ENOMEM, or as parser__call(). */
int parser__call_struct(struct parser *parser, const struct parser_call *call,
			const struct wire_struct *type, void *object, const void *context,
			struct error *error);

/* The result of the last call, for the file that sentences call @name, is invalid. -ECHILD, with *@error. */
int parser__refuse(struct parser *parser, const char *name, struct error *error);

#endif
