// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_refusal.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "command_path.h"
#include "elf_file.h"
#include "file.h"
#include "inside_abi.h"
#include "parser.h"
#include "refusal_abi.h"
#include "translator.h"

#define WORD(text) text,
static const char *const functions[] = { SANITIZER_FUNCTIONS(WORD) };
static const char *const libraries[] = { SANITIZER_LIBRARIES(WORD) };
#undef WORD

static int is_sanitizer(const struct elf_symbol *symbol, void *unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (!strcmp(symbol->name, functions[i]))
			return 1;
	return 0;
}

static int is_sanitizer_library(const char *name, void *unused)
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
		if (!strncmp(name, libraries[i], strlen(libraries[i])))
			return 1;
	return 0;
}

/* Returns whether the program has a sanitizer: it names a sanitizer's library, imports its
 * functions, or defines them. */
static bool has_sanitizer(struct elf_file *file)
{
	if (elf_file__for_each_dynamic_string(file, DT_NEEDED, is_sanitizer_library, NULL) == 1)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (elf_file__imports(file, functions[i]))
			return true;
	return elf_file__for_each_symbol(file, is_sanitizer, NULL) == 1;
}

static bool preloads_sanitizer(char *const *environment)
{
	static const char variable[] = "LD_PRELOAD=";

	for (; *environment; environment++) {
		if (strncmp(*environment, variable, sizeof(variable) - 1) != 0)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
			if (strstr(*environment, libraries[i]))
				return true;
	}
	return false;
}

static struct ap_program describe(int fd)
{
	struct ap_program program = {
		.user = getuid(),
		.effective_user = geteuid(),
		.group = getgid(),
		.effective_group = getegid(),
		.has_capabilities = fgetxattr(fd, "security.capability", NULL, 0) > 0,
	};
	struct stat status;

	if (fstat(fd, &status))
		return program;
	program.mode = status.st_mode;
	program.owner = status.st_uid;
	program.owning_group = status.st_gid;
	return program;
}

/* Runs in the worker: reads the file. */
static int run(struct parser_task *task)
{
	struct elf_file *file;
	int err = elf_file__open(task->fd, task->path, &file, task->error);

	if (err)
		return err;
	wire__put_u32(task->result, elf_file__is_static(file));
	wire__put_u32(task->result, has_sanitizer(file));
	elf_file__free(file);
	return 0;
}

static int refusal_of_file(struct parser *parser, const char *path)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	const struct parser_call call = { .run = run, .fd = fd, .path = path };
	struct wire_reader result;
	struct ap_program program;
	int err;

	if (fd < 0)
		return INSIDE_REFUSES_UNREADABLE;
	err = parser__call(parser, &call, &result, NULL);
	if (err)
		return err == -ECHILD ? INSIDE_REFUSES_UNREADABLE : INSIDE_REFUSES_MACHINE;
	program = describe(fd);
	program.is_static = wire__get_u32(&result);
	program.has_sanitizer = wire__get_u32(&result);
	if (!wire__is_read(&result)) {
		parser__refuse(parser, path, NULL);
		return INSIDE_REFUSES_UNREADABLE;
	}
	return ap_program__refusal(&program);
}

int preload_refusal__of(struct parser *parser, char *const argv[], char *const *environment)
{
	_cleanup_(free_ptr) char *path = NULL, *program = NULL;

	/* If there is no such file, execve(2) reports the error. */
	if (command_path__find(argv[0], getenv("PATH"), &path))
		return -1;
	if (translator__is_one(path))
		return INSIDE_REFUSES_TRANSLATOR;
	if (command_path__elf(path, getenv("PATH"), &program))
		return -1;
	if (translator__is_one(program))
		return INSIDE_REFUSES_TRANSLATOR;
	if (preloads_sanitizer(environment))
		return INSIDE_REFUSES_SANITIZER;
	return refusal_of_file(parser, program);
}
