/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attaches probes to one file: by one link with uprobe_multi, else by one link each. */
#ifndef ALLOCPROF_ATTACHMENT_H
#define ALLOCPROF_ATTACHMENT_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "probe_program.h"

/*
 * Creates BPF_TRACE_UPROBE_MULTI links by bpf(2) itself: libbpf supports them since 1.3, but Debian
 * 12 has 1.1, and a <linux/bpf.h> of that age.
 */

/* enum bpf_attach_type of Linux 6.6 */
#define ATTACH_TYPE_UPROBE_MULTI 48
/* enum bpf_attach_type of Linux 6.13 */
#define ATTACH_TYPE_UPROBE_SESSION 57

enum uprobe_kind {
	UPROBE_ENTRY,	/* at the offset */
	UPROBE_RETURN,	/* at the return of the function whose entry is at the offset */
	UPROBE_SESSION, /* at both, with one program */
};

/* Returns whether the kernel supports session links. */
bool uprobe_session__supported(void);

/* Returns whether the kernel supports these links. Sets *@pid_works to whether their pid filter
 * matches a whole process; some kernels from 6.6 to 6.9 match only one thread. */
bool uprobe_multi__supported(bool *pid_works);

/* Probes in one file: one link with uprobe_multi, else one link each. */

struct attachment;
struct error;

struct attachment_request {
	struct probe_program run;
	enum uprobe_kind kind;
	int fd;		      /* the file, open for reading */
	const char *path;     /* for messages */
	__u32 n;	      /* number of probes */
	const __u64 *offsets; /* file offsets */
	const __u64 *cookies;
	const __u64 *semaphores; /* file offsets of USDT semaphores, 0: none; or NULL */
};

/* Returns -EPERM, -EINVAL or another errno with *@error set; then nothing stays attached. Fails
 * with -EBUSY if a breakpoint would kill a process of a binary translator
 * (translator__refuse_mapped()). */
int attachment__new(const struct attachment_request *request, struct attachment **out,
		    struct error *error);

/* Detaches the probes, and waits until no program runs for them. */
void attachment__free(struct attachment *attachment);

/* Like attachment__free(), but does not wait where the kernel can detach the probes by itself:
 * their programs may run for a few more milliseconds. */
void attachment__leave(struct attachment *attachment);

#endif
