/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds out what recordings could use on this machine, and what would be probed, without a
 * recording. */
#ifndef ALLOCPROF_DOCTOR_H
#define ALLOCPROF_DOCTOR_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "kernel_features.h"

struct doctor;
struct error;
struct probed_file;

/* Detects the features. Never fails: a feature that cannot be detected is false. */
void doctor__probe_kernel(struct kernel *kernel);

/* Stores the path of the cache of unwind tables, truncated to @size, and its size in bytes.
 * Returns 0 or a negative errno, perhaps with *@error set: there is no cache. */
int doctor__cache(char *path, size_t size, __u64 *size_bytes, struct error *error);

/* Finds the library of --engine=preload. Writes its path to @path, of PATH_MAX bytes, unless that is NULL. Returns 0, or
 * -ENOENT with *@error set. */
int doctor__find_preload(char *path, struct error *error);

/* Loads the BPF programs of stat (without @stacks) or of record. Writes to *@instructions how many
 * instructions the verifier processed for the program at the probes, at most a million; 0 before
 * Linux 5.16. Fails with the errors of session__open(). */
int doctor__load_programs(bool stacks, bool live, __u32 *instructions, struct error *error);

/* Returns the engine that measures a command if no option names one; NULL: none can. @err is the
 * result of doctor__load_programs(). */
const char *doctor__engine(int err);

typedef void doctor_say(const char *sentence, void *context);

/* Calls @say with a sentence about each thing that prevents recordings or may do so, and what
 * helps. @works: the programs can be loaded. */
void doctor__obstacles(const struct kernel *kernel, bool works, doctor_say *say, void *context);

/* Sets *@error to the first known reason why the kernel refuses probes to every process here.
 * Returns false if none is known. */
bool doctor__first_obstacle(const struct kernel *kernel, struct error *error);

/* Finds the allocators of the process @pid or, if it is 0, those that the command @argv would use,
 * or those of a library. Fails with the errors of session__attach() and session__launch();
 * -ENOTSUP if it has none. */
int doctor__find(char *const argv[], pid_t pid, struct doctor **out, struct error *error);
/* Stores the file number @index of those that were found. Returns false if there are fewer. */
bool doctor__file(const struct doctor *doctor, size_t index, struct probed_file *out);
void doctor__free(struct doctor *doctor);

#endif
