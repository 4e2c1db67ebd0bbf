/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules of a file's call frame information in full, for stacks that unwind tables cannot express: of one address at a
 * time, and in memory that no file can have grow. */
#ifndef ALLOCPROF_CFI_FRAMES_H
#define ALLOCPROF_CFI_FRAMES_H

#include <linux/types.h>
#include <stdbool.h>

#include "dwarf_ops.h"

enum frame_how {
	FRAME_UNSPECIFIED,
	FRAME_UNDEFINED,
	FRAME_SAME,
	FRAME_AT_CFA,	     /* in memory at the CFA + value */
	FRAME_IS_CFA,	     /* the CFA + value */
	FRAME_REGISTER,	     /* register number value, + offset for the CFA */
	FRAME_AT_EXPRESSION, /* in memory at what the operations compute */
	FRAME_IS_EXPRESSION,
};

struct frame_rule {
	enum frame_how how;
	__u32 n_bytes; /* of @ops */
	__s64 value, offset;
	const __u8 *ops; /* borrowed from the cfi_frames */
};

struct frame_rules {
	struct frame_rule cfa; /* FRAME_UNSPECIFIED, FRAME_REGISTER or FRAME_IS_EXPRESSION */
	struct frame_rule registers[DWARF_REGISTERS];
	bool is_signal;
};

struct cfi_frames;

/* Reads the file behind @fd, which stays the caller's. -ENODATA: it has no call frame information, or a negative errno
 * as of cfi_table__build(). */
int cfi_frames__open(int fd, struct cfi_frames **out);

/* Accepts NULL. */
void cfi_frames__free(struct cfi_frames *frames);

/* The rules at @vaddr. False if there are none, or none that hold. */
bool cfi_frames__find(struct cfi_frames *frames, __u64 vaddr, struct frame_rules *out);

/* The CFA by @rules. -ENOENT if they have none; else as dwarf_ops__run(). */
int frame_rules__cfa(const struct frame_rules *rules, const struct dwarf_machine *machine,
		     __u64 *cfa);

/* The caller's value of register @number. -ENOENT: there is no rule for it, or it is undefined. */
int frame_rules__caller_register(const struct frame_rules *rules,
				 const struct dwarf_machine *machine, int number, __u64 cfa,
				 __u64 *value);

#endif
