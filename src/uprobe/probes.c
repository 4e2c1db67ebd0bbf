// SPDX-License-Identifier: GPL-3.0-or-later
#include "probes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "array.h"
#include "attachment.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "file.h"
#include "hash_table.h"
#include "interface.h"
#include "mapped_file.h"
#include "mapping_events.h"
#include "path.h"
#include "probes_internal.h"
#include "program_kind.h"
#include "definitions.h"
#include "unprobed.h"

/*
 * Notices when probed files are written to. The kernel would put breakpoints where the old
 * contents had functions, and one of them could kill a program that maps the new contents. A
 * program that is executed before allocprof has read the event is killed nevertheless.
 */

/* Watches the contents of the file, whose probes were set. */
static void probes__watch_contents(struct probes *probes, struct probed_allocator *entry, int fd)
{
	char path[64];
	int watch;

	/* If nothing can be watched, files are probed nevertheless. */
	if (probes->contents_fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	watch = inotify_add_watch(probes->contents_fd, path, IN_MODIFY);
	entry->watch = watch > 0 ? watch : 0;
}

static void drop(struct probed_allocator *entry)
{
	for (int role = 0; role < PROBE_ROLES; role++) {
		attachment__free(entry->attachments[role]);
		entry->attachments[role] = NULL;
	}
	entry->watch = 0;
	snprintf(
		entry->gap, sizeof(entry->gap),
		"written to while it was probed: its probes were removed, and later calls are missing "
		"(write another file, and move it there)");
}

static void handle(struct probed_allocator *entry, const struct inotify_event *event)
{
	if (event->mask & IN_MODIFY)
		drop(entry);
	/* The file is gone, or its file system: the number of the watch may be another file's next. */
	if (event->mask & IN_IGNORED)
		entry->watch = 0;
}

void probes__drop_rewritten(struct probes *probes)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t len;

	if (probes->contents_fd < 0)
		return;
	while ((len = read(probes->contents_fd, events, sizeof(events))) > 0) {
		const struct inotify_event *event;

		for (const char *at = events; at < events + len;
		     at += sizeof(*event) + event->len) {
			event = (const void *)at;
			for (size_t i = 0; i < probes->n_list; i++)
				if (probes->list[i].watch && probes->list[i].watch == event->wd)
					handle(&probes->list[i], event);
		}
	}
}

int probes__new(const struct probes_options *options, struct probes **out)
{
	struct probes *probes = calloc(1, sizeof(*probes));

	if (!probes)
		return -ENOMEM;
	probes->options = *options;
	if (!options->max_sites)
		probes->options.max_sites = AP_MAX_SITES;
	probes->contents_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	*out = probes;
	return 0;
}

int probes__contents_fd(const struct probes *probes)
{
	return probes->contents_fd;
}

void probes__detach(struct probes *probes, bool waits)
{
	for (int role = 0; role < PROBE_ROLES; role++)
		for (size_t i = 0; i < probes->n_list; i++) {
			if (waits)
				attachment__free(probes->list[i].attachments[role]);
			else
				attachment__leave(probes->list[i].attachments[role]);
			probes->list[i].attachments[role] = NULL;
		}
}

void probes__free(struct probes *probes)
{
	if (!probes)
		return;
	probes__detach(probes, true);
	for (size_t i = 0; i < probes->n_list; i++) {
		allocator__free(probes->list[i].allocator);
		free(probes->list[i].path);
		free(probes->list[i].build_id);
	}
	for (size_t i = 0; i < probes->n_opaque; i++) {
		free(probes->opaque[i].entry.path);
		free(probes->opaque[i].entry.build_id);
	}
	free(probes->opaque);
	free(probes->foreign_pids);
	free(probes->list);
	free(probes->seen);
	hash_table__release(&probes->seen_index);
	if (probes->contents_fd >= 0)
		close(probes->contents_fd);
	free(probes);
}

const struct probed_allocator *probes__list(const struct probes *probes, size_t *n)
{
	*n = probes->n_list;
	return probes->list;
}

