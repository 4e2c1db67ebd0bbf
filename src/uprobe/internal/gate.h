/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of the measured window (docs/windows.md): finds and probes the functions that
 * open and close it, and finds the code of --within. */
#ifndef ALLOCPROF_GATE_H
#define ALLOCPROF_GATE_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abi.h"
#include "probe_program.h"
#include "session_options.h"

struct error;
struct gate;
struct parser;

struct gate_options {
	struct window_options window;
	struct probe_program run; /* at the probes */
	struct ap_gate *shared;
	struct parser *parser; /* reads the files; belongs to the caller */
	/* Called with each file of these functions that is known before the target runs. */
	void (*use_file)(int fd, const char *path, void *context);
	/* Returns the descriptor that is to be probed instead of @fd and outlives the gate, or @fd
	 * itself. */
	int (*isolate)(int fd, const char *path, void *context);
	void *context;
};

/* Returns -EINVAL with *@error set, or -ENOMEM. The caller frees *@out. */
int gate__new(const struct gate_options *options, struct gate **out, struct error *error);
void gate__free(struct gate *gate);

/* Finds and probes functions in files that are known: @program, which is the default, and files
 * that are given as paths, for a process with the root directory @root ("" or /proc/PID/root).
 * Fails with -ESRCH if there is no such file or function; -ENOTUNIQ if there are several
 * functions; or another errno. */
int gate__prepare(struct gate *gate, const char *program, const char *root, struct error *error);

/* To be called when the target maps the file @fd or is about to: finds and probes the functions
 * that are specified for this file. gate__check() reports errors. */
void gate__on_new_file(struct gate *gate, int fd, const char *path);

/* Returns whether the gate may probe a function of this file. */
bool gate__wants(struct gate *gate, int fd, const char *path);

/* Returns the file's code of --within, valid as long as @gate, or NULL. Calls gate__on_new_file(). */
const struct ap_within *gate__within(struct gate *gate, int fd, const char *path);

/* Returns 0, or the first error of gate__on_new_file() with *@error set. */
int gate__check(const struct gate *gate, struct error *error);

/* Detaches probes that are no longer needed. To be called from time to time. */
void gate__poll(struct gate *gate);
void gate__detach(struct gate *gate);

/* Returns a clause that says why the window never opened, or NULL if it did. @matched: calls
 * beneath --within were counted. */
const char *gate__never_opened(const struct gate *gate, bool matched);

#endif
