// SPDX-License-Identifier: GPL-3.0-or-later
#include "dynamic_section.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "elf_file.h"
#include "parser.h"

/* How many libraries a file may need; the largest programs need hundreds. */
#define MAX_NEEDED 4096
/* Longest list of directories; a longer one is ignored. */
#define MAX_LIST_BYTES 65536

static const struct wire_struct needed_type = WIRE_STRING_ELEMENT(PATH_MAX);

static const struct wire_struct dynamic_section_type = {
	.fields = {
		{ WIRE_FLAG(struct dynamic_section, is_program) },
		{ WIRE_STRING(struct dynamic_section, name, PATH_MAX) },
		{ WIRE_OPTIONAL(struct dynamic_section, rpath, MAX_LIST_BYTES) },
		{ WIRE_OPTIONAL(struct dynamic_section, runpath, MAX_LIST_BYTES) },
		{ WIRE_STRUCTS(struct dynamic_section, needed, n_needed, MAX_NEEDED, &needed_type) },
	},
};

/* The functions below run in the worker, where texts are those of the file. */

static int add_needed(const char *string, void *arg)
{
	struct dynamic_section *section = arg;

	if (strnlen(string, PATH_MAX) == PATH_MAX)
		return 0;
	section->needed[section->n_needed++] = (char *)string;
	return section->n_needed == MAX_NEEDED;
}

static int note_first(const char *string, void *arg)
{
	char **first = arg;

	*first = (char *)string;
	return 1;
}

static char *first_list(const struct elf_file *elf, __s64 tag)
{
	char *list = NULL;

	elf_file__for_each_dynamic_string(elf, tag, note_first, &list);
	return list && strnlen(list, MAX_LIST_BYTES) < MAX_LIST_BYTES ? list : NULL;
}

static int read_section(struct parser_task *task)
{
	static const __s64 tags[] = { DT_AUXILIARY, DT_FILTER, DT_NEEDED };
	char *needed[MAX_NEEDED];
	struct dynamic_section section = { .needed = needed };
	struct elf_file *elf;
	const char *name;
	int err = elf_file__open(task->fd, task->path, &elf, task->error);

	if (err)
		return err;
	name = elf_file__soname(elf);
	section.is_program = elf_file__is_program(elf);
	section.name = (char *)(strnlen(name, PATH_MAX) < PATH_MAX ? name : "");
	section.rpath = first_list(elf, DT_RPATH);
	section.runpath = first_list(elf, DT_RUNPATH);
	for (size_t i = 0; i < ARRAY_SIZE(tags) && section.n_needed < MAX_NEEDED; i++)
		elf_file__for_each_dynamic_string(elf, tags[i], add_needed, &section);
	wire__put_struct(task->result, &dynamic_section_type, &section, NULL);
	elf_file__free(elf);
	return 0;
}

/* Runs in the parent. */
int dynamic_section__parse(struct parser *parser, int fd, const char *path,
			   struct dynamic_section *out)
{
	const struct parser_call call = { .run = read_section, .fd = fd, .path = path };
	struct dynamic_section section = { 0 };
	int err = parser__call_struct(parser, &call, &dynamic_section_type, &section, NULL, NULL);

	if (err)
		dynamic_section__release(&section);
	else
		*out = section;
	return err;
}

void dynamic_section__release(struct dynamic_section *section)
{
	for (size_t i = 0; i < section->n_needed; i++)
		free(section->needed[i]);
	free(section->needed);
	free(section->name);
	free(section->rpath);
	free(section->runpath);
	*section = (struct dynamic_section){ 0 };
}
