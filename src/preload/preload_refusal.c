// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_refusal.h"

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
#include "inside_abi.h"
#include "parser.h"
#include "refusal_abi.h"
#include "regular_file.h"
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

/* A program calls these functions of a library, or has the library in itself. */
static bool has_sanitizer(struct elf_file *file)
{
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

/* Whether the program gets other privileges than this process has: the dynamic linker then loads nothing by name. */
static bool changes_privileges(int fd)
{
	struct stat status;

	if (getuid() != geteuid() || getgid() != getegid())
		return true;
	/* Capabilities of the file change nothing for root. */
	if (getuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return true;
	if (fstat(fd, &status))
		return false;
	if (status.st_mode & S_ISUID && status.st_uid != getuid())
		return true;
	return (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	       status.st_gid != getgid();
}

/* In the worker: what is in the file. */
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
	bool is_static, is_sanitized;
	struct wire_reader result;
	int err;

	if (fd < 0)
		return INSIDE_REFUSES_UNREADABLE;
	err = parser__call(parser, &call, &result, NULL);
	if (err)
		return err == -ECHILD ? INSIDE_REFUSES_UNREADABLE : INSIDE_REFUSES_MACHINE;
	is_static = wire__get_u32(&result);
	is_sanitized = wire__get_u32(&result);
	if (!wire__is_read(&result)) {
		parser__refuse(parser, path, NULL);
		return INSIDE_REFUSES_UNREADABLE;
	}
	if (is_static)
		return INSIDE_REFUSES_STATIC;
	if (changes_privileges(fd))
		return INSIDE_REFUSES_SECURE;
	return is_sanitized ? INSIDE_REFUSES_SANITIZER : -1;
}

int preload_refusal__of(struct parser *parser, char *const argv[], char *const *environment)
{
	_cleanup_(free_ptr) char *path = NULL, *program = NULL;

	/* execve(2) says what is wrong with it. */
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

bool preload_refusal__clears_environment(int refusal)
{
	return refusal == INSIDE_REFUSES_MACHINE || refusal == INSIDE_REFUSES_STATIC ||
	       refusal == INSIDE_REFUSES_SANITIZER || refusal == INSIDE_REFUSES_TRANSLATOR;
}
