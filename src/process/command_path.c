// SPDX-License-Identifier: GPL-3.0-or-later
#include "command_path.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "path.h"

static bool is_known(const char *word)
{
	static const char *const names[] = {
		"chrt",	   "chronic", "env",	   "faketime", "gosu",	      "ionice",
		"nice",	   "nohup",   "numactl",   "prlimit",  "runuser",     "setarch",
		"setpriv", "setsid",  "softlimit", "stdbuf",   "systemd-cat", "taskset",
		"time",	   "timeout", "unbuffer",  "unshare",  "xvfb-run",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(path__name(word), names[i]))
			return true;
	return false;
}

/* Returns VALUE if @word is "@name=VALUE", else NULL. */
static const char *value_of(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word, name, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

static void note_assignment(const char *word, struct libraries_environment *changes)
{
	const char *preload = value_of(word, "LD_PRELOAD");
	const char *library_path = value_of(word, "LD_LIBRARY_PATH");

	if (preload)
		changes->preload = preload;
	if (library_path)
		changes->library_path = library_path;
}

static bool is_program(const char *word)
{
	_cleanup_(free_ptr) char *path = NULL;

	return *word && *word != '-' && !strchr(word, '=') &&
	       !command_path__find(word, getenv("PATH"), &path);
}

bool inner_command__find(struct inner_command *command)
{
	char *const *word = command->argv;
	struct libraries_environment changes = command->changes;
	bool is_env;

	if (!*word || !is_known(*word))
		return false;
	is_env = !strcmp(path__name(*word), "env");
	for (word++; *word && !is_program(*word); word++)
		if (is_env)
			note_assignment(*word, &changes);
	if (!*word)
		return false;
	*command = (struct inner_command){ word, changes };
	return true;
}

/* How many interpreters may follow each other in the kernel (search_binary_handler(), "This allows
 * 4 levels of binfmt rewrites"). */
#define MAX_INTERPRETERS 5

/* How much of a script the kernel reads (BINPRM_BUF_SIZE). */
#define MAX_LINE 256

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return -EACCES;
	return 0;
}

static int find_exact(const char *path, char **out)
{
	int err = check_executable(path);
	char *copy;

	if (err)
		return err == -ENOTDIR ? -ENOENT : err;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	*out = copy;
	return 0;
}

static int search(const char *name, const char *path_env, char **out)
{
	int result = -ENOENT;

	for (const char *dir = path_env;; dir++) {
		size_t len = strcspn(dir, ":");
		char *path;
		int err;

		/* An empty element stands for the current directory. */
		if (asprintf(&path, "%.*s%s%s", (int)len, dir, len ? "/" : "", name) < 0)
			return -ENOMEM;
		err = check_executable(path);
		if (!err) {
			*out = path;
			return 0;
		}
		free(path);
		if (err == -EACCES)
			result = err;
		dir += len;
		if (!*dir)
			return result;
	}
}

int command_path__find(const char *name, const char *path_env, char **out)
{
	_cleanup_(free_ptr) char *fallback = NULL;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/'))
		return find_exact(name, out);
	if (!path_env) {
		size_t size = confstr(_CS_PATH, NULL, 0);

		fallback = calloc(1, size + 1);
		if (!fallback)
			return -ENOMEM;
		confstr(_CS_PATH, fallback, size);
		path_env = fallback;
	}
	return search(name, path_env, out);
}

/* Splits off the next word of *@rest; NULL at the end. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t");

	if (!*word)
		return NULL;
	*rest = word + strcspn(word, " \t");
	if (**rest)
		*(*rest)++ = '\0';
	return word;
}

/* Returns the program in the arguments of `env`, behind options and assignments. */
static char *env_program(char **rest)
{
	char *word;

	while ((word = next_word(rest)))
		if (word[0] != '-' && !strchr(word, '='))
			return word;
	return NULL;
}

/* Finds the file that runs a script whose first bytes are @line. */
static int interpreter(char *line, const char *path_env, char **out)
{
	size_t length = strcspn(line, "\n");
	char *rest = line + 2;
	char *program;

	line[length] = '\0';
	program = next_word(&rest);
	/* The kernel rejects an interpreter whose name may be truncated. */
	if (!program || (length == MAX_LINE && rest == line + length && !*rest))
		return -ENOEXEC;
	if (!strcmp(path__name(program), "env")) {
		char *behind = env_program(&rest);

		if (behind)
			return command_path__find(behind, path_env, out);
	}
	/* Unlike a command, an interpreter is not searched for in PATH. */
	return find_exact(program, out);
}

/* Returns 0 and sets *@next if @path is a script, 1 if it is ELF, or a negative errno. */
static int follow(const char *path, const char *path_env, char **next)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	char line[MAX_LINE + 1] = "";
	ssize_t len;

	if (fd < 0)
		return fd;
	len = pread(fd, line, MAX_LINE, 0);
	if (len < 0)
		return -errno;
	if (len >= SELFMAG && memcmp(line, ELFMAG, SELFMAG) == 0)
		return 1;
	if (len < 2 || memcmp(line, "#!", 2) != 0)
		return -ENOEXEC;
	return interpreter(line, path_env, next);
}

int command_path__elf(const char *path, const char *path_env, char **elf_path)
{
	char *current = strdup(path);

	if (!current)
		return -ENOMEM;
	for (int depth = 0; depth <= MAX_INTERPRETERS; depth++) {
		char *next = NULL;
		int ret = follow(current, path_env, &next);

		if (ret == 1) {
			*elf_path = current;
			return 0;
		}
		free(current);
		if (ret < 0)
			return ret;
		current = next;
	}
	free(current);
	return -ELOOP;
}
