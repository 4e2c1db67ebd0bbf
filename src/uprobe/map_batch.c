// SPDX-License-Identifier: GPL-3.0-or-later
#include "map_batch.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "cleanup.h"

#define ENTRIES 8192

int map_batch__each(int fd, size_t key_bytes, size_t value_bytes, bool takes, map_batch_use *use,
		    void *context)
{
	_cleanup_(free_ptr) char *keys = calloc(ENTRIES, key_bytes);
	_cleanup_(free_ptr) char *values = calloc(ENTRIES, value_bytes);
	__u32 position = 0, *from = NULL;
	int end = 0, err = 0;

	if (!keys || !values)
		return -ENOMEM;
	while (!err && !end) {
		__u32 n = ENTRIES;

		end = takes ? bpf_map_lookup_and_delete_batch(fd, from, &position, keys, values, &n,
							      NULL)
			    : bpf_map_lookup_batch(fd, from, &position, keys, values, &n, NULL);
		if (end && end != -ENOENT) /* -ENOENT marks the last batch */
			return end;
		from = &position;
		for (__u32 i = 0; i < n && !err; i++)
			err = use(context, keys + i * key_bytes, values + i * value_bytes);
	}
	return err;
}
