// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the command line, the resident memory and the children of a running process from /proc. */
#include "attached.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "file.h"
#include "proc.h"
#include "text.h"

/* What is kept of a command line; arguments can have megabytes. */
#define MOST_COMMAND_BYTES 4096
/* What is kept of a child's. */
#define MOST_CHILD_BYTES 60
/* A server may have thousands of children; a reader needs only some of them. */
#define MOST_CHILDREN 64

/* The first @most bytes of a file in the process's directory, without what is 0 at their end; NULL with *@size 0 if there are
 * none. */
static char *read_file(pid_t pid, const char *name, size_t most, size_t *size)
{
	_cleanup_(close_fd) int fd = -1;
	char path[64], *text;

	*size = 0;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || text_file__read(fd, most, &text, size))
		return NULL;
	while (*size && (!text[*size - 1] || text[*size - 1] == '\n'))
		--*size;
	if (*size)
		return text;
	free(text);
	return NULL;
}

/* A program that sets its title has a single word there, with spaces. */
static void print_words(const char *text, size_t size, FILE *to)
{
	if (strlen(text) >= size) {
		fputs(text, to);
		return;
	}
	for (const char *word = text; word < text + size; word += strlen(word) + 1) {
		if (word > text)
			fputc(' ', to);
		shell_word__print(word, to);
	}
}

/* NULL if the process has ended, or on ENOMEM. */
static char *read_command(pid_t pid)
{
	_cleanup_(free_ptr) char *words = NULL;
	char *command = NULL;
	size_t size, made;
	FILE *to;

	words = read_file(pid, "cmdline", MOST_COMMAND_BYTES, &size);
	if (!words)
		words = read_file(pid, "comm", MOST_COMMAND_BYTES, &size);
	to = words ? open_memstream(&command, &made) : NULL;
	if (!to)
		return NULL;
	words[size] = '\0';
	print_words(words, size, to);
	if (fclose(to)) {
		free(command);
		return NULL;
	}
	utf8__clean(command);
	return command;
}

static __u64 read_rss(pid_t pid)
{
	_cleanup_(close_file) FILE *file = NULL;
	unsigned long long pages;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%*u %llu", &pages) != 1)
		return 0;
	return pages * sysconf(_SC_PAGESIZE);
}

void attached__read(pid_t pid, struct attached *out)
{
	*out = (struct attached){ read_command(pid), read_rss(pid) };
}

void attached__release(struct attached *attached)
{
	free(attached->command);
	attached->command = NULL;
}

static void print_child(pid_t pid, FILE *to)
{
	_cleanup_(free_ptr) char *command = read_command(pid);

	if (command)
		fprintf(to, "%d %.*s\n", pid, MOST_CHILD_BYTES, command);
}

int attached__list_children(pid_t pid, char **lines)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	struct proc_stat stat;
	char *text = NULL;
	size_t size, n = 0;
	FILE *to;

	*lines = NULL;
	if (!directory)
		return 0;
	to = open_memstream(&text, &size);
	while (to && n < MOST_CHILDREN && (entry = readdir(directory))) {
		pid_t child = atoi(entry->d_name);

		if (child <= 0 || proc_stat__read(child, &stat) || stat.parent != pid ||
		    stat.state == 'Z')
			continue;
		print_child(child, to);
		n++;
	}
	closedir(directory);
	if (!to || fclose(to)) {
		free(text);
		return -ENOMEM;
	}
	if (!size) {
		free(text);
		return 0;
	}
	text[size - 1] = '\0'; /* the last newline */
	*lines = text;
	return 0;
}
