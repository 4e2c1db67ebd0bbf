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

/* A copy of @environment for the command to be executed with; the caller frees it with free(). NULL on
 * ENOMEM. */
char **preload__environment(const struct preload *preload, char *const *environment);

/* From now on calls count, or do not. 0 or a negative errno. */
int preload__open(struct preload *preload, bool is_open);

struct preload_image {
	__u32 pid;    /* in the process's own PID namespace */
	__u32 parent; /* pid of the parent */
	/* Index of the image that this is a fork of, or of the one that was in the process before; -1 if it
	 * is not known. */
	int before;
	bool has_ended;	      /* with blocks: it has ended, and could say so */
	__u64 end_generation; /* of the peak, then */
	bool is_fork;	      /* of @before, or of an unknown one; else begun by an exec */
	__u64 begin_ns;	      /* CLOCK_MONOTONIC */
	char comm[AP_COMM_LEN + 1];
};

/* A program that was executed and could not be entered. */
struct preload_refused {
	enum inside_refusal reason;
	int image; /* index of the one that executed it; -1 if it is not known */
	__u32 pid;
	char path[INSIDE_PATH_BYTES];
};

/* What the processes have counted so far. */
struct preload_results {
	struct preload_image *images; /* in the order in which they began */
	size_t n_images;
	struct preload_refused *refused;
	size_t n_refused;
	/* Sums over all threads, which saturate at AP_MAX_SUM. */
	struct ap_site_counts functions[AP_DEFINED];
	__u64 stats[AP_STATS];
	__u64 gaps[INSIDE_GAPS];
	__u64 n_threads; /* whose counters were read */
	/* Elements that a process was about to write when it was killed, and places and numbers that cannot
	 * be right: nothing is taken from these. */
	__u64 n_unfinished, n_damaged;
};

/* Reads what the processes have written, whether they run or not, and checks it. The caller frees what is
 * in *@out by preload_results__free(). -ENOMEM, -EIO. */
int preload__read(const struct preload *preload, struct preload_results *out);

void preload_results__free(struct preload_results *results);

/*
 * The functions below return something only in the modes with stacks. They use the records of the programs in
 * bpf/ (record_abi.h), so that the same code can handle both.
 */

/* A function that takes a record; a nonzero result ends the reading and is returned. */
typedef int (*preload_module_fn)(void *context, const struct ap_module_record *record,
				 const char *path);
typedef int (*preload_stack_fn)(void *context, const struct ap_stack_record *record);
typedef int (*preload_count_fn)(void *context, const struct ap_count_key *key,
				const struct ap_count *count);

/* Calls @fn with each file that processes have met since the last call. Threads wait for its table. @path is
 * that of the mapping. */
int preload__take_modules(struct preload *preload, preload_module_fn fn, void *context);

/* A file that the command will map: its table can be there before the first call. *@id is the module's. */
int preload__announce(struct preload *preload, __u32 device, __u64 inode, const char *path,
		      __u32 *id);

/* Waits until processes have met a file, for @timeout_ms at the most. */
void preload__wait(struct preload *preload, int timeout_ms);

/* Writes unwind tables for the processes: for a struct unwind_writer, whose context is @preload. */
int preload__write_table(void *preload, enum unwind_map map, __u32 index, const void *value);

/* Calls @fn with each stack, which may come twice, innermost frame first. Frames' modules are those of
 * preload__take_modules() and preload__announce(). 0, a negative errno, or @fn's result. */
int preload__read_stacks(const struct preload *preload, preload_stack_fn fn, void *context);

/* Calls @fn with each thread's counters by stack and function; key.process is 1 + the index of the image. */
int preload__read_counts(const struct preload *preload, preload_count_fn fn, void *context);

/* With blocks: what became of those of one key, as the programs of bpf/ keep it. */
struct preload_record {
	struct ap_count_key
		key; /* all 0 if the thread that counts under it was killed before it said so */
	struct ap_blocks blocks;       /* without histograms, which are in buckets, and estimates */
	__u64 buckets[2 * AP_BUCKETS]; /* by tag - 1 */
};

struct preload_live {
	struct preload_record *records; /* by the record's number minus 1 */
	size_t n_records;
	__u64 max_bytes; /* most that was live in all processes */
};

/* Reads all records. The caller frees what is in *@out by preload_live__free(). */
int preload__read_live(const struct preload *preload, struct preload_live *out);

void preload_live__free(struct preload_live *live);

typedef int (*preload_block_fn)(void *context, const struct ap_block_key *key,
				const struct ap_block *block);
typedef int (*preload_lifetime_fn)(void *context, const struct ap_lifetime_key *key,
				   const struct ap_lifetime *lifetime);

/* Calls @fn with each live block; its space is 1 + the index of the image. */
int preload__read_blocks(const struct preload *preload, preload_block_fn fn, void *context);

/* Calls @fn with each thread's counters of ended blocks. */
int preload__read_lifetimes(const struct preload *preload, preload_lifetime_fn fn, void *context);

/* One or two words for messages. */
const char *preload__refusal_name(enum inside_refusal reason);

#endif
