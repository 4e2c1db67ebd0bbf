/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds a profile from an engine's records and counters while the recording runs. */
#ifndef ALLOCPROF_COLLECTOR_H
#define ALLOCPROF_COLLECTOR_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "mapped_file.h"
#include "table_loader.h"

struct ap_within;
struct collector;
struct mapping_event;
struct profile;
struct symbols;

/* How many bytes of a command line are kept. */
#define COLLECTOR_MOST_ARGUMENT_BYTES 256

/* Code of a file: file offset and size in bytes, which is 0 if there is none. */
struct collector_code {
	__u64 start, bytes;
};

struct collector_options {
	struct profile *profile; /* owned by the caller */
	struct table_loader_options tables;
	__u32 max_depth;
	bool reads_groups; /* the control groups of processes are read in /proc when they begin */
	bool reads_arguments; /* so are their command lines, unless they were forked */
	/* The control group whose processes are followed when they execute a program; NULL: there is none.
	 * The caller's, for as long as the collector is used. */
	const char *joined_group;
	bool sample; /* calls are sampled, and each stands for several */
	__u32 sample_unit_shift;
	/* Passes the pending mapping events to the collector: a stack may arrive before the event
	 * of the mapping that contains its addresses. NULL: there are no such events. */
	void (*refresh_mappings)(void *context);
	/* Returns the code of the functions of --within in a file, or NULL if the file has none.
	 * The result must stay valid. The callback is NULL without --within. */
	const struct ap_within *(*within)(int fd, const char *path, void *context);
	/* Publishes that code for frames of @module, before any stack with a frame of the file can
	 * end as complete. Returns 0 or a negative errno. */
	int (*set_within)(__u32 module, const struct ap_within *within, void *context);
	/* Told of each file that a module is of, when the module is met; at the same time as @set_within. @fd is -1 if it
	 * could not be opened. Sets *@loop to the code of Python's interpreter that frames of Python come in the place of:
	 * where it is in a stack, they are missing. Returns 0 or a negative errno. NULL: nobody asks. */
	int (*meet)(__u32 module, int fd, const char *path, struct collector_code *loop,
		    void *context);
	/* Returns a new descriptor of the file of which @fd is a copy, or a negative errno. NULL:
	 * there are no copies. */
	int (*original)(int fd, void *context);
	void *context;
	struct file_identifier identifier;
};

/* Returns NULL if there is no memory. Takes over options->tables in any case. */
struct collector *collector__new(const struct collector_options *options);
void collector__free(struct collector *collector);

/* Adds the kernel's vDSO, which has no file and so no record. */
int collector__add_vdso(struct collector *collector);

/* Handles one record (enum ap_record_type), and ignores records of other types. Returns 0 or
 * -ENOMEM: then the profile is incomplete, and the recording must end. */
int collector__handle_record(struct collector *collector, const void *record, size_t size);

/* Handles the record of a file whose path is known; @path is that of its mapping. Returns 0 or
 * -ENOMEM. */
struct ap_module_record;
int collector__handle_module_at(struct collector *collector, const struct ap_module_record *record,
				const char *path);

/* To be called when all records were handled: unwinds at most @most stack dumps and, when none is
 * left, forgets processes that have ended. Returns 0 or -ENOMEM. */
int collector__settle(struct collector *collector, size_t most);
bool collector__has_dumps(const struct collector *collector);

/* Returns the profile's process of the kernel side's program @id; 0 if it has none. */
__u32 collector__process_of(const struct collector *collector, __u32 id);
/* Makes the engine's program @id the profile's process @process, which another collector has
 * added. Returns 0 or -ENOMEM. */
int collector__set_process(struct collector *collector, __u32 id, __u32 pid, __u32 process);

/* Waits until the unwind tables of all known files are compiled. */
void collector__await_tables(struct collector *collector);
/* Returns whether tables that hits may wait for are being compiled. */
bool collector__brings_tables(struct collector *collector);
/* To be called when no program runs any more: from now on only tables that a stack needs are
 * compiled. */
void collector__finish_tables(struct collector *collector);

/* Handles a mapping of any process, followed or not. Returns 0, or -ENOMEM if the mapping is lost. */
int collector__handle_mapping(struct collector *collector, const struct mapping_event *event);
/* Handles all mappings that process @pid has now. Returns 0 or a negative errno, also if they
 * cannot be read. */
int collector__scan_process(struct collector *collector, pid_t pid);
/* Returns whether @pid was followed at @time_ns (CLOCK_MONOTONIC). */
bool collector__is_followed(const struct collector *collector, pid_t pid, __u64 time_ns);
void collector__forget_process(struct collector *collector, pid_t pid);

/* Adds the calls of a counter, whose stack's record was handled before. Sets *@count to the
 * profile's count or, if the stack is unknown and the calls are not attributed, to 0. Returns 0 or
 * -ENOMEM. */
struct ap_count;
struct ap_count_key;
int collector__add_count(struct collector *collector, const struct ap_count_key *key,
			 const struct ap_count *sum, __u32 *count);

/* Opens the files whose symbols name the profile's frames; without @files only the vDSO. Fails
 * with -ENOMEM. */
int collector__add_modules(const struct collector *collector, struct symbols *symbols, bool files);

/* Names frames in a process's JIT code from its perf map. Fails with -ENOMEM. */
int collector__name_jit_frames(struct collector *collector);

/* Returns collector_options.profile. */
struct profile *collector__profile(struct collector *collector);

/* Writes, one per line, the paths of files that occur in stacks and have no unwind table. */
void collector__list_without_table(const struct collector *collector, FILE *to);

/* Returns the number of AP_FUNCTION_UNDECIDED stack dumps with a frame of a --within function.
 * collector__undecided(): of those whose incomplete stack shows none. */
__u64 collector__found_within(const struct collector *collector);
__u64 collector__undecided(const struct collector *collector);

/* Returns the number of calls in the profile or, with sampling, of sampled calls. */
__u64 collector__attributed(const struct collector *collector);

/* Returns collector__attributed() plus the calls of stack dumps that collector__settle() has not
 * unwound yet. */
__u64 collector__accounted(const struct collector *collector);

/* Removes all calls from the profile, and all pending stack dumps, and restarts the counts. */
void collector__forget(struct collector *collector);

#endif
