/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ELF constants of this processor. */
#ifndef ALLOCPROF_ELF_X86_H
#define ALLOCPROF_ELF_X86_H

#include <elf.h>
#include <stdbool.h>

#define ELF_HOST_MACHINE      EM_X86_64
#define ELF_HOST_MACHINE_NAME "x86-64"

/* Returns whether the dynamic linker stores a symbol's address in the slot that the relocation
 * names. */
static inline bool elf_host__is_got_relocation(unsigned int type)
{
	return type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT;
}

#endif
