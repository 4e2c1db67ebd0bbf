/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The allocators of a run and the probes in them: those known before it starts and those that turn
 * up while it runs. */
#ifndef ALLOCPROF_PROBES_H
#define ALLOCPROF_PROBES_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abi.h"
#include "file_identity.h"

struct allocator;
struct attachment;
struct bpf_program;
struct error;
struct source;
struct sources;

/* What an allocator's probes are for; removed in this order. */
enum probe_role {
	PROBE_UNKNOWN, /* functions of which it is only told that they were called */
	PROBE_ENTRIES, /* of the functions, with live of the allocating ones, there with their returns */
	PROBE_PLAIN_ENTRIES, /* with live, of allocating functions that have no return probes */
	PROBE_RETURNS,
	PROBE_RETURN_INSTRUCTIONS,
	PROBE_FREES, /* with live */
	/* These see functions of sources with nesting = outermost return. */
	PROBE_NEST_RETURNS,
	PROBE_NEST_RETURN_INSTRUCTIONS,
	PROBE_ROLES,
};

struct probed_allocator {
	char *path;
	char *build_id;		     /* "" where the file has none */
	struct allocator *allocator; /* NULL: a program whose allocator has no name */
	struct attachment *attachments[PROBE_ROLES]; /* all NULL where it is not probed */
	__u32 first_site; /* site indexes count from here in the allocator's order, unknown functions last */
	__u64 device, inode;	     /* of stat(2) */
	const struct source *source; /* whose functions are probed in it; NULL: its allocator's */
	/* Why calls may have been missed, "" where none can have been: probed from the start. */
	char gap[256];
	/* With live: why the blocks that it hands out are not followed, "" where they are. */
	char live_gap[256];
};

struct probes_options {
	struct bpf_program *program; /* NULL: only find the sites, probe nothing */
	/* With live, else NULL: what goes to the return instructions of allocators whose returns must
	 * not be probed, and to free. */
	struct bpf_program *return_instruction_program, *free_program;
	struct bpf_program
		*described_free_program; /* the same of those with struct allocator.is_described */
	/* What goes to returns, besides @program, which goes to the entries; or NULL and */
	struct bpf_program *return_program;
	/* this, which goes to the entries with their returns instead of @program, */
	struct bpf_program *session_program;
	/* and this, which gets @program loaded when it is needed all the same. */
	int (*load_program)(void *context, struct bpf_program **program, struct error *error);
	/* What goes to the returns of sources with AP_NESTING_OUTERMOST. */
	struct bpf_program *nest_return_program, *nest_return_instruction_program;
	struct bpf_program *usdt_program;    /* what goes to USDT probes of sources */
	int usdt_sites_fd;		     /* map of its */
	struct bpf_program *unknown_program; /* what goes to functions that are not known */
	const char *const
		*ignored; /* patterns of names that are not asked about, NULL-terminated, or NULL */
	const struct sources *sources; /* that are defined besides, or NULL */
	bool multi;
	pid_t pid;    /* 0: every process */
	int sites_fd; /* maps of the programs */
	int internal_returns_fd;
	/* Called with each file that the target is known to map as code, before its probes are set;
	 * NULL: nobody wants to know. */
	void (*use_file)(int fd, const char *path, void *context);
	void *context;
	struct file_asker asker;
	bool finds_unprobed; /* what becomes of programs without an allocator is told by probes__blame() */
	__u64 functions; /* mask of enum ap_function that are reported; others are probed only where
			    * they decide what is internal */
};

struct probes;

int probes__new(const struct probes_options *options, struct probes **out);
/* Removes all probes. */
void probes__free(struct probes *probes);
/* Removes all probes and keeps the list. */
void probes__detach(struct probes *probes);

/*
 * Probes the allocators that the command @argv will use: its executable's own, those of its
 * libraries, its dynamic linker's (musl), and the libc of this system; the same of the program that
 * is an argument where the command is a dynamic linker. -ENOENT, -EACCES: no such command; -ENOTSUP:
 * it is static and brings no allocator that can be found by name.
 */
int probes__add_command(struct probes *probes, char *const argv[], struct error *error);

/*
 * Lists what is no file but counts by sites as an allocator does; takes @allocator, also where it fails. Its own
 * programs look for what happens; *@first_site is the first of its sites there.
 */
int probes__add_source(struct probes *probes, struct allocator *allocator, __u32 *first_site);

/* The same for a program that the command will start, or a library that it will load: what has no
 * allocator is as good. */
int probes__add_expected(struct probes *probes, const char *name, struct error *error);

/* Probes what sources have in the files that they name by path. -ENOENT, -EACCES, …: there is none. */
int probes__add_named_files(struct probes *probes, struct error *error);

/* Probes the allocator in the file at @path. -ENOTSUP: it is none. */
int probes__add_library(struct probes *probes, const char *path, struct error *error);

/* Probes what the running process has mapped. -ENOTSUP: no known allocator among it. */
int probes__add_process(struct probes *probes, pid_t pid, struct error *error);

/*
 * A file that process @pid has just mapped at [@start, @end); @id_* tell files apart. Where it is an
 * allocator that was not known it is probed from now on and listed with its gap.
 */
struct mapping_event;
void probes__notice_mapping(struct probes *probes, const struct mapping_event *event);

/* @program took memory although it hit no probe: where it is a file that was noticed to have no allocator, that
 * file is listed with its gap. */
struct unprobed_program;
void probes__blame(struct probes *probes, const struct unprobed_program *program);

/* Whether no file that was probed has the function of that number of @source. */
bool probes__lacks(const struct probes *probes, const struct source *source, size_t function);

/* Whether the site is probed: its calls are reported, or its hits say whether another's are calls. */
struct site;
bool probes__uses(const struct probes *probes, const struct site *site);

/* All allocators, probed or not; valid until the next call that adds. */
const struct probed_allocator *probes__list(const struct probes *probes, size_t *n);

#endif
