/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Probes that stand in one file: one link where the kernel has uprobe_multi, else one each. */
#ifndef ALLOCPROF_ATTACHMENT_H
#define ALLOCPROF_ATTACHMENT_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "uprobe_multi.h"

struct attachment;
struct bpf_program;
struct error;

struct attachment_request {
	struct bpf_program *program;
	bool multi; /* the program was loaded for uprobe_multi */
	enum uprobe_kind kind;
	int fd;		      /* of the file, open for reading */
	const char *path;     /* for words only */
	pid_t pid;	      /* only this process pays and hits; 0: every process */
	__u32 n;	      /* probes */
	const __u64 *offsets; /* in the file */
	const __u64 *cookies;
	const __u64
		*semaphores; /* in the file, of counters to count up meanwhile, 0: none; or NULL */
};

/* -EPERM, -EINVAL, … with a sentence; nothing stays attached then. */
int attachment__new(const struct attachment_request *request, struct attachment **out,
		    struct error *error);

/* Removes the probes; when it returns no program runs for them any more. */
void attachment__free(struct attachment *attachment);

#endif
