/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The library of src/inside in a process that runs already: it is mapped there, and the words through which the process's objects
 * call the allocator lead to it, until it is left. No instruction is changed, and no code of the process's dynamic linker runs.
 * docs/inside.md.
 */
#ifndef ALLOCPROF_PRELOAD_ATTACH_H
#define ALLOCPROF_PRELOAD_ATTACH_H

#include <linux/types.h>
#include <sys/types.h>

struct error;
struct preload;
struct preload_attach;

struct preload_attached {
	__u64 n_threads; /* that were stopped at once */
	__u64 stopped_ns; /* for so long, or that one which made the first system calls before, if that was longer */
	__u64 n_words; /* that lead to the library, or were put back */
	__u64 n_lost; /* at the end: words that others had changed, and those by which later objects went past the library */
};

/*
 * Maps the library into process @pid, which nothing has been changed in yet, and moves the shared memory of @preload to files that
 * the process has mapped. *@out is the caller's. -EPERM, -EBUSY, -EOPNOTSUPP, ... with *@error set: then the process is as it was.
 */
int preload_attach__new(struct preload *preload, pid_t pid, struct preload_attach **out,
			struct error *error);

/* From now on the process's calls come to the library. -ETIME: its threads did not all stop within @limit_ns, or 2 s if that is 0. */
int preload_attach__enter(struct preload_attach *attach, __u64 limit_ns,
			  struct preload_attached *out, struct error *error);

/* The words lead where they led before. -ESRCH: the process has ended; -ESTALE: it has executed another program; -ETIMEDOUT, -EPERM: they could not be put back. */
int preload_attach__leave(struct preload_attach *attach, struct preload_attached *out);

/* Unmaps what has not been used. Accepts NULL. */
void preload_attach__free(struct preload_attach *attach);

#endif
