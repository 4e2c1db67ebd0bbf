// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the machine, system, C library, compiler and libraries that a command runs on. */
#include "platform.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_text.h"
#include "cleanup.h"
#include "command_path.h"
#include "file.h"
#include "libraries.h"
#include "path.h"
#include "program_kind.h"
#include "text.h"

static char *copy_if_any(const char *text)
{
	return *text ? strdup(text) : NULL;
}

/* Reads PRETTY_NAME="Debian GNU/Linux 12 (bookworm)". */
static char *read_system(void)
{
	static const char key[] = "PRETTY_NAME=";
	FILE *file = fopen("/etc/os-release", "re");
	char line[256], *name = NULL;

	while (file && !name && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		name = line + strlen(key);
		name += *name == '"';
		name[strcspn(name, "\"")] = '\0';
		utf8__clean(name);
		name = strdup(name);
	}
	if (file)
		fclose(file);
	return name;
}

struct reading {
	struct parser *parser;
	struct platform *platform;
	FILE *libraries;
};

static void read_text(struct reading *reading, const char *path, struct build_text *text)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);

	*text = (struct build_text){ 0 };
	if (fd < 0 || build_text__parse(reading->parser, fd, path, text))
		*text = (struct build_text){ 0 };
}

static void note_file(const char *path, void *context)
{
	struct reading *reading = context;
	const char *name = path__name(path);
	char whole[PATH_MAX];
	struct build_text text;

	if (!realpath(path, whole))
		return;
	utf8__clean(whole);
	fprintf(reading->libraries, "%s\n", whole);
	if (reading->platform->libc || strncmp(name, "libc.", 5) != 0)
		return;
	read_text(reading, path, &text);
	reading->platform->libc = copy_if_any(text.libc);
}

static void read_program(struct reading *reading, const char *program)
{
	_cleanup_(close_fd) int fd = regular_file__open(program);
	struct program_kind kind;
	struct build_text text;

	note_file(program, reading);
	read_text(reading, program, &text);
	reading->platform->compiler = copy_if_any(text.compiler);
	/* A static program is of the C library that is in it. */
	reading->platform->libc = copy_if_any(text.libc);
	if (fd < 0 || program_kind__parse(reading->parser, fd, program, &kind) ||
	    !kind.interpreter[0])
		return;
	if (!strncmp(path__name(kind.interpreter), "ld-musl-", 8) && !reading->platform->libc)
		reading->platform->libc = strdup("musl");
	(void)libraries__list(reading->parser, kind.interpreter, program, NULL, note_file, reading);
}

void platform__read(struct parser *parser, char *const argv[], struct platform *out)
{
	_cleanup_(free_ptr) char *path = NULL, *program = NULL;
	struct reading reading = { .parser = parser, .platform = out };
	size_t size;

	*out = (struct platform){ 0 };
	out->system = read_system();
	if (!parser || !argv || command_path__find(argv[0], getenv("PATH"), &path) ||
	    command_path__elf(path, getenv("PATH"), &program))
		return;
	reading.libraries = open_memstream(&out->libraries, &size);
	if (!reading.libraries)
		return;
	read_program(&reading, program);
	if (fclose(reading.libraries)) {
		free(out->libraries);
		out->libraries = NULL;
	} else if (size) {
		out->libraries[size - 1] = '\0';
	}
}

void platform__release(struct platform *platform)
{
	free(platform->system);
	free(platform->libc);
	free(platform->compiler);
	free(platform->libraries);
	*platform = (struct platform){ 0 };
}
