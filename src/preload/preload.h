/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures from inside of processes, by a library that is preloaded into them (src/inside): has
 * the shared memory and the command's environment, and reads what was counted. See docs/inside.md.
 */
#ifndef ALLOCPROF_PRELOAD_H
#define ALLOCPROF_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "inside_abi.h"
#include "record_abi.h"
#include "unwind_tables.h"

struct inside_program;
struct error;
struct preload;

struct preload_options {
	const char *library; /* path of liballocprof-inside.so */
	struct inside_settings settings;
	const struct inside_all_counted *counted; /* what definitions count, or NULL */
};

/* Makes the shared memory, in a directory of its own. The caller frees *@out. */
int preload__new(const struct preload_options *options, struct preload **out, struct error *error);

/* Removes the directory. Processes that still run go on, but their counts are not read. Accepts
 * NULL. */
void preload__free(struct preload *preload);

/* Returns a copy of @environment in which LD_PRELOAD names the library, for the command; the
 * caller frees it with free(). @is_other: another engine counts the command's own calls. NULL:
 * there is no memory. */
char **preload__environment(const struct preload *preload, char *const *environment, bool is_other);

/* Returns the real path of preload_options.library; owned by @preload. */
const char *preload__library(const struct preload *preload);

/* To be called a few times a second: if the file system of the shared memory has little room left,
 * processes are told to allocate pages in time. */
void preload__watch_room(struct preload *preload);

/* To be called a few times a second: without stacks, releases the memory of threads whose process
 * has ended. Returns 0 or a negative errno. */
int preload__retire(struct preload *preload);

/* Writes the path of the shared memory to @out, as /proc/PID/maps shows it. */
void preload__memory_path(const struct preload *preload, char *out, size_t size);

/* Returns a descriptor that is readable when processes have met a file, or wait before they
 * execute a program that the library cannot be preloaded into. It stays @preload's. */
int preload__wake_fd(const struct preload *preload);
/* Returns the number of bytes that the files of the measurement occupy. */
__u64 preload__memory_bytes(const struct preload *preload);

/* Opens or closes the gate, so that calls count from now on, or do not. Returns 0 or a negative
 * errno. */
int preload__set_gate(struct preload *preload, enum inside_gate gate);

/* With --live, to be called before the first process begins: lifetimes are counted from @now_ns of
 * CLOCK_MONOTONIC. Returns 0 or a negative errno. */
int preload__set_epoch(struct preload *preload, __u64 now_ns);

struct preload_program {
	__u32 pid;    /* number in the process's own PID namespace */
	__u32 parent; /* pid of the parent */
	/* While a process writes the entry, that process's number, and all else is unknown; then
	 * 0. */
	__u32 writer;
	/* Index of the program from which this one was forked, or which was in the process before;
	 * -1 if it is not known. */
	int before;
	/* Index of the program that was in @parent when this one began; -1: it is not known. */
	int parent_program;
	enum inside_end end;  /* with --live: how it ended, if it could report that */
	__u64 end_generation; /* generation of the peak when it ended */
	__u64 end_ns;	      /* CLOCK_MONOTONIC */
	/* With --live: what its threads have allocated and not freed. */
	__s64 live_blocks, live_bytes;
	/* In allocprof's own PID namespace @pid is another process or none. */
	bool in_other_namespace;
	bool is_fork;	/* forked from @before, or from an unknown program; else begun by an exec */
	__u64 begin_ns; /* CLOCK_MONOTONIC */
	char comm[AP_COMM_LEN + 1];
	/* Its words, each with a 0 behind it, and their length; 0: they are not known. */
	char arguments[INSIDE_ARGUMENT_BYTES + 1];
	__u32 argument_bytes;
};

/* A program that processes have executed and that the library could not be preloaded into. */
struct preload_refused {
	enum inside_refusal reason;
	int program; /* index of the program that executed it; -1 if it is not known */
	__u32 pid;
	/* Inode of the PID namespace in which @pid is valid; 0 if it is not known. */
	__u64 pid_namespace;
	bool by_other_engine; /* another engine counts its calls */
	bool was_preloaded;   /* the library has been in a program of the process before */
	char path[INSIDE_PATH_BYTES];
};

/* Counters of regions, summed over all threads; sums saturate at AP_MAX_SUM. */
struct preload_regions {
	__u64 begins[AP_MAX_REGIONS]; /* indexed by the number of the region */
	struct inside_region_counts sets[AP_MAX_REGION_SETS];
};

