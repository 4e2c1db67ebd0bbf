/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs code that reads data which others have written, such as ELF files, in a process that has no
 * privileges, no files but those that it is handed, and few system calls (confinement.h). The
 * process answers one request after the other. If it crashes, hangs or sends an invalid reply, it
 * is ended, and the next request starts another.
 *
 * In the worker, open(2) asks the parent, which opens regular ELF files for reading and nothing
 * else. The code that runs there must not start threads, and finds memory as it was at the fork.
 */
#ifndef ALLOCPROF_WORKER_H
#define ALLOCPROF_WORKER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire.h"

struct worker;

/* A request as the worker gets it. */
struct worker_call {
	void *context; /* worker_options.context as it was at the fork */
	struct wire_reader request;
	const int *fds; /* descriptors that came with the request; closed after the call */
	size_t n_fds;
	struct wire_writer reply;
};

struct worker_options {
	const char *name; /* name of the process, at most 15 bytes */
	/* Runs in the worker for each request. Returns 0 with the reply written, or a negative
	 * errno other than -EAGAIN, which worker__call() returns. */
	int (*serve)(struct worker_call *call);
	/* Runs in the worker before its first request, when it has its new user but can still load
	 * libraries; may be NULL. */
	void (*prepare)(void *context);
	/* Runs in the parent for worker_call__ask(). Returns a descriptor, which is closed
	 * afterwards, or a negative errno. The question must not be trusted. May be NULL. */
	int (*answer)(void *context, struct wire_reader *question);
	/* Runs in the parent for worker_call__note(); may be NULL. */
	void (*note)(void *context, __u64 number);
	void *context;
	/* open(2) fails in the worker, which reads only the files that it is handed. */
	bool opens_nothing;
	unsigned int timeout_ms; /* limit of a request, by the wall clock; 0: 60 s */
	size_t memory_bytes;	 /* limit of memory beyond the inherited memory; 0: 1 GiB */
	size_t max_reply;	 /* limit of a reply, in bytes; 0: 256 MiB */
};

/* Makes a worker without starting its process. @options is copied; what its pointers refer to must
 * outlive the worker. Returns NULL on ENOMEM. */
struct worker *worker__new(const struct worker_options *options);
/* Ends the process and frees the worker, which may be NULL. */
void worker__free(struct worker *worker);

/*
 * Starts the process unless it runs. It is forked, so best before there are threads, and from a
 * thread that lives as long as the worker. Returns 0 or a negative errno: -EPERM if the process
 * could not be confined.
 */
int worker__start(struct worker *worker);

/* Sends a request with @n_fds descriptors, which the caller keeps. Starts the worker if it does
 * not run. The worker must have no other request. Returns 0, -ENOMEM, an error of worker__start(),
 * or -ETIMEDOUT if the worker did not receive the request and was ended. */
int worker__send(struct worker *worker, const struct wire_writer *request, const int *fds,
		 size_t n_fds);

/* Returns a descriptor that becomes readable for worker__receive(), for poll(2); -1 if the process
 * does not run. */
int worker__fd(const struct worker *worker);

/*
 * Handles packets that have come from the worker, without waiting. Returns -EAGAIN if there is no
 * reply yet; 0 with the reply, which is valid until the next request; or a negative errno that
 * serve() returned. After -ECHILD (the worker crashed), -ETIMEDOUT, -EPROTO (it sent an invalid
 * reply) and -EMSGSIZE the process has been ended.
 */
int worker__receive(struct worker *worker, struct wire_reader *reply);

/* Sends a request and waits for the reply. Returns what worker__send() and worker__receive()
 * return. */
int worker__call(struct worker *worker, const struct wire_writer *request, const int *fds,
		 size_t n_fds, struct wire_reader *reply);

/* Ends the process, for a caller that finds a reply wrong. Returns -EPROTO. */
int worker__refuse(struct worker *worker);

/* Returns whether the last error of worker__receive() says that the worker failed, and is not an
 * error that serve() returned. */
bool worker__has_failed(const struct worker *worker);

/* Returns why the process was last ended, to follow the words "the process that read it"; "" if it
 * was not. */
const char *worker__problem(const struct worker *worker);

/* In the parent: opens the file at @path if a worker may read it, which must be a regular file
 * that begins as ELF files do. Returns a descriptor or a negative errno. */
int worker__open_file(const char *path);
/* In the parent: returns @fd, which may refer to anything, if a worker may read the file;
 * otherwise closes it and returns a negative errno. */
int worker__only_elf(int fd);

/* In the worker: sends the parent a question. Returns the descriptor that the parent's answer()
 * returned, or a negative errno. */
int worker_call__ask(const struct wire_writer *question);
/* In the worker: calls the parent's note(). */
void worker_call__note(__u64 number);

#endif
