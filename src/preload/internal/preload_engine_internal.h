/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PRELOAD_ENGINE_INTERNAL_H
#define ALLOCPROF_PRELOAD_ENGINE_INTERNAL_H

#include "engine.h"
#include "event_log.h"
#include "gaps.h"
#include "hash_table.h"
#include "preload.h"
#include "preload_attach.h"
#include "profile_totals.h"

struct collector;
struct definitions;
struct runtimes;
struct error;
struct live_collector;
struct preload_within;
struct probed_file;

/* Threads' counters that are in the profile already or were forgotten, in part or in full. */
struct moved_counts {
	struct hash_table index;
	struct moved_count *counts;
	size_t n, room;
};

void moved_counts__release(struct moved_counts *moved);

enum program_state {
	PROGRAM_UNKNOWN,
	PROGRAM_RUNS,
	PROGRAM_ENDED,
	PROGRAM_FOLLOWED_BY_OTHER, /* another engine follows its process */
};

/* A file of the command that defines an allocator. Both strings are the struct's own. */
struct allocator_file {
	char *path;
	char build_id[129];
};

/* The program's regions. The struct owns their names. */
struct engine_regions {
	struct region *list;
	size_t n, room;
	/* Beginnings of regions that are not counted, for two reasons. */
	__u64 n_unnumbered, n_unnamed;
};

void engine_regions__release(struct engine_regions *regions);

/* A running process that is measured. */
struct attached_process {
	pid_t pid;
	struct preload_attach *attach;
	bool is_entered; /* the process's words lead to the library */
};

struct preload_engine {
	struct engine engine; /* must be the first member */
	struct session_options options;
	const struct target *target;
	struct profile *profile; /* the session's */
	struct engine_others others;
	struct preload *preload;
	struct attached_process *attached; /* the running processes that are measured */
	size_t n_attached, attached_room;
	__u64 attached_ticks; /* when the first was attached to, in the unit of proc_stat.start_ticks */
	struct collector *collector;	     /* NULL without stacks and without --within */
	struct preload_within *within;	     /* the function of --within, else NULL */
	struct live_collector *live;	     /* NULL without --live */
	struct engine_events *events;	     /* NULL without --events, and in a snapshot */
	struct event_log_results log_at_cut; /* in a snapshot */
	struct runtimes *runtimes;
	struct parser *parser; /* reads files for this thread */
	__u32 sample_unit_shift;
	char **environment;	/* environment of the command */
	bool is_open, was_open; /* the gate is open; it has been open */
	/* enum inside_refusal: why the library cannot be preloaded into the command itself; -1: as
	 * far as is known, it can. */
	int command_refusal;
	bool is_command_by_other; /* another engine measures the command */
	char *command;		  /* the command's path, for messages */
	__u64 stop_limit_ns;
	__u64 n_executed; /* attached processes that have executed another program */
	__u64 n_not_left; /* attached processes that could not be left */
	/* Sums, and the longest stop; all 0: not done yet, or the processes had ended. */
	struct preload_attached entered, left;
	struct engine_regions regions;
	struct allocator_file *files;
	size_t n_files, files_room;
	enum program_state *programs; /* states of the programs that the collectors know */
	size_t n_programs, programs_room;
	/* With --live: values of the last reading. */
	__u32 epoch_shift;
	__u64 generation, peak_bytes;
	__u64 n_calls; /* number of calls in all records that may hand out blocks */
	struct live_memory memory;
	/* The counts until the last cut, and until the cut at which everything before was forgotten.
	 * @forgotten has no lists. */
	struct preload_results at_cut, forgotten;
	__u64 events_before;	     /* events that were forgotten before the last time */
	__u64 n_forgotten_processes; /* number of forgotten processes that had ended by then */
	struct moved_counts moved;
	__u64 cut_ns;
	__u64 n_unsettled;	  /* number of entries that were waited for in vain */
	bool is_command_given_up; /* the command was waited for, but did not begin */
	bool is_snapshot;
	/* Set by finish(). */
	struct preload_results counted;
	__u64 processes, processes_left;
	/* Processes that began after another engine had taken over their parent. */
	__u64 processes_of_other;
};

/* preload_counted.c: describes what the definitions have the library count, for processes. The
 * caller frees *@out. Returns 0; -EOPNOTSUPP, with @error set, for what the library cannot count; or -ENOMEM. */
int preload_counted__make(const struct definitions *definitions, struct inside_all_counted **out,
			  struct error *error);

