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
struct target_inheritance;

/* The measured command: a child that is held back before its exec until the probes are set. */

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

/* Attaches to a running process. Fails with -ESRCH if there is none, -EINVAL for a kernel thread. */
int target__attach(struct target *target, pid_t pid, struct error *error);

/* Returns whether the target is still running. */
bool target__is_running(const struct target *target);

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

/* A process that was already running when its recording began, as /proc describes it. A field that cannot be read is NULL or 0. */
struct attached {
	/* Its arguments, quoted for a shell, or the title that it has given itself. */
	char *command;
	__u64 rss_bytes; /* resident memory */
};

void attached__read(pid_t pid, struct attached *out);
void attached__release(struct attached *attached);

/* Sets *@lines, which the caller frees, to a line "PID COMMAND" for each child of the process, or
 * to NULL if there is none or /proc cannot be read. Fails with -ENOMEM. */
int attached__list_children(pid_t pid, char **lines);

#endif
