// SPDX-License-Identifier: GPL-3.0-or-later
/* Looks for the symbols of an interpreter, in a worker, and reads the beginning of its _PyRuntime. */
#include "python_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf_file.h"
#include "error.h"
#include "parser.h"

static const struct wire_struct python_file_type = {
	.fields = {
		{ WIRE_NUMBER(struct python_file, runtime) },
		{ WIRE_NUMBER(struct python_file, loop) },
		{ WIRE_NUMBER(struct python_file, loop_bytes) },
		{ WIRE_NUMBER(struct python_file, loop_offset) },
		{ WIRE_NUMBER(struct python_file, code_type) },
		{ WIRE_NUMBER(struct python_file, version) },
		{ WIRE_ARRAY(struct python_file, words, n_words, PYTHON_FILE_WORDS) },
	},
};

void python_file__release(struct python_file *file)
{
	free(file->words);
	file->words = NULL;
}

static int note_symbol(const struct elf_symbol *symbol, void *arg)
{
	struct python_file *file = arg;

	if (!strcmp(symbol->name, "_PyRuntime")) {
		file->runtime = symbol->value;
	} else if (!strcmp(symbol->name, "PyCode_Type")) {
		file->code_type = symbol->value;
	} else if (!strcmp(symbol->name, "Py_Version")) {
		file->version = symbol->value;
	} else if (!strcmp(symbol->name, "_PyEval_EvalFrameDefault")) {
		file->loop = symbol->value;
		file->loop_bytes = symbol->size;
	}
	return 0;
}

/* Reads what is at @vaddr when the file is mapped; zeros behind the end of what it has. */
static void read_data(const struct elf_file *elf, int fd, __u64 vaddr, void *out, size_t size)
{
	__u64 offset;

	memset(out, 0, size);
	if (vaddr && !elf_file__vaddr_to_offset(elf, vaddr, &offset) &&
	    pread(fd, out, size, (off_t)offset) < 0)
		memset(out, 0, size);
}

static int read_python(struct parser_task *task)
{
	__u64 words[PYTHON_FILE_WORDS];
	struct python_file file = { .words = words, .n_words = PYTHON_FILE_WORDS };
	struct elf_file *elf;
	int err = elf_file__open(task->fd, task->path, &elf, task->error);

	if (err)
		return err;
	err = elf_file__for_each_symbol(elf, note_symbol, &file);
	if (!err && (!file.runtime || !file.code_type || !file.loop))
		err = -ENOENT;
	if (!err)
		err = elf_file__vaddr_to_offset(elf, file.loop, &file.loop_offset);
	if (!err) {
		read_data(elf, task->fd, file.runtime, words, sizeof(words));
		read_data(elf, task->fd, file.version, &file.version, sizeof(file.version));
		wire__put_struct(task->result, &python_file_type, &file, NULL);
	}
	elf_file__free(elf);
	return err;
}

int python_file__parse(struct parser *parser, int fd, const char *path, struct python_file *out)
{
	const struct parser_call call = { .run = read_python, .fd = fd, .path = path };
	int err;

	memset(out, 0, sizeof(*out));
	err = parser__call_struct(parser, &call, &python_file_type, out, NULL, NULL);
	return !err && out->n_words != PYTHON_FILE_WORDS ? -ENOENT : err;
}
