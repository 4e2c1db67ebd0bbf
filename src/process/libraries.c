// SPDX-License-Identifier: GPL-3.0-or-later
#include "libraries.h"

#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
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
#include "linker.h"
#include "path.h"

/* Largest cache that is read; a desktop's has 0.2 MB. */
#define MAX_BYTES (64U << 20)

/* The format of glibc's sysdeps/generic/dl-cache.h. Strings are at offsets from the header. */
struct cache_header {
	char magic[20]; /* has the version at its end */
	__u32 n;
	__u32 string_bytes;
	__u8 flags, padding[3];
	__u32 extensions; /* offset of the extensions; 0: none */
	__u32 unused[3];
};

struct cache_entry {
	__s32 flags;
	__u32 name, path;
	__u32 os_version;
	__u64 hwcap;
};

/* The format before glibc 2.2; ldconfig can write a cache in it in front of the other. */
struct old_header {
	char magic[12];
	__u32 n;
};

#define OLD_ENTRY_BYTES 12

struct extension_header {
	__u32 magic, n;
};

struct extension {
	__u32 tag, flags, offset, size;
};

#define EXTENSION_MAGIC	 0xeaa42174
#define EXTENSION_HWCAPS 1 /* offsets of names of subdirectories of glibc-hwcaps */

/* A hwcap with this bit and no other high bit has an index into EXTENSION_HWCAPS in its lower
 * half. */
#define HWCAP_EXTENSION (1ULL << 62)

struct linker_cache {
	char *bytes; /* contents, terminated by a NUL */
	size_t size;
	size_t start; /* offset of the header */
	__u32 n;
	size_t levels; /* offset of the list of offsets of level names */
	__u32 n_levels;
};

/* Copies the @size bytes at @offset from the header. Returns false if they are not in the cache. */
static bool get(const struct linker_cache *cache, __u64 offset, void *out, size_t size)
{
	if (offset > cache->size - cache->start || size > cache->size - cache->start - offset)
		return false;
	memcpy(out, cache->bytes + cache->start + offset, size);
	return true;
}

/* Returns the string; "" if there is none. */
static const char *string(const struct linker_cache *cache, __u32 offset)
{
	return offset < cache->size - cache->start ? cache->bytes + cache->start + offset : "";
}

static void find_levels(struct linker_cache *cache, __u32 offset)
{
	struct extension_header header;
	struct extension extension;

	if (!offset || !get(cache, offset, &header, sizeof(header)) ||
	    header.magic != EXTENSION_MAGIC)
		return;
	for (__u64 i = 0, at = offset + sizeof(header); i < header.n;
	     i++, at += sizeof(extension)) {
		if (!get(cache, at, &extension, sizeof(extension)))
			return;
		if (extension.tag != EXTENSION_HWCAPS)
			continue;
		cache->levels = extension.offset;
		cache->n_levels = extension.size / sizeof(__u32);
		return;
	}
}

static int check(struct linker_cache *cache)
{
	static const char magic[] = "glibc-ld.so.cache1.1", old_magic[] = "ld.so-1.7.0";
	struct cache_header header;
	struct old_header old;

	if (get(cache, 0, &old, sizeof(old)) &&
	    !memcmp(old.magic, old_magic, sizeof(old_magic) - 1)) {
		__u64 end = sizeof(old) + (__u64)old.n * OLD_ENTRY_BYTES;

		end = (end + 7) & ~7ULL;
		if (end > cache->size)
			return -EINVAL;
		cache->start = end;
	}
	if (!get(cache, 0, &header, sizeof(header)) ||
	    memcmp(header.magic, magic, sizeof(header.magic)) != 0)
		return -EINVAL;
	if (header.n > (cache->size - cache->start - sizeof(header)) / sizeof(struct cache_entry))
		return -EINVAL;
	cache->n = header.n;
	find_levels(cache, header.extensions);
	return 0;
}

static int read_file(int fd, struct linker_cache *cache)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size > MAX_BYTES)
		return -EFBIG;
	cache->bytes = malloc(st.st_size + 1);
	if (!cache->bytes)
		return -ENOMEM;
	cache->size = st.st_size;
	cache->bytes[cache->size] = '\0';
	return fd__read_all_at(fd, cache->bytes, cache->size, 0);
}

int linker_cache__open(const char *path, struct linker_cache **out)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct linker_cache *cache;
	int err;

	if (fd < 0)
		return fd;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	err = read_file(fd, cache);
	if (!err)
		err = check(cache);
	if (err) {
		linker_cache__free(cache);
		return err;
	}
	*out = cache;
	return 0;
}

void linker_cache__free(struct linker_cache *cache)
{
	if (!cache)
		return;
	free(cache->bytes);
	free(cache);
}

/* Returns how well an entry suits this processor: 0 if the processor cannot run it, 1 for any
 * processor. */
