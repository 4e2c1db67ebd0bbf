// SPDX-License-Identifier: GPL-3.0-or-later
#include "program_kind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "elf_file.h"
#include "parser.h"
#include "path.h"

/* The interpreter is in a library or a program, which need not be called python. CPython defines this symbol; extension
 * modules import it, and PyPy names it differently. */
static bool is_python(struct elf_file *elf, const char *path)
{
	return (elf_file__is_program(elf) || strstr(path__name(path), "python")) &&
	       elf_file__defines(elf, "PyObject_Malloc");
}

static int run(struct parser_task *task)
{
	struct elf_file *elf;
	int err = elf_file__open(task->fd, task->path, &elf, task->error);

	if (err)
		return err;
	wire__put_u32(task->result, elf_file__is_program(elf));
	wire__put_u32(task->result, elf_file__is_static(elf));
	wire__put_u32(task->result, elf_file__is_go(elf));
	wire__put_u32(task->result, is_python(elf, task->path));
	wire__put_string(task->result, elf_file__interpreter(elf));
	elf_file__free(elf);
	return 0;
}

int program_kind__parse(struct parser *parser, int fd, const char *path, struct program_kind *out)
{
	const struct parser_call call = { .run = run, .fd = fd, .path = path };
	const char *interpreter;
	struct wire_reader result;
	int err = parser__call(parser, &call, &result, NULL);

	if (err)
		return err;
	out->is_program = wire__get_u32(&result);
	out->is_static = wire__get_u32(&result);
	out->is_go = wire__get_u32(&result);
	out->is_python = wire__get_u32(&result);
	interpreter = wire__get_string(&result, sizeof(out->interpreter));
	if (!interpreter || !wire__is_read(&result))
		return parser__refuse(parser, path, NULL);
	snprintf(out->interpreter, sizeof(out->interpreter), "%s", interpreter);
	return 0;
}
