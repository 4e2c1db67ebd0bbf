/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds functions of an ELF file by their machine code: where they begin, what they call, and how
 * they end.
 */
#ifndef ALLOCPROF_CODE_MAP_H
#define ALLOCPROF_CODE_MAP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct code_map;
struct elf_file;

/* The target of a call or jump: a function of the same file, or a symbol that the dynamic linker
 * resolves. */
struct code_target {
	__u64 entry;	  /* vaddr; 0: it is known only by name */
	const char *name; /* borrowed from the map; NULL: unknown */
};

/* A tail call: a jump from the function to another one, which returns to the function's caller. */
struct code_exit {
	__u64 site; /* vaddr behind the jump */
	struct code_target target;
};

/* Makes the map and takes over @elf, even on failure. Returns 0 or -ENOMEM. */
int code_map__new(struct elf_file *elf, struct code_map **out);
void code_map__free(struct code_map *map);

/* Stores the entry of the last function that begins at or before @vaddr. Returns false if that is
 * a split-off part. */
bool code_map__function(struct code_map *map, __u64 vaddr, __u64 *entry);

/* Returns whether @vaddr certainly belongs to the function at @entry. */
bool code_map__has(struct code_map *map, __u64 entry, __u64 vaddr);

/* Stores the target of the call that returns to @vaddr. Returns false if the call is indirect, or
 * there is none. */
bool code_map__call(struct code_map *map, __u64 vaddr, struct code_target *out);

/* Stores the entry of the function that the file exports as @name. Returns false if there is none,
 * or it is an ifunc. */
bool code_map__exported(const struct code_map *map, const char *name, __u64 *entry);

/* Returns whether a symbol called @name is at @entry. */
bool code_map__is_named(const struct code_map *map, __u64 entry, const char *name);

/* Stores all tail calls of the function at @entry, at most @max. Returns how many there are;
 * -ENOENT if that is uncertain (too many, an indirect jump, or code that cannot be followed), or
 * -ENOMEM. */
int code_map__exits(struct code_map *map, __u64 entry, struct code_exit *exits, int max);

#endif
