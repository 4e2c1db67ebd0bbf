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

/* Groups of an allocator's probes; detached in this order. */
enum probe_role {
	PROBE_UNKNOWN, /* functions with unknown effect: only counts their calls */
	/* Function entries; with live of allocating functions, and their returns with sessions. */
	PROBE_ENTRIES,
	PROBE_PLAIN_ENTRIES, /* with live: entries of allocating functions without return probes */
	PROBE_RETURNS,
	PROBE_RETURN_INSTRUCTIONS,
	PROBE_FREES, /* with live */
	/* Returns of the functions of AP_NESTING_OUTERMOST definitions. */
	PROBE_NEST_RETURNS,
	PROBE_NEST_RETURN_INSTRUCTIONS,
	PROBE_ROLES,
};

struct probed_allocator {
	char *path;
	char *build_id;				     /* "" if the file has none */
	struct allocator *allocator;		     /* NULL: a program without a named allocator */
	struct attachment *attachments[PROBE_ROLES]; /* all NULL if it is not probed */
	bool has_sites;				     /* false: its probes could not be set */
	__u32 first_site;    /* index of its first site; unknown functions follow its sites */
	__u64 device, inode; /* as in stat(2) */
	int watch;	     /* of its contents; 0: none */
	__u64 since_ns;	     /* CLOCK_MONOTONIC: it is probed */
	/* Whose functions are probed in it; NULL: the file's allocator. */
	const struct definition *definition;
	/* Why calls may have been missed; "": probed from the start. */
	char gap[256];
	/* With live: why its blocks are not followed; "": they are. */
	char live_gap[256];
};

struct probes_options {
	struct probe_program run; /* without a program: only find the sites, without probing */
	/* With live, else NULL: programs at return instructions of allocators that must not have
	 * return probes, and at free functions. */
	struct bpf_program *return_instruction_program, *free_program;
	struct bpf_program
		*described_free_program; /* the latter for allocators with is_described */
	/* Program at returns, with @run.program at entries; or NULL, and then: */
	struct bpf_program *return_program;
	/* program at entries and returns, instead of @run.program. */
	struct bpf_program *session_program;
	/* Called before *@program is attached, which may not be loaded yet: then replaces it by one that
	 * is. */
	int (*load_program)(void *context, struct bpf_program **program, struct error *error);
	/* Programs at returns of AP_NESTING_OUTERMOST definitions. */
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
	/* Called with each file that the target maps as code, before its probes are set; or
	 * NULL. */
	void (*use_file)(int fd, const char *path, void *context);
	/* Makes a private copy of the file (--isolate), as in struct gate_options; until probes__end_copies(). NULL:
	 * files are probed where they are. */
	int (*isolate)(int fd, const char *path, void *context);
	/* The same for a file that has a copy already. */
	int (*find_isolated)(int fd, const char *path, void *context);
	/* Whether others will set probes in the file, in use_file(). */
	bool (*is_wanted)(int fd, const char *path, void *context);
	void *context;
	struct file_identifier identifier;
	struct parser *parser; /* reads the files; the caller's */
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
/* Detaches all probes and keeps the list. @waits: until no program runs for them. */
void probes__detach(struct probes *probes, bool waits);
/* A descriptor that is readable when a probed file was written to, or -1; probes__drop_rewritten() then removes the file's probes and
 * notes that in its gap. */
int probes__contents_fd(const struct probes *probes);
void probes__drop_rewritten(struct probes *probes);

/*
 * Probes the allocators that the command @argv will use: those of its executable, its libraries,
 * its dynamic linker (musl), and the system's libc; if the command is a dynamic linker, those of
 * the program in its arguments. -ENOENT, -EACCES: no such command; -ENOTSUP: it is static without a
 * named allocator.
 */
int probes__add_command(struct probes *probes, char *const argv[], struct error *error);

/*
 * Adds a pseudo allocator, whose sites are no probes but hit by programs of its own. Takes over
 * @allocator, also on error. Sets *@first_site to the index of its first site.
 */
int probes__add_definition(struct probes *probes, struct allocator *allocator, __u32 *first_site);

/* Adds a program that the command will start, or a library that it will load; it need not have an allocator. */
int probes__add_expected(struct probes *probes, const char *name, struct error *error);

/* Adds a program that a process is about to execute, with its libraries. It may be static, and need no allocator. */
int probes__add_program(struct probes *probes, const char *path, struct error *error);

/* Probes the definitions' functions in files that they name by path. -ENOENT, -EACCES, …: the file
 * cannot be read. */
int probes__add_named_files(struct probes *probes, struct error *error);

/* The command is about to be executed: what is found from now on is probed where it is. */
void probes__end_copies(struct probes *probes);

/* Probes the allocator in the file at @path. -ENOTSUP: it has none. */
int probes__add_library(struct probes *probes, const char *path, struct error *error);

/* Probes the files that the process has mapped. -ENOTSUP: none is a known allocator. */
int probes__add_process(struct probes *probes, pid_t pid, struct error *error);

/*
 * Handles the mapping of a file: if it is a new allocator, probes it, and lists it with its
 * coverage gap.
 */
struct mapping_event;
void probes__notice_mapping(struct probes *probes, const struct mapping_event *event);

/* Whether the process was the first to map a file that is for another word size or processor. */
bool probes__is_foreign(const struct probes *probes, __u32 pid);

/* @program took memory without a hit: if its file was found to have no named allocator, lists it
 * with its coverage gap. */
struct unprobed_program;
void probes__blame(struct probes *probes, const struct unprobed_program *program);

/* Whether the site is probed: its calls are reported, or its hits decide whether others are
 * internal. */
struct site;
bool probes__uses(const struct probes *probes, const struct site *site);

/* The entry as readers of the list see it; its strings are owned by @entry. */
struct probed_file probed_allocator__file(const struct probed_allocator *entry);

/* All allocators, probed or not; valid until the next one is added. */
const struct probed_allocator *probes__list(const struct probes *probes, size_t *n);

#endif
