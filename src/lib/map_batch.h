/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All entries of a hash table of the programs', some thousand with one call of bpf(2). */
#ifndef ALLOCPROF_MAP_BATCH_H
#define ALLOCPROF_MAP_BATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Told of an entry; what is not 0 ends the reading and is returned. */
typedef int map_batch_use(void *context, const void *key, const void *value);

/*
 * Reads the table @fd, whose keys and values have that many bytes, and with @takes empties it. What
 * programs insert meanwhile may be missed. 0, what @use returned, or a negative errno.
 */
int map_batch__each(int fd, size_t key_bytes, size_t value_bytes, bool takes, map_batch_use *use,
		    void *context);

#endif
