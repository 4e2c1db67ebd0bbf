/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files allocator*.c share: an allocator while it is read. */
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

#define MAX_ALIASES	64
#define MAX_SYMBOL_NAME 256
#define MAX_TEXTS	64
/* Return instructions of one allocator at the most that are probed. */
#define MAX_ENDS 256
/* Sites of one allocator at the most. */
#define MAX_SITES 256
/* Other functions of the file that one of them may end in jumps to, at the most. */
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

/* A function of the table that is none of a C library's, or has a prefix. */
struct site_candidate {
	const struct interface_function *interface;
	enum interface_family family;
	__u64 vaddr;
	__u64 size;
};

/* A GOT slot that leads to probed functions, or, where the allocator has an interface of its own, to others of
 * the file. */
struct slot {
	__u64 vaddr;
	__u64 names;
	int site;     /* index, -1: none of this file */
	__u64 target; /* of a function that is no site, or 0 */
};

/* A name and where it is. */
struct definition {
	const char *name;
	__u64 vaddr;
};

/* A return instruction of site @site. */
struct end {
	size_t site;
	__u64 vaddr;
};

/* A site that may end in a jump to another. */
struct edge {
	size_t from, to;
};

struct allocator_reader {
	struct allocator *allocator;
	struct elf_file *elf;
	struct disasm *disasm;
	struct elf_text texts[MAX_TEXTS];
	size_t n_texts;
	struct choice choices[AP_C_FUNCTIONS];
	struct site_candidate *candidates;
	size_t n_candidates, room_candidates;
	bool has_malloc[INTERFACE_FAMILIES], has_free[INTERFACE_FAMILIES];
	struct definition *definitions; /* by name; only where it is described */
	size_t n_definitions, room_definitions;
	struct addresses starts;
	struct addresses returns;
	struct slot *slots;
	size_t n_slots;
	size_t room_slots;
	/* For each site the distances from its entry, less one, that a direct branch leads to. */
	__u64 branched_to[MAX_SITES];
	__u64 lowest_entry;
	__u64 highest_entry;
	/* Direct calls from here are the allocator's own. */
	__u64 core_start;
	__u64 core_end;
	size_t current;			/* the site whose flow is walked */
	struct addresses continuations; /* functions that it ends in a jump to */
	struct end *ends;		/* of the allocating functions */
	size_t n_ends, room_ends;
	struct edge *edges;
	size_t n_edges, room_edges;
	bool leaves_unseen[MAX_SITES]; /* it may return by other means too */
	bool calls_site;	       /* found by visit_called() */
	bool is_c_library;
	bool gets_by_itself; /* visit_forwarding() met a way without a call of another site */
	int err;	     /* of a callback that cannot return one */
};

/* Where a jump or a call leads. */
struct way {
	const struct site *site; /* NULL: to none of this file */
	__u64 names;		 /* mask of the functions that are reached */
	__u64 target;		 /* another function of the file that a slot names, or 0 */
};

int addresses__add(struct addresses *addresses, __u64 vaddr);
/* Each once. */
void addresses__sort(struct addresses *addresses);
int addresses__compare(const void *a, const void *b);

/* The function of a C library that is called so, AP_C_FUNCTIONS where none is. */
enum ap_function c_function_of(const char *name);
struct site *allocator__site_at(struct allocator *allocator, __u64 vaddr);
bool site__frees(const struct site *site);

/* allocator_symbols.c: what the symbols say. */
/* Zeroed but for what the arguments say; sites are to be settled then. */
int reader__add_site(struct allocator_reader *reader, enum ap_function function, const char *name,
		     __u64 vaddr, __u64 size, struct error *error);
int reader__choose_symbols(struct allocator_reader *reader);
/* Whether the file defines that allocator. */
bool reader__has_family(const struct allocator_reader *reader, enum interface_family family);
int reader__add_sites(struct allocator_reader *reader, struct error *error);
/* After sites were added or removed. */
void reader__settle_sites(struct allocator_reader *reader);
int reader__add_aliases(struct allocator_reader *reader);
int reader__add_definitions(struct allocator_reader *reader);
int reader__add_slots(struct allocator_reader *reader);

/* allocator_flow.c: what the code does. */
const struct elf_text *reader__text_at(const struct allocator_reader *reader, __u64 vaddr);
int reader__decode_at(const struct allocator_reader *reader, __u64 vaddr, struct disasm_insn *out);
struct way reader__way_of(const struct allocator_reader *reader, const struct disasm_insn *insn);
void reader__note_continuation(struct allocator_reader *reader, __u64 vaddr);
int reader__walk_flow(struct allocator_reader *reader, __u64 entry, flow_fn fn);
int reader__walk_flows(struct allocator_reader *reader);
int reader__drop_forwarding_operators(struct allocator_reader *reader);
int reader__scan_texts(struct allocator_reader *reader);

/* allocator_source.c: the sites of a source. -ENOENT: there are none. */
int reader__add_source_sites(struct allocator_reader *reader, struct error *error);

/* allocator_place.c: where a site is probed. @branched_to as in struct allocator_reader. */
void reader__place(const struct allocator_reader *reader, struct site *site, __u64 branched_to,
		   enum site_policy policy);

/* allocator_returns.c: how returns are to be seen, and where. */
int reader__find_ends(struct allocator_reader *reader);
/* The same of a source: -ENOTSUP where its nesting needs what cannot be told. */
int reader__find_source_ends(struct allocator_reader *reader, struct error *error);

/* allocator_unknown.c: functions that look as if they belonged to the table. */
int reader__find_unknown(struct allocator_reader *reader);

#endif
