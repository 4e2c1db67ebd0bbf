/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Looks up addresses of one ELF file in all available sources, in a worker. */
#ifndef ALLOCPROF_SYMBOLS_MODULE_H
#define ALLOCPROF_SYMBOLS_MODULE_H

#include "arena.h"
#include "dwarf_internal.h"

struct wire_reader;
struct wire_writer;
struct worker_call;

/* Looks up addresses of one ELF file in all available sources. */

/* Sentences about a module are truncated at this size. */
#define MODULE_TEXT_SIZE 2048

struct module_job {
	int fd; /* -1: @path is opened; the descriptor is borrowed */
	const char *path;
	const char *build_id; /* required build id; "": any */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	struct address *addresses; /* sorted by address, unique */
	size_t n_addresses;
	bool with_servers;
	/* With servers: returns a descriptor of the debug file of @build_id, or a negative errno. */
	int (*fetch)(const char *build_id);
	void (*progress)(size_t n_done);
	/* The results: */
	struct arena arena; /* memory of the addresses' lines */
	bool is_unread;	    /* the worker that read it failed */
	bool wants_file;    /* servers could have found a better file */
	char text[MODULE_TEXT_SIZE];
};

/* Fills the addresses and the text. Returns 0 or -ENOMEM. */
int module_job__run(struct module_job *job);

/* Returns how long a job may take, in ms of wall clock time. */
unsigned int module_job__timeout_ms(void);

/* Frees the addresses and the results. */
void module_job__release(struct module_job *job);

/* Passes the job of one module to a worker, and its results back. */

/* Writes everything in the job except its descriptor, functions and results. */
void module_wire__put_job(struct wire_writer *writer, const struct module_job *job);

/* Sets the addresses and the text of @job from a worker's reply. Returns 0, -EPROTO if it does not
 * answer this job, or -ENOMEM. */
int module_wire__get_result(struct wire_reader *reader, struct module_job *job);

/* worker_options.serve: runs a job. */
int module_wire__serve(struct worker_call *call);

#endif
