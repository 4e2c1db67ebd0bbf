// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtimes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "hash_table.h"
#include "mapped_file.h"
#include "mapping_events.h"
#include "path.h"
#include "process_maps.h"
#include "program_kind.h"

/*
 * How long an environment is waited for: the kernel maps a program before it writes the
 * environment.
 */
#define PATIENCE_NS 200000000ULL

/* The kernel permits at most 6 MiB of arguments and environment. */
#define MOST_WORD_BYTES (8U << 20)

enum runtime {
	RUNTIME_PYTHON,
	RUNTIME_GO,
	RUNTIME_JAVA,
	RUNTIME_ERLANG,
	RUNTIME_DOTNET,
	RUNTIME_JAVASCRIPT,
	RUNTIME_PHP,
	RUNTIME_RUBY,
	RUNTIMES,
};

static const char *const names[RUNTIMES] = {
	[RUNTIME_PYTHON] = "python", [RUNTIME_GO] = "go",
	[RUNTIME_JAVA] = "java",     [RUNTIME_ERLANG] = "erlang",
	[RUNTIME_DOTNET] = "dotnet", [RUNTIME_JAVASCRIPT] = "javascript",
	[RUNTIME_PHP] = "php",	     [RUNTIME_RUBY] = "ruby",
};

struct checked_file {
	struct file_identity identity;
	bool is_python;
};

/* A process whose environment was not there yet when it was read. */
struct pending {
	pid_t pid;
	__u64 last_ns; /* CLOCK_MONOTONIC: when to give up; 0: not set yet */
	char *path;
};

struct runtimes {
	struct file_identifier identifier;
	struct parser *parser;
	struct checked_file *files;
	size_t n_files, files_room;
	struct hash_table files_index;
	struct pending *pending;
	size_t n_pending, pending_room;
	unsigned int found; /* bits of enum runtime */
	char *own_heaps;    /* lines of text; NULL: none */
};

struct runtimes *runtimes__new(const struct file_identifier *identifier, struct parser *parser)
{
	struct runtimes *runtimes = calloc(1, sizeof(*runtimes));

	if (!runtimes)
		return NULL;
	runtimes->identifier = *identifier;
	runtimes->parser = parser;
	return runtimes;
}

void runtimes__free(struct runtimes *runtimes)
{
	if (!runtimes)
		return;
	for (size_t i = 0; i < runtimes->n_pending; i++)
		free(runtimes->pending[i].path);
	free(runtimes->pending);
	free(runtimes->files);
	hash_table__release(&runtimes->files_index);
	free(runtimes->own_heaps);
	free(runtimes);
}

const char *runtimes__own_heaps(const struct runtimes *runtimes)
{
	return runtimes->own_heaps;
}

static bool has(const struct runtimes *runtimes, enum runtime runtime)
{
	return runtimes->found >> runtime & 1;
}

static void note_runtime(struct runtimes *runtimes, enum runtime runtime, const char *path)
{
	char *lines, *name;

	if (has(runtimes, runtime))
		return;
	if (asprintf(&lines, "%s%s%s %s", runtimes->own_heaps ?: "",
		     runtimes->own_heaps ? "\n" : "", names[runtime], path) < 0)
		return;
	name = lines + strlen(lines) - strlen(path);
	for (char *c = name; *c; c++)
		if (*c == '\n')
			*c = '?';
	free(runtimes->own_heaps);
	runtimes->own_heaps = lines;
	runtimes->found |= 1U << runtime;
}

/* Returns whether @name is that of a file "@stem", possibly with a version, such as ruby3.1,
 * php-fpm8.2 and libruby-3.1.so.3.1. */
static bool is_named(const char *name, const char *stem)
{
	const char *rest = name + strlen(stem);

	if (strncmp(name, stem, strlen(stem)) != 0)
		return false;
	rest += *rest == '-';
	return !*rest || strchr("0123456789.", *rest);
}

/* Returns which runtime other than CPython and Go the file has, by the name that builds give to
 * the file with the runtime. */
