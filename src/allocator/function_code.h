/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the code of a function that the user names. */
#ifndef ALLOCPROF_FUNCTION_CODE_H
#define ALLOCPROF_FUNCTION_CODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

struct error;

struct function_code {
	/* All parts: clones, and code that the compiler has split off (foo.cold, foo.part.0). */
	struct ap_within within;
	/* File offsets to probe for a call: near each entry, an instruction that the kernel can
	 * emulate if there is one. A loop may execute it again. */
	__u64 entries[AP_MAX_WITHIN_RANGES];
	size_t n_entries;
	/* For USDT probes, by entry: file offset of the semaphore, or 0. */
	__u64 semaphores[AP_MAX_WITHIN_RANGES];
};

/*
 * Finds all locations of the USDT probe @provider_name (provider:name); fills only entries and
 * semaphores. -ENOENT, -E2BIG.
 */
int function_code__find_usdt(int fd, const char *path, const char *provider_name,
			     struct function_code *out, struct error *error);

struct elf_file;

/* File offset of the instruction at @vaddr, which must be a nop: no other instruction may be at a
 * USDT probe. -ENOENT, -ENOMEM, -ENOTSUP. */
int function_code__nop_offset(struct elf_file *elf, __u64 vaddr, __u64 *offset);

/*
 * Finds the function @name in the file @fd, which the caller keeps; @path is for messages. @name is
 * a linker name, a demangled name, its short form as in reports, or an address (0x…). -ENOENT:
 * there is no such function; -ENOTUNIQ: there are several; *@error suggests some names. -E2BIG: it
 * has too many parts; -ENOEXEC, -ENOTSUP, -EFBIG, -ENOMEM.
 */
int function_code__find(int fd, const char *path, const char *name, struct function_code *out,
			struct error *error);

#endif
