// SPDX-License-Identifier: GPL-3.0-or-later
/* Detects well-known allocators in stripped programs, and in libraries that do not export them. */
#include "allocator_internal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "elf_file.h"

/* Maximum number of bytes that are searched, and number of bytes that are read at a time. */
#define MAX_BYTES   (256u << 20)
#define CHUNK_BYTES (1u << 20)

static const struct {
	const char *name, *text;
	bool is_pythons; /* CPython contains this allocator, too */
} signs[] = {
	{ "jemalloc", "<jemalloc>: ", false },
	{ "mimalloc", "mimalloc: warning: ", true },
	{ "tcmalloc", "tcmalloc: allocation failed", false },
};

/* Number of bytes that is larger than the length of any of the texts. */
#define OVERLAP 32

static const char *find_sign(const char *bytes, size_t n, bool has_python)
{
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (!(has_python && signs[i].is_pythons) &&
		    memmem(bytes, n, signs[i].text, strlen(signs[i].text)))
			return signs[i].name;
	return NULL;
}

/* Returns whether the file is a CPython that takes no memory from the mimalloc within it (since
 * 3.13). A free-threaded CPython does take memory from it; so does any CPython where PYTHONMALLOC
 * asks for it, which PYTHON_NOTE is about. */
static bool is_python_with_arenas(struct elf_file *elf)
{
	return elf_file__defines(elf, "PyObject_Malloc") &&
	       !elf_file__defines(elf, "_Py_DecRefShared");
}

static int end_at_first(const struct elf_symbol *symbol, void *arg)
{
	return 1;
}

/* Returns whether an allocator in the file, if there is one, would have no names: the file is a
 * stripped program, or a library that does not export malloc. Only libraries that ask for memory
 * as an allocator does are searched, which are few. */
static bool may_hide_one(int fd, const char *path, bool *has_python)
{
	struct elf_file *elf;
	bool may;

	if (elf_file__open(fd, path, &elf, NULL))
		return false;
	*has_python = is_python_with_arenas(elf);
	if (elf_file__is_program(elf))
		may = !elf_file__is_static(elf) &&
		      !elf_file__for_each_further_symbol(elf, end_at_first, NULL);
	else
		may = elf_file__imports(elf, "madvise") &&
		      (elf_file__imports(elf, "mmap") || elf_file__imports(elf, "mmap64"));
	elf_file__free(elf);
	return may;
}

const char *hidden_allocator__find(int fd, const char *path)
{
	_cleanup_(free_ptr) char *bytes = NULL;
	const char *found = NULL;
	bool has_python;
	size_t kept = 0;

	if (!may_hide_one(fd, path, &has_python))
		return NULL;
	bytes = malloc(OVERLAP + CHUNK_BYTES);
	for (off_t at = 0; bytes && !found && at < MAX_BYTES;) {
		ssize_t n = pread(fd, bytes + kept, CHUNK_BYTES, at);

		if (n <= 0)
			break;
		at += n;
		kept += n;
		found = find_sign(bytes, kept, has_python);
		/* A text may span two reads. */
		if (kept > OVERLAP) {
			memmove(bytes, bytes + kept - OVERLAP, OVERLAP);
			kept = OVERLAP;
		}
	}
	return found;
}

size_t hidden_allocator__number(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(signs) && signs[i].name != name)
		i++;
	return i;
}

const char *hidden_allocator__at(size_t number)
{
	return number < ARRAY_SIZE(signs) ? signs[number].name : NULL;
}
