// SPDX-License-Identifier: GPL-3.0-or-later
#include "string_ids.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

static bool match(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct string_ids *)owner)->texts[id - 1], key);
}

int string_ids__add(struct string_ids *ids, const char *text, __u32 *id)
{
	__u64 hash;

	if (!ids->n)
		ids->seed = hash_seed();
	hash = hash_string(ids->seed, text);
	*id = hash_table__find(&ids->index, hash, match, ids, text);
	if (*id)
		return 0;
	if (ids->n >= UINT32_MAX ||
	    array__reserve(&ids->texts, &ids->room, ids->n + 1, sizeof(*ids->texts)) ||
	    hash_table__insert(&ids->index, hash, ids->n + 1))
		return -ENOMEM;
	ids->texts[ids->n++] = text;
	*id = ids->n;
	return 0;
}

void string_ids__release(struct string_ids *ids)
{
	free(ids->texts);
	hash_table__release(&ids->index);
}
