/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names that a program wrote down for code that it made itself: /tmp/perf-PID.map, as perf(1) and the
 * runtimes that serve it agree on. */
#ifndef ALLOCPROF_PERF_MAP_H
#define ALLOCPROF_PERF_MAP_H

#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

struct perf_map;

struct perf_map_query {
	__u64 address;
	const char *name; /* filled in; NULL: unknown. Valid as long as the map */
};

/*
 * Opens the map of process @pid, as the process itself numbers it, below @root_fd, which is its root
 * directory. It must be a regular file of @uid that nobody else may write to, and no link. The file
 * descriptor, -ENOENT, or -EPERM where it is not of this kind.
 */
int perf_map__open(int root_fd, pid_t pid, uid_t uid);

/* Reads what @fd has, up to a bound; lines that are none are skipped. 0 or -ENOMEM. */
int perf_map__read(int fd, struct perf_map **out);
void perf_map__free(struct perf_map *map);

/* Fills the names of the @n queries, which are sorted by address. A place belongs to the last line that
 * has it: the code of earlier ones was given up. 0 or -ENOMEM. */
int perf_map__look_up(const struct perf_map *map, struct perf_map_query *queries, size_t n);

#endif
