/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An allocator: a shared library or program that defines malloc and free, with the places to probe
 * in it and what tells its own calls from the application's.
 */
#ifndef ALLOCPROF_ALLOCATOR_H
#define ALLOCPROF_ALLOCATOR_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "error.h"

struct interface_function;
struct usdt_place;
struct source;

/* Farther from the entry no site is looked for, in bytes. */
#define SITE_MAX_DISTANCE 64

enum site_policy {
	SITE_BEST,  /* where the kernel emulates the probed instruction, if there is such a place */
	SITE_ENTRY, /* at the entry whatever it costs */
};

/* How it is found out what an allocator's functions return. */
enum allocator_returns {
	/* By return probes: it is a C library's or another well-known one, so nothing unwinds through its
	 * functions, nor does an exception or a longjmp pass them. */
	RETURNS_PROBED,
	/* By probes at their return instructions, which are all known. */
	RETURNS_AT_INSTRUCTIONS,
	RETURNS_UNKNOWN,
};

/*
 * Where one function is probed. At @probe_vaddr the argument registers, the stack pointer and all
 * memory are as at the entry, and each call of the function passes there exactly once.
 */
struct site {
	enum ap_function function; /* the first of @names */
	__u64 names;		   /* mask (1 << enum ap_function) of all that share the address */
	char **aliases; /* every other name at the address, sorted, each once; 64 at the most */
	size_t n_aliases;
	__u64 entry_vaddr;  /* the symbol's value */
	__u64 probe_vaddr;  /* entry_vaddr up to entry_vaddr + SITE_MAX_DISTANCE */
	__u64 entry_offset; /* of the same places in the file, as uprobes take them */
	__u64 probe_offset;
	__u64 size;	      /* bytes of the function by its symbol, 0 if unknown */
	bool emulated;	      /* the kernel emulates the probed instruction: one trap, not two */
	char instruction[64]; /* the probed instruction, AT&T syntax; cut where it is longer */
	char reason[192];     /* why @emulated is false, a clause for people; "" where it is true */
	__u64 tail_calls;     /* mask of the functions that this one ends in a jump to */
	const struct interface_function *interface; /* what its arguments are */
	struct usdt_place *usdt;		    /* of a USDT probe, else NULL */
	bool is_own;	/* not called to get or give back memory, but it calls what is */
	bool throws;	/* it may be left by an exception */
	bool may_jump;	/* it may end in a jump to another site, */
	bool must_jump; /* always */
	enum allocator_returns returns;
};

struct allocator {
	char *path;	    /* as it was given */
	char build_id[129]; /* lower-case hex digits, "" if none */
	__u64 text_start;   /* vaddr range that holds all executable segments */
	__u64 text_end;
	/* By ascending function, each address once. Where it has other functions than a C library several
	 * may have the same. */
	struct site *sites;
	size_t n_sites;
	/* Functions that a library exports and that look as if they handed out memory, by name, but that are not
	 * known. */
	struct unknown_function {
		char *name;
		__u64 vaddr, offset; /* of its entry, and in the file */
		bool ends;	 /* it is known: its calls may end blocks, and do not say which */
		bool is_by_name; /* where the name of its first argument says so: mallctl */
	} * unknown;
	size_t n_unknown;
	bool is_described; /* so they are: struct ap_site.described */
	/* The other names of all sites of a function, as in site.aliases, whose strings they are. */
	struct allocator_names {
		char **list;
		size_t n;
	} names[AP_FUNCTIONS];
	/* Sorted vaddrs: a hit whose return address is one of them was called by the allocator
	 * itself. Behind all calls in the probed functions, and behind all direct calls to them; in
	 * a program that contains its allocator, only those from the code between them. */
	__u64 *internal_returns;
	size_t n_internal_returns;
	/* Only forwards to another allocator: it looks symbols up and has no means to get memory
	 * from the kernel. Its calls would be counted twice. */
	bool is_wrapper;
	bool is_collected; /* it ends blocks by itself */
	/* File offsets of all return instructions of the functions with
	 * RETURNS_AT_INSTRUCTIONS, else none. */
	__u64 *return_offsets;
	size_t n_return_offsets;
	/* The same of all functions of a source with AP_NESTING_OUTERMOST, where they are not RETURNS_PROBED. */
	__u64 *nest_offsets;
	size_t n_nest_offsets;
	const struct source *source; /* what defined it, or NULL; the caller's */
};

/*
 * Reads the allocator out of the file behind @fd, which stays the caller's. @path names it to
 * people. -ENOENT: it defines no allocator; -ENOTSUP: one that cannot be probed; -ENOEXEC: not ELF
 * or damaged; -EFBIG: absurdly large.
 */
int allocator__read(int fd, const char *path, enum site_policy policy, struct allocator **out,
		    struct error *error);
/*
 * The same of what @source, which must outlive the allocator, defines. -ENOENT: the file is not where it is looked
 * for, or has none of its functions; -ENOTSUP with the sentence: it cannot be probed as it asks.
 */
int allocator__read_source(int fd, const char *path, const struct source *source,
			   enum site_policy policy, struct allocator **out, struct error *error);
void allocator__free(struct allocator *allocator);

/* Forgets unknown functions whose names match one of @patterns (NULL-terminated, or NULL), which are valid. */
void allocator__ignore(struct allocator *allocator, const char *const *patterns);

/* The same of those that @source defines. */
void allocator__forget_defined(struct allocator *allocator, const struct source *source);

/* The site that a call of @function hits, NULL where the allocator lacks it. */
const struct site *allocator__find(const struct allocator *allocator, enum ap_function function);

/* Whether @vaddr is one of @internal_returns. */
bool allocator__is_internal_return(const struct allocator *allocator, __u64 vaddr);

#endif