static inline struct preload_engine *preload_engine__of(const struct engine *engine)
{
	return (struct preload_engine *)engine;
}

/* preload_engine.c: processes that another engine measures. This function answers the processes
 * that wait to be handed over. */
int preload_engine__take_refused(struct preload_engine *engine);
/* Returns whether another engine follows the process of program number @program. */
bool preload_engine__is_followed_by_other(const struct preload_engine *engine, size_t program,
					  struct followed_by_other *out);
/* Returns whether the process @pid runs and belongs to this measurement, in whose PID namespace
 * the number is valid. */
bool preload_engine__runs(const struct preload_engine *engine, __u32 pid);

/* preload_settle.c: reads as preload__read() does, but first waits for processes that are writing
 * entries, and for the command while it is still in its dynamic linker. (A thread that makes its
 * first call when the gate is closed has counted nothing, so nothing is missing once it has
 * written its entry.) The wait lasts for seconds at most, and happens only once for an entry that
 * nobody completes, or a command that does not begin. Meanwhile processes get tables and answers. */
int preload_engine__read(struct preload_engine *engine, struct preload_results *out);
/* Returns whether a program has begun in the process @pid. *@begins: a program is about to begin
 * there, and its entry is not complete. */
bool preload_engine__has_entry(const struct preload_results *counted, __u32 pid, bool *begins);

/* Finds the allocators in the command's files and, with stacks, has the files' unwind tables
 * compiled. */
int preload_engine__prepare_command(struct preload_engine *engine, char *const argv[],
				    struct error *error);

/* Does the same for the files that the running process @pid has mapped, including this library. */
int preload_engine__prepare_process(struct preload_engine *engine, pid_t pid, struct error *error);

/* preload_engine_attach.c: lets the attached processes, and what they have forked, go on without the
 * library. Nothing need be done for those that have ended. */
void preload_engine__leave(struct preload_engine *engine);
void preload_engine__free_attached(struct preload_engine *engine);

/* Passes files that processes have mapped on to the collector. */
int preload_engine__take_modules(struct preload_engine *engine);

/* Passes programs that have begun, and programs that have reported their end, on to the
 * collectors. Fails with -ENOMEM. */
int preload_engine__take_programs(struct preload_engine *engine,
				  const struct preload_results *counted);
/* Works like preload_engine__take_programs(), but after the run: also ends the programs that do
 * not run any more. */
int preload_engine__end_programs(struct preload_engine *engine);

/* How many blocks of one process may be live if no option limits them: the slots of its tables. */
#define PRELOAD_MAX_LIVE_SHIFT 26
#define PRELOAD_MAX_BLOCKS     ((2ULL << PRELOAD_MAX_LIVE_SHIFT) - (1 << INSIDE_FIRST_BLOCKS))

/* The functions down to preload_engine__stop_live() are for --live. */
/* Returns the largest number of live blocks; 0: there is no limit. */
__u64 preload_engine__max_blocks(const struct session_options *options);
__u32 preload_engine__max_records(const struct session_options *options);
int preload_engine__open_live(struct preload_engine *engine);
int preload_engine__start_live(struct preload_engine *engine, __u64 now_ns);
/* Adds a sample to the time line when one is due. Returns the milliseconds until the next one, at
 * most @most. */
int preload_engine__attend_live(struct preload_engine *engine);
int preload_engine__read_blocks(struct engine *base, pid_t pid, struct reach_process *out);
int preload_engine__live_timeout_ms(const struct preload_engine *engine, int most);
/* Returns the number of live bytes in processes that run. */
__u64 preload_engine__live_bytes(const struct preload_engine *engine,
				 const struct preload_results *counted);
/* To be called when the run and its programs have ended. The first function takes the last sample;
 * the second reads all blocks, when the stacks are known. */
int preload_engine__stop_live(struct preload_engine *engine);
int preload_engine__collect_live(struct preload_engine *engine);
void preload_engine__add_live(const struct preload_engine *engine);

/* preload_engine_events.c: the log of --events. Its readings are like those of --live. */
int preload_engine__open_events(struct preload_engine *engine, struct error *error);
void preload_engine__close_events(struct preload_engine *engine);
int preload_engine__attend_events(struct preload_engine *engine);
int preload_engine__events_timeout_ms(const struct preload_engine *engine, int most);
/* Reads the last events of the program with the index @program. @runs: it may be completing some. */
int preload_engine__finish_program(struct preload_engine *engine, __u32 program, bool runs);
/* Logs the begin or end of a program that the collectors have been told of. */
int preload_engine__log_process(struct preload_engine *engine,
				const struct ap_process_record *record);
