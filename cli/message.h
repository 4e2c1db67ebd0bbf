/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints "allocprof: <sentence>" on stderr. */
#ifndef ALLOCPROF_MESSAGE_H
#define ALLOCPROF_MESSAGE_H

#include <linux/types.h>
#include <stdbool.h>

struct error;

/* Prints a message. Control characters are printed as '?', so that names cannot steer the
 * terminal. */
void message__print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Has @take show what would be printed from now on; NULL: it is printed. */
void message__divert(void (*take)(const char *text, void *context), void *context);

/* Prints the sentence of @error or, if it has none, the meaning of the negative errno @err. */
void message__error(const struct error *error, int err);

struct progress {
	__u64 start_ns; /* CLOCK_MONOTONIC */
};

void progress__begin(struct progress *progress);
/* Returns whether a new line is due, which it is twice a second at most. */
bool progress__is_due(const struct progress *progress);
/*
 * Replaces the line of progress, truncated to the terminal's width. Draws nothing while allocprof
 * is in the background or another process uses the terminal.
 */
void progress__draw(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool progress__is_shown(void);
/* Erases the line. Call it before anything else is printed on standard error. */
void progress__clear(void);

/* Forbids to draw or erase the line from now on. */
void progress__forbid(void);
/*
 * Sets a function that is called before each line and returns whether another process may write to
 * the terminal; NULL: no other process does.
 */
void progress__share(bool (*is_in_use)(void *context), void *context);

#endif
