// SPDX-License-Identifier: GPL-3.0-or-later
#include "perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "jit_query.h"
#include "text.h"

/* Largest map that is read; a large node program writes some 10 MiB. */
#define MAX_FILE_BYTES (128UL << 20)

struct entry {
	__u64 start, end;
	const char *name;
};

struct perf_map {
	char *text;
	struct entry *entries; /* in the order of the file */
	size_t n, room;
};

/* Parses a hexadecimal number and the space after it. */
static bool read_number(char **at, __u64 *number)
{
	__u64 value = 0;
	int digits = 0;
	char *c = *at;

	if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	for (;; c++, digits++) {
		int digit;

		if (*c >= '0' && *c <= '9')
			digit = *c - '0';
		else if ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'f')
			digit = (*c | 0x20) - 'a' + 10;
		else
			break;
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	if (!digits || *c != ' ')
		return false;
	*at = c + 1;
	*number = value;
	return true;
}

static int add_line(struct perf_map *map, char *line)
{
	struct entry entry;
	__u64 size;

	if (!read_number(&line, &entry.start) || !read_number(&line, &size) || !*line || !size ||
	    __builtin_add_overflow(entry.start, size, &entry.end))
		return 0;
	if (array__reserve(&map->entries, &map->room, map->n + 1, sizeof(*map->entries)))
		return -ENOMEM;
	if (strlen(line) > JIT_NAME_BYTES)
		line[JIT_NAME_BYTES] = '\0';
	utf8__clean(line);
	entry.name = line;
	map->entries[map->n++] = entry;
	return 0;
}

int perf_map__read(int fd, struct perf_map **out)
{
	struct perf_map *map = calloc(1, sizeof(*map));
	size_t size;
	char *end;
	int err;

	if (!map)
		return -ENOMEM;
	err = text_file__read(fd, MAX_FILE_BYTES, &map->text, &size);
	/* Ignores a last line without newline, which may be incomplete. */
	for (char *line = map->text; !err && (end = memchr(line, '\n', size - (line - map->text)));
	     line = end + 1) {
		*end = '\0';
		err = add_line(map, line);
	}
	if (err) {
		perf_map__free(map);
		return err;
	}
	*out = map;
	return 0;
}

void perf_map__free(struct perf_map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->text);
	free(map);
}

/* Returns the first query from @i on without a name. @next caches links that skip named ones. */
static size_t find_open(size_t *next, size_t i)
{
	size_t open = i;

	while (next[open] != open)
		open = next[open];
	while (next[i] != open) {
		size_t after = next[i];

		next[i] = open;
		i = after;
	}
	return open;
}

int perf_map__look_up(const struct perf_map *map, struct jit_query *queries, size_t n)
{
	_cleanup_(free_ptr) size_t *next = calloc(n + 1, sizeof(*next));

	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i <= n; i++)
		next[i] = i;
	for (size_t i = 0; i < n; i++)
		queries[i].name = NULL;
	for (size_t i = map->n; i--;) {
		const struct entry *entry = &map->entries[i];
		size_t low = ARRAY_LOWER_BOUND(n, at, queries[at].address < entry->start);

		for (low = find_open(next, low); low < n && queries[low].address < entry->end;
		     low = find_open(next, low)) {
			queries[low].name = entry->name;
			next[low] = low + 1;
		}
	}
	return 0;
}
