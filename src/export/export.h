/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a profile in the formats that other tools read: allocprof-export(1). */
#ifndef ALLOCPROF_EXPORT_H
#define ALLOCPROF_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "selection.h"

struct error;
struct profile;
struct stack_view;

struct export_attribute {
	const char *key, *value;
};

/* The input of an export. The pointers belong to the caller. */
struct export_input {
	const struct profile *profile;
	/* View of @profile, with_locations except for EXPORT_COLLAPSED and EXPORT_STACKS. */
	const struct stack_view *view;
	const struct selection *counts; /* filtered costs by count's id - 1 */
	const struct selection *total;	/* the sum of @counts */
	bool selects_blocks;		/* filter__selects_blocks() */
	/* Duration of the recording, or of the longest of its runs. */
	__u64 end_ns;
	enum cost cost; /* the cost that EXPORT_COLLAPSED and EXPORT_STACKS write */
	/* EXPORT_PPROF and EXPORT_OTLP of a recording that goes on has these: when the copy was taken, in nanoseconds since
	 * 1970 (0: the recording has ended); how long a span took if the numbers are those of the span
	 * alone, else 0; and the sample type that is shown first, or NULL. Numbers of live blocks that fell
	 * in the span are negative then, as two's complements. */
	__u64 taken_ns, duration_ns;
	const char *by_default;
	/* EXPORT_OTLP adds these to each process; they replace attributes of the same name that the profile has. */
	const struct export_attribute *attributes;
	size_t n_attributes;
};

enum export_format {
	EXPORT_PPROF,
	EXPORT_OTLP,
	EXPORT_SPEEDSCOPE,
	EXPORT_COLLAPSED,
	EXPORT_STACKS,
	EXPORT_JSON,
	EXPORT_DHAT,
	EXPORT_HEAPTRACK, /* needs the figures of COST_PEAK */
	EXPORT_FIREFOX,
	EXPORT_EVENTS, /* is not made of a profile: export_events__write() */
	EXPORT_FORMATS,
};

const char *export__format_name(enum export_format format);
/* Returns the format called @name, or -ENOENT. */
int export__format_by_name(const char *name);
/* Returns whether the format cannot be shown on a terminal. */
bool export__is_binary(enum export_format format);

/* Checks whether @input can be written in @format, before anything is written. Returns 0, or a
 * negative errno with @error set. */
int export__check(enum export_format format, const struct export_input *input, struct error *error);

/*
 * Writes @input, which export__check() has accepted, to @to, in a format other than EXPORT_EVENTS,
 * and flushes. Writes piece by piece: beside @input only tables of the names and locations that
 * occur are in memory. Returns 0, -ENOMEM, or the negative errno of the write.
 */
int export__write(enum export_format format, const struct export_input *input, FILE *to);

#endif
