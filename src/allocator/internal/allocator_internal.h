/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Declarations that only allocator*.c share: the state of an allocator while it is read. */
#ifndef ALLOCPROF_ALLOCATOR_INTERNAL_H
#define ALLOCPROF_ALLOCATOR_INTERNAL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "abi.h"
#include "allocator.h"
#include "disasm.h"
#include "elf_file.h"
#include "flow.h"
#include "interface.h"

struct allocator;
struct executable_parts;
struct definition;
struct wire_reader;
struct wire_writer;

#define MAX_ALIASES	64
#define MAX_SYMBOL_NAME 256
#define MAX_TEXTS	64
/* Maximum number of probed return instructions of one allocator. */
#define MAX_ENDS 256
/* Maximum number of sites of one allocator. */
#define MAX_SITES 256
/* Maximum number of exported functions with unknown effect. */
#define ALLOCATOR_MAX_UNKNOWN 64
/* Maximum number of other functions of the file that one site may tail-call. */
#define MAX_CONTINUATIONS 16

/* Maximum number of internal return addresses; jemalloc has 528. */
#define MAX_RETURNS (1u << 16)

/* Maximum number of references of a program to its allocator. */
#define MAX_REFERENCES (1u << 18)

/* Maximum size in bytes of the core, the allocator's code in a program; the code of glibc's
 * malloc.o has 12 KiB. */
#define MAX_CORE (64u << 10)

struct addresses {
	__u64 *at;
	size_t n;
	size_t room;
};

/* The symbol chosen for a function. */
struct choice {
	bool found;
	bool is_default;
	bool is_ifunc;
	__u64 vaddr;
	__u64 size;
};

/* A function of interface.c that no C library has, or that has a prefix. */
struct site_candidate {
	const struct interface_function *interface;
	enum interface_family family;
	__u64 vaddr;
	__u64 size;
};

/* A slot of the GOT that points to a site or, if the allocator has functions other than the C
 * library's, to another function of the file. */
struct slot {
	__u64 vaddr;
	__u64 names;
	int site;     /* index of the site; -1: the slot points to no site of this file */
	__u64 target; /* another function of the file, or 0 */
};

/* A symbol and its address. */
struct symbol_definition {
	const char *name;
	__u64 vaddr;
};

/* A return instruction of a site. */
struct end {
	size_t site;
	__u64 vaddr;
};

/* A function within the core of a program. */
struct core_function {
	__u64 vaddr;
	bool is_root; /* the function belongs to the allocator, whoever calls it */
	bool is_reached, is_core;
};

/* A site that may tail-call another. */
struct edge {
	size_t from, to;
};

struct allocator_reader {
	struct allocator *allocator;
	struct elf_file *elf;
	struct elf_text texts[MAX_TEXTS];
	size_t n_texts;
	struct choice choices[AP_C_FUNCTIONS];
	struct site_candidate *candidates;
	size_t n_candidates, room_candidates;
	bool has_malloc[INTERFACE_FAMILIES], has_free[INTERFACE_FAMILIES];
	struct symbol_definition *definitions; /* sorted by name; only for described allocators */
	size_t n_definitions, room_definitions;
	struct addresses starts;
	struct addresses returns;
	struct addresses jumps; /* addresses behind direct jumps from a site to another one */
	struct slot *slots;	/* sorted by vaddr */
	size_t n_slots;
	size_t room_slots;
	/* For each site: bit n is set if a direct branch targets the address entry + n + 1. */
	__u64 branched_to[MAX_SITES];
	/* Functions that were decoded to find out whether some bytes are a branch. */
	unsigned int n_decoded;
	__u64 lowest_entry;
	__u64 highest_entry;
	/* Direct calls from this range of addresses are internal; in a program only those that
	 * functions of the allocator make. */
	__u64 core_start;
	__u64 core_end;
	struct core_function *core; /* sorted by address */
	size_t n_core, room_core;
	size_t current;			/* site whose flow is walked */
	struct addresses continuations; /* functions that this site tail-calls */
	struct end *ends;		/* return instructions of sites */
	size_t n_ends, room_ends;
	struct edge *edges;
	size_t n_edges, room_edges;
	bool leaves_unseen[MAX_SITES]; /* the site may return by unknown instructions */
	bool calls_site;	       /* result of visit_called() */
	bool is_c_library;
	/* Result of visit_forwarding(): a path returns without calling a site, so the function
	 * gets memory by itself. */
	bool gets_by_itself;
	int err; /* error of a callback that returns no value */
};

/* Target of a jump or call. */
struct way {
	const struct site *site; /* NULL: the target is no site of this file */
	__u64 names;		 /* mask of the functions that the jump or call reaches */
	__u64 target;		 /* another function of the file that a slot leads to, or 0 */
};

