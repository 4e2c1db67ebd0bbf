/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs code that reads what others have written, such as ELF files, in a process that has no privileges, no files but
 * those that it is handed, and few system calls (confinement.h). It answers one request after the other. One that
 * crashes, hangs or sends an invalid reply is ended; the next request starts another.
 *
 * In the worker, open(2) asks the parent, which opens regular ELF files for reading and nothing else. The code that
 * runs there must not start threads, and finds memory as it was at the fork.
 */
#ifndef ALLOCPROF_WORKER_H
#define ALLOCPROF_WORKER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

struct worker;

/* A request, in the worker. */
struct worker_call {
	void *context; /* worker_options.context, as it was at the fork */
	struct wire_reader request;
	const int *fds; /* closed after the call */
	size_t n_fds;
	struct wire_writer reply;
};

struct worker_options {
	const char *name; /* the process's, 15 bytes at most */
	/* Runs in the worker. 0, with the reply written, or a negative errno but -EAGAIN, which worker__call() returns. */
	int (*serve)(struct worker_call *call);
	/* Runs in the worker before its first request, when it has its new user but can still load libraries; or NULL. */
	void (*prepare)(void *context);
	/* Runs in the parent, for worker_call__ask(): a descriptor, which is closed afterwards, or a negative errno; or
	 * NULL. The question is not to be trusted. */
	int (*answer)(void *context, struct wire_reader *question);
	/* Runs in the parent, for worker_call__note(); or NULL. */
	void (*note)(void *context, __u64 number);
	void *context;
	bool opens_nothing;	 /* open(2) fails in the worker: it reads what it is handed */
	unsigned int timeout_ms; /* of a request, wall clock; 0: 60 s */
	size_t memory_bytes;	 /* beyond what is inherited; 0: 1 GiB */
	size_t max_reply;	 /* bytes; 0: 256 MiB */
};

/* NULL on ENOMEM. Starts no process yet. @options is copied; what it borrows must outlive the worker. */
struct worker *worker__new(const struct worker_options *options);
/* Ends the process. NULL is fine. */
void worker__free(struct worker *worker);

/*
 * Starts the process unless it runs: by a fork, so best before there are threads, and from a thread that lives as long
 * as the worker. 0 or a negative errno, -EPERM if it could not be confined.
 */
int worker__start(struct worker *worker);

/* Sends a request with @n_fds descriptors, which stay the caller's. The worker is started if it does not run, and has
 * no other request. 0, -ENOMEM, an error of worker__start(), or -ETIMEDOUT: it did not take the request, and was ended. */
int worker__send(struct worker *worker, const struct wire_writer *request, const int *fds,
		 size_t n_fds);

/* To wait for with poll(2); -1 if the process does not run. */
int worker__fd(const struct worker *worker);

/*
 * Handles what has come from the worker, without waiting. -EAGAIN: there is no reply yet. 0 with the reply, which is
 * valid until the next request; or a negative errno: that of serve(), or, after which the process has been ended,
 * -ECHILD (it crashed), -ETIMEDOUT, -EPROTO (it sent an invalid reply), -EMSGSIZE.
 */
int worker__receive(struct worker *worker, struct wire_reader *reply);

/* Sends a request and waits for the reply: as the two above. */
int worker__call(struct worker *worker, const struct wire_writer *request, const int *fds,
		 size_t n_fds, struct wire_reader *reply);

/* For a reply that the caller finds wrong: ends the process. -EPROTO. */
int worker__refuse(struct worker *worker);

/* Whether worker__receive() returned @err since the process was ended, and not as an answer. */
bool worker__has_failed(const struct worker *worker);

/* Why the process was ended last, to follow "the process that read it"; "" if it was not. */
const char *worker__problem(const struct worker *worker);

/* In the parent: opens the file at @path if a worker may read it, a regular one that begins as ELF files do. A descriptor or
 * a negative errno. */
int worker__open_file(const char *path);
/* In the parent: @fd, which may be anything, if a worker may read it; else closes it. @fd or a negative errno. */
int worker__only_elf(int fd);

/* In the worker: a descriptor from the parent's answer(), or a negative errno. */
int worker_call__ask(const struct wire_writer *question);
/* In the worker: calls the parent's note(). */
void worker_call__note(__u64 number);

#endif
