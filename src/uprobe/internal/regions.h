/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user-space side of regions (docs/regions.md): finds and probes the marks in the target's
 * files, and sums up the counters of each region. */
#ifndef ALLOCPROF_REGIONS_H
#define ALLOCPROF_REGIONS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "abi.h"
#include "probe_program.h"
#include "profile_totals.h"

struct bpf_program;
struct error;
struct parser;
struct profile;

struct regions;

struct regions_options {
	struct probe_program run; /* at the marks */
	struct ap_regions *shared;
	int begins_fd, counts_fd; /* maps of the programs */
	struct counters *counters;
	struct parser *parser; /* reads the files */
	struct profile *profile;
	/* Called as in struct probes_options. */
	int (*load_program)(void *context, struct bpf_program **program, struct error *error);
	void *context;
};

/* -ENOMEM. */
int regions__new(const struct regions_options *options, struct regions **out);
void regions__free(struct regions *regions);

/* To be called when the target maps the file @fd or is about to: probes the file's marks.
 * @late_pid: a process that had mapped the file before, or 0. An error becomes a gap of the
 * profile. */
void regions__on_new_file(struct regions *regions, int fd, const char *path, pid_t late_pid);

/* Returns whether the file has marks. */
bool regions__want(const struct regions *regions, int fd, const char *path);

void regions__detach(struct regions *regions);

/* Sums up the programs' counters. To be called when no program runs any more. */
void regions__collect(struct regions *regions);

/* Returns the regions of all files. To be called after regions__collect(). */
const struct region *regions__list(const struct regions *regions, size_t *n);

#endif
