/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Executable mappings of each process over time: resolves addresses that the kernel could not
 * (mmap_lock was held), and names files of processes that have ended. */
#ifndef ALLOCPROF_PROCESS_MAPS_H
#define ALLOCPROF_PROCESS_MAPS_H

#include <linux/types.h>

#include "mapped_file.h"

struct process_maps;

struct code_mapping {
	__u64 start, end, offset;      /* addresses, and offset in the file */
	struct file_identity identity; /* as in the event or in /proc/PID/maps */
	__u64 time_ns; /* CLOCK_MONOTONIC time of the mapping; 0: before the first event */
	/* Path from the kernel; NULL: anonymous memory, which only ends earlier mappings. */
	char *path;
};

struct process_maps *process_maps__new(void);
void process_maps__free(struct process_maps *maps);

/* Adds a copy of @mapping. A later mapping hides an earlier one where they overlap. Mappings may
 * be added in any order. Returns 0 or -ENOMEM. */
int process_maps__add(struct process_maps *maps, __u32 pid, const struct code_mapping *mapping);
/* Adds all mappings of /proc/PID/maps. Returns 0, -ENOMEM, or another negative errno if it cannot
 * be read. */
int process_maps__scan(struct process_maps *maps, __u32 pid);
/* Ends all earlier mappings of the process at @time_ns. Returns 0 or -ENOMEM. */
int process_maps__exec(struct process_maps *maps, __u32 pid, __u64 time_ns);
/* From @time_ns on the child has the mappings that its parent had then, and none of an earlier
 * process with its pid. Returns 0 or -ENOMEM. */
int process_maps__fork(struct process_maps *maps, __u32 parent, __u32 child, __u64 time_ns);
/* Forgets mappings up to @time_ns, before which there will be no lookup. */
void process_maps__forget(struct process_maps *maps, __u32 pid, __u64 time_ns);

/* Returns the mapping of @address at @time_ns; NULL if it is unknown. */
const struct code_mapping *process_maps__find(const struct process_maps *maps, __u32 pid,
					      __u64 address, __u64 time_ns);

/* Returns the mapping of @address if it is the same at all times, else NULL. */
const struct code_mapping *process_maps__find_lasting(const struct process_maps *maps, __u32 pid,
						      __u64 address);

/*
 * Calls @fn with all files mapped at @time_ns, oldest first, except those whose start another mapping has
 * replaced since. Of others it is told what is left, up to the first later mapping.
 */
void process_maps__for_each(const struct process_maps *maps, __u32 pid, __u64 time_ns,
			    void (*fn)(const struct code_mapping *mapping, void *context),
			    void *context);

/* Returns a number that changes whenever the result of process_maps__for_each() does. */
__u64 process_maps__version(const struct process_maps *maps, __u32 pid, __u64 time_ns);

/*
 * To be called when no look-up will be for a time before @time_ns: frees mappings that were
 * replaced by then.
 */
void process_maps__settle(struct process_maps *maps, __u64 time_ns);

#endif
