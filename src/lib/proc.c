// SPDX-License-Identifier: GPL-3.0-or-later
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "file.h"
#include "text.h"

/* A limit for files that are read as text. */
#define MOST_BYTES 65536

char *proc_file__read(pid_t pid, const char *name, size_t *size)
{
	_cleanup_(close_fd) int fd = -1;
	char path[64], *text;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || text_file__read(fd, MOST_BYTES, &text, &length))
		return NULL;
	if (size)
		*size = length;
	return text;
}

/* Prints the words of a command line. A program that sets its title has only one word there, with
 * spaces. */
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

char *proc_command__text(char *words, size_t size, size_t most)
{
	char *command = NULL;
	size_t made;
	bool is_cut;
	FILE *to;

	while (size && !words[size - 1])
		size--;
	to = size ? open_memstream(&command, &made) : NULL;
	if (!to)
		return NULL;
	is_cut = size > most;
	size = is_cut ? most : size;
	words[size] = '\0';
	print_words(words, size, to);
	if (is_cut)
		fputs("...", to);
	if (fclose(to)) {
		free(command);
		return NULL;
	}
	utf8__clean(command);
	return command;
}

char *proc_command__read(pid_t pid, size_t most)
{
	size_t size;
	_cleanup_(free_ptr) char *words = proc_file__read(pid, "cmdline", &size);

	return words ? proc_command__text(words, size, most) : NULL;
}

char *proc_comm__read(pid_t pid)
{
	size_t size;
	char *text = proc_file__read(pid, "comm", &size);

	if (!text)
		return NULL;
	if (size && text[size - 1] == '\n')
		text[size - 1] = '\0';
	utf8__clean(text);
	return text;
}

bool proc_mapping__parse(char *line, struct proc_mapping *out)
{
	struct proc_mapping mapping = { 0 };
	char permissions[5];
	int path_at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &mapping.start, &mapping.end,
		   permissions, &mapping.offset, &mapping.major, &mapping.minor, &mapping.inode,
		   &path_at) < 7 ||
	    !path_at)
		return false;
	line[strcspn(line, "\n")] = '\0';
	mapping.is_readable = permissions[0] == 'r';
	mapping.is_writable = permissions[1] == 'w';
	mapping.is_executable = permissions[2] == 'x';
	mapping.is_shared = permissions[3] == 's';
	mapping.path = line + path_at;
	*out = mapping;
	return true;
}

int proc_maps__each(pid_t pid, proc_maps_visit *visit, void *context)
{
	_cleanup_(close_file) FILE *maps = NULL;
	_cleanup_(free_ptr) char *line = NULL;
	char name[64] = "/proc/self/maps";
	size_t capacity = 0;
	int err = 0;

	if (pid)
		snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	maps = fopen(name, "re");
	if (!maps)
		return -errno;
	while (!err && getline(&line, &capacity, maps) > 0) {
		struct proc_mapping mapping;

		if (proc_mapping__parse(line, &mapping))
			err = visit(context, &mapping);
	}
	return err;
}

static int read_stat(const char *path, struct proc_stat *out)
{
	_cleanup_(close_file) FILE *file = NULL;
	char line[1024], *rest;
	struct proc_stat stat;
	__u64 ticks[4];
	int terminal;

	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		return file ? -ESRCH : -errno;
	/* The name is in parentheses and may contain any character. */
	rest = strrchr(line, ')');
	if (!rest ||
	    sscanf(rest + 1,
		   " %c %d %*d %*d %d %*d %lu %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %d "
		   "%*d %llu",
		   &stat.state, &stat.parent, &terminal, &stat.flags, &ticks[0], &ticks[1],
		   &ticks[2], &ticks[3], &stat.n_threads, &stat.start_ticks) != 10)
		return -EINVAL;
	stat.cpu_ticks = ticks[0] + ticks[1] + ticks[2] + ticks[3];
	stat.terminal = terminal;
	*out = stat;
	return 0;
}

int proc_stat__read(pid_t pid, struct proc_stat *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return read_stat(path, out);
}

/* Reads /proc/PID/task/TID/stat: in /proc/TID/stat the kernel would report the sum of the times of
 * all threads of the process. */
int proc_stat__read_thread(pid_t pid, pid_t tid, struct proc_stat *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	return read_stat(path, out);
}

bool proc__has_ended(pid_t pid)
{
	struct proc_stat stat;
	int err = proc_stat__read(pid, &stat);

	return err ? err == -ENOENT || err == -ESRCH : stat.state == 'Z' && stat.n_threads <= 1;
}

/* Reads the line of @key in /proc/PID/status. Returns what is behind the colon, or NULL. */
static const char *read_status(pid_t pid, const char *key, char *line, size_t size)
{
	_cleanup_(close_file) FILE *file = NULL;
	size_t len = strlen(key);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, size, file))
		if (!strncmp(line, key, len) && line[len] == ':')
			return line + len + 1;
	return NULL;
}

bool proc_status__number(pid_t pid, const char *key, int *out)
{
	char line[256];
	const char *text = read_status(pid, key, line, sizeof(line));

	return text && sscanf(text, "%d", out) == 1;
}

bool proc_status__last_number(pid_t pid, const char *key, int *out)
{
	char line[256];
	const char *text = read_status(pid, key, line, sizeof(line));
	const char *tab = text ? strrchr(text, '\t') : NULL;

	return tab && sscanf(tab, "%d", out) == 1;
}

bool proc_memory__read(pid_t pid, struct proc_memory *out)
{
	_cleanup_(close_file) FILE *file = NULL;
	unsigned long long resident, shared, page = sysconf(_SC_PAGESIZE);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%*u %llu %llu", &resident, &shared) != 2)
		return false;
	*out = (struct proc_memory){ resident * page, shared * page };
	return true;
}

bool proc_status__is_same(pid_t pid, pid_t other, const char *key)
{
	char line[4096], others[4096];
	const char *text = read_status(pid, key, line, sizeof(line));
	const char *others_text = read_status(other, key, others, sizeof(others));

	return text && others_text && !strcmp(text, others_text);
}
