/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluates DWARF expressions over registers and memory. */
#ifndef ALLOCPROF_CFI_FRAMES_H
#define ALLOCPROF_CFI_FRAMES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "record_abi.h"

struct cfi_frames;

/* Registers by DWARF's numbers, as snapshots of stacks have them. */
#define DWARF_REGISTERS AP_DUMP_REGISTERS

/* The numbers of registers in call frame information of this processor; dwarf_registers_<processor>.c defines them. */
struct dwarf_registers {
	unsigned int sp, pc;
	unsigned int
		return_address; /* the column; it is the pc's where calls leave the address in memory */
	__u64 kept;		/* mask of the registers that functions leave as they were */
	__u64 address;		/* mask of the bits of a return address that are no signature */
};

extern const struct dwarf_registers dwarf_registers;

struct dwarf_machine {
	__u64 registers[DWARF_REGISTERS];
	__u64 known; /* bit mask of registers with a known value */
	/* Reads the word at @address into *@value. Returns false if it is unknown. */
	bool (*load)(void *context, __u64 address, __u64 *value);
	void *context;
};

/* The complete rules of a file's call frame information, for stacks that unwind tables cannot
 * express: for one address at a time, and in a limited amount of memory whatever the file has. */

enum frame_how {
	FRAME_UNSPECIFIED,
	FRAME_UNDEFINED,
	FRAME_SAME,
	FRAME_AT_CFA,	     /* in memory at the CFA + value */
	FRAME_IS_CFA,	     /* the CFA + value */
	FRAME_REGISTER,	     /* value of register number @value, + offset for the CFA */
	FRAME_AT_EXPRESSION, /* in memory at the result of the operations */
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

/* Reads the file behind @fd, which stays the caller's. Fails with -ENODATA if it has no call frame
 * information, or with the errors of cfi_table__build(). */
int cfi_frames__open(int fd, struct cfi_frames **out);

/* Accepts NULL. */
void cfi_frames__free(struct cfi_frames *frames);

/* Stores the rules at @vaddr. Returns false if there are none, or none that hold. */
bool cfi_frames__find(struct cfi_frames *frames, __u64 vaddr, struct frame_rules *out);

/* Computes the CFA by @rules. Fails with -ENOENT if they have none, or with the errors of
 * dwarf_ops__run(). */
int frame_rules__cfa(const struct frame_rules *rules, const struct dwarf_machine *machine,
		     __u64 *cfa);

/* Computes the caller's value of register @number. Fails with -ENOENT if there is no rule for it,
 * or it is undefined. */
int frame_rules__caller_register(const struct frame_rules *rules,
				 const struct dwarf_machine *machine, int number, __u64 cfa,
				 __u64 *value);

#endif