/* What the processes have counted so far. */
struct preload_results {
	struct preload_program *programs; /* in the order of their beginning */
	size_t n_programs;
	struct preload_refused *refused;
	size_t n_refused;
	/* Sums over all threads, which saturate at AP_MAX_SUM. */
	struct ap_site_counts functions[AP_FUNCTIONS];
	/* Calls of functions that are only counted, by definition. */
	__u64 counted[AP_MAX_DEFINITIONS];
	bool is_found
		[AP_MAX_DEFINITIONS]; /* an object exports one of them, or has the definition's domain */
	__u64 stats[AP_STATS];
	struct preload_regions *regions; /* NULL: no thread has begun a region */
	__u64 gaps[INSIDE_GAPS];
	__u64 waits, waits_ns; /* number and length of waits for tables and answers */
	/* Programs in which the library began, also those that began after the end and so have no
	 * entry. */
	__u64 n_begun;
	__u64 n_threads; /* number of threads whose counters were read */
	/* Elements that a process was writing when it was killed, and offsets and numbers that
	 * cannot be right. They are left out of all sums. */
	__u64 n_unfinished, n_damaged;
	__u64 n_awaited; /* number of unfinished elements that a process may still be writing */
};

/* Reads and checks what the processes have written, whether they still run or not. The caller
 * frees *@out by preload_results__free(). Fails with -ENOMEM or -EIO. */
int preload__read(const struct preload *preload, struct preload_results *out);

void preload_results__free(struct preload_results *results);

/* Has preload__free() leave the library's file, unless the command has begun by then: its dynamic
 * linker may still look for it, and would print that it is missing. */
void preload__leave_library(struct preload *preload);

/* Stores preload_results.n_awaited in *@n, at less cost than preload__read(). Fails with -EIO or
 * -ENOMEM. */
int preload__count_awaited(const struct preload *preload, __u64 *n);

/* Reads the regions' terminated names, and the sets of regions. A region that is not known has an
 * empty name. Fails with -EIO. */
int preload__read_regions(const struct preload *preload, struct inside_regions *out);

/* Sets whether processes wait for an answer before they execute a program that the library cannot
 * be preloaded into. Returns 0 or a negative errno. */
int preload__hand_over(struct preload *preload, bool hands_over);

/* Returns whether another engine will count the calls of the program that the process
 * @refused->pid is about to execute. */
typedef bool (*preload_take_fn)(void *context, const struct preload_refused *refused);

/* Calls @take for each program that processes are waiting to execute, and answers them. Returns 0
 * or a negative errno. */
int preload__take_refused(struct preload *preload, preload_take_fn take, void *context);

/*
 * The functions below return something only in the modes with stacks. They use the records of bpf/
 * (record_abi.h), so that the same code handles both.
 */

/* Takes a record. A nonzero result ends the reading and is returned to the caller. */
typedef int (*preload_module_fn)(void *context, const struct ap_module_record *record,
				 const char *path);
typedef int (*preload_stack_fn)(void *context, const struct ap_stack_record *record);
typedef int (*preload_python_fn)(void *context, const struct ap_python_record *record);
/* @thread is a number for the thread that counts, which threads that take over its counters keep. */
typedef int (*preload_count_fn)(void *context, __u32 thread, const struct ap_count_key *key,
				const struct ap_count *count);

/* Calls @fn with each file that processes have met since the last call; threads are waiting for
 * its unwind table. @path is that of the mapping. */
int preload__take_modules(struct preload *preload, preload_module_fn fn, void *context);

/* Returns whether preload__take_modules() or preload__announce() has handled the module. */
bool preload__has_taken(const struct preload *preload, __u32 module);

/* Announces a file that the command will map, so that its unwind table can be there before the
 * first call. Stores the module's number in *@id. */
int preload__announce(struct preload *preload, __u32 device, __u64 inode, const char *path,
		      __u32 *id);

/* Waits until preload__wake_fd() is readable, for @timeout_ms at most. */
void preload__wait(struct preload *preload, int timeout_ms);

/* Publishes the code of functions of --within in @module. @preload is a struct preload. Returns 0
 * or a negative errno. */
int preload__set_within(void *preload, __u32 module, const struct ap_within *within);

/* Writes unwind tables for the processes. It is the function of a struct unwind_writer, whose
 * context is @preload. */