/* To be called when the run has ended: reads the last events of all programs. */
int preload_engine__finish_events(struct preload_engine *engine);
/* Logs the calls of the record with the number @number, whose sums are @blocks, that have not
 * returned. */
int preload_engine__log_unfinished(struct preload_engine *engine, __u32 number,
				   const struct ap_blocks *blocks);
void preload_engine__end_log(struct preload_engine *engine);
void preload_engine__log_results(const struct preload_engine *engine,
				 struct event_log_results *out);

/* preload_engine_regions.c: notes the regions that a file marks which will be used, and those of
 * files named with --expect. Fails with -ENOMEM. */
int preload_engine__note_regions(struct preload_engine *engine, int fd, const char *path);
int preload_engine__note_expected_regions(struct preload_engine *engine);
/* Adds the regions' counts to the profile. */
int preload_engine__collect_regions(struct preload_engine *engine);
int preload_engine__add_regions(const struct preload_engine *engine, __u64 gaps[GAP_NUMBERS]);

/* Operations of the engine (engine.h). */
int preload_engine__attach(struct engine *base, struct error *error);
int preload_engine__attach_more(struct engine *base, size_t from, struct error *error);
int preload_engine__list_redirections(const struct engine *base, size_t index,
				      struct inside_redirections *out);
int preload_engine__cut(struct engine *base, __u64 *cut_ns);
void preload_engine__become_snapshot(struct engine *base);
void preload_engine__forget(struct engine *base);
void preload_engine__lose_forgotten(struct engine *base);
int preload_engine__reset(struct engine *base, __u64 *cut_ns);
/* To be called in the process of a snapshot: does what preload_engine__collect() does at the end.
 * Fails with -EAGAIN if calls came meanwhile. */

/* Returns a number that another reading has only if nothing was counted in between. */
__u64 preload_engine__sum_stats(const struct preload_results *counted);
int preload_engine__collect_snapshot(struct preload_engine *engine);
void preload_engine__leave_out_forgotten(struct preload_engine *engine);
/* Reads the stacks, and adds the part of the threads' counters to the profile that is not there
 * yet. @goes_on: another reading will follow. */
int preload_engine__move_counts(struct preload_engine *engine, bool goes_on);
int preload_engine__read_stacks(struct preload_engine *engine);
/* Reads one stack. */
int preload_engine__read_stack(struct preload_engine *engine, const struct inside_record_key *key);
__u64 preload_engine__count_processes(const struct preload_results *counted);
/* Returns the time at which the recording ended, or the snapshot was taken, in ns of
 * CLOCK_MONOTONIC. */
__u64 preload_engine__end_ns(const struct preload_engine *engine);

/* Reads everything that was counted, after the gate was closed. */
int preload_engine__collect(struct preload_engine *engine);
/* Adds the programs that were not counted to the profile. */
int preload_engine__collect_refused(struct preload_engine *engine);

/* Operations that both engines have which read shared memory; see struct engine_operations. */
int preload_engine__results(struct engine *base);
int preload_engine__add_modules(const struct engine *base, struct symbols *symbols, bool files);

/* The function of --within: finds its code in the files that processes map. */

struct ap_within;
struct parser;

/* @text is the option's argument. @parser reads the files, and stays the caller's. Fails with
 * -EINVAL with *@error set, -ENOMEM. */
int preload_within__new(const char *text, struct parser *parser, struct preload_within **out,
			struct error *error);
/* Accepts NULL. */
void preload_within__free(struct preload_within *within);

/* Looks for the function in the file that has it, if that is known before the command @program
 * runs, and calls @use with the file. Fails with -ESRCH if there is no such file or function;
 * -ENOTUNIQ if there are several functions; or another negative errno. */
int preload_within__prepare(struct preload_within *within, const char *program,
			    void (*use)(int fd, void *context), void *context, struct error *error);

/* Returns the function's code in the file @fd, which processes map; NULL: it is not in there. The
 * result is valid as long as @within. */
const struct ap_within *preload_within__code(struct preload_within *within, int fd,
					     const char *path);

/* Returns a clause that says why no call was beneath the function. */
const char *preload_within__why_none(const struct preload_within *within);

#endif