bool probes__uses(const struct probes *probes, const struct site *site)
{
	if (!(probes->options.functions & ~AP_KERNEL_FUNCTIONS))
		return site->names & probes->options.functions;
	return (site->names & probes->options.functions) || site->tail_calls || site->may_jump ||
	       (site->function >= AP_DEFINED &&
		definitions__any_outermost(probes->options.definitions));
}

/* Returns the list entry of the file's allocator, or of @definition in the file. */
static const struct probed_allocator *find_file(const struct probes *probes, const struct stat *st,
						const struct definition *definition)
{
	for (size_t i = 0; i < probes->n_list; i++)
		if (probes->list[i].device == st->st_dev && probes->list[i].inode == st->st_ino &&
		    probes->list[i].definition == definition)
			return &probes->list[i];
	return NULL;
}

size_t probes__n_files(const struct probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->n_list; i++)
		n += probes->list[i].inode != 0;
	return n;
}

/* Fills an entry for a file that is not probed; false if there is no memory. */
static bool make_entry(const char *path, __u64 device, __u64 inode, const char *gap,
		       struct probed_allocator *entry)
{
	*entry = (struct probed_allocator){
		.path = strdup(path),
		.build_id = strdup(""),
		.device = device,
		.inode = inode,
	};
	snprintf(entry->gap, sizeof(entry->gap), "%s", gap);
	if (entry->path && entry->build_id)
		return true;
	free(entry->path);
	free(entry->build_id);
	return false;
}

static bool make_unprobed(int fd, const char *path, const struct definition *definition,
			  const char *gap, struct probed_allocator *entry)
{
	struct stat st;

	if (fstat(fd, &st) || !make_entry(path, st.st_dev, st.st_ino, gap, entry))
		return false;
	entry->definition = definition;
	return true;
}

/* Returns the entry behind the last one, which does not count yet; NULL if there is no memory. */
static struct probed_allocator *next_entry(struct probes *probes)
{
	if (array__reserve(&probes->list, &probes->list_room, probes->n_list + 1,
			   sizeof(*probes->list)))
		return NULL;
	return &probes->list[probes->n_list];
}

static void add_unprobed(struct probes *probes, int fd, const char *path,
			 const struct definition *definition, const char *gap)
{
	struct probed_allocator *entry = next_entry(probes);

	if (entry && make_unprobed(fd, path, definition, gap, entry))
		probes->n_list++;
}

void probes__add_unprobed(struct probes *probes, int fd, const char *path, const char *gap)
{
	add_unprobed(probes, fd, path, NULL, gap);
}

void probes__add_unopened(struct probes *probes, const struct mapped_file *file, int err)
{
	const struct file_identity *identity = &file->identity;
	const struct stat st = {
		.st_dev = makedev(identity->device >> 20, identity->device & 0xfffff),
		.st_ino = identity->inode,
	};
	struct probed_allocator *entry;
	char gap[256];

	if (find_file(probes, &st, NULL))
		return;
	snprintf(gap, sizeof(gap),
		 "not probed: process %u has mapped it, and it %s, so that an allocator in it goes "
		 "unseen",
		 file->pid, unopened__reason(err));
	entry = next_entry(probes);
	if (entry && make_entry(file->path, st.st_dev, st.st_ino, gap, entry))
		probes->n_list++;
}

/* Lists a file that could not be read as a gap: its allocators are not measured, but other files
 * are. */
static int add_unread(struct probes *probes, int fd, const char *path, const struct error *error)
{
	char gap[256];

	snprintf(gap, sizeof(gap), "not probed: %.200s",
		 error && error->text[0] ? error->text : "it could not be read safely");
	add_unprobed(probes, fd, path, NULL, gap);
	return -ENOENT;
}

static void note_hidden(struct probes *probes, int fd, const char *path)
{
	struct error error = { 0 };
	const char *name;
	char gap[200];
	int err = hidden_allocator__parse(probes->options.parser, fd, path, &name, &error);

	if (err == -ECHILD)
		add_unread(probes, fd, path, &error);
	if (err)
		return;
	snprintf(gap, sizeof(gap),
		 "not probed: %s is linked into it, and its functions have no names there; leave a "
		 "program's symbols in (no strip), and have a library export them",
		 name);
	add_unprobed(probes, fd, path, NULL, gap);
}

