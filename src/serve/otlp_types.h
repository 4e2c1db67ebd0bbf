/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The process that pushes profiles to a collector of OpenTelemetry gets these options, and says these outcomes. */
#ifndef ALLOCPROF_OTLP_TYPES_H
#define ALLOCPROF_OTLP_TYPES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct export_attribute;

struct otlp_options {
	const char *url;	    /* with the path of the request */
	const char *const *headers; /* "Name: value" */
	size_t n_headers;
	unsigned int timeout_ms; /* of a request */
	bool compresses;
	const char *
		certificates; /* a file with those of the authorities that are trusted; NULL: the system's */
	const struct export_attribute *attributes; /* of all processes, beside their own */
	size_t n_attributes;
};

enum otlp_outcome {
	OTLP_ACCEPTED,
	OTLP_POSTPONED, /* it goes with the next push */
	OTLP_DROPPED, /* the collector will never take it, or nobody can tell any more what was sent */
};

/* A push of a copy ends in one of these ways. */
struct otlp_push {
	__u32 outcome;	     /* enum otlp_outcome */
	__u32 retry_after_s; /* OTLP_POSTPONED: the collector asks for so long a pause */
	__u64 rejected; /* OTLP_ACCEPTED: profiles that the collector has not taken all the same */
};

/* Sums of what became of them. */
struct otlp_counts {
	__u64 is_used; /* something is pushed at all */
	__u64 accepted, postponed, dropped, rejected;
};

#endif
