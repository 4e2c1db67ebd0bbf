// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the functions that definitions only count in the objects of the process. */
#include "counted.h"

#include <asm/unistd.h>
#include <linux/fcntl.h>

#include "inside_abi.h"
#include "interface_abi.h"
#include "memory.h"
#include "sys.h"

#define MAX_PATH 4096

static struct interface_function rows[INSIDE_COUNTED];
static __u32 n_rows;

static const struct interface_function lookups[] = {
	{ "dlsym", .kind = INTERFACE_LOOKUP },
	{ "dlvsym", .kind = INTERFACE_LOOKUP },
};

static struct inside_counted *counted_of(const struct interface_function *row)
{
	return &memory__header()->counted.list[row - rows];
}

void counted__begin(void)
{
	const struct inside_all_counted *all = &memory__header()->counted;
	__u32 n = all->n < INSIDE_COUNTED ? all->n : INSIDE_COUNTED;

	for (__u32 i = 0; i < n; i++)
		rows[i] = (struct interface_function){
			.name = all->list[i].name,
			.function = all->list[i].function,
			.kind = INTERFACE_COUNTED,
		};
	n_rows = n;
}

bool counted__any(void)
{
	return n_rows;
}

static const struct interface_function *find(const char *name)
{
	for (__u32 i = 0; i < n_rows; i++)
		if (text__equal(rows[i].name, name))
			return &rows[i];
	return NULL;
}

const struct interface_function *counted__row(const char *name)
{
	for (__u32 i = 0; n_rows && i < sizeof(lookups) / sizeof(lookups[0]); i++)
		if (text__equal(lookups[i].name, name))
			return &lookups[i];
	return find(name);
}

/* Returns whether the name matches the pattern, which has the shell's '*' and '?'. */
static bool matches(const char *pattern, const char *name)
{
	const char *star = NULL, *from = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			from = name;
		} else if (*pattern == '?' || *pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star + 1;
			name = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static const char *base_of(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

/* Returns the name by which programs are linked to the object, or "". */
static const char *soname_of(const struct object *object)
{
	const char *strings = NULL;
	__u64 offset = 0;

	for (const Elf64_Dyn *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_STRTAB)
			strings = object__address(object, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_SONAME)
			offset = entry->d_un.d_val;
	}
	return strings && offset ? strings + offset : "";
}

/* Stores the path of the program, which the dynamic linker's list does not have. */
static const char *path_of(const struct object *object, char path[MAX_PATH])
{
	long n;

	if (object != objects__first())
		return object->path;
	n = sys(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, MAX_PATH - 1, 0, 0);
	path[n > 0 ? n : 0] = '\0';
	return path;
}

bool counted__is_in(const struct interface_function *row, const struct object *object)
{
	__u32 definition = ap_function__definition(row->function);
	const char *file, *path, *soname;
	char room[MAX_PATH];

	if (definition >= AP_MAX_DEFINITIONS)
		return false;
	file = memory__header()->counted.files[definition];
	if (!*file)
		return true;
	path = path_of(object, room);
	soname = soname_of(object);
	for (; *file; file += text__length(file) + 1)
		if (text__contains(file, "/")
			    ? text__equal(file, path)
			    : matches(file, base_of(path)) || (*soname && matches(file, soname)))
			return true;
	return false;
}

bool counted__has_word(const struct interface_function *row, const struct object *object)
{
	const struct inside_counted *counted = counted_of(row);
	struct definition variable;

	return counted->word[0] && object__defines_variable(object, counted->word, &variable);
}

/* Finds the object's variable of so many bytes. Returns false if it has none that can be used; *@is_misled is set
 * if it has one: of another size, or where the object writes nothing, or a dead one, since the program has a copy
 * of it that the object uses, too. */
static bool find_variable(const struct object *object, const char *name, __u64 size, void **out,
			  bool *is_misled)
{
	struct definition variable, copy;
	__u64 address;

	if (!name[0] || !object__defines_variable(object, name, &variable))
		return false;
	address = (__u64)variable.address;
	*is_misled |= variable.size != size || address % size ||
		      !object__writes(object, address, size) ||
		      (object != objects__first() && !object__is_symbolic(object) &&
		       object__defines_variable(objects__first(), name, &copy));
	*out = variable.address;
	return !*is_misled;
}

bool counted__export(const struct object *object, __u32 number, struct counted_export *out)
{
	const struct interface_function *row = &rows[number];
	struct inside_counted *counted;
	void *word, *flag;

	if (number >= n_rows)
		return false;
	*out = (struct counted_export){ 0 };
	if (!object__defines(object, row->name, &out->function) || !counted__is_in(row, object))
		return true;
	out->row = row;
	counted = counted_of(row);
	__atomic_store_n(&counted->is_found, 1, __ATOMIC_RELAXED);
	if (!find_variable(object, counted->word, sizeof(*out->word), &word, &out->is_misled))
		return true;
	if (find_variable(object, counted->flag, sizeof(*out->flag), &flag, &out->is_misled))
		out->flag = flag;
	if (!out->is_misled)
		out->word = word;
	return true;
}

void counted__note_lookup(const char *name)
{
	if (name && find(name))
		memory__add_gap(INSIDE_GAP_COUNTED);
}
