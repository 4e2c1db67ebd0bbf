// SPDX-License-Identifier: GPL-3.0-or-later
#include "folded_names.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Replaces unsafe characters (allocprof-folded(1)) and appends @terminator, for which there must be
 * room. */
static void make_safe(char *name, char terminator)
{
	unsigned char *to = (unsigned char *)name;
	const unsigned char *at = to;

	while (*at) {
		size_t size = *at < 0x80 ? 0 : utf8__printable((const char *)at);

		if (size) {
			memmove(to, at, size);
			to += size;
			at += size;
			continue;
		}
		if (*at == ' ' && to != (unsigned char *)name && to[-1] == ',') {
			at++;
			continue;
		}
		if (*at == ';')
			*to = ':';
		else if (strchr(" \t\n\v\f\r", *at))
			*to = '_';
		else if (*at < 0x20 || *at >= 0x7f)
			*to = '?';
		else
			*to = *at;
		to++;
		at++;
	}
	*to++ = terminator;
	*to = '\0';
}

char *folded_name__new(const char *name, char terminator)
{
	size_t len;
	char *copy;

	if (!*name)
		name = "[unknown]";
	len = strlen(name);
	copy = malloc(len + 2);
	if (!copy)
		return NULL;
	memcpy(copy, name, len + 1);
	make_safe(copy, terminator);
	return copy;
}

static int compare_texts(const void *a, const void *b, void *context)
{
	const struct folded_names *names = context;

	return strcmp(names->texts[*(const __u32 *)a], names->texts[*(const __u32 *)b]);
}

int folded_names__make(struct folded_names *names, size_t n,
		       char *(*text)(size_t index, const void *context), const void *context)
{
	__u32 rank = 0;

	*names = (struct folded_names){ .n = n };
	if (n > UINT32_MAX)
		return -ENOMEM;
	names->texts = calloc(n + 1, sizeof(*names->texts));
	names->order = calloc(n + 1, sizeof(*names->order));
	names->ranks = calloc(n + 1, sizeof(*names->ranks));
	if (!names->texts || !names->order || !names->ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		names->texts[i] = text(i, context);
		if (!names->texts[i])
			return -ENOMEM;
		names->order[i] = i;
	}
	qsort_r(names->order, n, sizeof(*names->order), compare_texts, names);
	for (size_t i = 0; i < n; i++) {
		if (i && strcmp(folded_names__text(names, i), folded_names__text(names, i - 1)))
			rank = i;
		names->ranks[names->order[i]] = rank;
	}
	return 0;
}

void folded_names__release(struct folded_names *names)
{
	for (size_t i = 0; names->texts && i < names->n; i++)
		free(names->texts[i]);
	free(names->texts);
	free(names->order);
	free(names->ranks);
}
