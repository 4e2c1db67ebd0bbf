/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Launches the measured command, or attaches to a process that runs already. */
#ifndef ALLOCPROF_TARGET_H
#define ALLOCPROF_TARGET_H

#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct error;
struct isolation;
struct process_set;
struct target_inheritance;

/* The measured command: a child that is held back before its exec until the probes are set. */

/* A process that is measured beside the target's. */
struct fellow {
	pid_t pid;
	int pidfd;
};

struct target {
	pid_t pid;
	int pidfd;     /* readable when the process has ended */
	int go_fd;     /* if it closes without data, the child exits without exec */
	int exec_fd;   /* receives the child's errno if exec fails */
	bool launched; /* the target is a child of this process, which waits for it */
	bool waited;
	int wait_status;
	struct rusage usage; /* of the child and of its own reaped children */
	__u64 start_ns;	     /* start of the recording, CLOCK_MONOTONIC; the session sets it */
	__u64 end_ns;	     /* end of the target, CLOCK_MONOTONIC; 0: it has not been seen */
	/* Processes that are measured beside @pid, all of which ran before (-p A,B, --name, --cgroup).
	 * The target has ended when all have. */
	struct fellow *fellows;
	size_t n_fellows, fellows_room;
	/* Processes that start later may be measured, too, so the target does not end with these. */
	bool is_open;
	pid_t ends_with; /* the process with whose end the recording ends; 0: there are several */
	/* With --isolate: the private copies of files that the command will see. Files can be
	 * added until target__go(). NULL without --isolate. */
	struct isolation *isolation;
};

/* Forks the child that will run @argv (searched as by execvp(3)), and holds it before its exec. */
int target__hold(struct target *target, char *const argv[],
		 const struct target_inheritance *inheritance, struct error *error);

/* Lets the child exec. Fails with -ENOENT, -EACCES or another error of execvp(3) if that fails;
 * -ENOTRECOVERABLE if it cannot be isolated. */
int target__go(struct target *target, const char *command, struct error *error);

/* Attaches to running processes. Fails with -ESRCH if there is none, -EINVAL for a kernel thread. */
int target__attach(struct target *target, const struct process_set *set, struct error *error);

/* Adds those processes of @set that it has not, and that still run. Returns 0 or -ENOMEM. */
int target__add(struct target *target, const struct process_set *set);

/* Return the number of the processes that were there at the beginning, and the process @i of these. */
size_t target__n_processes(const struct target *target);
pid_t target__process(const struct target *target, size_t i);
/* Returns whether process @pid is one of them. */
bool target__has(const struct target *target, pid_t pid);

/* Returns whether any of these is still running. */
bool target__is_running(const struct target *target);
/* Returns how many of these run; one that was launched until it has been waited for. */
size_t target__n_left(const struct target *target);

/* Returns whether the target has ended. If so, collects the status and resource usage of a
 * launched one. */
bool target__has_ended(struct target *target);

/* Returns the exit code, or 128 + signal, as a shell does. Only for a launched target that has
 * ended. */
int target__exit_status(const struct target *target);
/* Returns the signal that ended a launched target; 0: none. */
int target__exit_signal(const struct target *target);

/* Closes the descriptors. A child that is still held exits; a running one goes on. */
void target__close(struct target *target);

/* Processes that were already running when their recording began, as /proc describes them. A field that cannot be read is NULL or 0. */
struct attached {
	/* The arguments of the one process, quoted for a shell, or the title that it has given itself; of
	 * several the names of their programs, with the number of each. */
	char *command;
	__u64 rss_bytes; /* resident memory, the sum of all */
	char *children;	 /* as attached__list_children() has it */
};

/* Without @arguments, of command lines only the names of programs. */
void attached__read(const struct target *target, bool arguments, struct attached *out);
void attached__release(struct attached *attached);

/* Sets *@lines, which the caller frees, to a line "PID COMMAND" for each child of the processes that
 * is none of them, or to NULL if there is none or /proc cannot be read. Fails with -ENOMEM. */
int attached__list_children(const struct target *target, bool arguments, char **lines);

#endif
