/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PRELOAD_ENGINE_INTERNAL_H
#define ALLOCPROF_PRELOAD_ENGINE_INTERNAL_H

#include "engine.h"
#include "gaps.h"
#include "hash_table.h"
#include "preload.h"
#include "preload_attach.h"
#include "profile_totals.h"

struct collector;
struct runtimes;
struct error;
struct live_collector;
struct preload_within;
struct probed_file;

/* Counters of which a part is in the profile, or was forgotten. */
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

/* A file of the command that defines an allocator. */
struct allocator_file {
	char *path;
	char build_id[129];
};

/* Regions of the program; names are owned. */
struct engine_regions {
	struct region *list;
	size_t n, room;
	__u64 n_unnumbered, n_unnamed; /* beginnings that are not counted */
};

void engine_regions__release(struct engine_regions *regions);

struct preload_engine {
	struct engine engine; /* first */
	struct session_options options;
	const struct target *target;
	struct profile *profile; /* the session's */
	struct engine_others others;
	struct preload *preload;
	struct preload_attach *attached; /* to a running process, else NULL */
	bool is_entered;		 /* its words lead to the library */
	struct collector *collector;	 /* with stacks or --within, else NULL */
	struct preload_within *within;	 /* of --within, else NULL */
	struct live_collector *live;	 /* with live, else NULL */
	struct runtimes *runtimes;
	struct parser *parser; /* for files that are looked at in this thread */
	__u32 sample_unit_shift;
	char **environment;	/* the command's */
	bool is_open, was_open; /* the gate */
	/* Why the library cannot be preloaded into the command itself, enum inside_refusal; -1: it can, as far as is known. */
	int command_refusal;
	bool is_command_by_other; /* another engine measures it */
	char *command;		  /* its path, for messages */
	__u64 stop_limit_ns;
	bool has_executed; /* the process that was attached to: another program */
	struct preload_attached entered, left; /* all 0: not yet, or the process had ended */
	struct engine_regions regions;
	struct allocator_file *files;
	size_t n_files, files_room;
	enum program_state *programs; /* of which the collectors know */
	size_t n_programs, programs_room;
	/* With live; of the last reading. */
	__u32 epoch_shift;
	__u64 generation, peak_bytes;
	__u64 n_calls; /* of all records */
	struct live_memory memory;
	/* What was counted until the last cut, and until the one that was forgotten; of this no lists. */
	struct preload_results at_cut, forgotten;
	__u64 events_before;	     /* those that were forgotten before the last time */
	__u64 n_forgotten_processes; /* that had ended by then */
	struct moved_counts moved;
	__u64 cut_ns;
	__u64 n_unsettled;	  /* entries that were waited for, and were not completed */
	bool is_command_given_up; /* the command was waited for, and did not begin */
	bool is_snapshot;
	/* After finish(). */
	struct preload_results counted;
	__u64 processes, processes_left;
	__u64 processes_of_other; /* that began when another engine had taken their parent over */
};

static inline struct preload_engine *preload_engine__of(const struct engine *engine)
{
	return (struct preload_engine *)engine;
}

/* preload_engine.c: processes that another engine measures. Answers those that wait to be handed over. */
int preload_engine__take_refused(struct preload_engine *engine);
/* From now on none is handed over, and those that wait get this answer. */
int preload_engine__take_no_more(struct preload_engine *engine);
/* Whether the command @argv has a malloc of its own, and another engine takes it over. */
bool preload_engine__hands_over_malloc(struct preload_engine *engine, char *const argv[]);
void preload_engine__hand_over_command(struct preload_engine *engine);
/* Whether another engine follows the process of the @program-th program. */
bool preload_engine__is_followed_by_other(const struct preload_engine *engine, size_t program,
					  struct followed_by_other *out);
/* Whether the process runs, and is one that counts here: its number is that of its own PID namespace. */
bool preload_engine__runs(const struct preload_engine *engine, __u32 pid);

/* preload_settle.c: as preload__read(), but waits for processes that are writing entries: a thread that makes its first
 * call as the gate is closed has counted nothing, and nothing is missing when it has written its entry. The command that is
 * still in its dynamic linker is waited for, too. It waits for seconds at the most, and once for each entry that nobody
 * completes and for a command that does not begin; meanwhile tables and answers go on. */
int preload_engine__read(struct preload_engine *engine, struct preload_results *out);
/* Whether any program was in the process. *@begins: or is about to be, and its entry is not complete. */
bool preload_engine__has_entry(const struct preload_results *counted, __u32 pid, bool *begins);

