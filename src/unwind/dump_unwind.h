/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unwinds stack dumps (registers and stack bytes) by the rules of their files, in a worker for
 * each process. */
#ifndef ALLOCPROF_DUMP_UNWIND_H
#define ALLOCPROF_DUMP_UNWIND_H

#include <linux/types.h>
#include <stddef.h>

#include "record_abi.h"

struct code_mapping;
struct dump_unwinder;
struct process_maps;

/* Stores the load bias (address minus vaddr) of the file of @mapping in process @pid. Returns the
 * file's descriptor, which stays the callee's, or a negative errno. */
typedef int (*dump_find_file_fn)(const struct code_mapping *mapping, __u32 pid, __u64 *bias,
				 void *context);

/* Returns NULL if there is no memory. */
struct dump_unwinder *dump_unwinder__new(const struct process_maps *maps,
					 dump_find_file_fn find_file, void *context);
void dump_unwinder__free(struct dump_unwinder *unwinder);

/*
 * Unwinds @dump of process @pid; the stack's bytes follow it. @frames gets at most @max_frames
 * addresses (as the offsets of frames without a module), the allocator's caller first. Returns
 * their number and sets *@end. If the process's files cannot be read safely, *@end is that of the
 * stack dump.
 */
int dump_unwinder__unwind(struct dump_unwinder *unwinder, const struct ap_dump_record *dump,
			  __u32 pid, struct ap_frame *frames, size_t max_frames,
			  enum ap_stack_end *end);

#endif
