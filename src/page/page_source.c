// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the places of code in a recording's stacks, and reads the lines around them from the files of source. */
#include "page_source.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "json.h"
#include "mapped_file.h"
#include "page_data.h"
#include "path.h"
#include "profile.h"
#include "stack_view.h"
#include "user.h"

#define NO_PLACE 0

/* Suffixes of the names of files of source. */
static const char *const endings[] = {
	"adb", "asm", "c",     "c++",	"cc",  "cpp", "cs",  "cu",  "cxx", "d",	  "f",	  "f90",
	"go",  "h",   "h++",   "hh",	"hpp", "hs",  "hxx", "inc", "inl", "ipp", "java", "js",
	"kt",  "l",   "m",     "mm",	"ml",  "nim", "pas", "php", "pl",  "py",  "pyx",  "rb",
	"rs",  "s",   "scala", "swift", "tcc", "tpp", "ts",  "v",   "y",   "zig",
};

static bool has_name_of_source(const char *path)
{
	const char *dot = strrchr(path__name(path), '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(endings); i++)
		if (!strcasecmp(dot + 1, endings[i]))
			return true;
	/* Headers of the C++ library have names such as <vector>. */
	return !dot && strstr(path, "/include/c++/");
}

/* Opens a file that may be put into a page, by its own name and by that to which links lead. Returns a descriptor, or -1 with
 * *@note set. */
static int open_source(const char *path, const char **note)
{
	char own[PATH_MAX];
	int fd;

	*note = NULL;
	if (*path != '/')
		*note = "its directory is not known";
	else if (!has_name_of_source(path))
		*note = "its name is not one of source";
	if (*note)
		return -1;
	fd = regular_file__open(path);
	if (fd < 0) {
		*note = fd == -ENOENT || fd == -ENOTDIR	  ? "it is not there"
			: fd == -EISDIR || fd == -ENOTSUP ? "it is no regular file"
							  : "it cannot be read";
		return -1;
	}
	mapped_file__path(fd, own, sizeof(own));
	if (has_name_of_source(own))
		return fd;
	*note = "it is a link to a file whose name is not one of source";
	close(fd);
	return -1;
}

/* Returns when the recording began, or 0. */
static time_t start_of(const struct profile *profile)
{
	const char *text = profile__meta(profile, "start_time");
	struct tm when = { 0 };

	return text && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &when) ? timegm(&when) : 0;
}

/* Reads a whole file. Returns 0, with *@text NULL and *@note set if it cannot be shown, or -ENOMEM. */
static int read_source(const char *path, time_t start, char **text, const char **note)
{
	_cleanup_(close_fd) int fd = open_source(path, note);
	struct stat st;
	size_t size;
	int err;

	*text = NULL;
	if (fd < 0)
		return 0;
	err = text_file__read(fd, SOURCE_MAX_FILE_BYTES + 1, text, &size);
	if (err == -ENOMEM)
		return err;
	if (err)
		*note = "it cannot be read";
	else if (size > SOURCE_MAX_FILE_BYTES)
		*note = "it is too large";
	else if (memchr(*text, '\0', size))
		*note = "it is not text";
	else if (start && !fstat(fd, &st) && st.st_mtime > start)
		*note = "it was changed after the recording began";
	if (err || size > SOURCE_MAX_FILE_BYTES || memchr(*text, '\0', size)) {
		free(*text);
		*text = NULL;
	}
	return 0;
}

