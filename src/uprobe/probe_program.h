/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_PROBE_PROGRAM_H
#define ALLOCPROF_PROBE_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

struct bpf_program;

/* A BPF program, and the processes whose hits of its probes run it. */
struct probe_program {
	struct bpf_program *program;
	bool multi; /* it was loaded for uprobe_multi: one link per file, else one per probe */
	pid_t pid;  /* only this process hits the probes and pays for them; 0: every process */
	bool ends_translators; /* as in struct session_options */
	/* If not NULL, the attachment calls it with @context again and again while it sets or
	 * removes probes one by one, which takes seconds on a loaded machine. */
	void (*meanwhile)(void *context);
	void *context;
};

#endif
