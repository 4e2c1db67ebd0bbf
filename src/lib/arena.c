// SPDX-License-Identifier: GPL-3.0-or-later
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

#define BLOCK_BYTES 65536

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	_Alignas(max_align_t) char bytes[];
};

void arena__release(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	free(arena->strings);
	hash_table__release(&arena->index);
	*arena = (struct arena){ 0 };
}

void *arena__alloc(struct arena *arena, size_t size)
{
	const size_t unit = _Alignof(max_align_t);
	struct arena_block *block = arena->blocks;
	size_t room;
	void *bytes;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + unit - 1) / unit * unit;
	if (!block || block->size - block->used < size) {
		room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		block = calloc(1, sizeof(*block) + room);
		if (!block)
			return NULL;
		block->size = room;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	bytes = block->bytes + block->used;
	block->used += size;
	return bytes;
}

struct piece {
	const char *text;
	size_t size;
};

static bool match_string(const void *owner, __u32 id, const void *key)
{
	const char *string = ((const struct arena *)owner)->strings[id - 1];
	const struct piece *piece = key;

	return !strncmp(string, piece->text, piece->size) && !string[piece->size];
}

const char *arena__string(struct arena *arena, const char *text, size_t size)
{
	struct piece piece = { text, strnlen(text, size) };
	__u64 hash;
	__u32 id;
	char *copy;

	if (!arena->seed)
		arena->seed = hash_seed() | 1;
	hash = hash_bytes(hash_mix(arena->seed, piece.size), text, piece.size);
	id = hash_table__find(&arena->index, hash, match_string, arena, &piece);
	if (id)
		return arena->strings[id - 1];
	if (array__reserve(&arena->strings, &arena->strings_room, arena->n_strings + 1,
			   sizeof(*arena->strings)))
		return NULL;
	copy = arena__alloc(arena, piece.size + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, piece.size);
	if (hash_table__insert(&arena->index, hash, arena->n_strings + 1))
		return NULL;
	arena->strings[arena->n_strings++] = copy;
	return copy;
}
