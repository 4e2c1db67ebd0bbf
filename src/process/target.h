/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command that is measured: started held back, let go once the probes stand, waited for. */
#ifndef ALLOCPROF_TARGET_H
#define ALLOCPROF_TARGET_H

#include <linux/types.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct error;

struct target {
	pid_t pid;
	int pidfd;     /* readable once the process has ended */
	int go_fd;     /* closed unwritten: the child leaves without running anything */
	int exec_fd;   /* the child's errno where exec fails */
	bool launched; /* our child, so that we wait for it */
	bool waited;
	int wait_status;
	struct rusage usage;	/* of the child and of what it waited for itself */
	__u64 start_ns, end_ns; /* CLOCK_MONOTONIC, from the exec to the end */
};

/* What the launched command gets back as we found it. */
struct target_inheritance {
	sigset_t signal_mask;
	struct rlimit files;
};

/*
 * Forks the child that will become @argv (searched in PATH as execvp(3) does) and holds it back
 * before its exec.
 */
int target__hold(struct target *target, char *const argv[],
		 const struct target_inheritance *inheritance, struct error *error);

/* Lets the command go. -ENOENT or -EACCES (or what else execvp(3) says) where it cannot be run. */
int target__go(struct target *target, const char *command, struct error *error);

/* A process that runs already. -ESRCH where there is none, -EINVAL for a kernel thread. */
int target__attach(struct target *target, pid_t pid, struct error *error);

/* Whether the process has not ended by now. */
bool target__is_running(const struct target *target);

/* Whether it has ended; collects status and usage of a launched one when it has. */
bool target__has_ended(struct target *target);

/* As a shell reports it: exit code, or 128 + signal. Of a launched target that has ended. */
int target__exit_status(const struct target *target);

/* Closes what is open. A child still held back leaves; one that runs goes on. */
void target__close(struct target *target);

#endif
