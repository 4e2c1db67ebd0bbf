/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads all entries of a BPF hash map, some thousand per bpf(2) call. */
#ifndef ALLOCPROF_MAP_BATCH_H
#define ALLOCPROF_MAP_BATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Called for each entry; a result other than 0 ends the reading and is returned. */
typedef int map_batch_use(void *context, const void *key, const void *value);

/* Reads map @fd; @takes also deletes the entries. Entries that programs insert meanwhile may be
 * missed. 0, the result of @use, or a negative errno. */
int map_batch__each(int fd, size_t key_bytes, size_t value_bytes, bool takes, map_batch_use *use,
		    void *context);

#endif
