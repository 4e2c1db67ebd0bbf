/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each process has mapped as code, as user space heard of it: for addresses that the kernel was
 * too busy to resolve, and for the names of files whose process is gone. */
#ifndef ALLOCPROF_PROCESS_MAPS_H
#define ALLOCPROF_PROCESS_MAPS_H

#include <linux/types.h>

#include "file_identity.h"

struct process_maps;

struct code_mapping {
	__u64 start, end, offset;      /* addresses; offset in the file */
	struct file_identity identity; /* as events or /proc/PID/maps tell it */
	__u64 time_ns; /* CLOCK_MONOTONIC, of when it was mapped; 0: before anything was heard of */
	char *path;    /* as the kernel names it; NULL: no file, only the end of earlier ones */
};

struct process_maps *process_maps__new(void);
void process_maps__free(struct process_maps *maps);

/*
 * A later mapping hides an earlier one where they overlap; they may be told in any order. Copies
 * @mapping. 0 or -ENOMEM.
 */
int process_maps__add(struct process_maps *maps, __u32 pid, const struct code_mapping *mapping);
/* All that /proc/PID/maps lists now. */
void process_maps__scan(struct process_maps *maps, __u32 pid);
/* Nothing that the process had mapped before @time_ns is there from then on. 0 or -ENOMEM. */
int process_maps__exec(struct process_maps *maps, __u32 pid, __u64 time_ns);
/* From @time_ns on the child has what its parent had then, and what it maps itself; nothing of what
 * another process of its pid had. 0 or -ENOMEM. */
int process_maps__fork(struct process_maps *maps, __u32 parent, __u32 child, __u64 time_ns);
/* Forgets what was mapped up to @time_ns: nothing before will be asked for. */
void process_maps__forget(struct process_maps *maps, __u32 pid, __u64 time_ns);

/* What was at @address at @time_ns; NULL where nothing is known to have been there. */
const struct code_mapping *process_maps__find(const struct process_maps *maps, __u32 pid,
					      __u64 address, __u64 time_ns);

/* What is at @address whenever something is; NULL where that is not the same at all times. */
const struct code_mapping *process_maps__find_lasting(const struct process_maps *maps, __u32 pid,
						      __u64 address);

/* Every file that the process had mapped at @time_ns, oldest first; none that is overlapped since. */
void process_maps__for_each(const struct process_maps *maps, __u32 pid, __u64 time_ns,
			    void (*fn)(const struct code_mapping *mapping, void *context),
			    void *context);

/* Stands for what process_maps__for_each() tells of: other mappings have another version. */
__u64 process_maps__version(const struct process_maps *maps, __u32 pid, __u64 time_ns);

/* Nothing before @time_ns will be asked for: mappings that were hidden by then may go. */
void process_maps__settle(struct process_maps *maps, __u64 time_ns);

#endif
