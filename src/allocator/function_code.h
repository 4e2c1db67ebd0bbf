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
	/* All parts of the function: clones, and code that the compiler has split off (foo.cold,
	 * foo.part.0). */
	struct ap_within within;
	/* File offsets where probes observe a call: near each entry, an instruction that the
	 * kernel can emulate, if there is one. A loop may execute the instruction again. */
	__u64 entries[AP_MAX_WITHIN_RANGES];
	size_t n_entries;
	/* For USDT probes: file offset of the semaphore of each entry, or 0 if it has none. */
	__u64 semaphores[AP_MAX_WITHIN_RANGES];
};

/*
 * Finds all locations of the USDT probe @provider_name (provider:name), and fills only entries and
 * semaphores. Returns 0; -ENOENT if there is none; -E2BIG if there are too many; or another
 * negative errno.
 */
int function_code__find_usdt(int fd, const char *path, const char *provider_name,
			     struct function_code *out, struct error *error);

/* Writes the file offset of the instruction at @vaddr, which must be a nop: no other instruction
 * may be at a USDT probe. Returns 0, -ENOENT, -ENOMEM or -ENOTSUP. */
int function_code__nop_offset(struct elf_file *elf, __u64 vaddr, __u64 *offset);

/*
 * Finds the function @name in the file @fd, which the caller keeps; @path is for messages. @name
 * is a linker name, a demangled name, its short form as in reports, or an address (0x…). Returns
 * 0; -ENOENT if there is no such function; -ENOTUNIQ if there are several; -E2BIG if it has too
 * many parts; -ENOEXEC, -ENOTSUP, -EFBIG or -ENOMEM. *@error suggests some names if the name fits
 * none or several.
 */
int function_code__find(int fd, const char *path, const char *name, struct function_code *out,
			struct error *error);

/* Runs function_code__find(), or with @is_usdt function_code__find_usdt(), in a worker. Also
 * returns -ECHILD if the file could not be read safely. */
int function_code__parse(struct parser *parser, int fd, const char *path, const char *name,
			 bool is_usdt, struct function_code *out, struct error *error);

/* A function that the user names, as SYMBOL or SYMBOL@FILE, for the measured window. */

struct wanted_function {
	char *symbol; /* NULL: the user has named no function */
	char *file;   /* a path or a soname; NULL: the command's program */
	bool found;
	/* Some files could not be read, and one of them may be the wanted file. */
	bool missed_files;
};

/* Parses @text, which may be NULL; @option is for messages. With @only_code the function cannot be
 * a USDT probe ("sdt:provider:name"). Returns 0, -EINVAL with *@error set, or -ENOMEM. */
int wanted_function__parse(struct wanted_function *wanted, const char *text, const char *option,
			   bool only_code, struct error *error);
void wanted_function__release(struct wanted_function *wanted);

/* Returns whether the file is known before the target runs: it is the program, or a path. */
bool wanted_function__is_path(const struct wanted_function *wanted);

/* Opens the file that is known before the target runs, for a process with the root directory @root
 * ("" or /proc/PID/root). The caller frees *@path, also after a failure. Returns the descriptor or
 * a negative errno. */
int wanted_function__open(const struct wanted_function *wanted, const char *program,
			  const char *root, char **path);

/* Returns whether the file @fd, which the target maps, has the name or the soname of the wanted
 * file. Returns false if the file is known before the target runs. */
bool wanted_function__is_in(struct wanted_function *wanted, struct parser *parser, int fd,
			    const char *path);

/* Returns a sentence that says, after the target has ended, why a function was not found whose
 * file is not known beforehand. */
const char *wanted_function__not_found(const struct wanted_function *wanted);

/* Finds the function's code, or the locations of the USDT probe, in the file, and notes that it
 * was found. @option is for messages. Returns what function_code__parse() returns, but -ESRCH if
 * there is none. */
int wanted_function__find(struct wanted_function *wanted, struct parser *parser, int fd,
			  const char *path, const char *option, struct function_code *out,
			  struct error *error);

#endif
