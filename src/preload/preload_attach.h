/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures a running process with the library of src/inside: maps the library there, and has the
 * words through which the process's objects call the allocator lead to it, until allocprof leaves.
 * Only those instructions are changed by which a program calls an allocator in its own file, and no code
 * of the process's dynamic linker runs. See docs/inside.md.
 */
#ifndef ALLOCPROF_PRELOAD_ATTACH_H
#define ALLOCPROF_PRELOAD_ATTACH_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

struct error;
struct inside_redirections;
struct parser;
struct preload;
struct preload_attach;

struct preload_attached {
	__u64 n_threads; /* number of threads that were stopped at once */
	/* How long these threads were stopped; or, if it was longer, how long the one thread was
	 * stopped that made the first system calls. */
	__u64 stopped_ns;
	__u64 n_words; /* number of words and calls that lead to the library, or were restored */
	/* At the end: number of words and calls that others had changed, or by which later objects
	 * bypassed the library. */
	__u64 n_lost;
};

/*
 * Maps the library into process @pid, in which nothing has been changed yet. The first process of @preload
 * makes the files to which its shared memory is moved; the others map the same. @parser reads the program's file. The caller
 * frees *@out. Returns -EPERM, -EBUSY, -EOPNOTSUPP or another errno with *@error set; then the process is
 * as it was.
 */
int preload_attach__new(struct preload *preload, struct parser *parser, pid_t pid,
			struct preload_attach **out, struct error *error);

/* Has the process's calls come to the library from now on. Fails with -ETIME if its threads did
 * not all stop within @limit_ns, or within 2 s if that is 0. */
int preload_attach__enter(struct preload_attach *attach, __u64 limit_ns,
			  struct preload_attached *out, struct error *error);

/* Reads the list of functions whose calls come to the library. Returns 0 or a negative errno. */
int preload_attach__list(const struct preload_attach *attach, struct inside_redirections *out);

/* Restores the words. Fails with -ESRCH if the process has ended; -ESTALE if it has executed
 * another program; -ETIMEDOUT or -EPERM if the words could not be restored. */
int preload_attach__leave(struct preload_attach *attach, struct preload_attached *out);

/* A process that was forked by an attached one, or by a child of such, and has executed nothing since. */
struct preload_forked {
	pid_t pid;
	__u64 base,
		linker; /* addresses in it of the library, and of the dynamic linker's struct r_debug */
};

/* Returns whether process @pid has the shared memory of @preload: it is attached or forked. */
bool preload_forked__find(const struct preload *preload, pid_t pid, struct preload_forked *out);
/* Returns whether the child has its words from this process, or from one that is mapped in the same way. */
bool preload_attach__is_origin(const struct preload_attach *attach,
			       const struct preload_forked *child);
/* Restores the words of such a child, as preload_attach__leave() does those of the process. */
int preload_attach__leave_forked(const struct preload_attach *attach,
				 const struct preload_forked *child, struct preload_attached *out);

/* Unmaps what was mapped and has not been used. Accepts NULL. */
void preload_attach__free(struct preload_attach *attach);

#endif
