/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of allocator*.c: an allocator while it is read. */
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

/* jemalloc has 528. */
#define MAX_RETURNS (1u << 16)

/* The code of glibc's malloc.o has 12 KiB. */
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

/* A GOT slot that points to a site or, where the allocator has an interface of its own, to another
 * function of the file. */
struct slot {
	__u64 vaddr;
	__u64 names;
	int site;     /* index, -1: no site of this file */
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
	bool is_root; /* the allocator's, whoever calls it */
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
	struct slot *slots; /* sorted by vaddr */
	size_t n_slots;
	size_t room_slots;
	/* Per site: bit n is set if a direct branch targets entry + n + 1. */
	__u64 branched_to[MAX_SITES];
	unsigned int n_decoded; /* functions decoded to find out whether bytes are a branch */
	__u64 lowest_entry;
	__u64 highest_entry;
	/* Direct calls from this range are internal; in a program only those that functions of the allocator make. */
	__u64 core_start;
	__u64 core_end;
	struct core_function *core; /* sorted by address */
	size_t n_core, room_core;
	size_t current;			/* site whose flow is walked */
	struct addresses continuations; /* functions that it tail-calls */
	struct end *ends;		/* return instructions of sites */
	size_t n_ends, room_ends;
	struct edge *edges;
	size_t n_edges, room_edges;
	bool leaves_unseen[MAX_SITES]; /* the site may return by unknown instructions */
	bool calls_site;	       /* result of visit_called() */
	bool is_c_library;
	/* Result of visit_forwarding(): a path returns without calling a site. */
	bool gets_by_itself;
	int err; /* of a callback without a return value */
};

/* Target of a jump or call. */
struct way {
	const struct site *site; /* NULL: no site of this file */
	__u64 names;		 /* mask of the functions that it reaches */
	__u64 target;		 /* another function of the file, by a slot, or 0 */
};

int addresses__add(struct addresses *addresses, __u64 vaddr);
/* Sorts and removes duplicates. */
void addresses__sort(struct addresses *addresses);
int addresses__compare(const void *a, const void *b);

/* The C library function @name, or AP_C_FUNCTIONS. */
enum ap_function c_function_of(const char *name);
struct site *allocator__site_at(struct allocator *allocator, __u64 vaddr);
bool site__frees(const struct site *site);

/* allocator_symbols.c: sites by symbols. */
/* Adds a site with these values, and zeroes elsewhere; reader__settle_sites() must follow. */
int reader__add_site(struct allocator_reader *reader, enum ap_function function, const char *name,
		     __u64 vaddr, __u64 size, struct error *error);
int reader__choose_symbols(struct allocator_reader *reader);
/* Whether the file defines this family's malloc and free. */
bool reader__has_family(const struct allocator_reader *reader, enum interface_family family);
int reader__add_sites(struct allocator_reader *reader, struct error *error);
/* To be called after sites were added or removed. */
void reader__settle_sites(struct allocator_reader *reader);
int reader__add_aliases(struct allocator_reader *reader);
/* Collects the aliases of each function over its sites. 0 or -ENOMEM. */
int allocator__collect_names(struct allocator *allocator);
int reader__add_definitions(struct allocator_reader *reader);
int reader__add_slots(struct allocator_reader *reader);

/* allocator_flow.c: control flow of the sites. */
const struct elf_text *reader__text_at(const struct allocator_reader *reader, __u64 vaddr);
int reader__decode_at(const struct allocator_reader *reader, __u64 vaddr, struct disasm_insn *out);
/* The function that has @vaddr, or 0. */
__u64 reader__function_at(const struct allocator_reader *reader, __u64 vaddr);
struct way reader__way_of(const struct allocator_reader *reader, const struct disasm_insn *insn);
void reader__note_continuation(struct allocator_reader *reader, __u64 vaddr);
int reader__walk_flow(struct allocator_reader *reader, __u64 entry, flow_fn fn);
int reader__walk_flows(struct allocator_reader *reader);
int reader__drop_forwarding_operators(struct allocator_reader *reader);
/* Finds the core: needs all sites and the file's code. 0 or a negative errno. */
int reader__find_core(struct allocator_reader *reader);
/* Whether the code that a call returns to @return_address in is the allocator's. */
bool reader__is_core(const struct allocator_reader *reader, __u64 return_address);
int reader__scan_texts(struct allocator_reader *reader);

/* Sites of a defined allocator. -ENOENT: there are none. */
int reader__add_definition_sites(struct allocator_reader *reader, struct error *error);

/* allocator_place.c: selects the probed instruction. @branched_to as in struct allocator_reader. */
void reader__place_probe(const struct allocator_reader *reader, struct site *site,
			 __u64 branched_to, enum site_policy policy);

/* How and where returns are probed. */
int reader__find_ends(struct allocator_reader *reader);
/* The same for functions of a definition. -ENOTSUP if its nesting needs returns that cannot be found. */
int reader__find_definition_ends(struct allocator_reader *reader, struct error *error);

/* Sets is_bypassed. */
int reader__find_bypass(struct allocator_reader *reader);

/* Exported functions with names like those of interface.c. */
int reader__find_unknown(struct allocator_reader *reader);

/* Allocators as bytes. */

void allocator__write(const struct allocator *allocator, struct wire_writer *to);

/*
 * The allocator back, of the file at @path with code in @parts, where @definition is what was asked for or NULL. -EPROTO: a
 * worker that is not to be trusted says what cannot be; -ENOMEM.
 */
int allocator__take(struct wire_reader *from, const char *path, const struct definition *definition,
		    const struct executable_parts *parts, struct allocator **out);

/* Detects well-known allocators in stripped programs, and in libraries that do not export them. */

/*
 * Name of the allocator in the file @fd, by the text of its messages, where its functions have no names: of a dynamically
 * linked program whose symbols were stripped, or of a library that defines no malloc. NULL if there is none.
 */
const char *hidden_allocator__find(int fd, const char *path);

/* The number of a name from above; and back, NULL if there is none. */
size_t hidden_allocator__number(const char *name);
const char *hidden_allocator__at(size_t number);

#endif
