/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns what the programs send and count into a profile while the recording runs. */
#ifndef ALLOCPROF_COLLECTOR_H
#define ALLOCPROF_COLLECTOR_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "file_identity.h"
#include "table_loader.h"

struct ap_within;
struct collector;
struct mapping_event;
struct profile;
struct symbols;

struct collector_options {
	int counts_fd;		/* array of the two maps below */
	int counts_fds[2];	/* programs start with the first */
	__u64 *counts_inserted; /* the programs' counter of new keys */
	__u32 drain_at;		/* of these */
	struct table_loader_options tables;
	__u32 max_depth;
	bool sample; /* calls are samples, each of which stands for several */
	__u32 sample_unit_shift;
	/* Reads the mapping events that are there now into the collector: a stack may have been
	 * seen before the mapping that its addresses are in. */
	void (*refresh_mappings)(void *context);
	/* The code of a file that calls are to be within, or NULL; what is given stays. NULL: none. */
	const struct ap_within *(*within)(int fd, const char *path, void *context);
	int within_fd; /* map that the programs have it from */
	void *context;
	struct file_asker asker;
};

/* NULL without memory. What options->tables takes over is so in any case. */
struct collector *collector__new(const struct collector_options *options);
void collector__free(struct collector *collector);

/* Makes the kernel's vDSO known, which is no file that a record could tell of. */
int collector__add_vdso(struct collector *collector);

/* One record of the ring buffer (enum ap_record_type). 0, or -ENOMEM: then the profile is not
 * right any more and the recording must end. */
int collector__handle_record(struct collector *collector, const void *record, size_t size);

/* To be called when the ring buffer has been read empty: unwinds what the programs could not, @most
 * stacks of it, and, when none is left, forgets processes that have ended. 0 or -ENOMEM. */
int collector__settle(struct collector *collector, size_t most);
bool collector__has_dumps(const struct collector *collector);

/* Returns when the unwind tables of all files that it knows of are there. */
void collector__await_tables(struct collector *collector);
/* Whether tables that hits may wait for are being brought, one at a time. */
bool collector__brings_tables(struct collector *collector);
/* No program runs any more: tables that no stack needs are not made. */
void collector__finish_tables(struct collector *collector);

/* A mapping of any process, which may turn out to be followed or be forgotten. 0 or -ENOMEM: it goes unnoticed. */
int collector__handle_mapping(struct collector *collector, const struct mapping_event *event);
void collector__scan_process(struct collector *collector, pid_t pid);
/* Whether the process that had that pid at @time_ns (CLOCK_MONOTONIC) was followed. */
bool collector__is_followed(const struct collector *collector, pid_t pid, __u64 time_ns);
void collector__forget_process(struct collector *collector, pid_t pid);

/* When it returns every program has ended that ran before. */
int collector__wait_for_programs(const struct collector *collector);

/* Whether the programs asked for their counters to be drained. */
bool collector__wants_drain(const struct collector *collector);

/*
 * Moves counters into the profile without losing one: begin_drain switches the programs to the other
 * map and waits until none has the first in hand; then the caller reads the ring buffer empty, so
 * that the stacks of all its counters are known; end_drain reads and empties it.
 */
int collector__begin_drain(struct collector *collector);
int collector__end_drain(struct collector *collector);

/* Moves the rest, when no program runs any more and the ring buffer has been read. */
int collector__drain_all(struct collector *collector);

/* Adds calls that the programs kept a record of, with live; *@count is the profile's, or 0 where the
 * stack is not known: then they are not attributed. -ENOMEM. */
struct ap_count;
struct ap_count_key;
int collector__add_record(struct collector *collector, const struct ap_count_key *key,
			  const struct ap_count *sum, __u32 *count);

/* Opens what is needed to name the profile's frames; without @files only what no file keeps, the
 * vDSO. -ENOMEM. */
int collector__add_modules(const struct collector *collector, struct symbols *symbols, bool files);

/* Names frames in code that a process made itself, where it wrote the names down. -ENOMEM. */
int collector__name_jit_frames(struct collector *collector);

/* The profile, still owned by the collector. */
struct profile *collector__profile(struct collector *collector);

/* Writes the paths of the files that stacks go through and that have no unwind table, a line each. */
void collector__list_without_table(const struct collector *collector, FILE *to);

/* Of calls that only a dump's stack could decide, those that were within, and those of which not even
 * that could tell. */
__u64 collector__found_within(const struct collector *collector);
__u64 collector__undecided(const struct collector *collector);

/* Calls that are in the profile; with sampling those that were looked at. */
__u64 collector__attributed(const struct collector *collector);

/* Those and the calls that will be when collector__settle() has come to them. */
__u64 collector__accounted(const struct collector *collector);

/* Takes all calls out of the profile, those that wait to be settled too, and begins to count anew. */
void collector__forget(struct collector *collector);

#endif