/* Adds @allocator to the list, which takes it over, and probes it. */
static int add_allocator(struct probes *probes, int fd, const char *path, const struct stat *st,
			 struct allocator *allocator, struct error *error)
{
	struct probed_allocator *entry = next_entry(probes);
	int err;

	if (!entry) {
		allocator__free(allocator);
		return -ENOMEM;
	}
	*entry = (struct probed_allocator){
		.path = strdup(path),
		.build_id = strdup(allocator->build_id),
		.allocator = allocator,
		.device = st->st_dev,
		.inode = st->st_ino,
		.definition = allocator->definition,
	};
	if (!entry->path || !entry->build_id) {
		free(entry->path);
		free(entry->build_id);
		allocator__free(allocator);
		return -ENOMEM;
	}
	probes->n_list++;
	err = probes__attach(probes, entry, fd, error);
	if (err)
		snprintf(entry->gap, sizeof(entry->gap), "not probed: %.200s",
			 error && error->text[0] ? error->text : strerror(-err));
	else
		probes__watch_contents(probes, entry, fd);
	entry->since_ns = probes->since_ns = clock__now_ns();
	return err;
}

/* Probes the definition's functions in the file; lists the file with the reason if that fails. */
static void add_definition(struct probes *probes, int fd, const char *path, const struct stat *st,
			   const struct definition *definition)
{
	struct allocator *allocator;
	struct error error = { 0 };
	char gap[256];
	int err;

	if (find_file(probes, st, definition))
		return;
	err = allocator__parse_definition(probes->options.parser, fd, path, definition, &allocator,
					  &error);
	if (!err)
		add_allocator(probes, fd, path, st, allocator, &error);
	if (!err || err == -ENOENT || err == -ENOEXEC)
		return;
	snprintf(gap, sizeof(gap), "not probed for %s: %.200s", definition->name,
		 error.text[0] ? error.text : strerror(-err));
	add_unprobed(probes, fd, path, definition, gap);
}

static void add_definitions(struct probes *probes, int fd, const char *path, const struct stat *st)
{
	const struct definitions *definitions = probes->options.definitions;

	for (size_t i = 0; definitions && i < definitions->n; i++)
		add_definition(probes, fd, path, st, &definitions->list[i]);
}

static void forget_defined(const struct probes *probes, struct allocator *allocator)
{
	const struct definitions *definitions = probes->options.definitions;

	for (size_t i = 0; definitions && i < definitions->n; i++)
		if (definition__is_in(&definitions->list[i], allocator->path, ""))
			allocator__forget_defined(allocator, &definitions->list[i]);
}

/* Notes in the entry why some calls of its functions are not counted. */
static void tell_inexact(struct probed_allocator *entry)
{
	const struct allocator *allocator = entry->allocator;

	if (allocator->is_bypassed)
		snprintf(entry->gap, sizeof(entry->gap),
			 "probed, but code of the program does without its functions, which are "
			 "inlined or have clones (LTO), and those calls are missing: compile the "
			 "allocator with -fno-lto -fno-inline -fno-ipa-cp");
}

int probes__add_file(struct probes *probes, int fd, const char *path, struct error *error)
{
	struct allocator *allocator;
	struct stat st;
	int err;

	fd = probes__isolate(probes, fd, path);
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	if (find_file(probes, &st, NULL))
		return -EEXIST;
	if (probes->options.use_file)
		probes->options.use_file(fd, path, probes->options.context);
	add_definitions(probes, fd, path, &st);
	err = allocator__parse(probes->options.parser, fd, path, &allocator, error);
	if (err == -ENOENT)
		note_hidden(probes, fd, path);
	if (err == -ECHILD)
		return add_unread(probes, fd, path, error);
	if (err)
		return err;
	if (allocator->is_wrapper) {
		allocator__free(allocator);
		return -ENOENT;
	}
	allocator__ignore(allocator, probes->options.ignored);
	forget_defined(probes, allocator);
	err = add_allocator(probes, fd, path, &st, allocator, error);
	if (!err)
		tell_inexact(&probes->list[probes->n_list - 1]);
	return err;
}

