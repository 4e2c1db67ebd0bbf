/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the process that answers requests and its parent both know. */
#ifndef ALLOCPROF_HTTP_TYPES_H
#define ALLOCPROF_HTTP_TYPES_H

#include <linux/types.h>

#include "otlp_types.h"

/* Most bytes of a token, which a client sends in a header. */
#define HTTP_MAX_TOKEN 512

/* What the recording, the parent and pushes have cost and come to so far. */
struct http_costs {
	__u64 cpu_ns, memory_bytes;
	struct otlp_counts otlp;
};

#endif
