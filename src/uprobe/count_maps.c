// SPDX-License-Identifier: GPL-3.0-or-later
#include "count_maps.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "abi.h"
#include "collector.h"
#include "map_batch.h"
#include "record_abi.h"

void count_maps__handle_record(struct count_maps *maps, const void *record, size_t size)
{
	if (size >= sizeof(__u32) && *(const __u32 *)record == AP_RECORD_DRAIN)
		maps->wants_drain = true;
}

bool count_maps__want_drain(const struct count_maps *maps)
{
	/* The record that requests it may have found the ring buffer full. */
	return maps->wants_drain ||
	       __atomic_load_n(maps->inserted, __ATOMIC_RELAXED) >= maps->drain_at;
}

static int move_count(void *context, const void *key, const void *count)
{
	__u32 id;

	return collector__add_count(context, key, count, &id);
}

/* Moves all counters of a map into the profile; no program uses the map any more. */
static int read_counts(int fd, struct collector *collector)
{
	return map_batch__each(fd, sizeof(struct ap_count_key), sizeof(struct ap_count), true,
			       move_count, collector);
}

/* Replacing a map inside a map waits for a grace period (Linux 4.20, maybe_wait_bpf_programs()):
 * afterwards no program uses the old one. */
static int use_map(const struct count_maps *maps, int which)
{
	__u32 zero = 0;

	return bpf_map_update_elem(maps->current_fd, &zero, &maps->fds[which], BPF_ANY) ? -errno
											: 0;
}

int count_maps__wait_for_programs(const struct count_maps *maps)
{
	return use_map(maps, maps->current);
}

int count_maps__begin_drain(struct count_maps *maps)
{
	int next = !maps->current;
	int err = use_map(maps, next);

	if (err)
		return err;
	__atomic_store_n(maps->inserted, 0, __ATOMIC_RELAXED);
	maps->current = next;
	maps->wants_drain = false;
	return 0;
}

int count_maps__end_drain(const struct count_maps *maps, struct collector *collector)
{
	return read_counts(maps->fds[!maps->current], collector);
}

int count_maps__drain_all(const struct count_maps *maps, struct collector *collector)
{
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		err = read_counts(maps->fds[i], collector);
	return err;
}
