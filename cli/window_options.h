/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Options that limit a measurement to a window of the run. */
#ifndef ALLOCPROF_WINDOW_OPTIONS_H
#define ALLOCPROF_WINDOW_OPTIONS_H

#include <argp.h>
#include <stdio.h>

struct error;
struct profile;
struct window_options;

enum {
	OPT_WITHIN = 1100,
	OPT_START_ON,
	OPT_STOP_ON,
	OPT_DELAY,
	OPT_PAUSED,
};

/* Rows of an argp table. */
/* clang-format off */
#define WINDOW_OPTIONS                                                                             \
	{ "within", OPT_WITHIN, "FUNCTION", 0,                                                     \
	  "Only calls made while FUNCTION, SYMBOL or SYMBOL@FILE, is on the thread's stack", 0 },  \
	{ "start-on", OPT_START_ON, "FUNCTION", 0,                                                 \
	  "Begin in each process when it calls FUNCTION", 0 },                                     \
	{ "stop-on", OPT_STOP_ON, "FUNCTION", 0,                                                   \
	  "Stop in each process when it calls FUNCTION", 0 },                                      \
	{ "delay", OPT_DELAY, "TIME", 0,                                                           \
	  "Begin after TIME: a number with ms, s, m or h", 0 },                                    \
	{ "paused", OPT_PAUSED, NULL, 0, "Begin when `allocprof ctl start` says so", 0 }
/* clang-format on */

/* Parses one of them; OPTIONS_UNKNOWN for any other key. */
int window_options__parse(struct window_options *options, int key, char *arg, struct error *error);

/* Checks that the options go together. 0, or -EINVAL with @error set. */
int window_options__check(const struct window_options *options, struct error *error);

/* The status of a command that measured: an error also if nothing was measured. */
int window_options__status(const struct profile *profile);

#endif
