/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where `allocprof serve` pushes profiles to, as OpenTelemetry's variables of the environment have it, and when. */
#ifndef ALLOCPROF_SERVE_OTLP_H
#define ALLOCPROF_SERVE_OTLP_H

#include <stdbool.h>

#include "export.h"
#include "http_process.h"

struct error;

struct serve_otlp {
	bool is_used;
	const char *address; /* of the option; NULL: the environment has it */
	__u64 interval_ns;
	struct otlp_options options;
	/* Owned, as what options points to is. */
	char *url, **headers;
	struct export_attribute *attributes;
	size_t headers_room, attributes_room;
	struct http_process process;
	bool has_started;
	__u64 start_due_ns; /* when the process is started again; 0: it runs */
	bool is_pushing;    /* it has a copy, and has not said what became of it */
	unsigned int said;  /* kinds of failures, as bits, of which the reason has been printed */
	__u64 n_not_taken; /* pushes and profiles that were given up since the collector last took all */
	__u64 due_ns, delay_ns;
	struct otlp_counts counts;
};

/* Reads the environment. Returns 0, or a negative errno with @error set. */
int serve_otlp__set_up(struct serve_otlp *otlp, struct error *error);
/* Starts the process that pushes. Returns 0, or a negative errno with @error set. */
int serve_otlp__start(struct serve_otlp *otlp, struct error *error);
/* Returns whether a copy is due. Starts the process again when it is time for that. */
bool serve_otlp__wants(struct serve_otlp *otlp);
/* Gives the process a copy to push. */
void serve_otlp__give(struct serve_otlp *otlp, int fd, const struct http_costs *costs);
/* There is no copy, and @why: the next one is asked for later. */
void serve_otlp__postpone(struct serve_otlp *otlp, const char *why);
/* Takes what the process says, after poll() has its channel readable. */
void serve_otlp__attend(struct serve_otlp *otlp);
/* Waits until the last copy is pushed or has failed, as long as a request may take, or until @signals is readable. */
void serve_otlp__finish(struct serve_otlp *otlp, int signals);
void serve_otlp__release(struct serve_otlp *otlp);

#endif