int addresses__add(struct addresses *addresses, __u64 vaddr);
/* Sorts the addresses and removes duplicates. */
void addresses__sort(struct addresses *addresses);

struct site *allocator__site_at(struct allocator *allocator, __u64 vaddr);
bool site__frees(const struct site *site);

/* Functions of allocator_symbols.c, which finds sites by symbols. */
int reader__choose_symbols(struct allocator_reader *reader);
/* Returns whether the file defines the malloc and free of @family. */
bool reader__has_family(const struct allocator_reader *reader, enum interface_family family);
int reader__add_sites(struct allocator_reader *reader, struct error *error);
/* Sorts the sites and finishes their fields; to be called after sites were added or removed. */
void reader__settle_sites(struct allocator_reader *reader);
int reader__add_aliases(struct allocator_reader *reader);
/* Collects the aliases of each function from all of its sites. Returns 0 or -ENOMEM. */
int allocator__collect_names(struct allocator *allocator);
int reader__add_definitions(struct allocator_reader *reader);
int reader__add_slots(struct allocator_reader *reader);

/* Functions of allocator_flow.c, which follows the control flow of the sites. */
const struct elf_text *reader__text_at(const struct allocator_reader *reader, __u64 vaddr);
int reader__decode_at(const struct allocator_reader *reader, __u64 vaddr, struct disasm_insn *out);
/* Returns whether a stub of the PLT is at @vaddr, and stores the address of its slot. */
bool reader__stub_slot(const struct allocator_reader *reader, __u64 vaddr, __u64 *slot);
/* Returns the address of the function whose code has @vaddr, or 0. */
__u64 reader__function_at(const struct allocator_reader *reader, __u64 vaddr);
struct way reader__way_of(const struct allocator_reader *reader, const struct disasm_insn *insn);
void reader__note_continuation(struct allocator_reader *reader, __u64 vaddr);
int reader__walk_flow(struct allocator_reader *reader, __u64 entry, flow_fn fn);
int reader__walk_flows(struct allocator_reader *reader);
int reader__drop_forwarding_operators(struct allocator_reader *reader);
/* Finds the core, the allocator's code in a program; all sites and the file's code must be known.
 * Returns 0 or a negative errno. */
int reader__find_core(struct allocator_reader *reader);
/* Returns whether the call that returns to @return_address is in the allocator's code. */
bool reader__is_core(const struct allocator_reader *reader, __u64 return_address);
int reader__scan_texts(struct allocator_reader *reader);

/* Finds what leads to the functions of an allocator in a program; all sites, their code and the core
 * must be known. Returns 0 or a negative errno. */
int reader__find_references(struct allocator_reader *reader);

/* Adds the sites of an allocator that a definition defines. Returns 0; -ENOENT if the file has
 * none; or another negative errno. */
int reader__add_definition_sites(struct allocator_reader *reader, struct error *error);

/* Function of allocator_place.c: selects the instruction of a site that is probed. @branched_to is
 * as in struct allocator_reader. */
void reader__place_probe(const struct allocator_reader *reader, struct site *site,
			 __u64 branched_to, enum site_policy policy);

/* Finds how and where the returns of all sites are probed. Returns 0 or a negative errno. */
int reader__find_ends(struct allocator_reader *reader);
/* Does the same for the functions of a definition. Returns -ENOTSUP if the definition nests
 * functions whose returns cannot be found. */
int reader__find_definition_ends(struct allocator_reader *reader, struct error *error);

/* Sets allocator.is_bypassed. Returns 0 or a negative errno. */
int reader__find_bypass(struct allocator_reader *reader);

/* Finds exported functions with names like those of interface.c. Returns 0 or a negative errno. */
int reader__find_unknown(struct allocator_reader *reader);

/* Writes @allocator as bytes for another process. */

void allocator__write(const struct allocator *allocator, struct wire_writer *to);

/*
 * Reads the allocator that allocator__write() wrote, of the file at @path with the executable code
 * @parts; @definition is the definition that was asked for, or NULL. The caller frees *@out.
 * Returns 0; -EPROTO if the worker, which is not to be trusted, says what cannot be true; or
 * -ENOMEM.
 */
int allocator__take(struct wire_reader *from, const char *path, const struct definition *definition,
		    const struct executable_parts *parts, struct allocator **out);

/* Detects well-known allocators in stripped programs, and in libraries that do not export them. */

/*
 * Returns the name of the allocator in the file @fd if its functions have no names, recognized by
 * the text of its messages. The file is a dynamically linked program whose symbols were stripped,
 * or a library that defines no malloc. Returns NULL if there is no such allocator.
 */
const char *hidden_allocator__find(int fd, const char *path);

/* Returns the number of a name that hidden_allocator__find() returned. The second function returns
 * the name of a number, or NULL if there is none. */
size_t hidden_allocator__number(const char *name);
const char *hidden_allocator__at(size_t number);

#endif
