/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Totals of a recording, which `allocprof stat` prints, and how its run went. Engines and the session add to them. The data file
 * does not store them: a profile that was read from one has none.
 */
#ifndef ALLOCPROF_PROFILE_TOTALS_H
#define ALLOCPROF_PROFILE_TOTALS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "abi.h"

struct profile;

/* Totals of a function over all allocators, by the sites' first function. */
struct function_totals {
	bool probed; /* an allocator has a site of this function */
	struct ap_site_counts counts;
	char **aliases; /* other names at the same address */
	size_t n_aliases;
};

/* Kernel memory of --live, used and allowed. */
struct live_memory {
	/* The fields below are maxima during the run. */
	__u64 block_bytes;  /* tables of live blocks */
	__u64 record_bytes; /* records */
	__u64 entries;	    /* live blocks that were seen in the tables */
	__u64 max_blocks;   /* limit of live blocks */
	__u64 records;	    /* records in use */
	__u64 max_records;  /* limit of records */
};

/* These sums say what became of the mappings that calls made, with --live and --allocator mmap;
 * they are 0 without. */
struct mapping_totals {
	__u64 changes; /* changes of mappings that were handled, counted calls or not */
	__u64 allocations, size_bytes; /* calls that mapped memory */
	__u64 failed;
	__u64 released; /* calls that mapped nothing more: they moved a mapping, or gave back */
	__u64 frees, freed_bytes; /* mappings that ended, and bytes, also of those in part */
	__u64 discarded, discarded_bytes;
	__u64 live_bytes; /* of address spaces in use */
	__u64 peak_bytes; /* the most of these at a time */
};

/* Statistics of live memory. */
struct live_totals {
	__u64 stats[AP_STATS]; /* indexed by enum ap_stat */
	__u64 unfinished;
	__u64 untracked; /* blocks that were not followed, for any reason */
	__u64 discarded, discarded_bytes;
	__u64 blocks, size_bytes; /* live at the end, also of processes that have ended */
	__u64 peak_bytes;
	__u64 start_ns; /* of the first epoch, CLOCK_MONOTONIC */
	__u64 epoch_ns;
	struct live_memory memory;
	/* Mappings are in no other figure of this struct. */
	struct mapping_totals mappings;
};

/* A region that the target marks, and what was counted in it. */
struct region {
	const char *name; /* name with only printable characters */
	__u64 entered;	  /* how often it was begun, by all threads */
	struct ap_site_counts counts[AP_FUNCTIONS];
	/* With --live, indexed by enum ap_stat; only some are counted by region. */
	__u64 stats[AP_STATS];
};

/* Calls as one engine counted them. Without stacks it knows only the lost ones. */
struct engine_calls {
	__u64 events;	   /* calls that happened, counted or lost */
	__u64 not_sampled; /* of the events: calls that were not sampled */
	/* Number of events or, with sampling, of sampled calls, that are in the profile. */
	__u64 attributed;
	__u64 lost[AP_LOST_REASONS];
	/* @events was read before the others, or in part, so it may be too low. */
	bool may_be_short;
};

/* A file with known or defined allocators, probed or not. */
struct profile_allocator {
	char *path, *build_id; /* @build_id is "" if it has none */
	char *gap, *live_gap;  /* as in struct probed_file */
};

/* Processes of a program that the fallback engine measured. */
struct uprobe_program {
	char *name;
	__u32 pid; /* number of its first process */
	__u64 processes;
};

/* Describes how the target ran. */
struct target_run {
	pid_t pid;
	bool is_attached; /* it ran before the recording */
	bool runs;	  /* it still runs */
	bool interrupted; /* a signal to allocprof or the command ended the recording */
	int exit_status;  /* exit status of a launched command, as a shell reports it */
	/* Times in seconds; with -p user and system are 0. */
	double elapsed_seconds, user_seconds, system_seconds;
};

/* Calls at probes that the kernel single-steps. */
struct stepped_totals {
	__u64 functions; /* mask of enum ap_function */
	__u64 calls;
	/* Seconds that such a hit takes on this machine; 0: it was not measured. */
	double hit_seconds;
};

struct profile_totals {
	struct function_totals functions[AP_FUNCTIONS];
	/* Figures of live memory come from one engine: with --live there is no fallback engine. */
	bool has_live;
	struct live_totals live;
	struct region *regions; /* sorted by name */
	size_t n_regions, regions_room;
	struct engine_calls calls; /* calls of all engines, which profile__settle_ledger() gets */
	__u64 processes;	   /* number of followed processes */
	/* Number of processes that the command started and that outlive the measurement. */
	__u64 processes_left;
	/* Calls that were counted under the function that they tail-called. */
	__u64 relabelled;
	struct {
		bool asked_for; /* only a window is measured; else the whole run */
		bool opened;	/* the window has opened at least once */
		char *why;	/* clause that says why it never opened; NULL if it did */
	} window;
	struct profile_allocator *allocators;
	size_t n_allocators, allocators_room;
	struct uprobe_program *uprobe_programs;
	size_t n_uprobe_programs, uprobe_programs_room;
	struct stepped_totals stepped;
	int events_err; /* negative errno of the write that ended the log of events early */
	struct target_run run;
};

/* Adds @more to @sum. Each number saturates at AP_MAX_SUM. */
void site_counts__add(struct ap_site_counts *sum, const struct ap_site_counts *more);

/* Returns the number of frees of unknown blocks, of all families. */
__u64 live_totals__frees_unknown(const struct live_totals *live);

/* The functions below copy their strings. They return 0 or -ENOMEM. */
int profile__set_aliases(struct profile *profile, enum ap_function function, char *const *names,
			 size_t n);
/* Adds @more to the region of the same name. */
int profile__add_region(struct profile *profile, const struct region *more);
/* Notes that the window opened, or, if @why is not NULL, why an engine says that it never did. */
int profile__note_window(struct profile *profile, const char *why);
int profile__add_allocator(struct profile *profile, const struct profile_allocator *allocator);
int profile__add_uprobe_program(struct profile *profile, const struct uprobe_program *program);
/* Adds the numbers that are not 0 to the gaps. */
int profile__add_numbers(struct profile *profile, const __u64 *numbers, size_t n);

/*
 * Adds the calls of one engine. With @has_stacks, calls that happened and are neither in the
 * profile nor lost for a known reason count as lost: for each engine by itself, so that one's
 * surplus cannot hide what another has lost.
 */
void profile__add_engine_calls(struct profile *profile, const struct engine_calls *calls,
			       bool has_stacks);

/* Returns whether nothing was lost, every allocator was completely probed, and every process was
 * followed, within the window if there is one. */
bool profile__is_complete(const struct profile *profile);

#endif
