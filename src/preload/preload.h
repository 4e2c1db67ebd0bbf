/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measurement from inside of processes, by a library that is preloaded into them (src/inside): its shared
 * memory, the environment that a command needs, and what was counted. docs/inside.md.
 */
#ifndef ALLOCPROF_PRELOAD_H
#define ALLOCPROF_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "inside_abi.h"
#include "record_abi.h"
#include "unwind_tables.h"

struct error;
struct preload;

struct preload_options {
	const char *library; /* path of liballocprof-inside.so */
	struct inside_settings settings;
};

/* Makes the shared memory, in a directory of its own. The caller frees *@out. */
int preload__new(const struct preload_options *options, struct preload **out, struct error *error);

/* Removes the directory. Processes that still run go on, and count for nobody. Accepts NULL. */
void preload__free(struct preload *preload);

/* A copy of @environment for the command to be executed with; the caller frees it with free(). @is_other: another
 * engine counts the command's own calls. NULL on ENOMEM. */
char **preload__environment(const struct preload *preload, char *const *environment, bool is_other);

/* Returns the real path of preload_options.library; owned by @preload. */
const char *preload__library(const struct preload *preload);

/* To be called a few times a second: where the file system of the shared memory has little room left, processes
 * take care not to need more than there is. */
void preload__watch_room(struct preload *preload);

/* To be called a few times a second: without stacks, gives back the memory of threads whose process has ended. 0 or a
 * negative errno. */
int preload__retire(struct preload *preload);

/* The path of the shared memory, as /proc/PID/maps shows it. */
void preload__memory_path(const struct preload *preload, char *out, size_t size);

/* Readable when processes have met a file, or wait to execute what the library cannot be preloaded into. */
int preload__wake_fd(const struct preload *preload);
/* Memory that the files of the measurement take. */
__u64 preload__memory_bytes(const struct preload *preload);

/* From now on calls count, or do not. 0 or a negative errno. */
int preload__set_gate(struct preload *preload, enum inside_gate gate);

/* With live: lifetimes count from @now_ns of CLOCK_MONOTONIC. Before the first process begins. */
int preload__set_epoch(struct preload *preload, __u64 now_ns);

struct preload_program {
	__u32 pid;    /* in the process's own PID namespace */
	__u32 parent; /* pid of the parent */
	/* While the entry is being written, pid of the process that does so, and all else is unknown; then 0. */
	__u32 writer;
	/* Index of the program that this is a fork of, or of the one that was in the process before; -1 if it
	 * is not known. */
	int before;
	int parent_program; /* index of the one that was in @parent when this one began; -1: not known */
	enum inside_end end;  /* with live: how it ended, if it could say so */
	__u64 end_generation; /* of the peak, then */
	__u64 end_ns;	      /* CLOCK_MONOTONIC */
	/* With live: what its threads have allocated and not freed. */
	__s64 live_blocks, live_bytes;
	bool in_other_namespace; /* @pid is the number of another process in allocprof's own PID namespace, or of none */
	bool is_fork;	/* of @before, or of an unknown one; else begun by an exec */
	__u64 begin_ns; /* CLOCK_MONOTONIC */
	char comm[AP_COMM_LEN + 1];
};

/* A program that was executed and that the library could not be preloaded into. */
struct preload_refused {
	enum inside_refusal reason;
	int program; /* index of the one that executed it; -1 if it is not known */
	__u32 pid;
	__u64 pid_namespace;  /* inode of that of @pid; 0 if it is not known */
	bool by_other_engine; /* another engine counts its calls */
	bool was_preloaded;   /* a program was in the process */
	char path[INSIDE_PATH_BYTES];
};

/* Counters of regions, summed over all threads; sums saturate at AP_MAX_SUM. */
struct preload_regions {
	__u64 begins[AP_MAX_REGIONS]; /* by number of the region */
	struct inside_region_counts sets[AP_MAX_REGION_SETS];
};

/* What the processes have counted so far. */
struct preload_results {
	struct preload_program *programs; /* in the order in which they began */
	size_t n_programs;
	struct preload_refused *refused;
	size_t n_refused;
	/* Sums over all threads, which saturate at AP_MAX_SUM. */
	struct ap_site_counts functions[AP_DEFINED];
	__u64 stats[AP_STATS];
	struct preload_regions *regions; /* NULL: no thread has begun one */
	__u64 gaps[INSIDE_GAPS];
	__u64 waits, waits_ns; /* for tables and answers */
	__u64 n_begun; /* programs that the library began in; one that begins after the end has no entry */
	__u64 n_threads; /* whose counters were read */
	/* Elements that a process was about to write when it was killed, and offsets and numbers that cannot
	 * be right: nothing is taken from these. */
	__u64 n_unfinished, n_damaged;
	__u64 n_awaited; /* of the unfinished ones, those that a process may still be writing */
};

