/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Constants of ELF files for this processor, which elf_host_<processor>.c defines. Messages call the processor
 * ALLOCPROF_PROCESSOR. */
#ifndef ALLOCPROF_ELF_HOST_H
#define ALLOCPROF_ELF_HOST_H

#include <stdbool.h>
#include <stddef.h>

struct elf_host {
	unsigned int machine; /* EM_* */
	/* Types of relocations (R_*), by which the dynamic linker stores the address of a symbol, of one that is bound when
	 * it is first called, and of a place in the file itself. */
	unsigned int glob_dat, jump_slot, relative;
	/* The instruction that the kernel puts in the place of one that has a uprobe, or of its beginning. */
	unsigned char breakpoint[4];
	size_t breakpoint_bytes;
};

extern const struct elf_host elf_host;

/* Returns whether the dynamic linker stores a symbol's address in the slot that the relocation
 * names. */
static inline bool elf_host__is_got_relocation(unsigned int type)
{
	return type == elf_host.glob_dat || type == elf_host.jump_slot;
}

#endif
