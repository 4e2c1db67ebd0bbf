// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "environment.h"

#include "inside_abi.h"
#include "objects.h"
#include "stack.h"
#include "sys.h"

static const char variable[] = "LD_PRELOAD=";

char ***environment__variable(void)
{
	static char ***found;
	char ***at = __atomic_load_n(&found, __ATOMIC_RELAXED);

	if (at)
		return at;
	/* A program may have its own copy of the variable (a copy relocation), which precedes the
	 * C library's. */
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

/* Returns the length of this library's path if @text begins with it as a whole word, else 0. */
static size_t own_word(const char *text, const char *directory)
{
	static const char *const names[] = { "/" INSIDE_LIBRARY, "/" INSIDE_OTHER,
					     "/" INSIDE_FILE };
	size_t length = text__length(directory);

	if (!text__begins(text, directory))
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
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

bool environment__names_auditors(void)
{
	static const char auditors[] = "LD_AUDIT=";
	char ***at = environment__variable();

	for (char **entry = at ? *at : NULL; entry && *entry; entry++)
		if (text__begins(*entry, auditors))
			return (*entry)[sizeof(auditors) - 1];
	return false;
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
			/* /proc/self/environ shows the whole area, so the rest of the old value is
			 * cleared. */
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

/* Remembers the last page that was readable. Asking the kernel for each entry would take as long
 * as the exec. */
struct known_page {
	__u64 address; /* NO_PAGE: none was */
};

#define NO_PAGE 1

static bool can_read(struct known_page *known, const void *from)
{
	__u64 page = (__u64)from & -(__u64)LEAST_PAGE;
	char byte;

	if (page == known->address)
		return true;
	/* If the kernel lacks the call, or a filter forbids it (Docker's before Linux 4.8), all memory counts as readable. */
	if (memory__read_some((__u64)from, &byte, 1) == -EFAULT)
		return false;
	known->address = page;
	return true;
}

/* If this variable is set, the dynamic linker only lists libraries (ld.so(8)), and would list this
 * library. */
static const char traces[] = "LD_TRACE_LOADED_OBJECTS=";

/* The beginning of an environment entry, as long as the longest name. */
struct entry_head {
	char text[sizeof(traces)];
};

static struct entry_head read_head(struct known_page *known, const char *entry)
{
	struct entry_head head = { 0 };

	for (size_t i = 0; i < sizeof(head.text) - 1 && can_read(known, entry + i); i++) {
		head.text[i] = entry[i];
		if (!entry[i])
			break;
	}
	return head;
}

/* Reads the pointer to an entry at @from. Returns false if it cannot be read. */
static bool read_entry(struct known_page *known, char *const *from, char **out)
{
	if (!can_read(known, from) || !can_read(known, (const char *)(from + 1) - 1))
		return false;
	*out = __atomic_load_n(from, __ATOMIC_RELAXED);
	return true;
}

bool environment__look(struct environment *out, char *const *entries, const char *directory)
{
	struct known_page of_entries = { NO_PAGE }, of_text = { NO_PAGE };
	char *entry;

	*out = (struct environment){ .entries = entries, .preloaded = "" };
	for (; entries; entries++, out->n++) {
		struct entry_head head;

		if (!read_entry(&of_entries, entries, &entry))
			return false;
		if (!entry)
			break;
		head = read_head(&of_text, entry);
		out->traces |= text__begins(head.text, traces);
		if (out->entry || !environment__is_preload(head.text))
			continue;
		out->entry = entry;
		out->preloaded = entry + sizeof(variable) - 1;
	}
	out->has_library = own_word(out->preloaded, directory);
	out->text_bytes = sizeof(variable) + text__length(out->preloaded);
	return true;
}

/* Writes the new entry of LD_PRELOAD to @text, which has room up to @stop. Returns false if its
 * value would be empty. */
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
	struct known_page of_entries = { NO_PAGE }, of_text = { NO_PAGE };

	for (size_t i = 0; i < environment->n; i++) {
		char *entry;

		if (!read_entry(&of_entries, &environment->entries[i], &entry))
			return false;
		if (!entry)
			break;
		if (!environment__is_preload(read_head(&of_text, entry).text)) {
			*out++ = entry;
		} else if (has_text) {
			*out++ = text;
			has_text = false;
		}
	}
	if (has_text)
		*out++ = text;
	*out = NULL;
	return true;
}

size_t environment__text_bytes(const struct environment *environment, const char *directory,
			       const char *name)
{
	return environment->text_bytes +
	       (name ? text__length(directory) + sizeof("/:") + text__length(name) : 0);
}
