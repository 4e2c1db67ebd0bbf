// SPDX-License-Identifier: GPL-3.0-or-later
#include "libraries.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "dynamic_section.h"
#include "file.h"
#include "linker_cache.h"
#include "linker_x86.h"
#include "path.h"

/* Most libraries of one program that are listed; the largest programs have hundreds. */
#define MAX_LIBRARIES 4096
/* Directories that are looked into and files that are looked for, together at most: hostile files can need thousands of names
 * in thousands of directories. */
#define MAX_TRIES      131072
#define MAX_LIST_BYTES 65536

#define CACHE_FILE   "/etc/ld.so.cache"
#define PRELOAD_FILE "/etc/ld.so.preload"
#define MUSL_PATH    "/lib:/usr/local/lib:/usr/lib"

/* The program, the dynamic linker or a library, in the order in which they are loaded. */
struct object {
	size_t needed_by; /* index; the program's is its own */
	dev_t device;
	ino_t inode;
	char *origin; /* the directory that it is in */
	struct dynamic_section dynamic;
};

struct search {
	struct parser *parser;
	bool is_musl;
	const char *library_path; /* NULL: none */
	char *musl_path;
	struct linker_cache *cache; /* NULL: none */
	struct object *objects;
	size_t n_objects, room;
	size_t tries;
	int err;
	void (*fn)(const char *path, void *context);
	void *context;
};

static void free_object(struct object *object)
{
	free(object->origin);
	dynamic_section__release(&object->dynamic);
}

/* The directory of @path, without links. */
static char *origin_of(const char *path)
{
	char *origin = realpath(path, NULL);

	if (!origin)
		origin = strdup(path);
	if (!origin)
		return NULL;
	*(char *)path__name(origin) = '\0';
	for (size_t len = strlen(origin); len > 1 && origin[len - 1] == '/'; len--)
		origin[len - 1] = '\0';
	return origin;
}

static bool is_loaded(const struct search *search, const struct stat *st)
{
	for (size_t i = 0; i < search->n_objects; i++)
		if (search->objects[i].inode == st->st_ino &&
		    search->objects[i].device == st->st_dev)
			return true;
	return false;
}

static int add_object(struct search *search, struct object *object, const char *path)
{
	int err;

	object->origin = origin_of(path);
	err = object->origin ? array__reserve(&search->objects, &search->room,
					      search->n_objects + 1, sizeof(*search->objects))
			     : -ENOMEM;
	if (!err)
		search->objects[search->n_objects++] = *object;
	return err;
}

/* Whether @path can be loaded, or has been. The first two objects, which the caller knows, are not listed. */
static bool load(struct search *search, const char *path, size_t needed_by)
{
	_cleanup_(close_fd) int fd = -1;
	struct object object = { .needed_by = needed_by };
	struct stat st;
	int err;

	if (search->err || search->tries >= MAX_TRIES)
		return false;
	search->tries++;
	fd = regular_file__open(path);
	if (fd < 0 || fstat(fd, &st))
		return false;
	if (is_loaded(search, &st))
		return true;
	if (search->n_objects >= MAX_LIBRARIES)
		return false;
	object.device = st.st_dev;
	object.inode = st.st_ino;
	err = dynamic_section__parse(search->parser, fd, path, &object.dynamic);
	/* The dynamic linker may well load what a worker could not read. */
	if (err == -ECHILD)
		err = 0;
	if (err && err != -ENOMEM)
		return false;
	if (!err)
		err = add_object(search, &object, path);
	if (err) {
		free_object(&object);
		search->err = err;
		return false;
	}
	if (search->n_objects > 2)
		search->fn(path, search->context);
	return true;
}

/* Removes $@token or ${@token} from the start of *@text. */
static bool skip_token(const char **text, const char *token)
{
	const size_t len = strlen(token);
	const char *c = *text + 1;
	const bool braces = *c == '{';

	c += braces;
	if (strncmp(c, token, len) != 0 || (braces && c[len] != '}'))
		return false;
	*text = c + len + braces;
	return true;
}

/* Replaces the tokens of ld.so(8) in @text, of @len bytes. False if the result is too long. */
static bool expand(const char *text, size_t len, const char *origin, const char *lib, char *out,
		   size_t size)
{
	const char *end = text + len;
	size_t used = 0;

	while (text < end) {
		const char *value = NULL;
		size_t n;

		if (*text == '$') {
			if (skip_token(&text, "ORIGIN"))
				value = origin;
			else if (skip_token(&text, "LIB"))
				value = lib;
			else if (skip_token(&text, "PLATFORM"))
				value = LINKER_PLATFORM;
		}
		n = value ? strlen(value) : 1;
		if (used + n >= size)
			return false;
		memcpy(out + used, value ? value : text, n);
		used += n;
		text += !value;
	}
	out[used] = '\0';
	return true;
}