/* Looks at the command's files: which have allocators, and with stacks, has their tables compiled. */
int preload_engine__prepare_command(struct preload_engine *engine, char *const argv[],
				    struct error *error);

/* The same for the files that the running process has mapped, this library among them. */
int preload_engine__prepare_process(struct preload_engine *engine, struct error *error);

/* Passes the files that processes have met on to the collector. */
int preload_engine__take_modules(struct preload_engine *engine);

/* Passes programs that have begun, and those that said that they end, on to the collectors. -ENOMEM. */
int preload_engine__take_programs(struct preload_engine *engine,
				  const struct preload_results *counted);
/* After the run: likewise, and ends those that run no more. */
int preload_engine__end_programs(struct preload_engine *engine);

/* Blocks of one process that may be live, where no option says how many: slots of its tables. */
#define PRELOAD_MAX_LIVE_SHIFT 26
#define PRELOAD_MAX_BLOCKS     ((2ULL << PRELOAD_MAX_LIVE_SHIFT) - (1 << INSIDE_FIRST_BLOCKS))

/* With live. */
/* 0: no limit. */
__u64 preload_engine__max_blocks(const struct session_options *options);
__u32 preload_engine__max_records(const struct session_options *options);
int preload_engine__open_live(struct preload_engine *engine);
int preload_engine__start_live(struct preload_engine *engine, __u64 now_ns);
/* Adds to the time line when that is due; milliseconds until then, at most @most. */
int preload_engine__attend_live(struct preload_engine *engine);
int preload_engine__live_timeout_ms(const struct preload_engine *engine, int most);
/* What is live in processes that run. */
__u64 preload_engine__live_bytes(const struct preload_engine *engine,
				 const struct preload_results *counted);
/* The run has ended, and its programs: the last sample; then all blocks, when the stacks are known. */
int preload_engine__stop_live(struct preload_engine *engine);
int preload_engine__collect_live(struct preload_engine *engine);
void preload_engine__add_live(const struct preload_engine *engine);

/* preload_engine_regions.c: the marks of a file that will be used, and of the files named with --expect. -ENOMEM. */
int preload_engine__note_regions(struct preload_engine *engine, int fd, const char *path);
int preload_engine__note_expected_regions(struct preload_engine *engine);
/* Reads the counts of the regions. */
int preload_engine__collect_regions(struct preload_engine *engine);
int preload_engine__add_regions(const struct preload_engine *engine, __u64 gaps[GAP_NUMBERS]);

/* Operations of engine.h. */
int preload_engine__cut(struct engine *base, __u64 *cut_ns);
void preload_engine__become_snapshot(struct engine *base);
void preload_engine__forget(struct engine *base);
void preload_engine__lose_forgotten(struct engine *base);
int preload_engine__reset(struct engine *base, __u64 *cut_ns);
/* In the process of a snapshot: what preload_engine__collect() does at the end. -EAGAIN. */
int preload_engine__collect_snapshot(struct preload_engine *engine);
void preload_engine__leave_out_forgotten(struct preload_engine *engine);
/* Reads the stacks, and adds the threads' counters to the profile, as far as they are not there yet. */
int preload_engine__move_counts(struct preload_engine *engine, bool goes_on);
int preload_engine__read_stacks(struct preload_engine *engine);
__u64 preload_engine__count_processes(const struct preload_results *counted);
/* When the recording ended, or the snapshot was taken. */
__u64 preload_engine__end_ns(const struct preload_engine *engine);

/* Reads everything. The gate is closed. */
int preload_engine__collect(struct preload_engine *engine);

int preload_engine__results(struct engine *base);

/* The function of --within: in which files it is, and its code there. */

struct ap_within;
struct parser;

/* @text is that of the option; @parser reads the files, and stays the caller's. -EINVAL with *@error set, -ENOMEM. */
int preload_within__new(const char *text, struct parser *parser, struct preload_within **out,
			struct error *error);
/* Accepts NULL. */
void preload_within__free(struct preload_within *within);

/* Looks into the file of the function, if that is known before the command @program runs; calls @use with it. -ESRCH: no
 * such file or function, -ENOTUNIQ: several, ... */
int preload_within__prepare(struct preload_within *within, const char *program,
			    void (*use)(int fd, void *context), void *context, struct error *error);

/* The function's code in the file @fd, which processes map; NULL: none. Valid as long as @within. */
const struct ap_within *preload_within__code(struct preload_within *within, int fd,
					     const char *path);

/* Why no call was beneath the function, a clause. */
const char *preload_within__why_none(const struct preload_within *within);

#endif
