/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The requests that an unwinder of stack dumps sends to its worker. */
#ifndef ALLOCPROF_DUMP_UNWIND_INTERNAL_H
#define ALLOCPROF_DUMP_UNWIND_INTERNAL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "record_abi.h"

enum dump_request {
	DUMP_BEGIN,  /* begins with a process, or with new mappings of it */
	DUMP_FILES,  /* bias, start, end and path of each descriptor */
	DUMP_UNWIND, /* struct dump_question and the stack's bytes */
};

struct dump_question {
	__u64 registers[AP_DUMP_REGISTERS];
	__u32 n_bytes, end, is_in_caller, max_frames;
};

/* The worker's state. */
struct dump_server {
	struct dump_file {
		__u64 bias;	  /* load bias: address minus vaddr */
		__u64 start, end; /* of the mapping */
		struct cfi_frames *frames;
	} * files;
	size_t n_files, files_room;
	bool has_begun;
};

struct worker_call;

int dump_server__serve(struct worker_call *call);

/* Reads frames and the stack's end from the worker, which is not trusted. Returns the number of
 * frames, or -EPROTO. */
struct wire_reader;
int dump_unwind__take(struct wire_reader *reply, struct ap_frame *frames, size_t max_frames,
		      enum ap_stack_end *end);

#endif