static bool load_from(struct search *search, const char *directory, const char *name,
		      size_t needed_by)
{
	const char *const *level = linker__processor_levels();
	const char *slash = *directory ? "/" : "";
	char path[PATH_MAX];

	/* A try even where no path comes of it. */
	search->tries++;
	for (; !search->is_musl && *level; level++)
		if (snprintf(path, sizeof(path), "%s%sglibc-hwcaps/%s/%s", directory, slash, *level,
			     name) < (int)sizeof(path) &&
		    load(search, path, needed_by))
			return true;
	return snprintf(path, sizeof(path), "%s%s%s", directory, slash, name) < (int)sizeof(path) &&
	       load(search, path, needed_by);
}

/* @list is of directories as DT_RUNPATH and LD_LIBRARY_PATH have them; NULL: empty. */
static bool load_from_list(struct search *search, const char *list, const char *origin,
			   const char *name, size_t needed_by)
{
	const char *separators = search->is_musl ? ":\n" : ":;";

	for (const char *at = list; at && *at && search->tries < MAX_TRIES && !search->err; at++) {
		const size_t len = strcspn(at, separators);

		for (const char *const *lib = linker_lib_names; *lib; lib++) {
			char directory[PATH_MAX];

			search->tries++;
			if (expand(at, len, origin, *lib, directory, sizeof(directory)) &&
			    load_from(search, directory, name, needed_by))
				return true;
			if (!memmem(at, len, "LIB", 3))
				break;
		}
		at += len;
		if (!*at)
			break;
	}
	return false;
}

/* As glibc: DT_RPATH of the objects that led to this one, unless it has a DT_RUNPATH. */
static bool load_from_rpath(struct search *search, const char *name, size_t needed_by)
{
	if (search->objects[needed_by].dynamic.runpath)
		return false;
	for (size_t i = needed_by;; i = search->objects[i].needed_by) {
		const struct object *object = &search->objects[i];

		if (!object->dynamic.runpath &&
		    load_from_list(search, object->dynamic.rpath, object->origin, name, needed_by))
			return true;
		if (!i)
			return false;
	}
}

static void load_by_glibc(struct search *search, const char *name, size_t needed_by)
{
	const char *cached;

	if (load_from_rpath(search, name, needed_by) ||
	    load_from_list(search, search->library_path, search->objects[0].origin, name,
			   needed_by) ||
	    load_from_list(search, search->objects[needed_by].dynamic.runpath,
			   search->objects[needed_by].origin, name, needed_by))
		return;
	cached = linker_cache__find(search->cache, name);
	if (cached && load(search, cached, needed_by))
		return;
	for (const char *const *directory = linker_directories; *directory; directory++)
		if (load_from(search, *directory, name, needed_by))
			return;
}

/* musl has these in its C library, whatever files there are. */
static bool is_in_musl(const char *name)
{
	static const char *const names[] = {
		"c.", "pthread.", "rt.", "m.", "dl.", "util.", "xnet."
	};

	for (size_t i = 0; i < ARRAY_SIZE(names) && !strncmp(name, "lib", 3); i++)
		if (!strncmp(name + 3, names[i], strlen(names[i])))
			return true;
	return false;
}

static void load_by_musl(struct search *search, const char *name, size_t needed_by)
{
	if (is_in_musl(name) || load_from_list(search, search->library_path, "", name, needed_by))
		return;
	for (size_t i = needed_by;; i = search->objects[i].needed_by) {
		const struct object *object = &search->objects[i];

		if (load_from_list(search,
				   object->dynamic.runpath ? object->dynamic.runpath
							   : object->dynamic.rpath,
				   object->origin, name, needed_by))
			return;
		if (!i)
			break;
	}
	load_from_list(search, search->musl_path ? search->musl_path : MUSL_PATH, "", name,
		       needed_by);
}

static void load_name(struct search *search, const char *name, size_t needed_by)
{
	char path[PATH_MAX];

	if (search->tries >= MAX_TRIES)
		return;
	if (strchr(name, '/')) {
		if (expand(name, strlen(name), search->objects[needed_by].origin,
			   linker_lib_names[0], path, sizeof(path)))
			load(search, path, needed_by);
		return;
	}
	for (size_t i = 1; i < search->n_objects; i++)
		if (search->objects[i].dynamic.name &&
		    !strcmp(search->objects[i].dynamic.name, name))
			return;
	if (search->is_musl)
		load_by_musl(search, name, needed_by);
	else
		load_by_glibc(search, name, needed_by);
}

