// SPDX-License-Identifier: GPL-3.0-or-later
/* The followed processes and threads, as records of fork, exec and exit tell of them. */
#include "collector_internal.h"

#include <errno.h>
#include <string.h>

#include "array.h"
#include "hash_table.h"
#include "process_maps.h"
#include "profile.h"
#include "record_abi.h"

static bool follower_has_pid(const void *owner, __u32 id, const void *key)
{
	const struct collector *collector = owner;

	return collector->followers[id - 1].pid == *(const __u32 *)key;
}

/* NULL if there is none. */
static struct follower *find_follower(const struct collector *collector, __u32 pid)
{
	__u32 id = hash_table__find(&collector->follower_index, hash_mix(0, pid), follower_has_pid,
				    collector, &pid);

	return id ? &collector->followers[id - 1] : NULL;
}

bool collector__is_followed(const struct collector *collector, pid_t pid, __u64 time_ns)
{
	const struct follower *follower = find_follower(collector, pid);

	while (follower && time_ns < follower->begin_ns)
		follower = follower->earlier ? &collector->followers[follower->earlier - 1] : NULL;
	return follower && (!follower->end_ns || time_ns <= follower->end_ns);
}

static int follow(struct collector *collector, const struct ap_process_record *record)
{
	struct follower *follower;
	struct follower next = { .pid = record->pid };

	if (record->event == AP_PROCESS_FORKED)
		next.begin_ns = record->time_ns;
	if (array__reserve(&collector->followers, &collector->followers_capacity,
			   collector->n_followers + 1, sizeof(*collector->followers)))
		return -ENOMEM;
	follower = find_follower(collector, record->pid);
	if (follower && !follower->end_ns && record->event != AP_PROCESS_FORKED)
		return 0;
	/* Its place in the index is the new one's, and it moves behind the others. */
	if (follower) {
		if (!follower->end_ns)
			follower->end_ns = next.begin_ns;
		collector->followers[collector->n_followers++] = *follower;
		next.earlier = collector->n_followers;
		*follower = next;
		return 0;
	}
	collector->followers[collector->n_followers++] = next;
	return hash_table__insert(&collector->follower_index, hash_mix(0, record->pid),
				  collector->n_followers);
}

static void unfollow(struct collector *collector, __u32 pid, __u64 time_ns)
{
	struct follower *follower = find_follower(collector, pid);

	if (follower)
		follower->end_ns = time_ns;
}

void collector__forget_process(struct collector *collector, pid_t pid)
{
	process_maps__forget(collector->maps, pid, UINT64_MAX);
}

int collector__scan_process(struct collector *collector, pid_t pid)
{
	return process_maps__scan(collector->maps, pid);
}

struct image *collector__get_image(struct collector *collector, __u32 id)
{
	if (!id || array__reserve_zeroed(&collector->images, &collector->images_capacity, id,
					 sizeof(*collector->images)))
		return NULL;
	if (id > collector->n_images)
		collector->n_images = id;
	return &collector->images[id - 1];
}

__u32 collector__process_of(const struct collector *collector, __u32 id)
{
	return id && id <= collector->n_images ? collector->images[id - 1].process : 0;
}

int collector__set_process(struct collector *collector, __u32 id, __u32 pid, __u32 process)
{
	struct image *image = collector__get_image(collector, id);

	if (!image)
		return -ENOMEM;
	image->pid = pid;
	image->process = process;
	return 0;
}

/* An exit ends the record's image, an exec the parent image. */
static void end_image(struct collector *collector, const struct ap_process_record *record)
{
	bool execed = record->event == AP_PROCESS_EXECED;
	__u32 id = execed ? record->parent : record->id;

	if (id && id <= collector->n_images && collector->images[id - 1].process)
		profile__end_process(collector->profile, collector->images[id - 1].process,
				     record->time_ns, execed);
}

int collector__handle_process(struct collector *collector, const struct ap_process_record *record)
{
	struct image *image, *parent;
	char comm[AP_COMM_LEN + 1];
	int err;

	if (record->event == AP_PROCESS_EXITED || record->event == AP_PROCESS_EXECED)
		end_image(collector, record);
	if (record->event == AP_PROCESS_EXITED) {
		if (array__reserve_zeroed(&collector->ended, &collector->ended_capacity,
					  collector->n_ended + 1, sizeof(*collector->ended)))
			return -ENOMEM;
		collector->ended[collector->n_ended++] =
			(struct ended_process){ record->pid, record->time_ns };
		unfollow(collector, record->pid, record->time_ns);
		return 0;
	}
	image = collector__get_image(collector, record->id);
	if (!image)
		return -ENOMEM;
	parent = record->parent && record->parent <= collector->n_images
			 ? &collector->images[record->parent - 1]
			 : NULL;
	image->pid = record->pid;
	if (record->event == AP_PROCESS_FORKED && parent) {
		collector__know_mappings(collector, record->time_ns);
		err = process_maps__fork(collector->maps, parent->pid, record->pid,
					 record->time_ns);
		if (err)
			return err;
	}
	err = follow(collector, record);
	if (err)
		return err;
	memcpy(comm, record->comm, AP_COMM_LEN);
	comm[AP_COMM_LEN] = '\0';
	return profile__add_process(collector->profile, parent ? parent->process : 0, record->pid,
				    record->time_ns, comm, &image->process);
}

/* The profile's process of the kernel side's image @id, even if its record was lost. */
static int image_process(struct collector *collector, __u32 id, __u32 *process)
{
	struct image *image = collector__get_image(collector, id);
	int err = 0;

	if (!image)
		return -ENOMEM;
	if (!image->process)
		err = profile__add_process(collector->profile, 0, image->pid, 0, "[unknown]",
					   &image->process);
	if (!err)
		*process = image->process;
	return err;
}

int collector__key_thread(struct collector *collector, const struct ap_count_key *key,
			  __u32 *thread)
{
	char name[AP_COMM_LEN + 1];
	__u32 process;
	int err = image_process(collector, key->process, &process);

	if (err)
		return err;
	memcpy(name, key->thread, AP_COMM_LEN);
	name[AP_COMM_LEN] = '\0';
	return profile__add_thread(collector->profile, process, name, thread);
}
