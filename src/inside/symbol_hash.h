/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds dynamic symbols by name in the hash tables of DT_GNU_HASH and DT_HASH. The functions are
 * inline: allocprof attaches with some thousands of look-ups, for which the process stands still, and
 * each of them would call a function for every word that it reads.
 */
#ifndef ALLOCPROF_INSIDE_SYMBOL_HASH_H
#define ALLOCPROF_INSIDE_SYMBOL_HASH_H

#include <elf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Hash tables of symbols, and how to read them. */
struct symbol_hash {
	/* Addresses of the two tables; 0: there is none. */
	Elf64_Addr gnu_hash, hash;
	int max_chain; /* how many symbols with one hash are looked at */
	/* Copies the @size bytes at @address to @out. Returns false if they cannot be read. */
	bool (*read)(const void *memory, Elf64_Addr address, void *out, size_t size);
	/* Returns whether the symbol number @index has the name @name and is one that the caller
	 * wants. */
	bool (*is)(const void *memory, __u32 index, const char *name);
};

static inline bool symbol_hash__read_word(const struct symbol_hash *in, const void *memory,
					  Elf64_Addr array, __u64 index, __u32 *out)
{
	return in->read(memory, array + index * sizeof(*out), out, sizeof(*out));
}

/* Returns the name's hash in DT_GNU_HASH. */
static inline __u32 symbol_name__gnu_hash(const char *name)
{
	__u32 hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

/* Returns the name's hash in DT_HASH. */
static inline __u32 symbol_name__sysv_hash(const char *name)
{
	__u32 hash = 0;

	while (*name) {
		hash = (hash << 4) + (unsigned char)*name++;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	return hash;
}

/* Looks into the Bloom filter of DT_GNU_HASH: returns false if no symbol has that hash. */
static inline bool symbol_hash__may_have(const struct symbol_hash *in, const void *memory,
					 Elf64_Addr words, const __u32 head[4], __u32 hash)
{
	__u64 word;

	return head[2] &&
	       in->read(memory, words + hash / 64 % head[2] * sizeof(word), &word, sizeof(word)) &&
	       word >> hash % 64 & word >> (hash >> (head[3] & 31)) % 64 & 1;
}

static inline __u32 symbol_hash__find_gnu(const struct symbol_hash *in, const void *memory,
					  const char *name, __u32 hash)
{
	/* @head: number of buckets, index of the first symbol, words of the filter, shift */
	__u32 head[4], index, value;
	Elf64_Addr words = in->gnu_hash + sizeof(head), buckets, chains;

	if (!in->read(memory, in->gnu_hash, head, sizeof(head)) || !head[0] ||
	    !symbol_hash__may_have(in, memory, words, head, hash))
		return 0;
	buckets = words + (__u64)head[2] * sizeof(__u64);
	chains = buckets + (__u64)head[0] * sizeof(__u32);
	if (!symbol_hash__read_word(in, memory, buckets, hash % head[0], &index) || index < head[1])
		return 0;
	for (int i = 0; i < in->max_chain &&
			symbol_hash__read_word(in, memory, chains, index - head[1], &value);
	     i++, index++) {
		if ((value | 1) == (hash | 1) && in->is(memory, index, name))
			return index;
		if (value & 1)
			break;
	}
	return 0;
}

static inline __u32 symbol_hash__find_sysv(const struct symbol_hash *in, const void *memory,
					   const char *name)
{
	__u32 head[2], index; /* @head: number of buckets, number of symbols */
	Elf64_Addr buckets = in->hash + sizeof(head);

	if (!in->read(memory, in->hash, head, sizeof(head)) || !head[0] ||
	    !symbol_hash__read_word(in, memory, buckets, symbol_name__sysv_hash(name) % head[0],
				    &index))
		return 0;
	for (int i = 0; i < in->max_chain && index && index < head[1]; i++) {
		if (in->is(memory, index, name))
			return index;
		if (!symbol_hash__read_word(in, memory, buckets, (__u64)head[0] + index, &index))
			break;
	}
	return 0;
}

/* Returns the index of the symbol @name, or 0 if there is none. @gnu_hash is the name's
 * symbol_name__gnu_hash(). @memory is passed to the functions of @in. */
static inline __u32 symbol_hash__find(const struct symbol_hash *in, const void *memory,
				      const char *name, __u32 gnu_hash)
{
	if (in->gnu_hash)
		return symbol_hash__find_gnu(in, memory, name, gnu_hash);
	return in->hash ? symbol_hash__find_sysv(in, memory, name) : 0;
}

#endif
