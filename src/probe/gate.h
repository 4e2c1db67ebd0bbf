/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of the measured window (docs/windows.md): finds the functions that it is told
 * by, sets their probes, and knows which code calls are to be within. */
#ifndef ALLOCPROF_GATE_H
#define ALLOCPROF_GATE_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abi.h"

struct bpf_program;
struct error;
struct gate;

/* Functions are SYMBOL or SYMBOL@FILE, FILE being a path or a library's soname; NULL: none. */
struct window_options {
	const char *within;   /* only calls with it on their stack */
	const char *start_on; /* a process's window opens when it calls it, */
	const char *stop_on;  /* and closes when it calls this one */
	__u64 delay_ns;	      /* all windows are shut that long, 0: not at all */
	bool paused;	      /* all windows are shut until the run's gate is opened */
};

/* Whether anything is asked for. */
bool window_options__any(const struct window_options *options);

struct gate_options {
	struct window_options window;
	struct bpf_program *program; /* of the probes */
	bool multi;
	pid_t pid; /* 0: probes in every process */
	struct ap_gate *shared;
	/* Called with a file that the functions are in, before the target runs. */
	void (*use_file)(int fd, const char *path, void *context);
	void *context;
};

/* -EINVAL with a sentence, -ENOMEM. */
int gate__new(const struct gate_options *options, struct gate **out, struct error *error);
void gate__free(struct gate *gate);

/* Finds what is in files that are known: @program, which is the command's and the default, and those
 * given as paths, in a process that runs below @root ("" or /proc/PID/root). -ESRCH: no such file or
 * function; -ENOTUNIQ; … */
int gate__prepare(struct gate *gate, const char *program, const char *root, struct error *error);

/* The target maps the file behind @fd, or is about to: where a function is to be in such a file it is
 * found and probed. What goes wrong is told by gate__check(). */
void gate__on_new_file(struct gate *gate, int fd, const char *path);

/* The code of that file that calls are to be within, or NULL; as long as @gate. Meets it first. */
const struct ap_within *gate__within(struct gate *gate, int fd, const char *path);

/* 0, or what went wrong with a file that was met. */
int gate__check(const struct gate *gate, struct error *error);

/* Removes probes that have told all they can. To be called now and then. */
void gate__poll(struct gate *gate);
void gate__detach(struct gate *gate);

/* Why the window never opened, as a clause, or NULL where it did. @matched: calls were within. */
const char *gate__never_opened(const struct gate *gate, bool matched);

#endif
