/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A function that the user names for the measured window, and its code in a file. */
#ifndef ALLOCPROF_FUNCTION_CODE_H
#define ALLOCPROF_FUNCTION_CODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"

struct elf_file;
struct error;
struct parser;

/* Finds the code of a function that the user names. */

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

/* function_code__find(), or with @is_usdt function_code__find_usdt(), in a worker. Also -ECHILD: the file could not be read
 * safely. */
int function_code__parse(struct parser *parser, int fd, const char *path, const char *name,
			 bool is_usdt, struct function_code *out, struct error *error);

/* A function that the user names, as SYMBOL or SYMBOL@FILE, for the measured window. */

struct wanted_function {
	char *symbol; /* NULL: not given */
	char *file;   /* a path, a soname, or NULL: the command's program */
	bool found;
	bool missed_files; /* files that may be this one could not be read */
};

/* @text may be NULL; @option is for messages. With @only_code it cannot be a USDT probe ("sdt:provider:name"). -EINVAL
 * with *@error set, -ENOMEM. */
int wanted_function__parse(struct wanted_function *wanted, const char *text, const char *option,
			   bool only_code, struct error *error);
void wanted_function__release(struct wanted_function *wanted);

/* Whether the file is known before the target runs: the program, or a path. */
bool wanted_function__is_path(const struct wanted_function *wanted);

/* Opens that file, for a process with the root directory @root ("" or /proc/PID/root); *@path is the caller's to free,
 * also on failure. The descriptor, or a negative errno. */
int wanted_function__open(const struct wanted_function *wanted, const char *program,
			  const char *root, char **path);

/* Whether the function is one of the file @fd, which the target maps: it has the name or the soname. False where the
 * file is known beforehand. */
bool wanted_function__is_in(struct wanted_function *wanted, struct parser *parser, int fd,
			    const char *path);

/* Why a function whose file is not known beforehand was not found, for after the target's end. */
const char *wanted_function__not_found(const struct wanted_function *wanted);

/* Finds the function's code, or the locations of the USDT probe, in the file, and notes that it was found. As
 * function_code__parse(), but for -ESRCH: there is none. @option is for messages. */
int wanted_function__find(struct wanted_function *wanted, struct parser *parser, int fd,
			  const char *path, const char *option, struct function_code *out,
			  struct error *error);

#endif