static int runtime_by_name(const char *name)
{
	static const struct {
		const char *stem;
		enum runtime runtime;
	} files[] = {
		{ "libjvm.so", RUNTIME_JAVA },
		{ "beam.smp", RUNTIME_ERLANG },
		{ "beam", RUNTIME_ERLANG },
		{ "libcoreclr.so", RUNTIME_DOTNET },
		{ "node", RUNTIME_JAVASCRIPT },
		{ "nodejs", RUNTIME_JAVASCRIPT },
		{ "libnode.so", RUNTIME_JAVASCRIPT },
		{ "deno", RUNTIME_JAVASCRIPT },
		{ "php", RUNTIME_PHP },
		{ "php-fpm", RUNTIME_PHP },
		{ "php-cgi", RUNTIME_PHP },
		{ "libphp", RUNTIME_PHP },
		{ "ruby", RUNTIME_RUBY },
		{ "libruby", RUNTIME_RUBY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (is_named(name, files[i].stem))
			return files[i].runtime;
	return -1;
}

static bool is_same_file(const void *owner, __u32 id, const void *key)
{
	const struct runtimes *runtimes = owner;

	return file_identity__is_same(&runtimes->files[id - 1].identity, key);
}

/* Returns whether the file is CPython. Checks each file once, also for other runtimes. */
static bool look_at_file(struct runtimes *runtimes, const struct mapped_file *mapped)
{
	const struct file_identity *identity = &mapped->identity;
	__u64 hash = hash_mix(hash_mix(0, identity->inode), identity->device);
	__u32 id = hash_table__find(&runtimes->files_index, hash, is_same_file, runtimes, identity);
	struct file_identities identities;
	_cleanup_(close_fd) int fd = -1;
	struct program_kind kind = { 0 };
	struct checked_file *file;
	int runtime;

	if (id)
		return runtimes->files[id - 1].is_python;
	fd = mapped_file__open(mapped, &runtimes->identifier, &identities);
	if (fd < 0 || array__reserve(&runtimes->files, &runtimes->files_room, runtimes->n_files + 1,
				     sizeof(*runtimes->files)))
		return false;
	if (program_kind__parse(runtimes->parser, fd, mapped->path, &kind))
		kind = (struct program_kind){ 0 };
	/* A static Go program is reported as not probed instead. */
	if (kind.is_go && !kind.is_static)
		note_runtime(runtimes, RUNTIME_GO, mapped->path);
	runtime = runtime_by_name(path__name(mapped->path));
	if (runtime >= 0)
		note_runtime(runtimes, runtime, mapped->path);
	file = &runtimes->files[runtimes->n_files];
	*file = (struct checked_file){ *identity, kind.is_python };
	if (!hash_table__insert(&runtimes->files_index, hash, runtimes->n_files + 1))
		runtimes->n_files++;
	return file->is_python;
}

/* The words of a process, each terminated by a null byte. */
struct words {
	char *text; /* owned */
	size_t size;
	const char *next;
};

/* Reads the words. A process can claim by prctl(2) that all of its memory is words, so their size
 * is limited. */
static int read_words(pid_t pid, const char *name, struct words *out)
{
	_cleanup_(close_fd) int fd = -1;
	struct words words = { 0 };
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : text_file__read(fd, MOST_WORD_BYTES, &words.text, &words.size);
	if (err)
		return err;
	words.next = words.text;
	*out = words;
	return 0;
}

/* Returns the next word; NULL at the end. The last word may be truncated. */
static const char *next_word(struct words *words)
{
	const char *word = words->next;

	if (word >= words->text + words->size)
		return NULL;
	words->next = word + strlen(word) + 1;
	return word;
}

/* Returns whether @value, of PYTHONMALLOC, selects malloc for all requests. */
static bool is_malloc(const char *value)
{
	return value && (!strcmp(value, "malloc") || !strcmp(value, "malloc_debug"));
}

/* Returns 1 if the environment of the process selects malloc, else 0. Fails with -EAGAIN if it is
 * empty, and perhaps not written yet. Fails with -ESRCH if the process has ended. */
static int asks_for_malloc(pid_t pid)
{
	static const char name[] = "PYTHONMALLOC=";
	struct words words;
	const char *word;
	int asks;

	if (read_words(pid, "environ", &words))
		return -ESRCH;
	asks = words.size ? 0 : -EAGAIN;
	while ((word = next_word(&words)))
		if (!strncmp(word, name, strlen(name))) {
			asks = is_malloc(word + strlen(name));
			break;
		}
	free(words.text);
	return asks;
}

/* Returns whether the options in @word make Python ignore the environment. Sets *@ends if the
 * interpreter's options end there, and *@takes if the next word is an argument of the last option. */
static bool ignores_environment(const char *word, bool *ends, bool *takes)
{
	*takes = false;
	*ends = word[0] != '-' || !word[1];
	if (*ends)
		return false;
	if (word[1] == '-') {
		*takes = !strcmp(word, "--check-hash-based-pycs");
		return false;
	}
	while (*++word) {
		if (*word == 'E' || *word == 'I')
			return true;
		if (*word == 'c' || *word == 'm') {
			*ends = true;
			return false;
		}
		if (*word == 'W' || *word == 'X') {
			*takes = !word[1];
			return false;
		}
	}
	return false;
}

/* Returns whether the process was started as `python -E` or `python -I`. Programs that embed
 * Python have other options. */
static bool is_isolated(pid_t pid)
{
	bool ends = false, takes = false, is = false;
	struct words words;
	const char *word;

	if (read_words(pid, "cmdline", &words))
		return false;
	word = next_word(&words);
	ends = !word || !strstr(path__name(word), "python");
	while (!ends && !is && (word = next_word(&words))) {
		if (takes)
			takes = false;
		else
			is = ignores_environment(word, &ends, &takes);
	}
	free(words.text);
	return is;
}

/* Checks the process. Fails with -EAGAIN if the answer is not known yet. */
static int look_at_process(struct runtimes *runtimes, pid_t pid, const char *path, bool is_last)
{
	int asks = asks_for_malloc(pid);

	if (asks == -EAGAIN && !is_last)
		return -EAGAIN;
	/* A process that has ended most likely had this process's environment, as allocprof-targets(7) says. */
	if (asks == -ESRCH)
		asks = is_malloc(getenv("PYTHONMALLOC"));
	if (asks <= 0 || is_isolated(pid))
		note_runtime(runtimes, RUNTIME_PYTHON, path);
	return 0;
}

static void look(struct runtimes *runtimes, const struct mapped_file *mapped)
{
	struct pending *pending;

	if (!mapped->identity.inode || !mapped->path || mapped->path[0] != '/' ||
	    !look_at_file(runtimes, mapped) || has(runtimes, RUNTIME_PYTHON) ||
	    look_at_process(runtimes, mapped->pid, mapped->path, false) != -EAGAIN ||
	    array__reserve(&runtimes->pending, &runtimes->pending_room, runtimes->n_pending + 1,
			   sizeof(*runtimes->pending)))
		return;
	pending = &runtimes->pending[runtimes->n_pending];
	*pending = (struct pending){ mapped->pid, 0, strdup(mapped->path) };
	runtimes->n_pending += pending->path != NULL;
}

void runtimes__notice_mapping(struct runtimes *runtimes, const struct mapping_event *event)
{
	struct mapped_file mapped = mapping_event__file(event);

	look(runtimes, &mapped);
}

void runtimes__notice_file(struct runtimes *runtimes, const struct mapped_file *mapped)
{
	look(runtimes, mapped);
}

struct scan {
	struct runtimes *runtimes;
	pid_t pid;
};

static void look_at_mapping(const struct code_mapping *mapping, void *context)
{
	const struct scan *scan = context;

	look(scan->runtimes, &(struct mapped_file){
				     .pid = scan->pid,
				     .start = mapping->start,
				     .end = mapping->end,
				     .identity = mapping->identity,
				     .path = mapping->path,
			     });
}

void runtimes__scan_process(struct runtimes *runtimes, pid_t pid)
{
	struct process_maps *maps = process_maps__new();
	struct scan scan = { runtimes, pid };

	if (!maps)
		return;
	process_maps__scan(maps, pid);
	process_maps__for_each(maps, pid, UINT64_MAX, look_at_mapping, &scan);
	process_maps__free(maps);
}

void runtimes__attend(struct runtimes *runtimes, __u64 now_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < runtimes->n_pending; i++) {
		struct pending *pending = &runtimes->pending[i];

		if (!pending->last_ns)
			pending->last_ns = now_ns + PATIENCE_NS;
		if (!has(runtimes, RUNTIME_PYTHON) &&
		    look_at_process(runtimes, pending->pid, pending->path,
				    now_ns >= pending->last_ns) == -EAGAIN)
			runtimes->pending[n++] = *pending;
		else
			free(pending->path);
	}
	runtimes->n_pending = n;
}
