// SPDX-License-Identifier: GPL-3.0-or-later
/* An environment that a process executes a program with, as the library in that process changes it: entries that end with a NUL. */
#include <asm/unistd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "preloadable.h"
#include "environment.h"
#include "fuzz.h"
#include "inside_abi.h"
#include "inside_host.h"

#define DIRECTORY   "/d"
#define MAX_ENTRIES 64

/* All memory can be read. */
static long answer(long number, const long arguments[6])
{
	FUZZ_CHECK(number == __NR_process_vm_readv || number == __NR_getpid);
	return number == __NR_getpid ? 1 : (long)((const struct iovec *)arguments[1])->iov_len;
}

/* Blocks of the size of the entries, so that ASan sees who reads beyond them. */
static char **copy_entries(const uint8_t *data, size_t size)
{
	char **entries = calloc(MAX_ENTRIES + 1, sizeof(*entries));

	FUZZ_CHECK(entries);
	for (size_t n = 0; n < MAX_ENTRIES && size; n++) {
		size_t length = strnlen((const char *)data, size);

		entries[n] = fuzz__text(data, length);
		length += length < size;
		data += length;
		size -= length;
	}
	return entries;
}

static void free_entries(char **entries)
{
	for (char **entry = entries; *entry; entry++)
		free(*entry);
	free(entries);
}

static void check_filled(char *const *entries, char *const *out, const char *name)
{
	size_t n_preload = 0;

	for (; *out; out++) {
		if (environment__is_preload(*out)) {
			n_preload++;
			continue;
		}
		while (environment__is_preload(*entries))
			entries++;
		FUZZ_CHECK(*entries++ == *out);
	}
	while (*entries && environment__is_preload(*entries))
		entries++;
	FUZZ_CHECK(!*entries && n_preload <= 1 && (!name || n_preload == 1));
}

static void fill(const struct environment *environment, char *const *entries, const char *name)
{
	char **out = calloc(environment->n + 2, sizeof(*out));
	char *text = malloc(environment__text_bytes(environment, DIRECTORY, name));

	FUZZ_CHECK(out && text);
	FUZZ_CHECK(environment__fill(environment, DIRECTORY, name, out, text));
	check_filled(entries, out, name);
	if (name)
		FUZZ_CHECK(environment__has(out, DIRECTORY));
	free(text);
	free(out);
}

/* Puts the entries in the place of this process's environment for a moment. */
static void hide(char **entries)
{
	char ***variable = environment__variable(), **before = *variable;
	char *list[MAX_ENTRIES + 1];

	memcpy(list, entries, sizeof(list));
	*variable = list;
	environment__names_auditors();
	FUZZ_CHECK(environment__hide(DIRECTORY));
	FUZZ_CHECK(!environment__has(list, DIRECTORY));
	*variable = before;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char **entries = copy_entries(data, size);
	struct environment environment;

	host__answer_by(answer);
	FUZZ_CHECK(environment__look(&environment, entries, DIRECTORY));
	sanitizer__is_preloaded(environment.preloaded);
	fill(&environment, entries, INSIDE_LIBRARY);
	fill(&environment, entries, INSIDE_OTHER);
	fill(&environment, entries, NULL);
	hide(entries);
	free_entries(entries);
	return 0;
}
