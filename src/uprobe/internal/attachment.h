/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Probes in one file: one link with uprobe_multi, else one link each. */
#ifndef ALLOCPROF_ATTACHMENT_H
#define ALLOCPROF_ATTACHMENT_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "probe_program.h"
#include "uprobe_multi.h"

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

/* -EPERM, -EINVAL, … with *@error set; then nothing stays attached. -EBUSY: a binary translator's process would be ended
 * (translator__refuse_mapped()). */
int attachment__new(const struct attachment_request *request, struct attachment **out,
		    struct error *error);

/* Detaches the probes, and waits until no program runs for them. */
void attachment__free(struct attachment *attachment);

/* Like attachment__free(), but where the kernel can detach the probes by itself, this does not wait for
 * it: programs may run for a few more milliseconds. */
void attachment__leave(struct attachment *attachment);

#endif