/* @names are separated as in LD_PRELOAD. */
static int load_names(struct search *search, const char *names)
{
	_cleanup_(free_ptr) char *copy = strdup(names ? names : "");
	char *rest = NULL;

	if (!copy)
		return -ENOMEM;
	for (char *name = strtok_r(copy, " \t\n:", &rest); name;
	     name = strtok_r(NULL, " \t\n:", &rest))
		load_name(search, name, 0);
	return 0;
}

/* The text of a file of the system, without comments; NULL if there is none. */
static char *read_list(const char *path)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	size_t size_bytes;
	char *text;

	if (fd < 0 || text_file__read(fd, MAX_LIST_BYTES, &text, &size_bytes))
		return NULL;
	for (char *c = strchr(text, '#'); c; c = strchr(c, '#'))
		memset(c, ' ', strcspn(c, "\n"));
	return text;
}

struct start {
	struct parser *parser;
	const char *linker, *program;
	const char *library_path, *preload; /* of options; NULL: none */
	struct libraries_environment changes;
	bool without_cache;
};

static const char *first_of(const char *a, const char *b, const char *c)
{
	if (a)
		return a;
	return b ? b : c;
}

static int list(const struct start *start, void (*fn)(const char *path, void *context),
		void *context)
{
	_cleanup_(free_ptr) char *preload_file = NULL;
	struct search search = {
		.parser = start->parser,
		.is_musl = !strncmp(path__name(start->linker), "ld-musl-", 8),
		.library_path = first_of(start->library_path, start->changes.library_path,
					 getenv("LD_LIBRARY_PATH")),
		.fn = fn,
		.context = context,
	};
	int err = -ENOENT;

	if (search.is_musl)
		search.musl_path = read_list(MUSL_PATH_FILE);
	else
		preload_file = read_list(PRELOAD_FILE);
	if (!search.is_musl && !start->without_cache)
		linker_cache__open(CACHE_FILE, &search.cache);
	if (load(&search, start->program, 0) && load(&search, start->linker, 0) &&
	    search.n_objects == 2) {
		err = load_names(&search,
				 first_of(start->changes.preload, getenv("LD_PRELOAD"), NULL));
		if (!err)
			err = load_names(&search, start->preload);
		if (!err)
			err = load_names(&search, preload_file);
		for (size_t i = 0; !err && i < search.n_objects; i++)
			for (size_t j = 0; j < search.objects[i].dynamic.n_needed; j++)
				load_name(&search, search.objects[i].dynamic.needed[j], i);
	}
	for (size_t i = 0; i < search.n_objects; i++)
		free_object(&search.objects[i]);
	free(search.objects);
	free(search.musl_path);
	linker_cache__free(search.cache);
	return search.err ? search.err : err;
}

/* The search of other interpreters is not known. */
static bool is_known(const char *interpreter)
{
	const char *name = path__name(interpreter);

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-musl-", 8);
}

int libraries__list(struct parser *parser, const char *interpreter, const char *program,
		    const struct libraries_environment *changes,
		    void (*fn)(const char *path, void *context), void *context)
{
	const struct start start = {
		.parser = parser,
		.linker = interpreter,
		.program = program,
		.changes = changes ? *changes : (struct libraries_environment){ 0 },
	};

	return is_known(interpreter) ? list(&start, fn, context) : -ENOTSUP;
}

/* Whether @path is a program for a dynamic linker: not the library of an option such as --preload. */
static bool is_program(struct parser *parser, const char *path)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct dynamic_section dynamic = { 0 };
	bool is = fd >= 0 && !dynamic_section__parse(parser, fd, path, &dynamic) &&
		  dynamic.is_program;

	dynamic_section__release(&dynamic);
	return is;
}

/* The value of the option @name at argv[i], "--name VALUE" or, as musl also takes it, "--name=VALUE"; else
 * @value. */
static const char *option(char *const argv[], size_t i, const char *name, const char *value)
{
	const size_t len = strlen(name);

	if (strncmp(argv[i], name, len) != 0)
		return value;
	if (argv[i][len] == '=')
		return argv[i] + len + 1;
	return argv[i][len] || !argv[i + 1] ? value : argv[i + 1];
}

int libraries__list_started(struct parser *parser, const char *linker, char *const argv[],
			    void (*fn)(const char *path, void *context), void *context)
{
	_cleanup_(free_ptr) char *real = realpath(linker, NULL);
	struct start start = { .parser = parser, .linker = real };
	size_t i = 1;

	if (!real)
		return -errno;
	if (!is_known(real))
		return -ENOTSUP;
	for (; argv[i] && !is_program(parser, argv[i]); i++) {
		start.library_path = option(argv, i, "--library-path", start.library_path);
		start.preload = option(argv, i, "--preload", start.preload);
		start.without_cache |= !strcmp(argv[i], "--inhibit-cache");
	}
	if (!argv[i])
		return -ENOENT;
	start.program = argv[i];
	fn(argv[i], context);
	return list(&start, fn, context);
}
