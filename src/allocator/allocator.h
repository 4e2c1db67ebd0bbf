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
/* Number of arguments that are passed in registers. */
#define SITE_ARGUMENTS 6
/* Number of the registers that the BPF programs read: those of the arguments, and that of the
 * result. */
#define SITE_REGISTERS AP_RESULT_REGISTER
/* Maximum number of bytes that the stack pointer may be below its value at the entry. */
#define SITE_MAX_LOWERED (255 * 8)

enum site_policy {
	SITE_BEST,  /* an instruction that the kernel emulates, if there is one */
	SITE_ENTRY, /* the entry, even if a probe there costs more */
};

/* Says how the returns of an allocator's functions, and the values that they return, are observed. */
enum allocator_returns {
	/* Return probes observe them. Only for a C library or another well-known allocator: while
	 * its functions run, no unwinder, exception or longjmp passes them. */
	RETURNS_PROBED,
	/* Probes at all of the functions' return instructions observe them. */
	RETURNS_AT_INSTRUCTIONS,
	RETURNS_UNKNOWN,
};

/*
 * The site of one probed function. At @probe_vaddr the frame pointer and all memory are as at the
 * entry, the stack pointer is @lowered_bytes below its value there, and registers hold the
 * arguments that the BPF programs read. Each call executes this address exactly once.
 */
struct site {
	enum ap_function function; /* the function with the lowest number in @names */
	__u64 names;	/* mask (1 << enum ap_function) of all functions at this address */
	char **aliases; /* every other name at this address, sorted, without duplicates; up to 64 */
	size_t n_aliases;
	__u64 entry_vaddr; /* address of the function's first instruction: the symbol's value */
	/* Address of the probed instruction, from entry_vaddr to entry_vaddr + SITE_MAX_DISTANCE. */
	__u64 probe_vaddr;
	/* File offsets of the entry and of the probed instruction, as uprobes take them. */
	__u64 entry_offset;
	__u64 probe_offset;
	__u64 size;    /* symbol size in bytes, 0 if unknown */
	bool emulated; /* the kernel emulates the probed instruction: one trap instead of two */
	bool refused;  /* the kernel sets no probe there */
	char instruction[64]; /* the probed instruction in AT&T syntax, truncated */
	/* Why @emulated is false, as a clause of a sentence for the user; else "". */
	char reason[192];
	__u64 tail_calls; /* mask of the functions that this one may tail-call */
	const struct interface_function *interface; /* says which arguments the function has */
	/* argument_at[n], for argument n from 1, is the number of the argument whose register
	 * holds argument n at the probe, or AP_RESULT_REGISTER. It is 0 if argument n is in its
	 * own register. */
	__u8 argument_at[SITE_ARGUMENTS + 1];
	__u32 lowered_bytes;	    /* a multiple of 8 up to SITE_MAX_LOWERED */
	char entry_instruction[64]; /* the instruction at the entry, if @lowered_bytes is not 0 */
	struct usdt_site *usdt;	    /* set for a USDT probe, else NULL */
	/* A function for the allocator's own maintenance: it is no request, but it calls functions
	 * that are. */
	bool is_own;
	bool throws;	/* an exception may leave the function */
	bool may_jump;	/* the function may tail-call another site */
	bool must_jump; /* the function always tail-calls another site */
	enum allocator_returns returns;
};

/* An instruction outside of the allocator that calls a site's function, jumps to it, or stores its
 * address in a register. The last four bytes of the instruction are the distance to the function. */
struct allocator_reference {
	__u64 next;  /* address of the next instruction */
	__u64 entry; /* that of the function: entry_vaddr of a site */
};

