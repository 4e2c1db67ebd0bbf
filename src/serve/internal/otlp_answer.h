/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads what a collector answers: messages of a few fields, which anybody may have written. */
#ifndef ALLOCPROF_OTLP_ANSWER_H
#define ALLOCPROF_OTLP_ANSWER_H

#include <linux/types.h>
#include <stddef.h>

struct otlp_answer {
	__u64 rejected; /* profiles */
	char text[256]; /* the collector's words, printable; "": it says nothing */
};

/* Reads ExportProfilesServiceResponse. What is no such message says nothing. */
void otlp_answer__read(const unsigned char *bytes, size_t size, struct otlp_answer *answer);
/* Reads the Status of an answer that is no success. */
void otlp_answer__read_status(const unsigned char *bytes, size_t size, struct otlp_answer *answer);

#endif
