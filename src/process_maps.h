/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each process has mapped as code, as user space heard of it: for addresses that the kernel was
 * too busy to resolve, and for the names of files whose process is gone. */
#ifndef ALLOCPROF_PROCESS_MAPS_H
#define ALLOCPROF_PROCESS_MAPS_H

#include <linux/types.h>

struct process_maps;

struct code_mapping {
	__u64 start, end, offset; /* addresses; offset in the file */
	__u64 inode;
	__u32 generation;
	__u32 device;  /* the kernel's dev_t: major << 20 | minor */
	__u64 time_ns; /* CLOCK_MONOTONIC, of when it was mapped; 0: before anything was heard of */
	char *path;    /* as the kernel names it; owned by the process_maps */
};

struct process_maps *process_maps__new(void);
void process_maps__free(struct process_maps *maps);

/* A later mapping hides an earlier one where they overlap. Copies @mapping. 0 or -ENOMEM. */
int process_maps__add(struct process_maps *maps, __u32 pid, const struct code_mapping *mapping);
/* All that /proc/PID/maps lists now. */
void process_maps__scan(struct process_maps *maps, __u32 pid);
/* The child has what its parent has, and what it is already known to have mapped itself. */
void process_maps__fork(struct process_maps *maps, __u32 parent, __u32 child);
void process_maps__remove(struct process_maps *maps, __u32 pid);

/* What was at @address at @time_ns; NULL where nothing is known to have been there. */
const struct code_mapping *process_maps__find(const struct process_maps *maps, __u32 pid,
					      __u64 address, __u64 time_ns);

/* The newest mapping of the file with this identity; NULL where the process is not known to have had
 * one. */
const struct code_mapping *process_maps__find_file(const struct process_maps *maps, __u32 pid,
						   __u32 device, __u64 inode, __u32 generation);

/* Stands for the process's mappings as they were at @time_ns: others have another. */
__u64 process_maps__version(const struct process_maps *maps, __u32 pid, __u64 time_ns);

/* Every mapping that the process had at @time_ns, oldest first. */
void process_maps__for_each(const struct process_maps *maps, __u32 pid, __u64 time_ns,
			    void (*fn)(const struct code_mapping *mapping, void *context),
			    void *context);

#endif
