/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads /tmp/perf-PID.map, the names of JIT-compiled code, in the format of perf(1). */
#ifndef ALLOCPROF_PERF_MAP_H
#define ALLOCPROF_PERF_MAP_H

#include <stddef.h>

struct jit_query;
struct perf_map;

/* Reads @fd up to a size limit; skips malformed lines. Returns 0 or -ENOMEM. */
int perf_map__read(int fd, struct perf_map **out);
void perf_map__free(struct perf_map *map);

/* Fills the names of @n queries, which are sorted by address; they are valid as long as the map is. The last line that
 * covers an address applies, since it has replaced earlier code. Returns 0 or -ENOMEM. */
int perf_map__look_up(const struct perf_map *map, struct jit_query *queries, size_t n);

#endif
