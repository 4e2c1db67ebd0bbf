// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the names of functions, of reasons for lost calls and of ends of stacks, as they are in the
 * data file. */
#include "definition_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"
#include "reasons.h"

static const char *const kinds[AP_DEFINED_KINDS] = {
	[AP_DEFINED_ALLOC] = "alloc",
	[AP_DEFINED_REALLOC] = "realloc",
	[AP_DEFINED_FREE] = "free",
};

static const char name_characters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

const char *defined_kind__name(enum ap_defined_kind kind)
{
	return kinds[kind];
}

static int find_definition(const struct definition_names *names, const char *name, size_t len)
{
	for (size_t i = 0; i < names->n; i++) {
		const char *known = names->functions[i * AP_DEFINED_KINDS];

		if (!strncmp(known, name, len) && known[len] == '.')
			return (int)i;
	}
	return -ENOENT;
}

static int add_definition(struct definition_names *names, const char *name, size_t len)
{
	int index = find_definition(names, name, len);

	if (!len || len > DEFINITION_NAME_MAX || strspn(name, name_characters) < len)
		return -EINVAL;
	if (index >= 0)
		return index;
	if (names->n == AP_MAX_DEFINITIONS)
		return -E2BIG;
	for (int kind = 0; kind < AP_DEFINED_KINDS; kind++)
		snprintf(names->functions[names->n * AP_DEFINED_KINDS + kind],
			 sizeof(names->functions[0]), "%.*s.%s", (int)len, name, kinds[kind]);
	return (int)names->n++;
}

void definition_names__count_only(struct definition_names *names, size_t index)
{
	char *first = names->functions[index * AP_DEFINED_KINDS];

	for (int kind = 1; kind < AP_DEFINED_KINDS; kind++)
		names->functions[index * AP_DEFINED_KINDS + kind][0] = '\0';
	memcpy(strrchr(first, '.') + 1, DEFINITION_COUNT, sizeof(DEFINITION_COUNT));
	names->counted |= 1ULL << definition__function(index, 0);
}

int definition_names__add(struct definition_names *names, const char *name)
{
	return add_definition(names, name, strlen(name));
}

bool definition_names__has(const struct definition_names *names, const char *name)
{
	return find_definition(names, name, strlen(name)) >= 0;
}

const char *definition_names__function(const struct definition_names *names,
				       enum ap_function function)
{
	size_t at = (size_t)function - AP_DEFINED;

	if (function < AP_DEFINED || !names || at >= names->n * AP_DEFINED_KINDS)
		return profile__function_name(function);
	return names->functions[at];
}

int definition_names__find(const struct definition_names *names, const char *function)
{
	int known = profile__function_by_name(function);

	if (known >= 0 || !names || !*function)
		return known;
	for (size_t i = 0; i < names->n * AP_DEFINED_KINDS; i++)
		if (!strcmp(names->functions[i], function))
			return AP_DEFINED + (int)i;
	return -ENOENT;
}

int definition_names__take(struct definition_names *names, const char *function)
{
	int known = definition_names__find(names, function), definition;
	const char *dot = strrchr(function, '.');

	if (known >= 0 || !dot)
		return known;
	if (!strcmp(dot + 1, DEFINITION_COUNT)) {
		/* What is defined already under this name has other functions. */
		if (find_definition(names, function, dot - function) >= 0)
			return -ENOENT;
		definition = add_definition(names, function, dot - function);
		if (definition < 0)
			return definition == -EINVAL ? -ENOENT : definition;
		definition_names__count_only(names, definition);
		return definition__function(definition, 0);
	}
	for (int kind = 0; kind < AP_DEFINED_KINDS; kind++) {
		if (strcmp(dot + 1, kinds[kind]) != 0)
			continue;
		definition = add_definition(names, function, dot - function);
		if (definition < 0)
			return definition == -EINVAL ? -ENOENT : definition;
		if (definition_names__counts(names, definition__function(definition, 0)))
			return -ENOENT;
		return definition__function(definition, kind);
	}
	return -ENOENT;
}

static const char *const function_names[AP_DEFINED] = {
	[AP_MALLOC] = "malloc",
	[AP_CALLOC] = "calloc",
	[AP_REALLOC] = "realloc",
	[AP_REALLOCARRAY] = "reallocarray",
	[AP_POSIX_MEMALIGN] = "posix_memalign",
	[AP_ALIGNED_ALLOC] = "aligned_alloc",
	[AP_MEMALIGN] = "memalign",
	[AP_VALLOC] = "valloc",
	[AP_PVALLOC] = "pvalloc",
	[AP_FREE] = "free",
	[AP_NEW] = "new",
	[AP_DELETE] = "delete",
	[AP_FREE_SIZED] = "free_sized",
	[AP_MALLOCX] = "mallocx",
	[AP_RALLOCX] = "rallocx",
	[AP_XALLOCX] = "xallocx",
	[AP_DALLOCX] = "dallocx",
	[AP_SDALLOCX] = "sdallocx",
	[AP_MMAP] = "mmap",
	[AP_MREMAP] = "mremap",
	[AP_BRK] = "brk",
	[AP_MUNMAP] = "munmap",
	[AP_MINOR_FAULT] = "minor-fault",
	[AP_MAJOR_FAULT] = "major-fault",
};

const char *profile__function_name(enum ap_function function)
{
	return (unsigned int)function < AP_DEFINED ? function_names[function] : "unknown";
}

bool profile__function_frees(enum ap_function function)
{
	return AP_FREEING >> function & 1;
}

bool profile__function_reallocates(enum ap_function function)
{
	return AP_REALLOCATING >> function & 1;
}

bool profile__function_maps(enum ap_function function)
{
	return function >= AP_MMAP && function <= AP_MUNMAP;
}

bool profile__function_faults(enum ap_function function)
{
	return function == AP_MINOR_FAULT || function == AP_MAJOR_FAULT;
}

const char *profile__lost_name(enum ap_lost reason)
{
	return reason__lost(reason)->name;
}

const char *profile__untracked_name(enum ap_untracked reason)
{
	return reason__untracked(reason)->name;
}

const char *profile__stack_end_name(enum ap_stack_end end)
{
	return reason__stack_end(end)->name;
}

int profile__function_by_name(const char *name)
{
	for (int i = 0; i < AP_DEFINED; i++) {
		if (!strcmp(function_names[i], name))
			return i;
	}
	return -ENOENT;
}

int profile__stack_end_by_name(const char *name)
{
	for (int i = 0; i < AP_STACK_ENDS; i++) {
		if (!strcmp(reason__stack_end(i)->name, name))
			return i;
	}
	return -ENOENT;
}
