/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of regions (docs/regions.md): finds the marks that files of the target have,
 * probes them, and adds up what was counted in each region. */
#ifndef ALLOCPROF_REGIONS_H
#define ALLOCPROF_REGIONS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "abi.h"

struct bpf_program;
struct regions;

struct regions_options {
	struct bpf_program *program; /* of the probes */
	bool multi;
	pid_t pid; /* 0: probes in every process */
	struct ap_regions *shared;
	int begins_fd, counts_fd, stats_fd; /* maps of the programs */
	struct counters *counters;
};

struct region {
	const char *name; /* fit to be shown */
	__u64 entered;	  /* times, by all threads */
	struct ap_site_counts counts[AP_FUNCTIONS];
	__u64 stats[AP_STATS]; /* with live, of enum ap_stat those that regions have */
};

/* -ENOMEM. */
int regions__new(const struct regions_options *options, struct regions **out);
void regions__free(struct regions *regions);

/* The target maps the file behind @fd, or is about to: its marks are probed. @late_pid: the process that
 * had mapped it before it was noticed, or 0. What goes wrong is told by regions__gap(). */
void regions__on_new_file(struct regions *regions, int fd, const char *path, pid_t late_pid);

void regions__detach(struct regions *regions);

/* Adds up what the programs have counted, when they run no more. */
void regions__collect(struct regions *regions);

/* After that: all regions of the files that were met, in the order of their names. */
const struct region *regions__list(const struct regions *regions, size_t *n);

/* The @index-th sentence that says where regions are not known, or NULL. */
const char *regions__gap(const struct regions *regions, size_t index);

/* "depth" and so on, as in JSON; and what it means of how many. */
const char *region_gap__name(enum ap_region_gap gap);
const char *region_gap__words(enum ap_region_gap gap);

#endif