static int compare_places(const void *left, const void *right)
{
	const struct source_place *a = left, *b = right;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

/* Returns the place of a location of the view, or one that is none. */
static struct source_place place_of(const struct page_input *input, __u32 location)
{
	const struct stack_location *at = &input->view->locations[location];
	const struct profile_line *line;

	if (at->line == STACK_NO_LINE)
		return (struct source_place){ 0 };
	line = &input->profile->frames[at->frame - 1].lines[at->line];
	if (!line->file || !line->line)
		return (struct source_place){ 0 };
	return (struct source_place){ line->file, line->line };
}

/* Collects the places of all locations, each once. */
static int collect_places(const struct page_input *input, struct page_source *source)
{
	size_t n = input->view->n_locations, last = 0;

	source->places = calloc(n + 1, sizeof(*source->places));
	if (!source->places)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		source->places[i + 1] = place_of(input, i);
	qsort(source->places, n + 1, sizeof(*source->places), compare_places);
	for (size_t i = 1; i <= n; i++)
		if (compare_places(&source->places[last], &source->places[i]))
			source->places[++last] = source->places[i];
	source->n_places = last + 1;
	return 0;
}

static __u32 index_of(const struct page_source *source, struct source_place place)
{
	const struct source_place *found =
		bsearch(&place, source->places, source->n_places, sizeof(place), compare_places);

	return found ? found - source->places : NO_PLACE;
}

/* Adds the paths of the counts that have a node. */
static int add_paths(const struct page_input *input, const __u32 *nodes, struct page_source *source)
{
	const struct profile *profile = input->profile;
	_cleanup_(free_ptr) __u32 *path = NULL;
	size_t room = 0;
	int err = page_trie__init(&source->paths, &(struct page_trie_options){ 0 });

	source->nodes = calloc(profile->n_counts + 1, sizeof(*source->nodes));
	if (!source->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts && !err; i++) {
		size_t n_frames, n = 0;
		const __u32 *frames;

		if (!nodes[i])
			continue;
		frames = stack_view__locations(input->view, profile->counts[i].stack, &n_frames);
		err = array__reserve(&path, &room, n_frames + 1, sizeof(*path));
		for (size_t j = n_frames; j-- && !err;) {
			__u32 place = index_of(source, place_of(input, frames[j]));

			if (place != NO_PLACE || !j)
				path[n++] = place;
		}
		if (!err)
			err = page_trie__add(&source->paths, path, n, &source->nodes[i]);
	}
	return err;
}

/* Returns the text behind @n lines of @at, or where it ends. */
static const char *skip_lines(const char *at, size_t n)
{
	while (n-- && *at) {
		at += strcspn(at, "\n");
		at += *at == '\n';
	}
	return at;
}

/* Copies up to @n lines of @from, each up to its limit. Returns NULL if there is no memory. */
static char *copy_lines(const char *from, size_t n)
{
	const char *end = skip_lines(from, n);
	char *text = malloc(end - from + 1), *to = text;

	if (!text)
		return NULL;
	while (from < end) {
		size_t size = strcspn(from, "\n"), kept = size;

		if (kept && from[kept - 1] == '\r')
			kept--;
		if (kept > SOURCE_MAX_LINE_BYTES)
			kept = SOURCE_MAX_LINE_BYTES;
		to = mempcpy(to, from, kept);
		from += size;
		if (from < end) {
			from++;
			if (from < end)
				*to++ = '\n';
		}
	}
	*to = '\0';
	return text;
}

#define FEWER_LINES "it has fewer lines than when it was compiled"
#define NO_ROOM	    "the page has no room for all lines of source, and lacks some of these"

static __u32 count_lines(const char *text)
{
	__u32 n = 1;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

/* Adds the lines around the places @first to @last - 1, which are of the last file, and that has @text. */
static int add_excerpts(struct page_source *source, size_t first, size_t last, const char *text,
			size_t *left_bytes)
{
	struct source_file *file = &source->files[source->n_files];
	const char *at = text;
	__u32 line = 1;

	for (size_t i = first; i < last;) {
		const struct source_place *places = source->places;
		__u32 from = places[i].line > SOURCE_CONTEXT_LINES
				     ? places[i].line - SOURCE_CONTEXT_LINES
				     : 1;
		__u64 until = 0;
		struct source_excerpt *made;
		size_t size;

		for (; i < last && (!until || places[i].line <= until + SOURCE_CONTEXT_LINES + 1);
		     i++)
			until = (__u64)places[i].line + SOURCE_CONTEXT_LINES;
		at = skip_lines(at, from - line);
		line = from;
		if (!*at) {
			file->note = file->note ?: FEWER_LINES;
			break;
		}
		if (!*left_bytes) {
			file->note = NO_ROOM;
			break;
		}
		if (array__reserve(&source->excerpts, &source->excerpts_room,
				   source->n_excerpts + 1, sizeof(*source->excerpts)))
			return -ENOMEM;
		made = &source->excerpts[source->n_excerpts];
		*made = (struct source_excerpt){ source->n_files, from,
						 copy_lines(at, until - from + 1) };
		if (!made->text)
			return -ENOMEM;
		if (from + count_lines(made->text) <= places[i - 1].line)
			file->note = file->note ?: FEWER_LINES;
		size = strlen(made->text);
		if (size > *left_bytes) {
			made->text[size = *left_bytes] = '\0';
			file->note = NO_ROOM;
		}
		*left_bytes -= size;
		source->n_excerpts++;
	}
	return 0;
}

static int read_files(const struct profile *profile, struct page_source *source)
{
	size_t left_bytes = SOURCE_MAX_BYTES, last, n_read = 0;
	time_t start = start_of(profile);
	int err = 0;

	source->files = calloc(source->n_places, sizeof(*source->files));
	if (!source->files)
		return -ENOMEM;
	for (size_t i = 1; i < source->n_places && !err; i = last) {
		struct source_file *file = &source->files[source->n_files];
		_cleanup_(free_ptr) char *text = NULL;

		for (last = i + 1; last < source->n_places &&
				   source->places[last].file == source->places[i].file;)
			last++;
		file->path = profile->files[source->places[i].file - 1].path;
		if (n_read++ < SOURCE_MAX_FILES && left_bytes)
			err = read_source(file->path, start, &text, &file->note);
		else
			file->note = left_bytes ? "there are too many files" : NO_ROOM;
		if (!err && text)
			err = add_excerpts(source, i, last, text, &left_bytes);
		source->n_files++;
	}
	return err;
}

int page_source__make(const struct page_input *input, const __u32 *nodes,
		      struct page_source *source)
{
	struct caller_files caller;
	int err;

	*source = (struct page_source){ 0 };
	err = collect_places(input, source);
	if (!err)
		err = add_paths(input, nodes, source);
	if (err)
		return err;
	err = caller_files__begin(&caller);
	if (err)
		return err;
	err = read_files(input->profile, source);
	caller_files__end(&caller);
	return err;
}

/* An element is [path, note or null]. */
static json_object *files_of(const struct page_source *source)
{
	json_object *list = json_object_new_array();

	for (size_t i = 0; i < source->n_files; i++) {
		json_object *entry = json_object_new_array();

		json_object_array_add(entry, json__string(source->files[i].path));
		json_object_array_add(
			entry, source->files[i].note ? json__string(source->files[i].note) : NULL);
		json_object_array_add(list, entry);
	}
	return list;
}

/* The columns of numbers. */
enum source_column {
	SOURCE_PLACE_FILE,
	SOURCE_PLACE_LINE,
	SOURCE_EXCERPT_FILE,
	SOURCE_EXCERPT_FIRST,
	SOURCE_COLUMNS,
};

static int write_column(const struct page_source *source, enum source_column column,
			const char *prefix, FILE *to)
{
	static const char *const names[SOURCE_COLUMNS] = { "placeFile", "placeLine", "excerptFile",
							   "excerptFirst" };
	bool is_of_places = column == SOURCE_PLACE_FILE || column == SOURCE_PLACE_LINE;
	size_t n = is_of_places ? source->n_places : source->n_excerpts;
	_cleanup_(free_ptr) __u32 *numbers = calloc(n + 1, sizeof(*numbers));
	__u32 n_files = 0;
	char name[64];

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct source_place *place = &source->places[i];

		if (is_of_places && i > 1 && place->file != place[-1].file)
			n_files++;
		numbers[i] = column == SOURCE_PLACE_FILE     ? n_files
			     : column == SOURCE_PLACE_LINE   ? place->line
			     : column == SOURCE_EXCERPT_FILE ? source->excerpts[i].file
							     : source->excerpts[i].first;
	}
	snprintf(name, sizeof(name), "%s.source.%s", prefix, names[column]);
	return page_data__u32(name, numbers, n, to);
}

static int write_texts(const struct page_source *source, const char *prefix, FILE *to)
{
	_cleanup_(free_ptr) const char **texts = calloc(source->n_excerpts + 1, sizeof(*texts));
	char name[64];

	if (!texts)
		return -ENOMEM;
	for (size_t i = 0; i < source->n_excerpts; i++)
		texts[i] = source->excerpts[i].text;
	snprintf(name, sizeof(name), "%s.source.text", prefix);
	return page_data__strings(name, texts, source->n_excerpts, to);
}

int page_source__write(const struct page_source *source, const char *prefix, FILE *to)
{
	const struct page_trie *paths = &source->paths;
	char name[64];
	int err;

	snprintf(name, sizeof(name), "%s.source.files", prefix);
	err = page_data__json(name, files_of(source), to);
	for (int i = 0; i < SOURCE_COLUMNS && !err; i++)
		err = write_column(source, i, prefix, to);
	if (!err)
		err = write_texts(source, prefix, to);
	snprintf(name, sizeof(name), "%s.source.parent", prefix);
	if (!err)
		err = page_data__u32(name, paths->parents, paths->n_nodes, to);
	snprintf(name, sizeof(name), "%s.source.place", prefix);
	return err ? err : page_data__u32(name, paths->node_frames, paths->n_nodes, to);
}

void page_source__release(struct page_source *source)
{
	for (size_t i = 0; i < source->n_excerpts; i++)
		free(source->excerpts[i].text);
	free(source->excerpts);
	free(source->files);
	free(source->places);
	free(source->nodes);
	page_trie__release(&source->paths);
}