static unsigned int rank(const struct linker_cache *cache, const struct cache_entry *entry)
{
	const char *const *levels = linker__processor_levels();
	unsigned int n = 0;
	const char *name;
	__u32 offset;

	if (!entry->hwcap)
		return 1;
	/* Directories such as "haswell", which glibc 2.37 dropped. */
	if ((entry->hwcap & ~(__u64)UINT32_MAX) != HWCAP_EXTENSION)
		return 0;
	if ((__u32)entry->hwcap >= cache->n_levels ||
	    !get(cache, cache->levels + (entry->hwcap & UINT32_MAX) * sizeof(offset), &offset,
		 sizeof(offset)))
		return 0;
	name = string(cache, offset);
	while (levels[n])
		n++;
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(levels[i], name))
			return 1 + n - i;
	return 0;
}

const char *linker_cache__find(const struct linker_cache *cache, const char *name)
{
	const char *found = NULL;
	unsigned int best = 0;

	for (__u32 i = 0; cache && i < cache->n; i++) {
		struct cache_entry entry;
		unsigned int of_entry;

		if (!get(cache, sizeof(struct cache_header) + (__u64)i * sizeof(entry), &entry,
			 sizeof(entry)))
			break;
		if (entry.flags != linker_cache_flags ||
		    strcmp(string(cache, entry.name), name) != 0)
			continue;
		of_entry = rank(cache, &entry);
		if (of_entry <= best)
			continue;
		best = of_entry;
		found = string(cache, entry.path);
	}
	return found;
}

/* Largest number of libraries that are listed; the largest programs have hundreds. */
#define MAX_LIBRARIES 4096
/* How many directories are looked into and files are looked for, together: hostile files can name
 * thousands of libraries in thousands of directories. */
#define MAX_TRIES      131072
#define MAX_LIST_BYTES 65536

#define CACHE_FILE   "/etc/ld.so.cache"
#define PRELOAD_FILE "/etc/ld.so.preload"
#define MUSL_PATH    "/lib:/usr/local/lib:/usr/lib"

/* The program, the dynamic linker or a library. Objects are in the order in which they are loaded. */
struct object {
	size_t needed_by; /* index of the object that needs it; the program's is its own */
	dev_t device;
	ino_t inode;
	char *origin; /* the directory that contains it */
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

/* Returns the directory of @path, without links. */
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

/* Loads @path. Returns whether it can be loaded, or has been. The first two objects, which the
 * caller knows, are not listed. */
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
	/* The dynamic linker may well load a file that a worker could not read. */
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

/* Removes $@token or ${@token} from the start of *@text. Returns whether it was there. */
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

/* Replaces the tokens of ld.so(8) in @text, of @len bytes. Returns false if the result is too
 * long. */
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
				value = linker_platform;
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

	/* This counts as a try even if no path comes of it. */
	search->tries++;
	for (; !search->is_musl && *level; level++)
		if (snprintf(path, sizeof(path), "%s%sglibc-hwcaps/%s/%s", directory, slash, *level,
			     name) < (int)sizeof(path) &&
		    load(search, path, needed_by))
			return true;
	return snprintf(path, sizeof(path), "%s%s%s", directory, slash, name) < (int)sizeof(path) &&
	       load(search, path, needed_by);
}

/* Searches a list of directories as DT_RUNPATH and LD_LIBRARY_PATH have them; NULL: it is empty. */
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

/* Searches in DT_RPATH of the objects that led to this one, unless it has a DT_RUNPATH: glibc does so, too. */
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

/* Returns whether musl has the library in its C library, in which case it ignores files of that
 * name. */
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

/* Loads the libraries in @names, which are separated as in LD_PRELOAD. */
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

/* Returns the text of a system file, without comments; NULL if there is none. */
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
	const char *library_path, *preload; /* from options of the dynamic linker; NULL: none */
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
		search.musl_path = read_list(linker_musl_path_file);
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

/* Returns whether it is known how this interpreter searches for libraries. */
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

/* Returns whether @path is a program that the dynamic linker is to run, and not the library of an
 * option such as --preload. */
static bool is_program(struct parser *parser, const char *path)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct dynamic_section dynamic = { 0 };
	bool is = fd >= 0 && !dynamic_section__parse(parser, fd, path, &dynamic) &&
		  dynamic.is_program;

	dynamic_section__release(&dynamic);
	return is;
}

/* Returns the value of the option @name at argv[i], "--name VALUE" or, as musl also accepts it,
 * "--name=VALUE"; else @value. */
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

int libraries__find_libc(char **out)
{
	static const char name[] = "libc.so.6";
	struct linker_cache *cache = NULL;
	const char *cached;
	char path[64];

	snprintf(path, sizeof(path), "%s", linker_musl);
	linker_cache__open(CACHE_FILE, &cache);
	cached = linker_cache__find(cache, name);
	*out = cached && !access(cached, R_OK) ? strdup(cached) : NULL;
	linker_cache__free(cache);
	if (*out)
		return 0;
	for (const char *const *directory = linker_directories; *directory; directory++) {
		char candidate[sizeof(path)];

		snprintf(candidate, sizeof(candidate), "%s/%s", *directory, name);
		if (!access(candidate, R_OK)) {
			memcpy(path, candidate, sizeof(path));
			break;
		}
	}
	if (access(path, R_OK))
		return -ENOENT;
	*out = strdup(path);
	return *out ? 0 : -ENOMEM;
}