int preload__write_table(void *preload, enum unwind_map map, __u32 index, const void *value);

/* Calls @fn with each stack, innermost frame first; a stack may come twice. Frames have module
 * numbers of preload__take_modules() and preload__announce(). Returns 0, a negative errno, or
 * @fn's result. *@has_python: stacks have frames of Python. */
int preload__read_stacks(const struct preload *preload, preload_stack_fn fn, void *context,
			 bool *has_python);

/* Calls @fn with the names of each frame of Python in these stacks; they may come twice. To be
 * called behind preload__read_stacks(), since the names are stored before the stack. */
int preload__read_python(const struct preload *preload, preload_python_fn fn, void *context);

/* Calls @fn with each thread's counters by stack and function. key.process is the index of the
 * program plus 1. */
int preload__read_counts(const struct preload *preload, preload_count_fn fn, void *context);

/* With --live: what became of the blocks of one key, in the form of the programs of bpf/. */
struct preload_record {
	struct ap_count_key
		/* All 0 if the thread that counts under the record was killed before it wrote the
		 * key. */
		key;
	struct ap_blocks blocks;    /* has no estimates; its histograms are @more */
	struct ap_histograms *more; /* buckets for which the record itself has no room, or NULL */
};

struct preload_live {
	struct preload_record *records; /* indexed by record number minus 1 */
	size_t n_records;
	__u64 max_bytes;   /* the most bytes that were live in all processes together */
	__u64 generation;  /* the last generation of the peak */
	__u32 epoch_shift; /* log2 of the present length of an epoch in ns */
	__u64 read_bytes;  /* size of the shared memory that has the records, in bytes */
};

/* Reads all records. The caller frees *@out by preload_live__free(). */
int preload__read_live(const struct preload *preload, struct preload_live *out);

void preload_live__free(struct preload_live *live);

typedef int (*preload_block_fn)(void *context, const struct ap_block_key *key,
				const struct ap_block *block);
typedef int (*preload_lifetime_fn)(void *context, const struct ap_lifetime_key *key,
				   const struct ap_lifetime *lifetime);

/* Calls @fn with each live block; its space is the index of the program plus 1. *@read_bytes, if
 * not NULL, is the size of the shared memory that has the blocks. */
int preload__read_blocks(const struct preload *preload, preload_block_fn fn, void *context,
			 __u64 *read_bytes);

/* Copies the program with the number @number, from 0. Returns 0, -ENOENT or -EIO. */
int preload__read_program(const struct preload *preload, __u32 number, struct inside_program *out);

/* With events: calls @fn with the events of programs, those of each program in the order in which
 * they happened; @program is the program's index. A nonzero result ends the reading and is returned
 * to the caller. */
typedef int (*preload_event_fn)(void *context, __u32 program, const struct inside_event *event);

struct preload_events;

/* Returns NULL if there is no memory. @preload must outlive it. */
struct preload_events *preload_events__new(const struct preload *preload, preload_event_fn fn,
					   void *context);
void preload_events__free(struct preload_events *events);

/* Finds new programs. Stores the number of all with a complete entry. Returns 0, -ENOMEM or -EIO. */
int preload_events__look(struct preload_events *events, size_t *n_programs);
/* Reads for about @most_ns. Stores how many events there were. Returns 0 or a negative errno. */
int preload_events__read(struct preload_events *events, __u64 most_ns, size_t *n);
/* Reads all events of the program with the index @program, which has none from now on: events that
 * have a number and are not complete are lost. @runs: the program may be completing some, which are
 * waited for a moment. */
int preload_events__finish(struct preload_events *events, __u32 program, bool runs);
/* Returns how many events are lost, of those that were read. */
__u64 preload_events__lost(const struct preload_events *events);

/* Reads what the record with the number @record counts. Returns false if that is not known. */
bool preload__read_record_key(const struct preload *preload, __u32 record,
			      struct inside_record_key *out);
/* Calls @fn with the stack that @key refers to, as preload__read_stacks() does. */
int preload__read_stack(const struct preload *preload, const struct inside_record_key *key,
			preload_stack_fn fn, void *context);

/* Calls @fn with each thread's counters of ended blocks. */
int preload__read_lifetimes(const struct preload *preload, preload_lifetime_fn fn, void *context);

/* Returns one or two words for messages. */
const char *preload__refusal_name(enum inside_refusal reason);

#endif
