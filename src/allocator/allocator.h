/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An allocator: a shared library or program that defines malloc and free, its probe locations, and
 * the return addresses that distinguish its own calls from the application's.
 */
#ifndef ALLOCPROF_ALLOCATOR_H
#define ALLOCPROF_ALLOCATOR_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "error.h"

struct interface_function;
struct usdt_site;
struct definition;

/* Maximum distance in bytes from a function's entry to its probe. */
#define SITE_MAX_DISTANCE 64
/* Arguments that have registers. */
#define SITE_ARGUMENTS 6
/* Registers from which arguments are read: theirs, and that of results. */
#define SITE_REGISTERS AP_RESULT_REGISTER
/* How far the stack pointer may be below where it was at the entry. */
#define SITE_MAX_LOWERED (255 * 8)

enum site_policy {
	SITE_BEST,  /* an instruction that the kernel emulates, if there is one */
	SITE_ENTRY, /* the entry, at any cost */
};

/* How returns of an allocator's functions, and their values, are observed. */
enum allocator_returns {
	/* By return probes. Only for a C library or another well-known allocator: no unwinder,
	 * exception or longjmp passes its functions while they run. */
	RETURNS_PROBED,
	/* By probes at all of their return instructions. */
	RETURNS_AT_INSTRUCTIONS,
	RETURNS_UNKNOWN,
};

/*
 * The site of one probed function. At @probe_vaddr the frame pointer and all memory are as at the entry, the stack pointer is
 * @lowered_bytes below, the arguments that the BPF programs read are in registers, and each call executes it exactly once.
 */
struct site {
	enum ap_function function; /* the first of @names */
	__u64 names;	/* mask (1 << enum ap_function) of all functions at this address */
	char **aliases; /* every other name at this address, sorted, without duplicates; up to 64 */
	size_t n_aliases;
	__u64 entry_vaddr;  /* symbol value */
	__u64 probe_vaddr;  /* from entry_vaddr to entry_vaddr + SITE_MAX_DISTANCE */
	__u64 entry_offset; /* file offsets of the two, for uprobes */
	__u64 probe_offset;
	__u64 size;    /* symbol size in bytes, 0 if unknown */
	bool emulated; /* the kernel emulates the probed instruction: one trap instead of two */
	char instruction[64]; /* the probed instruction in AT&T syntax, truncated */
	char reason[192];     /* why @emulated is false, a clause for the user; else "" */
	__u64 tail_calls;     /* mask of the functions that it may tail-call */
	const struct interface_function *interface; /* its arguments */
	/* argument_at[n], for argument n from 1: the argument whose register has its value at the probe, or
	 * AP_RESULT_REGISTER; 0: its own register has it. */
	__u8 argument_at[SITE_ARGUMENTS + 1];
	__u32 lowered_bytes;	    /* a multiple of 8 up to SITE_MAX_LOWERED */
	char entry_instruction[64]; /* that of the entry, if @lowered_bytes is not 0 */
	struct usdt_site *usdt;	    /* of a USDT probe, else NULL */
	bool is_own; /* allocator's own maintenance: no request, but it calls functions that are */
	bool throws; /* an exception may leave it */
	bool may_jump;	/* it may tail-call another site */
	bool must_jump; /* it always does */
	enum allocator_returns returns;
};

struct allocator {
	char *path;	    /* as given */
	char build_id[129]; /* lower-case hex digits, "" if there is none */
	__u64 text_start;   /* vaddr range of all executable segments */
	__u64 text_end;
	/* Sorted by function; addresses are unique. Described allocators may have several sites per
	 * function. */
	struct site *sites;
	size_t n_sites;
	/* Exported functions of a library whose names resemble allocation functions, but whose
	 * effect is unknown. */
	struct unknown_function {
		char *name;
		__u64 vaddr, offset; /* of its entry; and its file offset */
		bool ends;	     /* its calls are known to end blocks, but not which ones */
		/* Whether they do depends on the name in its first argument: mallctl. */
		bool is_by_name;
	} * unknown;
	size_t n_unknown;
	bool is_described; /* struct ap_site.described of all sites */
	/* Aliases of all sites of a function; the strings belong to site.aliases. */
	struct allocator_names {
		char **list;
		size_t n;
	} names[AP_FUNCTIONS];
	/* Sorted vaddrs: a hit with one of these return addresses is internal. They follow all
	 * calls in the probed functions, and all direct calls to these functions; in a program that
	 * contains its allocator, only direct calls in the allocator's code. */
	__u64 *internal_returns;
	size_t n_internal_returns;
	/* Only forwards to another allocator: it looks symbols up, or calls glibc's functions by their other names, and
	 * cannot get memory from the kernel. Its calls would be counted twice. */
	bool is_wrapper;
	/* The library has such names (__libc_malloc): libraries that stand in front of malloc do not see its calls. */
	bool goes_past;
	/* A program's, whose code does without its functions: they are inlined, or have clones. */
	bool is_bypassed;
	bool is_collected; /* a garbage collector: it frees blocks itself */
	/* File offsets of all return instructions of the functions with RETURNS_AT_INSTRUCTIONS. */
	__u64 *return_offsets;
	size_t n_return_offsets;
	/* File offsets of all return instructions of the functions of an AP_NESTING_OUTERMOST definition, unless
	 * they are RETURNS_PROBED. */
	__u64 *nest_offsets;
	size_t n_nest_offsets;
	const struct definition
		*definition; /* definition that it comes from, or NULL; owned by the caller */
};

/*
 * Reads the allocator in the file @fd, which the caller keeps; @path is for messages. -ENOENT: it
 * defines no allocator; -ENOTSUP: it cannot be probed; -ENOEXEC: not ELF, or damaged; -EFBIG: too
 * large.
 */
int allocator__read(int fd, const char *path, enum site_policy policy, struct allocator **out,
		    struct error *error);
/*
 * Reads the functions that @definition defines, which must outlive the allocator. -ENOENT: the file
 * does not match the definition's modules, or has none of its functions; -ENOTSUP, with *@error set: it
 * cannot be probed as defined.
 */
int allocator__read_definition(int fd, const char *path, const struct definition *definition,
			       enum site_policy policy, struct allocator **out,
			       struct error *error);
void allocator__free(struct allocator *allocator);

/* Removes unknown functions whose names match one of @patterns (NULL-terminated, or NULL), which
 * are valid. */
void allocator__ignore(struct allocator *allocator, const char *const *patterns);

/* Removes unknown functions that @definition defines. */
void allocator__forget_defined(struct allocator *allocator, const struct definition *definition);

/* The number of the argument in whose register argument @number of the site's function is at the probe, or
 * AP_RESULT_REGISTER; 0 for 0. */
__u8 site__argument(const struct site *site, __u8 number);

/* For a function whose return is probed, too: moves the site to the entry if the stack pointer is lowered at the probe, since
 * a return probe replaces the word that it points to. */
void site__allow_return_probe(struct site *site);

/* The site of @function, NULL if the allocator has none. */
const struct site *allocator__find(const struct allocator *allocator, enum ap_function function);

#endif
