/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parses the numbers that options take. */
#ifndef ALLOCPROF_NUMBER_PARSE_H
#define ALLOCPROF_NUMBER_PARSE_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

struct error;

/* All return 0, or -EINVAL with @error set. */

/* "500ms", "10s", "5m", "1h", or plain seconds; greater than 0. */
int number__parse_duration(const char *text, __u64 *ns, struct error *error);
/* "64", "4K" (of 1024), "1MB" (of 1000), "1MiB". */
int number__parse_size(const char *text, __u64 *bytes, struct error *error);
/* "98%" to 0.98. */
int number__parse_share(const char *text, double *share, struct error *error);
/* A plain count. */
int number__parse_count(const char *text, __u64 *count, struct error *error);
/* A process id. */
int number__parse_pid(const char *text, pid_t *pid, struct error *error);

/* Stores a plain number from @least to @most; returns whether @text is one. */
bool number__parse_between(const char *text, __u64 least, __u64 most, __u64 *value);

#endif
