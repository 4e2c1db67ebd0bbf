/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The allocators of a run and their probes: those known before it starts, and those found while it
 * runs. */
#ifndef ALLOCPROF_PROBES_H
#define ALLOCPROF_PROBES_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "abi.h"
#include "mapped_file.h"
#include "probe_program.h"
#include "probed_file.h"

struct allocator;
struct attachment;
struct bpf_program;
struct error;
struct parser;
struct definition;
struct definitions;

/* Groups of an allocator's probes, in the order in which they are detached. */
enum probe_role {
	PROBE_UNKNOWN, /* functions with unknown effect: only counts their calls */
	/* Function entries; with --live those of allocating functions and, with sessions, also
	 * their returns. */
	PROBE_ENTRIES,
	PROBE_PLAIN_ENTRIES, /* with live: entries of allocating functions without return probes */
	PROBE_RETURNS,
	PROBE_RETURN_INSTRUCTIONS,
	PROBE_FREES, /* with --live: functions that free */
	/* Returns of the functions of AP_NESTING_OUTERMOST definitions. */
	PROBE_NEST_RETURNS,
	PROBE_NEST_RETURN_INSTRUCTIONS,
	PROBE_ROLES,
};

struct probed_allocator {
	char *path;
	char *build_id;				     /* "" if the file has none */
	struct allocator *allocator;		     /* NULL: a program without a named allocator */
	struct attachment *attachments[PROBE_ROLES]; /* all are NULL if the file is not probed */
	bool has_sites;				     /* false: its probes could not be set */
	__u32 first_site;    /* index of its first site; unknown functions follow its sites */
	__u64 device, inode; /* as in stat(2) */
	int watch;	     /* watch of the file's contents; 0: none */
	__u64 since_ns;	     /* CLOCK_MONOTONIC: since when the file is probed */
	/* The definition whose functions are probed in the file; NULL: the file's own allocator. */
	const struct definition *definition;
	/* Why calls may have been missed; "": the file was probed from the start. */
	char gap[256];
	/* With --live: why the allocator's blocks are not followed; "": they are. */
	char live_gap[256];
};

struct probes_options {
	struct probe_program run; /* without a program sites are only found, and not probed */
	/* With --live, else NULL: the programs at return instructions of allocators that must not
	 * have return probes, and at free functions. */
	struct bpf_program *return_instruction_program, *free_program;
	struct bpf_program
		/* Program at free functions of allocators with is_described. */
		*described_free_program;
	/* Program at returns, while @run.program is at entries. If it is NULL, session_program is
	 * used. */
	struct bpf_program *return_program;
	/* Program at both entries and returns, instead of @run.program. */
	struct bpf_program *session_program;
	/* Called before *@program is attached: if it is not loaded yet, replaces it by a program
	 * that is. */
	int (*load_program)(void *context, struct bpf_program **program, struct error *error);
	/* Programs at returns of definitions with AP_NESTING_OUTERMOST. */
	struct bpf_program *nest_return_program, *nest_return_instruction_program;
	struct bpf_program *usdt_program;    /* program at USDT probes of definitions */
	int usdt_sites_fd;		     /* the programs' map of USDT arguments */
	struct bpf_program *unknown_program; /* program at functions with unknown effect */
	const char *const
		*ignored; /* patterns of unknown functions to skip, NULL-terminated, or NULL */
	const struct definitions *definitions; /* defined allocators, or NULL */
	__u32 max_sites;		       /* 0: AP_MAX_SITES */
	int sites_fd;			       /* maps of the programs */
	int internal_returns_fd;
	/* If not NULL, called with each file that the target maps as code, before its probes are
	 * set. */
	void (*use_file)(int fd, const char *path, void *context);
	/* Makes a private copy of the file (--isolate), as in struct gate_options; used until
	 * probes__end_copies(). NULL: files are probed where they are. */
	int (*isolate)(int fd, const char *path, void *context);
	/* Works like isolate(), for a file that already has a copy. */
	int (*find_isolated)(int fd, const char *path, void *context);
	/* Returns whether others will set probes in the file, in use_file(). */
	bool (*is_wanted)(int fd, const char *path, void *context);
	void *context;
	struct file_identifier identifier;
	struct parser *parser; /* reads the files; belongs to the caller */
	bool is_fallback;      /* files are probed while processes run that have mapped them */
	bool finds_unprobed;   /* probes__blame() will report programs without an allocator */
	/* Mask of enum ap_function to report; others are probed only if they decide what is
	 * internal. */
	__u64 functions;
};