struct allocator {
	char *path;	    /* the path that the caller gave */
	char build_id[129]; /* lower-case hex digits, "" if there is none */
	__u64 text_start;   /* vaddr range of all executable segments */
	__u64 text_end;
	/* Sorted by function; addresses are unique. Described allocators may have several sites per
	 * function. */
	struct site *sites;
	size_t n_sites;
	/* An exported function of a library whose name resembles that of an allocation function,
	 * but whose effect is unknown. */
	struct unknown_function {
		char *name;
		__u64 vaddr, offset; /* address and file offset of the function's entry */
		/* Calls of the function are known to end blocks, but not which blocks. */
		bool ends;
		/* Whether a call of the function ends blocks depends on the name in its first
		 * argument (mallctl). */
		bool is_by_name;
	} * unknown;
	size_t n_unknown;
	bool is_described; /* value of struct ap_site.described for all sites */
	/* Aliases of all sites of a function; the strings belong to site.aliases. */
	struct allocator_names {
		char **list;
		size_t n;
	} names[AP_FUNCTIONS];
	/* Sorted return addresses. A hit with one of them comes from the allocator itself, so it
	 * is internal. They follow all calls within the probed functions, and all direct calls of
	 * the probed functions; in a program that contains its allocator, only direct calls in the
	 * allocator's code. */
	__u64 *internal_returns;
	size_t n_internal_returns;
	/* The library only forwards calls to another allocator: it looks symbols up, or calls
	 * glibc's functions by their other names (__libc_malloc), and cannot get memory from the
	 * kernel. Its calls would be counted twice. */
	bool is_wrapper;
	/* The library calls __libc_malloc or a function like it: libraries that stand in front of
	 * malloc do not see these calls. */
	bool goes_past;
	/* The allocator is in a program whose code does not call the allocator's functions: the
	 * compiler has inlined them, or calls clones of them. */
	bool is_bypassed;
	bool is_collected;  /* the allocator is a garbage collector, which frees blocks itself */
	bool is_in_program; /* the file is a program, and no library */
	/* The instructions that lead to the functions of an allocator in a program without the dynamic
	 * linker, by ascending address. */
	struct allocator_reference *references;
	size_t n_references;
	/* Further bytes may lead to the functions: data that looks like an instruction, a branch with a
	 * displacement of one byte, or an instruction's number that may be an address. */
	bool has_unclear_references;
	/* File offsets of all return instructions of the functions with RETURNS_AT_INSTRUCTIONS. */
	__u64 *return_offsets;
	size_t n_return_offsets;
	/* File offsets of all return instructions of the functions of an AP_NESTING_OUTERMOST definition, unless
	 * they are RETURNS_PROBED. */
	__u64 *nest_offsets;
	size_t n_nest_offsets;
	const struct definition
		/* Definition that the allocator was read by, or NULL; owned by the caller. */
		*definition;
};

/*
 * Reads the allocator in the file @fd, which the caller keeps; @path is for messages. The caller
 * frees *@out. Returns 0; -ENOENT if the file defines no allocator; -ENOTSUP if the allocator
 * cannot be probed; -ENOEXEC if the file is not ELF, or damaged; -EFBIG if it is too large.
 */
int allocator__read(int fd, const char *path, enum site_policy policy, struct allocator **out,
		    struct error *error);
/*
 * Reads the functions that @definition defines from the file @fd. The definition must outlive the
 * allocator. Returns 0; -ENOENT if the file does not match the definition's modules, or has none
 * of its functions; -ENOTSUP, with *@error set, if the allocator cannot be probed as defined.
 */
int allocator__read_definition(int fd, const char *path, const struct definition *definition,
			       enum site_policy policy, struct allocator **out,
			       struct error *error);
void allocator__free(struct allocator *allocator);

/* Removes unknown functions whose names match one of @patterns. The patterns are valid; the list
 * ends with NULL, and may be NULL. */
void allocator__ignore(struct allocator *allocator, const char *const *patterns);

/* Removes unknown functions that @definition defines. */
void allocator__forget_defined(struct allocator *allocator, const struct definition *definition);

/* Returns the number of the argument whose register holds argument @number of the site's function
 * at the probe, or AP_RESULT_REGISTER. Returns 0 if @number is 0. */
__u8 site__argument(const struct site *site, __u8 number);

/* Prepares the site of a function whose return is probed, too: moves the probe to the entry if the
 * stack pointer is lowered at the present one, since a return probe replaces the word that the
 * stack pointer points to. */
void site__allow_return_probe(struct site *site);

/* Returns the site of @function, or NULL if the allocator has none. */
const struct site *allocator__find(const struct allocator *allocator, enum ap_function function);

#endif
