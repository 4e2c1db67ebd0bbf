/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluates DWARF expressions over registers and memory. */
#ifndef ALLOCPROF_DWARF_OPS_H
#define ALLOCPROF_DWARF_OPS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* DWARF register numbers of x86-64 up to the return address column (System V ABI, figure 3.36). */
#define DWARF_REGISTERS 17
#define DWARF_RBX	3
#define DWARF_RBP	6
#define DWARF_RSP	7
#define DWARF_RIP	16

struct dwarf_machine {
	__u64 registers[DWARF_REGISTERS];
	__u32 known; /* bit mask of registers with a known value */
	/* Reads the word at @address into *@value; false if it is unknown. */
	bool (*load)(void *context, __u64 address, __u64 *value);
	void *context;
};

/*
 * Runs the operations; *@is_location: *@result is the address of the value, not the value. @initial, or NULL, is on the
 * stack at the start. -ENODATA: a register or word is unknown; -EINVAL: invalid expression; -EOPNOTSUPP: unsupported
 * operation or register.
 */
int dwarf_ops__run(const struct dwarf_machine *machine, const __u8 *ops, size_t size,
		   const __u64 *initial, bool *is_location, __u64 *result);

#endif
