/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Links of type BPF_TRACE_UPROBE_MULTI by bpf(2) itself: libbpf knows them from 1.3 on, Debian 12
 * has 1.1, and its <linux/bpf.h> is as old.
 */
#ifndef ALLOCPROF_UPROBE_MULTI_H
#define ALLOCPROF_UPROBE_MULTI_H

#include <linux/types.h>
#include <sys/types.h>
#include <stdbool.h>

/* enum bpf_attach_type of Linux 6.6 */
#define ATTACH_TYPE_UPROBE_MULTI 48
/* of Linux 6.13 */
#define ATTACH_TYPE_UPROBE_SESSION 57

enum uprobe_kind {
	UPROBE_ENTRY,	/* where the offset is */
	UPROBE_RETURN,	/* where the function whose entry is there returns to */
	UPROBE_SESSION, /* both, of one program */
};

/*
 * A link that holds @n probes at @offsets (in the file at @path) with @cookies and, unless
 * it is NULL, @semaphores (counters in the file to count up, 0: none), for the process @pid
 * or, where it is 0, for all. The program was loaded with the kind's attach type. Returns a file
 * descriptor, which the caller closes to remove the probes, or a negative errno.
 */
int uprobe_multi__link(int prog_fd, enum uprobe_kind kind, const char *path, const __u64 *offsets,
		       const __u64 *cookies, const __u64 *semaphores, __u32 n, pid_t pid);

/* The attach type that programs for such a link are loaded with. */
int uprobe_multi__attach_type(enum uprobe_kind kind);

/* Whether the kernel knows links of sessions. */
bool uprobe_session__supported(void);

/* Whether the kernel knows such links, and in *@pid_works whether their pid filter holds for a whole
 * process; on some 6.6 to 6.9 it lets one thread pass only. */
bool uprobe_multi__supported(bool *pid_works);

#endif