int probes__add_definition(struct probes *probes, struct allocator *allocator, __u32 *first_site)
{
	struct probed_allocator *entry = next_entry(probes);
	int err = -ENOMEM;

	if (!entry || probes->n_sites + allocator->n_sites > probes->options.max_sites)
		goto fail;
	*entry = (struct probed_allocator){
		.path = strdup(allocator->path),
		.build_id = strdup(allocator->build_id),
		.allocator = allocator,
		.has_sites = true,
		.first_site = probes->n_sites,
	};
	if (entry->path && entry->build_id)
		err = probes__describe_sites(probes, allocator, probes->n_list);
	if (err) {
		free(entry->path);
		free(entry->build_id);
		goto fail;
	}
	*first_site = entry->first_site;
	probes->n_sites += allocator->n_sites;
	probes->n_list++;
	return 0;
fail:
	allocator__free(allocator);
	return err;
}

/* Returns whether the file is a static program: if that has an allocator, the allocator has no
 * symbols, so nothing can be probed. */
static bool is_opaque_program(const struct probes *probes, int fd, const char *path, bool *is_go)
{
	struct program_kind kind;

	if (program_kind__parse(probes->options.parser, fd, path, &kind))
		return false;
	*is_go = kind.is_go;
	return kind.is_program && kind.is_static;
}

#define HAS_NO_NAMED_MALLOC                                                                        \
	"not probed: a static executable without a malloc that can be found by name"

static void keep_opaque_program(struct probes *probes, int fd, const char *path, __u32 pid)
{
	struct opaque *opaque;

	if (array__reserve(&probes->opaque, &probes->opaque_room, probes->n_opaque + 1,
			   sizeof(*opaque)))
		return;
	opaque = &probes->opaque[probes->n_opaque];
	opaque->pid = pid;
	if (make_unprobed(fd, path, NULL, HAS_NO_NAMED_MALLOC, &opaque->entry))
		probes->n_opaque++;
}

/* Lists a static program without a named allocator: at once if it is a Go program, in each of
 * which Go's runtime allocates; other static programs may need no memory. */
static void add_opaque_program(struct probes *probes, int fd, const struct mapping_event *event,
			       bool is_go)
{
	if (is_go)
		add_unprobed(probes, fd, event->path, NULL,
			     "not probed: a Go program, " GO_HAS_NO_MALLOC);
	else if (probes->options.finds_unprobed)
		keep_opaque_program(probes, fd, event->path, event->pid);
	else
		add_unprobed(probes, fd, event->path, NULL, HAS_NO_NAMED_MALLOC);
}

/* Returns whether the program is of that file: its comm is the file's name, truncated, unless the
 * program has renamed itself. */
static bool is_of(const struct unprobed_program *program, const struct opaque *opaque)
{
	const char *name = path__name(opaque->entry.path);

	return program->pid == opaque->pid || !strncmp(program->name, name, AP_COMM_LEN - 1);
}

void probes__blame(struct probes *probes, const struct unprobed_program *program)
{
	for (size_t i = 0; i < probes->n_opaque;) {
		struct opaque *opaque = &probes->opaque[i];
		struct probed_allocator *entry;

		if (!is_of(program, opaque)) {
			i++;
			continue;
		}
		entry = next_entry(probes);
		if (!entry)
			return;
		*entry = opaque->entry;
		probes->n_list++;
		*opaque = probes->opaque[--probes->n_opaque];
	}
}

int probes__add_path(struct probes *probes, const char *path, struct error *error)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);

	return fd < 0 ? fd : probes__add_file(probes, fd, path, error);
}

static bool is_same_file(const void *owner, __u32 id, const void *key)
{
	const struct probes *probes = owner;

	return file_identity__is_same(&probes->seen[id - 1], key);
}

static __u64 identity_hash(const struct file_identity *file)
{
	return hash_mix(hash_mix(0, file->inode), file->device);
}

