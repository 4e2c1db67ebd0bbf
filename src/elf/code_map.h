/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions of one ELF file by their machine code: where they begin, what they call, how they end. */
#ifndef ALLOCPROF_CODE_MAP_H
#define ALLOCPROF_CODE_MAP_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct code_map;
struct disasm;
struct elf_file;

/* What a call or jump leads to: a function of the same file, or what the dynamic linker finds by a name. */
struct code_target {
	__u64 entry;	  /* 0: by name */
	const char *name; /* borrowed from the map; NULL: neither is known */
};

/* A jump by which a function ends, and enters another in its own caller's place. */
struct code_exit {
	__u64 site; /* behind the jump */
	struct code_target target;
};

/* The map owns @elf from now on, also where it fails. @disasm is to outlive it. 0 or -ENOMEM. */
int code_map__new(struct elf_file *elf, struct disasm *disasm, struct code_map **out);
void code_map__free(struct code_map *map);

/* The entry of the function that begins last before @vaddr. False where that is a part of one that was split off. */
bool code_map__function(struct code_map *map, __u64 vaddr, __u64 *entry);

/* Whether the function at @entry has the code at @vaddr, for certain. */
bool code_map__has(struct code_map *map, __u64 entry, __u64 vaddr);

/* What the call that returns to @vaddr leads to. False where it is indirect, or is none. */
bool code_map__call(struct code_map *map, __u64 vaddr, struct code_target *out);

/* The function that the file exports as @name. False where it exports none, or has a choice of them (an ifunc). */
bool code_map__exported(const struct code_map *map, const char *name, __u64 *entry);

/* Whether a symbol @name is at @entry. */
bool code_map__is_named(const struct code_map *map, __u64 entry, const char *name);

/*
 * All jumps by which the function at @entry may end, up to @max of them. Returns their number, -ENOENT where that is
 * not certain (there are more, or an indirect one, or not all of its code can be followed), or -ENOMEM.
 */
int code_map__exits(struct code_map *map, __u64 entry, struct code_exit *exits, int max);

#endif
