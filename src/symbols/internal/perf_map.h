/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads /tmp/perf-PID.map, the names of JIT-compiled code, in the format of perf(1). */
#ifndef ALLOCPROF_PERF_MAP_H
#define ALLOCPROF_PERF_MAP_H

#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

/* Longest name; longer ones are truncated. */
#define PERF_MAP_NAME_BYTES 1024

struct perf_map;

struct perf_map_query {
	__u64 address;
	const char *name; /* result; NULL: unknown. Valid as long as the map is */
};

/*
 * Opens the map of process @pid (a number of its own PID namespace) below @root_fd, the process's
 * root directory. It must be a regular file of @uid to which nobody else may write, and no link.
 * Returns a descriptor, -ENOENT, or -EPERM if it is not such a file.
 */
int perf_map__open(int root_fd, pid_t pid, uid_t uid);

/* Reads @fd up to a size limit; skips malformed lines. Returns 0 or -ENOMEM. */
int perf_map__read(int fd, struct perf_map **out);
void perf_map__free(struct perf_map *map);

/* Fills the names of @n queries, which are sorted by address. The last line that covers an address
 * applies, since it has replaced earlier code. Returns 0 or -ENOMEM. */
int perf_map__look_up(const struct perf_map *map, struct perf_map_query *queries, size_t n);

struct wire_reader;
struct wire_writer;
struct worker_call;

#endif