/* Reads what the processes have written, whether they run or not, and checks it. The caller frees what is
 * in *@out by preload_results__free(). -ENOMEM, -EIO. */
int preload__read(const struct preload *preload, struct preload_results *out);

void preload_results__free(struct preload_results *results);

/* The command's dynamic linker may still look for the library, and would print that it is missing: preload__free() leaves it,
 * unless the command has begun by then. */
void preload__leave_library(struct preload *preload);

/* preload_results.n_awaited, for less than a reading of all. -EIO, -ENOMEM. */
int preload__count_awaited(const struct preload *preload, __u64 *n);

/* Names of the regions, terminated, and the sets of them. A region that is not known has an empty name. -EIO. */
int preload__read_regions(const struct preload *preload, struct inside_regions *out);

/* From now on processes wait for an answer before they execute what the library cannot be preloaded into, or do not. 0 or a negative
 * errno. */
int preload__hand_over(struct preload *preload, bool hands_over);

/* Whether another engine will count the calls of the program that process @refused->pid is about to execute. */
typedef bool (*preload_take_fn)(void *context, const struct preload_refused *refused);

/* Asks @take about each program that processes are about to execute, and answers them. 0 or a negative errno. */
int preload__take_refused(struct preload *preload, preload_take_fn take, void *context);

/*
 * The functions below return something only in the modes with stacks. They use the records of the programs in
 * bpf/ (record_abi.h), so that the same code can handle both.
 */

/* A function that takes a record; a nonzero result ends the reading and is returned. */
typedef int (*preload_module_fn)(void *context, const struct ap_module_record *record,
				 const char *path);
typedef int (*preload_stack_fn)(void *context, const struct ap_stack_record *record);
/* @thread is a number of the thread that counts, and of those that go on with its counters. */
typedef int (*preload_count_fn)(void *context, __u32 thread, const struct ap_count_key *key,
				const struct ap_count *count);

/* Calls @fn with each file that processes have met since the last call. Threads wait for its table. @path is
 * that of the mapping. */
int preload__take_modules(struct preload *preload, preload_module_fn fn, void *context);

/* Whether preload__take_modules() or preload__announce() had the file. */
bool preload__has_taken(const struct preload *preload, __u32 module);

/* A file that the command will map: its table can be there before the first call. *@id is the module's. */
int preload__announce(struct preload *preload, __u32 device, __u64 inode, const char *path,
		      __u32 *id);

/* Waits until that is readable, for @timeout_ms at the most. */
void preload__wait(struct preload *preload, int timeout_ms);

/* Publishes the code of functions of --within for the frames of @module. 0 or a negative errno. */
int preload__set_within(void *preload, __u32 module, const struct ap_within *within);

/* Writes unwind tables for the processes: for a struct unwind_writer, whose context is @preload. */
int preload__write_table(void *preload, enum unwind_map map, __u32 index, const void *value);

/* Calls @fn with each stack, which may come twice, innermost frame first. Frames' modules are those of
 * preload__take_modules() and preload__announce(). 0, a negative errno, or @fn's result. */
int preload__read_stacks(const struct preload *preload, preload_stack_fn fn, void *context);

/* Calls @fn with each thread's counters by stack and function; key.process is 1 + the index of the program. */
int preload__read_counts(const struct preload *preload, preload_count_fn fn, void *context);

/* With blocks: what became of those of one key, as the programs of bpf/ keep it. */
struct preload_record {
	struct ap_count_key
		key; /* all 0 if the thread that counts under it was killed before it said so */
	struct ap_blocks blocks;    /* without estimates; its histograms are @more */
	struct ap_histograms *more; /* buckets for which the record has no room, or NULL */
};

struct preload_live {
	struct preload_record *records; /* by the record's number minus 1 */
	size_t n_records;
	__u64 max_bytes;   /* most that was live in all processes */
	__u64 generation;  /* of the peak, the last one */
	__u32 epoch_shift; /* log2 of the present length of an epoch in ns */
	__u64 read_bytes;  /* size of the shared memory that has the records */
};

/* Reads all records. The caller frees what is in *@out by preload_live__free(). */
int preload__read_live(const struct preload *preload, struct preload_live *out);

void preload_live__free(struct preload_live *live);

typedef int (*preload_block_fn)(void *context, const struct ap_block_key *key,
				const struct ap_block *block);
typedef int (*preload_lifetime_fn)(void *context, const struct ap_lifetime_key *key,
				   const struct ap_lifetime *lifetime);

/* Calls @fn with each live block; its space is 1 + the index of the program. *@read_bytes, if not NULL: the size of
 * the shared memory that has them. */
int preload__read_blocks(const struct preload *preload, preload_block_fn fn, void *context,
			 __u64 *read_bytes);

/* Calls @fn with each thread's counters of ended blocks. */
int preload__read_lifetimes(const struct preload *preload, preload_lifetime_fn fn, void *context);

/* One or two words for messages. */
const char *preload__refusal_name(enum inside_refusal reason);

#endif
