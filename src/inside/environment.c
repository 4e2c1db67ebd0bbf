// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "environment.h"

#include "code.h"
#include "inside_abi.h"
#include "objects.h"
#include "sys.h"

static const char variable[] = "LD_PRELOAD=";

char ***environment__variable(void)
{
	static char ***found;
	char ***at = __atomic_load_n(&found, __ATOMIC_RELAXED);

	if (at)
		return at;
	/* A program may have a copy of it, which comes first in the list. */
	at = objects__find("environ");
	if (!at)
		at = objects__find("__environ");
	__atomic_store_n(&found, at, __ATOMIC_RELAXED);
	return at;
}

static bool ends_word(char c)
{
	return !c || c == ':' || c == ' ';
}

/* The length of this library's path where @text begins with it as a word, or 0. */
static size_t own_word(const char *text, const char *directory)
{
	static const char *const names[] = { "/" INSIDE_LIBRARY, "/" INSIDE_OTHER };
	size_t length = text__length(directory);

	if (!text__begins(text, directory))
		return 0;
	for (int i = 0; i < 2; i++)
		if (text__begins(text + length, names[i]) &&
		    ends_word(text[length + text__length(names[i])]))
			return length + text__length(names[i]);
	return 0;
}

/* Removes this library from a value of LD_PRELOAD. */
static void remove_own(char *value, const char *directory)
{
	while (*value) {
		size_t length = own_word(value, directory);
		char *from = value + length, *to = value;

		if (!length) {
			while (!ends_word(*value))
				value++;
			value += !!*value;
			continue;
		}
		from += !!*from;
		while ((*to++ = *from++))
			;
	}
}

bool environment__is_preload(const char *entry)
{
	return text__begins(entry, variable);
}

bool environment__hide(const char *directory)
{
	char ***at = environment__variable();
	char **entry, **to;

	if (!at || !*at)
		return false;
	for (entry = to = *at; *entry; entry++) {
		if (environment__is_preload(*entry)) {
			char *value = *entry + sizeof(variable) - 1;
			size_t length = text__length(value), left;

			remove_own(value, directory);
			left = text__length(value);
			/* /proc/self/environ has the whole text. */
			memset(value + left, 0, length - left);
			if (length && !left) {
				memset(*entry, 0, sizeof(variable));
				continue;
			}
		}
		*to++ = *entry;
	}
	*to = NULL;
	return true;
}

bool environment__has(char *const *environment, const char *directory)
{
	for (; environment && *environment; environment++)
		if (environment__is_preload(*environment))
			return own_word(*environment + sizeof(variable) - 1, directory);
	return false;
}

/* Returns how many bytes could be read of @size. */
static size_t read_some(void *out, const void *from, size_t size)
{
	long n = memory__read_some((__u64)from, out, size);

	if (n >= 0 || n == -EFAULT)
		return n > 0 ? n : 0;
	/* The kernel has no such system call. */
	for (size_t i = 0; i < size; i++)
		((char *)out)[i] = ((const char *)from)[i];
	return size;
}

/* ld.so(8): it lists libraries, and this one would be in the list. */
static const char traces[] = "LD_TRACE_LOADED_OBJECTS=";

/* The beginning of an entry. */
struct entry_head {
	char text[sizeof(traces)];
};

static struct entry_head read_head(const char *entry)
{
	struct entry_head head = { 0 };

	read_some(head.text, entry, sizeof(head.text) - 1);
	return head;
}

static bool is_readable_preload(const char *entry)
{
	return environment__is_preload(read_head(entry).text);
}

/* Entries that are read at a time: a page's end is at the end of one. */
#define READ_ENTRIES 32

/* Reads up to @most entries, fewer where the NULL comes first. Returns how many, or -EFAULT. */
static long read_entries(char *const *from, char **out, size_t most)
{
	size_t n = 0;

	while (n < most) {
		size_t wanted = most - n < READ_ENTRIES ? most - n : READ_ENTRIES;
		size_t got = read_some(out + n, from + n, wanted * sizeof(*out)) / sizeof(*out);

		if (!got)
			return -EFAULT;
		while (got--) {
			if (!out[n])
				return n;
			n++;
		}
	}
	return n;
}

bool environment__look(struct environment *out, char *const *entries, const char *directory)
{
	char *some[READ_ENTRIES];
	long got = entries ? READ_ENTRIES : 0;

	*out = (struct environment){ .entries = entries, .preloaded = "" };
	while (got == READ_ENTRIES) {
		got = read_entries(entries + out->n, some, READ_ENTRIES);
		for (long i = 0; i < got; i++) {
			struct entry_head head = read_head(some[i]);

			out->traces |= text__begins(head.text, traces);
			if (out->entry || !environment__is_preload(head.text))
				continue;
			out->entry = some[i];
			out->preloaded = some[i] + sizeof(variable) - 1;
		}
		out->n += got > 0 ? got : 0;
	}
	out->has_library = own_word(out->preloaded, directory);
	out->text_bytes = sizeof(variable) + text__length(out->preloaded);
	return got >= 0;
}

/* Puts LD_PRELOAD together at @text, which has room up to @stop; false if it has no value. */
static bool put_together(const struct environment *environment, const char *directory,
			 const char *name, char *text, const char *stop)
{
	const char *others = environment->preloaded;
	size_t length = own_word(others, directory);
	char *end = text__append(text, stop, variable);

	others += length + (length && others[length]);
	if (name) {
		end = text__append(end, stop, directory);
		end = text__append(end, stop, "/");
		end = text__append(end, stop, name);
		if (*others)
			end = text__append(end, stop, ":");
	}
	text__append(end, stop, others);
	return name || *others;
}

bool environment__fill(const struct environment *environment, const char *directory,
		       const char *name, char **out, char *text)
{
	const char *stop = text + environment__text_bytes(environment, directory, name);
	bool has_text = put_together(environment, directory, name, text, stop);
	long n = environment->n ? read_entries(environment->entries, out, environment->n) : 0;
	char **to = out;

	for (long i = 0; i < n; i++) {
		if (!is_readable_preload(out[i])) {
			*to++ = out[i];
		} else if (has_text) {
			*to++ = text;
			has_text = false;
		}
	}
	if (has_text)
		*to++ = text;
	*to = NULL;
	return n >= 0;
}

size_t environment__text_bytes(const struct environment *environment, const char *directory,
			       const char *name)
{
	return environment->text_bytes +
	       (name ? text__length(directory) + sizeof("/:") + text__length(name) : 0);
}
