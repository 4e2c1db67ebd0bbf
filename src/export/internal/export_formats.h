/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The formats, one file each. */
#ifndef ALLOCPROF_EXPORT_FORMATS_H
#define ALLOCPROF_EXPORT_FORMATS_H

#include <stdio.h>

struct error;
struct export_input;

/* Each writes @input to @to; 0, -ENOMEM, or the negative errno of a write. The caller finds errors of
 * @to that remain, and flushes it. */
int export_pprof__write(const struct export_input *input, FILE *to);
int export_speedscope__write(const struct export_input *input, FILE *to);
int export_collapsed__write(const struct export_input *input, FILE *to);
int export_json__write(const struct export_input *input, FILE *to);
int export_dhat__write(const struct export_input *input, FILE *to);
int export_firefox__write(const struct export_input *input, FILE *to);
int export_heaptrack__write(const struct export_input *input, FILE *to);

/* -EFBIG with @error set if there are more blocks than the format has use for. */
int export_heaptrack__check(const struct export_input *input, struct error *error);

#endif
