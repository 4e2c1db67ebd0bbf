/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unwinds, by libdw, the stacks that the programs could only send as registers and bytes. */
#ifndef ALLOCPROF_DUMP_UNWIND_H
#define ALLOCPROF_DUMP_UNWIND_H

#include <linux/types.h>
#include <stddef.h>

#include "abi.h"

struct process_maps;

/*
 * Unwinds @dump, whose bytes of stack follow it, of process @pid with the files that @maps has.
 * @frames gets the addresses (as the offsets of frames without a module), the allocator's caller
 * first, @max_frames at the most. Returns their number and sets *@end, or a negative errno.
 */
int dump__unwind(const struct ap_dump_record *dump, const struct process_maps *maps, __u32 pid,
		 struct ap_frame *frames, size_t max_frames, enum ap_stack_end *end);

#endif
