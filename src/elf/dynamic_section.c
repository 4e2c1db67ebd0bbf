// SPDX-License-Identifier: GPL-3.0-or-later
#include "dynamic_section.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "elf_file.h"
#include "parser.h"

/* The largest programs need hundreds of libraries. */
#define MAX_NEEDED 4096
/* A list of directories. Longer ones count as none. */
#define MAX_LIST_BYTES 65536

/* In the worker. */
struct names {
	struct wire_writer text;
	size_t n;
};

static int put_name(const char *string, void *arg)
{
	struct names *names = arg;

	if (strnlen(string, PATH_MAX) == PATH_MAX)
		return 0;
	wire__put_string(&names->text, string);
	return ++names->n == MAX_NEEDED;
}

static int note_first(const char *string, void *arg)
{
	const char **first = arg;

	*first = string;
	return 1;
}

static void put_list(struct wire_writer *result, const struct elf_file *elf, __s64 tag)
{
	const char *list = NULL;

	elf_file__for_each_dynamic_string(elf, tag, note_first, &list);
	wire__put_string(result,
			 list && strnlen(list, MAX_LIST_BYTES) < MAX_LIST_BYTES ? list : NULL);
}

static void put_needed(struct wire_writer *result, const struct elf_file *elf)
{
	static const __s64 tags[] = { DT_AUXILIARY, DT_FILTER, DT_NEEDED };
	struct names names = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(tags) && names.n < MAX_NEEDED; i++)
		elf_file__for_each_dynamic_string(elf, tags[i], put_name, &names);
	wire__put_u64(result, names.n);
	if (names.n)
		wire__put_bytes(result, names.text.bytes, names.text.size);
	result->has_failed |= names.text.has_failed;
	wire__release(&names.text);
}

static int run(struct parser_task *task)
{
	const char *name;
	struct elf_file *elf;
	int err = elf_file__open(task->fd, task->path, &elf, task->error);

	if (err)
		return err;
	name = elf_file__soname(elf);
	wire__put_u32(task->result, elf_file__is_program(elf));
	wire__put_string(task->result, strnlen(name, PATH_MAX) < PATH_MAX ? name : "");
	put_list(task->result, elf, DT_RPATH);
	put_list(task->result, elf, DT_RUNPATH);
	put_needed(task->result, elf);
	elf_file__free(elf);
	return 0;
}

/* *@out is NULL where the worker wrote NULL. */
static int take_list(struct wire_reader *reader, char **out)
{
	const char *list = wire__get_string(reader, MAX_LIST_BYTES);

	*out = list ? strdup(list) : NULL;
	return list && !*out ? -ENOMEM : 0;
}

static int take_needed(struct wire_reader *reader, struct dynamic_section *section)
{
	size_t n = wire__get_count(reader, sizeof(__u32));

	if (n > MAX_NEEDED)
		wire__refuse(reader);
	if (reader->is_bad || !n)
		return 0;
	section->needed = calloc(n, sizeof(*section->needed));
	if (!section->needed)
		return -ENOMEM;
	while (section->n_needed < n) {
		const char *name = wire__get_string(reader, PATH_MAX);

		if (!name) {
			wire__refuse(reader);
			return 0;
		}
		section->needed[section->n_needed] = strdup(name);
		if (!section->needed[section->n_needed])
			return -ENOMEM;
		section->n_needed++;
	}
	return 0;
}

/* -EPROTO: the reply is not valid. */
static int take(struct wire_reader *reader, struct dynamic_section *section)
{
	const char *name;
	int err;

	section->is_program = wire__get_u32(reader);
	name = wire__get_string(reader, PATH_MAX);
	if (!name)
		return -EPROTO;
	section->name = strdup(name);
	err = section->name ? take_list(reader, &section->rpath) : -ENOMEM;
	if (!err)
		err = take_list(reader, &section->runpath);
	if (!err)
		err = take_needed(reader, section);
	if (!err && !wire__is_read(reader))
		err = -EPROTO;
	return err;
}

int dynamic_section__parse(struct parser *parser, int fd, const char *path,
			   struct dynamic_section *out)
{
	const struct parser_call call = { .run = run, .fd = fd, .path = path };
	struct dynamic_section section = { 0 };
	struct wire_reader result;
	int err = parser__call(parser, &call, &result, NULL);

	if (!err)
		err = take(&result, &section);
	if (err == -EPROTO)
		err = parser__refuse(parser, path, NULL);
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