struct probes;

int probes__new(const struct probes_options *options, struct probes **out);
/* Detaches all probes. */
void probes__free(struct probes *probes);
/* Detaches all probes and keeps the list. @waits: waits until no program runs for them. */
void probes__detach(struct probes *probes, bool waits);
/* Returns a descriptor that is readable when a probed file was written to, or -1. Then
 * probes__drop_rewritten() removes the file's probes and notes that in its gap. */
int probes__contents_fd(const struct probes *probes);
void probes__drop_rewritten(struct probes *probes);

/*
 * Probes the allocators that the command @argv will use: those of its executable, its libraries,
 * its dynamic linker (musl), and the system's libc; if the command is a dynamic linker, also those
 * of the program in its arguments. Fails with -ENOENT or -EACCES if there is no such command;
 * -ENOTSUP if it is static and has no named allocator.
 */
int probes__add_command(struct probes *probes, char *const argv[], struct error *error);

/*
 * Adds a pseudo allocator, whose sites are hit by programs of their own instead of probes. Takes
 * over @allocator, also on error. Sets *@first_site to the index of its first site.
 */
int probes__add_definition(struct probes *probes, struct allocator *allocator, __u32 *first_site);

/* Adds a program that the command will start, or a library that it will load; it need not have an allocator. */
int probes__add_expected(struct probes *probes, const char *name, struct error *error);

/* Adds a program that a process is about to execute, with its libraries. It may be static, and need no allocator. */
int probes__add_program(struct probes *probes, const char *path, struct error *error);

/* Probes the definitions' functions in files that they name by path. Fails with -ENOENT, -EACCES
 * or another errno if a file cannot be read. */
int probes__add_named_files(struct probes *probes, struct error *error);

/* To be called when the command is about to be executed: files that are found from now on are
 * probed where they are. */
void probes__end_copies(struct probes *probes);

/* Probes the allocator in the file at @path. Fails with -ENOTSUP if it has none. */
int probes__add_library(struct probes *probes, const char *path, struct error *error);

/* Probes the files that the process has mapped. Fails with -ENOTSUP if none of them has a known
 * allocator. */
int probes__add_process(struct probes *probes, pid_t pid, struct error *error);

/* Lists the program of a process that is not measured as not probed, and @why. */
void probes__add_unmeasured(struct probes *probes, pid_t pid, const char *why);

/*
 * Handles the mapping of a file: if it is a new allocator, probes it, and lists it with its
 * coverage gap.
 */
struct mapping_event;
void probes__notice_mapping(struct probes *probes, const struct mapping_event *event);

/* Returns whether the process was the first to map a file for another word size or processor. */
bool probes__is_foreign(const struct probes *probes, __u32 pid);

/* To be called when @program took memory without a hit: if its file has no named allocator, lists
 * the file with that gap. */
struct unprobed_program;
void probes__blame(struct probes *probes, const struct unprobed_program *program);

/* Returns whether the site is probed, because its calls are reported, or its hits decide whether
 * other calls are internal. */
struct site;
bool probes__uses(const struct probes *probes, const struct site *site);

/* Returns the entry as readers of the list see it. Its strings belong to @entry. */
struct probed_file probed_allocator__file(const struct probed_allocator *entry);

/* Returns all allocators, probed or not; the list is valid until the next one is added. */
const struct probed_allocator *probes__list(const struct probes *probes, size_t *n);

#endif
