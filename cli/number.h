/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formats and parses numbers. */
#ifndef ALLOCPROF_NUMBER_H
#define ALLOCPROF_NUMBER_H

#include <linux/types.h>
#include <stdbool.h>

struct error;

struct number_text {
	char text[32];
};

/* "1,234,567" */
struct number_text number__count(__u64 value);
/* "1.23 MiB" (1 KiB is 1024), or as number__count() if @exact. */
struct number_text number__bytes(__u64 bytes, bool exact);
/* "61.2 %"; "-" if @whole is 0. Rounds to 0.0 % and 100.0 % only what is exactly that. */
struct number_text number__share(__u64 part, __u64 whole);
/* "3.9 %": the relative error of the estimate @value; "-" if @value is 0. */
struct number_text number__margin(double margin, __u64 value);
/* "12.0 s", "850 ms", "3.2 h" */
struct number_text number__time(__u64 ns);

/* The parsers return 0, or EINVAL with @error set. */

/* "500ms", "10s", "5m", "1h", or plain seconds; greater than 0. */
int number__parse_duration(const char *text, __u64 *ns, struct error *error);
/* "64", "4K" (of 1024), "1MB" (of 1000), "1MiB". */
int number__parse_size(const char *text, __u64 *bytes, struct error *error);
/* "98%" to 0.98. */
int number__parse_share(const char *text, double *share, struct error *error);
/* A plain count. */
int number__parse_count(const char *text, __u64 *count, struct error *error);

#endif
