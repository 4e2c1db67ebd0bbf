/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses by an expression of SQL which blocks an event log has, while it is written. */
#ifndef ALLOCPROF_EVENT_CHOICE_H
#define ALLOCPROF_EVENT_CHOICE_H

#include <linux/types.h>
#include <stdbool.h>

struct error;
struct event_choice;

/* Parses @text, which must outlive the choice: an expression over size and thread. Returns 0, or a negative errno with
 * @error set. */
int event_choice__new(const char *text, struct event_choice **out, struct error *error);
/* Accepts NULL. */
void event_choice__free(struct event_choice *choice);
/* Returns whether the expression holds; also true where it cannot be evaluated, so that nothing is missing. */
bool event_choice__has(struct event_choice *choice, const char *thread, __u64 size_bytes);
/* Returns why the expression could not be evaluated for some blocks, which are in the log then; NULL: it could. */
const char *event_choice__failure(const struct event_choice *choice);

#endif
