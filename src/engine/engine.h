/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An engine observes the calls of a session's target and feeds them into the session's profile.
 * Several engines can be active in one session; each process is then measured by one of them.
 *
 * open → launch or attach → start → read, gate, cut … while the target runs → finish → results,
 * modules, names → close. Functions return 0 or a negative errno, and with an error set *@error,
 * unless stated otherwise. All run in one thread.
 */
#ifndef ALLOCPROF_ENGINE_H
#define ALLOCPROF_ENGINE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "session_options.h"

struct error;
struct inside_redirections;
struct probed_file;
struct profile;
struct reach_process;
struct symbols;
struct target;

/* A process that is about to execute a program that its engine cannot measure, in the process
 * itself or in a child that it makes. */
struct handover {
	pid_t pid; /* 0: there is no process yet, another engine only has to prepare */
	/* The engine's number of the program that runs in it now; 0: it is only about to execute
	 * one. */
	__u32 program;
	const char *path; /* path of the program, as the process names it */
	/* The file with INSIDE_BEGINS, by which processes report that their engine counts. */
	const char *library;
};

/* A process that two engines know. */
struct followed_by_other {
	__u32 process; /* its profile id */
	/* Its engine had counted it when it was handed over; else it began afterwards. */
	bool is_known;
};

/* Functions that a session offers to an engine that cannot measure all processes. */
struct engine_others {
	/* Hands the process over. Returns 0: another engine counts the calls of the program that
	 * the process executes next, from the exec until the process reports that its own engine
	 * counts (INSIDE_BEGINS). -EPERM, -EOPNOTSUPP: no engine of this session does so. */
	int (*take)(void *context, const struct handover *process);
	/* Returns whether another engine follows the process with that number. */
	bool (*find)(void *context, __u32 program, struct followed_by_other *out);
	void *context;
};

struct engine_options {
	const struct session_options
		/* Copied, but the data to which it points must outlive the engine. */
		*session;
	struct profile *profile;     /* owned by the session */
	const struct target *target; /* belongs to the session, too; not started yet */
	/* The session's other engines. If there are none, the functions are NULL. */
	struct engine_others others;
	/* This engine measures only the processes that take_over() names, and what these execute. */
	bool is_fallback;
};

/* Must be the first member of each engine's struct. */
struct engine {
	const struct engine_operations *operations;
};

struct engine_operations {
	const char *name; /* as --engine takes it */
	/* Prepares for any target. Fails with -EPERM, -ENOSYS or another errno if this engine does
	 * not work here. */
	int (*open)(const struct engine_options *options, struct engine **out, struct error *error);
	/* Removes whatever is left in the kernel and in the target, which goes on. */
	void (*close)(struct engine *engine);

	/* Between a call with true and one with false, the child that this process forks is the
	 * command, to be measured from its first instruction. */
	int (*await_child)(struct engine *engine, bool awaits, struct error *error);
	/* Returns the environment with which the command @argv is executed in *@out; it belongs to
	 * the engine. NULL: this process's. */
	int (*environment)(struct engine *engine, char *const argv[], char ***out);
	/* Prepares for the command @argv, whose child is held before its exec. Fails with the
	 * errors of execvp(3), such as -ENOENT and -EACCES. */
	int (*launch)(struct engine *engine, char *const argv[], struct error *error);
	/* Implement struct engine_others, in an engine that is opened as the fallback; else NULL. */
	int (*take_over)(struct engine *engine, const struct handover *process,
			 struct error *error);
	bool (*find_program)(const struct engine *engine, __u32 program,
			     struct followed_by_other *out);
	/* Prepares for the running target. */
	int (*attach)(struct engine *engine, struct error *error);
	/* Does the same for its processes from number @from on, which have been found since. */
	int (*attach_more)(struct engine *engine, size_t from, struct error *error);
	/* After attach(): lists the functions whose calls the engine has redirected in the target's process
	 * number @index. NULL: it redirects none. */
	int (*list_redirections)(const struct engine *engine, size_t index,
				 struct inside_redirections *out);
	/* Begins the measurement, at @now_ns of CLOCK_MONOTONIC, with the gate closed. */
	int (*start)(struct engine *engine, __u64 now_ns, struct error *error);

	/* Adds descriptors to @epoll_fd that are readable when read() has work. */
	int (*watch)(const struct engine *engine, int epoll_fd);
	/* Handles all events so far. To be called when a descriptor is readable, and at least every
	 * tenth of a second. An error ends the session; there is no *@error. */
	int (*read)(struct engine *engine);
	/* Returns the milliseconds until read() must be called again, at most @most. */
	int (*timeout_ms)(const struct engine *engine, int most);
	/* Opens or closes the run's gate (docs/windows.md). No call counts after it was closed. */
	int (*open_gate)(struct engine *engine, bool open);
	/* Adds the calls, the lost calls and the live bytes so far to @progress. */
	void (*progress)(const struct engine *engine, struct session_progress *progress);

	/*
	 * With stacks, for a profile of the run so far: cut() moves all counts until *@cut_ns
	 * (CLOCK_MONOTONIC) into the profile, or prepares for that. In a forked child,
	 * become_snapshot() makes the engine's copy one whose target ended at the cut; then
	 * finish() returns -EAGAIN if the cut has to be tried again. forget() makes all counts
	 * begin at the last cut. lose_forgotten() turns the calls that the last forget() removed
	 * into lost ones.
	 */
	int (*cut)(struct engine *engine, __u64 *cut_ns);
	void (*become_snapshot)(struct engine *engine);
	void (*forget)(struct engine *engine);
	void (*lose_forgotten)(struct engine *engine);
	/* Makes all counts begin now, at *@cut_ns; also without stacks. */
	int (*reset)(struct engine *engine, __u64 *cut_ns);

	/* Lets no call count from now on, before finish(). There is no *@error. */
	int (*stop)(struct engine *engine);
	/* With --live, while the process @pid stands still: adds its live blocks to @out, with the
	 * number of their address space, and what memory of allocprof's is there. Fails with -ESRCH
	 * if the engine does not measure the process. There is no *@error. */
	int (*read_blocks)(struct engine *engine, pid_t pid, struct reach_process *out);
	/* To be called when the target has ended, or the session ends before it: stops counting,
	 * removes the engine from the target, and moves the remaining counts into the profile. */
	int (*finish)(struct engine *engine);
	/* To be called after finish(): adds what was counted, and what is missing, to the profile.
	 * Fails with -ENOMEM. */
	int (*results)(struct engine *engine);
	/* Opens the files whose symbols name the profile's frames; without @files only the vDSO.
	 * Fails with -ENOMEM. */
	int (*add_modules)(const struct engine *engine, struct symbols *symbols, bool files);
	/* Names frames of JIT code, which no module names. Fails with -ENOMEM. */
	int (*name_frames)(struct engine *engine);
	/* Writes, one per line, the paths of files that occur in stacks and have no unwind table. */
	void (*list_without_table)(const struct engine *engine, FILE *to);

	/* Stores the file number @index of those with functions that are measured, or should be.
	 * Returns false if there are fewer. The list grows while the target runs. Strings belong
	 * to the engine, and are valid until the next read() or finish(). */
	bool (*file)(const struct engine *engine, size_t index, struct probed_file *out);
	/* Returns the number of calls, from outside of the file, of its unknown function number
	 * @index. */
	__u64 (*unknown_calls)(const struct engine *engine, size_t file, size_t index);
};

#endif
