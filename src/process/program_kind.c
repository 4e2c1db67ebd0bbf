// SPDX-License-Identifier: GPL-3.0-or-later
#include "program_kind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "elf_file.h"
#include "error.h"
#include "parser.h"
#include "path.h"

/* Returns whether the file has the CPython interpreter, which is in a library, or in a program
 * that need not be called python. CPython defines this symbol; extension modules import it, and
 * PyPy has another name for it. */
static bool is_python(struct elf_file *elf, const char *path)
{
	return (elf_file__is_program(elf) || strstr(path__name(path), "python")) &&
	       elf_file__defines(elf, "PyObject_Malloc");
}

static const struct wire_struct program_kind_type = {
	.fields = {
		{ WIRE_FLAG(struct program_kind, is_program) },
		{ WIRE_FLAG(struct program_kind, is_static) },
		{ WIRE_FLAG(struct program_kind, is_go) },
		{ WIRE_FLAG(struct program_kind, is_python) },
		{ WIRE_TEXT(struct program_kind, interpreter) },
	},
};

static int read_kind(struct parser_task *task)
{
	struct program_kind kind = { 0 };
	struct elf_file *elf;
	int err = elf_file__open(task->fd, task->path, &elf, task->error);

	if (err)
		return err;
	kind.is_program = elf_file__is_program(elf);
	kind.is_static = elf_file__is_static(elf);
	kind.is_go = elf_file__is_go(elf);
	kind.is_python = is_python(elf, task->path);
	snprintf(kind.interpreter, sizeof(kind.interpreter), "%s", elf_file__interpreter(elf));
	elf_file__free(elf);
	wire__put_struct(task->result, &program_kind_type, &kind, NULL);
	return 0;
}

int program_kind__parse(struct parser *parser, int fd, const char *path, struct program_kind *out)
{
	const struct parser_call call = { .run = read_kind, .fd = fd, .path = path };
	struct program_kind kind = { 0 };
	int err = parser__call_struct(parser, &call, &program_kind_type, &kind, NULL, NULL);

	if (!err)
		*out = kind;
	return err;
}
