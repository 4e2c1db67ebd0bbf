/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Functions of an ELF file by their machine code: where they begin, what they call, how they end.
 */
#ifndef ALLOCPROF_CODE_MAP_H
#define ALLOCPROF_CODE_MAP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct code_map;
struct elf_file;

/* Target of a call or jump: a function of the same file, or a symbol that the dynamic linker
 * resolves. */
struct code_target {
	__u64 entry;	  /* vaddr; 0: known by name only */
	const char *name; /* borrowed from the map; NULL: unknown */
};

/* A tail call: a jump from the function to another one, which returns to the function's caller. */
struct code_exit {
	__u64 site; /* vaddr after the jump */
	struct code_target target;
};

/* Takes ownership of @elf, also on failure. 0 or -ENOMEM. */
int code_map__new(struct elf_file *elf, struct code_map **out);
void code_map__free(struct code_map *map);

/* The entry of the last function that begins at or before @vaddr. False if that is a split-off
 * part. */
bool code_map__function(struct code_map *map, __u64 vaddr, __u64 *entry);

/* Whether @vaddr certainly belongs to the function at @entry. */
bool code_map__has(struct code_map *map, __u64 entry, __u64 vaddr);

/* The target of the call that returns to @vaddr. False if it is indirect or no call. */
bool code_map__call(struct code_map *map, __u64 vaddr, struct code_target *out);

/* The function that the file exports as @name. False if there is none, or if it is an ifunc. */
bool code_map__exported(const struct code_map *map, const char *name, __u64 *entry);

/* Whether a symbol @name is at @entry. */
bool code_map__is_named(const struct code_map *map, __u64 entry, const char *name);

/* All tail calls of the function at @entry, up to @max of them. Returns their number, -ENOENT if
 * that is uncertain (too many, an indirect jump, or code that cannot be followed), or -ENOMEM. */
int code_map__exits(struct code_map *map, __u64 entry, struct code_exit *exits, int max);

#endif
