/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a function that a person names has its code in an ELF file. */
#ifndef ALLOCPROF_FUNCTION_CODE_H
#define ALLOCPROF_FUNCTION_CODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

struct error;

struct function_code {
	/* All parts: clones, and what the compiler has split off (foo.cold, foo.part.0). */
	struct ap_within within;
	/* File offsets where a call of it passes a probe, one instruction each that the kernel can
	 * emulate where there is one at the beginning. A loop may pass there again. */
	__u64 entries[AP_MAX_WITHIN_RANGES];
	size_t n_entries;
	/* Of USDT probes, by entry: the file offset of the counter that turns it on, or 0. */
	__u64 semaphores[AP_MAX_WITHIN_RANGES];
};

/*
 * The same for a USDT probe, all its places of that name, in @provider_name (provider:name): only
 * entries. -ENOENT, -E2BIG.
 */
int function_code__find_usdt(int fd, const char *path, const char *provider_name,
			     struct function_code *out, struct error *error);

struct elf_file;

/* Where in the file the instruction at @vaddr is, which has to be a nop in code: anything else is no place
 * for a USDT probe. -ENOENT, -ENOMEM, -ENOTSUP. */
int function_code__nop_offset(struct elf_file *elf, __u64 vaddr, __u64 *offset);

/*
 * Finds @name in the file behind @fd, which stays the caller's and is called @path in sentences. @name
 * is as the linker has it, as it is demangled, in the short form of reports, or an address (0x…).
 * -ENOENT: there is no such function; -ENOTUNIQ: there are several; both sentences name some.
 * -E2BIG: it has too many parts; -ENOEXEC, -ENOTSUP, -EFBIG, -ENOMEM.
 */
int function_code__find(int fd, const char *path, const char *name, struct function_code *out,
			struct error *error);

#endif
