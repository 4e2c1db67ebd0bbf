// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads what compilers and the C library have written into a file about themselves, in a worker. */
#include "build_text.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "elf_file.h"
#include "elf_file_internal.h"
#include "parser.h"
#include "text.h"

static bool is_clean(const char *text)
{
	while (*text) {
		size_t size = utf8__printable(text);

		if (!size)
			return false;
		text += size;
	}
	return true;
}

static bool text_is_sound(const void *object, const void *context)
{
	const struct build_text *text = object;

	(void)context;
	return is_clean(text->compiler) && is_clean(text->libc);
}

static const struct wire_struct text_type = {
	.is_sound = text_is_sound,
	.fields = {
		{ WIRE_TEXT(struct build_text, compiler) },
		{ WIRE_TEXT(struct build_text, libc) },
	},
};

/* Appends a string of .comment that is not there yet. Bytes that cannot be printed become '?'. */
static void add_comment(char *text, const char *comment, size_t size)
{
	size_t used = strlen(text);
	char one[BUILD_TEXT_BYTES];

	snprintf(one, sizeof(one), "%.*s", (int)size, comment);
	utf8__clean(one);
	if (one[0] && !strstr(text, one))
		snprintf(text + used, BUILD_TEXT_BYTES - used, "%s%s", used ? "; " : "", one);
}

static void read_comments(const Elf_Data *data, struct build_text *text)
{
	const char *at = data->d_buf, *end = at + data->d_size;

	while (at < end) {
		size_t size = strnlen(at, end - at);

		add_comment(text->compiler, at, size);
		at += size + 1;
	}
}

static void read_version(const Elf_Data *data, struct build_text *text)
{
	static const char words[] = "GNU C Library";
	const char *at = memmem(data->d_buf, data->d_size, words, strlen(words));
	size_t size = at ? (size_t)((const char *)data->d_buf + data->d_size - at) : 0;
	const char *end;

	if (!at || text->libc[0])
		return;
	for (end = at; end < at + size && *end && *end != '\n'; end++)
		;
	snprintf(text->libc, sizeof(text->libc), "%.*s", (int)(end - at), at);
	utf8__clean(text->libc);
}

static int read_file(struct parser_task *task)
{
	struct build_text text = { 0 };
	struct elf_file *file;
	Elf_Scn *section = NULL;
	size_t names;
	int err = elf_file__open(task->fd, task->path, &file, task->error);

	if (err)
		return err;
	if (elf_getshdrstrndx(file->elf, &names))
		names = 0;
	while (names && (section = elf_nextscn(file->elf, section))) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(file->elf, names, header.sh_name)
					   : NULL;
		bool is_comment = name && !strcmp(name, ".comment");
		Elf_Data *data = is_comment || (name && !strcmp(name, ".rodata"))
					 ? elf_getdata(section, NULL)
					 : NULL;

		if (!data || !data->d_buf)
			continue;
		if (is_comment)
			read_comments(data, &text);
		else
			read_version(data, &text);
	}
	elf_file__free(file);
	wire__put_struct(task->result, &text_type, &text, NULL);
	return 0;
}

int build_text__parse(struct parser *parser, int fd, const char *path, struct build_text *out)
{
	const struct parser_call call = { .run = read_file, .fd = fd, .path = path };

	*out = (struct build_text){ 0 };
	return parser__call_struct(parser, &call, &text_type, out, NULL, NULL);
}
