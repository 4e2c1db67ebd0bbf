/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the files that processes have kept for themselves (`allocprof env`), whether these run, have ended or
 * were killed. Nothing that such a file says is believed.
 */
#ifndef ALLOCPROF_OWN_FILE_H
#define ALLOCPROF_OWN_FILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "inside_abi.h"

struct error;
struct own_files;
struct preload;
struct session_options;

/* One process, or one program in it: an exec begins another file. */
struct own_file {
	char *path; /* absolute */
	struct preload *preload;
	struct inside_settings settings;
	struct inside_origin origin;   /* its texts are terminated */
	struct inside_program program; /* state INSIDE_EMPTY: the process was killed as it began */
	__u64 device, inode;
	__u64 begin_ns;	    /* CLOCK_MONOTONIC at which the program began */
	__u64 modified_ns;  /* CLOCK_REALTIME at which the file was written to last */
	bool runs;	    /* the process has the file mapped still */
	bool is_elsewhere;  /* it is of another PID namespace: whether it runs is not known */
	bool found_no_room; /* the process itself could not begin to count */
};

/* Opens and checks @n files, at least one. Those that have nothing to read are skipped, if any other has. The caller
 * frees *@out. Returns 0 or a negative errno with *@error set. */
int own_files__open(char *const *paths, size_t n, struct own_files **out, struct error *error);

/* Accepts NULL. */
void own_files__free(struct own_files *files);

size_t own_files__count(const struct own_files *files);

/* Returns a file, in the order in which their programs began. */
const struct own_file *own_files__get(const struct own_files *files, size_t index);

/* Returns the sentence that says why a file was skipped; NULL if fewer were. */
const char *own_files__skipped(const struct own_files *files, size_t index);

/* Sets the options with which the files were written, which are the same for all of them. */
void own_files__configure(const struct own_files *files, struct session_options *options);

/* Returns the arguments of the first program, terminated by NULL. They are owned by @files. */
char *const *own_files__command(const struct own_files *files);

#endif