static void note_seen(struct probes *probes, const struct file_identity *file)
{
	if (array__reserve(&probes->seen, &probes->seen_room, probes->n_seen + 1,
			   sizeof(*probes->seen)))
		return;
	probes->seen[probes->n_seen++] = *file;
	hash_table__insert(&probes->seen_index, identity_hash(file), probes->n_seen);
}

#define FOUND_LATE                                                                                 \
	"found only after process %u had mapped it: earlier calls are missing (name the file "     \
	"with --expect%s)"

#define HAS_COPY                                                                                   \
	"mapped by process %u from elsewhere than where the command has its copy (--isolate): "    \
	"earlier calls in the original are missing"

static void set_late(const struct probes *probes, struct probed_allocator *entry,
		     const struct mapping_event *event, bool has_copy)
{
	if (entry->gap[0])
		return;
	if (has_copy)
		snprintf(entry->gap, sizeof(entry->gap), HAS_COPY, event->pid);
	else
		snprintf(entry->gap, sizeof(entry->gap), FOUND_LATE, event->pid,
			 probes->options.is_fallback ? "" : ", or use --engine=preload");
}

/* Notes that a known file was mapped before its probes were set. */
static void check_since(struct probes *probes, int fd, const struct mapping_event *event)
{
	struct stat st;

	for (size_t i = 0; !fstat(fd, &st) && i < probes->n_list; i++)
		if (probes->list[i].device == st.st_dev && probes->list[i].inode == st.st_ino &&
		    event->time_ns < probes->list[i].since_ns)
			set_late(probes, &probes->list[i], event, false);
}

static void note_foreign(struct probes *probes, __u32 pid)
{
	if (!probes__is_foreign(probes, pid) &&
	    !array__reserve(&probes->foreign_pids, &probes->foreign_room, probes->n_foreign + 1,
			    sizeof(*probes->foreign_pids)))
		probes->foreign_pids[probes->n_foreign++] = pid;
}

bool probes__is_foreign(const struct probes *probes, __u32 pid)
{
	for (size_t i = 0; i < probes->n_foreign; i++)
		if (probes->foreign_pids[i] == pid)
			return true;
	return false;
}

void probes__notice_mapping(struct probes *probes, const struct mapping_event *event)
{
	bool may_be_late = probes->options.is_fallback && event->time_ns < probes->since_ns;
	struct mapped_file mapped = mapping_event__file(event);
	struct file_identities identities;
	_cleanup_(close_fd) int fd = -1;
	struct error error = { 0 };
	size_t n_before = probes->n_list;
	bool is_go = false, has_copy;
	char path[PATH_MAX];
	int err;

	if (!event->inode || event->path[0] != '/' ||
	    (!may_be_late && hash_table__find(&probes->seen_index, identity_hash(&mapped.identity),
					      is_same_file, probes, &mapped.identity)))
		return;
	fd = mapped_file__open(&mapped, &probes->options.identifier, &identities);
	if (fd < 0 && fd != -EACCES)
		return; /* tried again at the next mapping */
	note_seen(probes, &mapped.identity);
	if (fd < 0) {
		probes__add_unopened(probes, &mapped, fd);
		return;
	}
	if (may_be_late)
		check_since(probes, fd, event);
	has_copy = probes__has_copy(probes, fd);
	mapped_file__own_path(fd, event->path, path, sizeof(path));
	err = probes__add_file(probes, fd, path, &error);
	if (err == -ENOTSUP)
		note_foreign(probes, event->pid);
	if (err == -ENOENT && is_opaque_program(probes, fd, event->path, &is_go))
		add_opaque_program(probes, fd, event, is_go);
	for (size_t i = n_before; i < probes->n_list; i++)
		set_late(probes, &probes->list[i], event, has_copy);
}

struct probed_file probed_allocator__file(const struct probed_allocator *entry)
{
	return (struct probed_file){
		.path = entry->path,
		.build_id = entry->build_id,
		.allocator = entry->allocator,
		.gap = entry->gap,
		.live_gap = entry->live_gap,
	};
}
