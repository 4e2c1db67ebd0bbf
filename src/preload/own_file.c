// SPDX-License-Identifier: GPL-3.0-or-later
/* Opens the files in which processes with ALLOCPROF_OUTPUT have counted, and checks all that is
 * read of them. */
#include "own_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "elf_host.h"
#include "error.h"
#include "file.h"
#include "preload_internal.h"
#include "proc.h"
#include "sample_abi.h"
#include "session_options.h"

struct own_files {
	struct own_file *list;
	size_t n;
	struct error *skipped; /* says of each file why it was skipped */
	size_t n_skipped;
	char *command;
	char **argv;
};

static int refuse(struct error *error, const char *path, const char *why)
{
	return error__set(error, -EINVAL, "%s %s", path, why);
}

/* The file has nothing to read: the process was killed as it began. */
#define HAS_NOTHING (-ENODATA)

static int check_header(const struct inside_header *header, const char *path, struct error *error)
{
	const struct inside_settings *settings = &header->settings;

	if (header->magic != INSIDE_MAGIC)
		return error__set(
			error, HAS_NOTHING,
			"%s is no file that a process has kept (allocprof-env(1)), or its process "
			"was killed before it had begun",
			path);
	if (header->version != INSIDE_VERSION || header->header_bytes != sizeof(*header))
		return refuse(error, path,
			      "was written by another version of allocprof: use its own "
			      "`allocprof salvage`");
	if (settings->is_own != 1 ||
	    (settings->mode != INSIDE_RECORD && settings->mode != INSIDE_LIVE) ||
	    settings->stacks != 1 || !settings->max_depth || settings->max_depth > AP_MAX_DEPTH ||
	    settings->within || settings->regions)
		return refuse(error, path, "has settings that cannot be right");
	return 0;
}

/* The texts may be whatever the process has written. */
static void terminate(struct inside_origin *origin)
{
	origin->boot_id[sizeof(origin->boot_id) - 1] = 0;
	origin->boot_id[strcspn(origin->boot_id, "\n")] = 0;
	origin->kernel[sizeof(origin->kernel) - 1] = 0;
	origin->command[sizeof(origin->command) - 1] = 0;
	if (origin->command_bytes > sizeof(origin->command))
		origin->command_bytes = sizeof(origin->command);
}

static int read_origin(struct own_file *file, const struct inside_header *header,
		       struct error *error)
{
	struct reader reader = { 0 };
	int err = reader__begin(&reader, file->preload);

	if (err || !reader__get(&reader, header->origin, &file->origin, sizeof(file->origin)) ||
	    file->origin.sample_bytes > AP_MAX_SAMPLE_BYTES)
		return error__set(
			error, HAS_NOTHING,
			"%s says nothing about its process, which was killed as it began, or has "
			"written over it",
			file->path);
	if (file->origin.machine && file->origin.machine != elf_host.machine)
		return refuse(error, file->path,
			      "was written on another processor than " ALLOCPROF_PROCESSOR);
	terminate(&file->origin);
	/* A process that is killed before its entry is complete has counted nothing. */
	if (preload__read_program(file->preload, 0, &file->program) ||
	    file->program.state != INSIDE_READY)
		file->program = (struct inside_program){ 0 };
	file->begin_ns = file->program.pid ? file->program.begin_ns : file->origin.monotonic_ns;
	if (file->begin_ns > AP_MAX_SUM)
		file->begin_ns = AP_MAX_SUM;
	file->found_no_room = !file->program.pid && header->gaps[INSIDE_GAP_PROGRAMS];
	return 0;
}

static int is_file(void *context, const struct proc_mapping *mapping)
{
	return !strcmp(mapping->path, context);
}

/* Finds out whether this kernel still runs the process. Its number may be another process's here. */
static void look_for_process(struct own_file *file)
{
	char boot_id[sizeof(file->origin.boot_id)] = "";
	_cleanup_(close_fd) int fd = regular_file__open("/proc/sys/kernel/random/boot_id");
	struct stat own;

	if (file->program.ended != INSIDE_RUNS || !file->program.pid || fd < 0 ||
	    read(fd, boot_id, sizeof(boot_id) - 1) <= 0)
		return;
	boot_id[strcspn(boot_id, "\n")] = 0;
	if (strcmp(boot_id, file->origin.boot_id) != 0)
		return;
	file->is_elsewhere = file->program.pid_namespace && !stat("/proc/self/ns/pid", &own) &&
			     own.st_ino != file->program.pid_namespace;
	file->runs =
		!file->is_elsewhere && proc_maps__each(file->program.pid, is_file, file->path) == 1;
}

static int open_file(struct own_file *file, const char *path, struct error *error)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct inside_header header;
	struct stat status;
	int err;

	if (fd < 0 || fstat(fd, &status))
		return error__set(error, fd < 0 ? fd : -errno, "cannot open %s: %s", path,
				  strerror(fd < 0 ? -fd : errno));
	file->path = realpath(path, NULL);
	if (!file->path)
		return error__set(error, -errno, "cannot find the path of %s: %s", path,
				  strerror(errno));
	file->preload = calloc(1, sizeof(*file->preload));
	if (!file->preload)
		return error__set(error, -ENOMEM, "no memory");
	file->preload->tables_fd = file->preload->wake_fd = file->preload->directory_fd = -1;
	file->preload->memory_fd = fd;
	fd = -1;
	if (fd__read_all_at(file->preload->memory_fd, &header, sizeof(header), 0))
		memset(&header, 0, sizeof(header));
	err = check_header(&header, path, error);
	if (!err)
		err = read_origin(file, &header, error);
	if (err)
		return err;
	file->settings = header.settings;
	if (file->settings.epoch_ns > file->begin_ns)
		file->settings.epoch_ns = file->begin_ns;
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->modified_ns = status.st_mtim.tv_sec * NS_PER_S + status.st_mtim.tv_nsec;
	file->preload->mode = header.settings.mode;
	file->preload->functions = (1ULL << AP_DEFINED) - 1;
	if (file->origin.sample_bytes)
		ap_sample__configure(file->origin.sample_bytes, &file->preload->sampling);
	look_for_process(file);
	return 0;
}

static int check_alike(const struct own_files *files, struct error *error)
{
	const struct own_file *first = &files->list[0];

	for (size_t i = 1; i < files->n; i++) {
		const struct own_file *before = &files->list[i - 1], *other = &files->list[i];

		if (other->settings.mode != first->settings.mode ||
		    other->settings.max_depth != first->settings.max_depth ||
		    other->origin.sample_bytes != first->origin.sample_bytes)
			return error__set(
				error, -EINVAL,
				"%s and %s were written with other settings: make a recording "
				"of each",
				first->path, other->path);
		if (strcmp(other->origin.boot_id, first->origin.boot_id) != 0)
			return error__set(
				error, -EINVAL,
				"%s and %s are of other machines, or from before and after a "
				"restart, whose clocks differ: make a recording of each",
				first->path, other->path);
		if (other->device == before->device && other->inode == before->inode)
			return refuse(error, other->path, "was given twice");
	}
	if (first->settings.mode == INSIDE_LIVE && files->n > 1)
		return error__set(
			error, -EINVAL,
			"files with --live are of processes whose peaks are at different times: "
			"make a recording of each");
	return 0;
}

/* Orders files by when their processes began; the same file given twice stands side by side. */
static int compare(const void *a, const void *b)
{
	const struct own_file *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->inode != y->inode)
		return x->inode < y->inode ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Splits the first program's arguments. */
static int take_command(struct own_files *files)
{
	const struct inside_origin *origin = &files->list[0].origin;
	size_t n = 0, at = 0;

	for (__u32 i = 0; i < origin->command_bytes; i++)
		n += !origin->command[i];
	files->command = malloc(origin->command_bytes + 1);
	files->argv = calloc(n + 2, sizeof(*files->argv));
	if (!files->command || !files->argv)
		return -ENOMEM;
	memcpy(files->command, origin->command, origin->command_bytes);
	files->command[origin->command_bytes] = 0;
	for (char *text = files->command; text < files->command + origin->command_bytes && at <= n;
	     text += strlen(text) + 1)
		files->argv[at++] = text;
	if (!at)
		files->argv[0] = files->command;
	return 0;
}

static void release(struct own_file *file)
{
	preload__free(file->preload);
	free(file->path);
	*file = (struct own_file){ 0 };
}

/* Opens all files but those that have nothing to read. */
static int open_all(struct own_files *files, char *const *paths, size_t n, struct error *error)
{
	for (size_t i = 0; i < n; i++) {
		struct error why = { 0 };
		int err = open_file(&files->list[files->n], paths[i], &why);

		if (!err) {
			files->n++;
			continue;
		}
		release(&files->list[files->n]);
		if (err != HAS_NOTHING) {
			*error = why;
			return err;
		}
		files->skipped[files->n_skipped++] = why;
	}
	if (files->n)
		return 0;
	*error = files->skipped[0];
	return HAS_NOTHING;
}

int own_files__open(char *const *paths, size_t n, struct own_files **out, struct error *error)
{
	struct own_files *files = calloc(1, sizeof(*files));
	int err = 0;

	if (files) {
		files->list = calloc(n, sizeof(*files->list));
		files->skipped = calloc(n, sizeof(*files->skipped));
	}
	if (!files || !files->list || !files->skipped)
		err = error__set(error, -ENOMEM, "no memory");
	if (!err)
		err = open_all(files, paths, n, error);
	if (!err)
		qsort(files->list, files->n, sizeof(*files->list), compare);
	if (!err)
		err = check_alike(files, error);
	if (!err && take_command(files))
		err = error__set(error, -ENOMEM, "no memory");
	if (err) {
		own_files__free(files);
		return err;
	}
	*out = files;
	return 0;
}

void own_files__free(struct own_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->n; i++)
		release(&files->list[i]);
	free(files->list);
	free(files->skipped);
	free(files->command);
	free(files->argv);
	free(files);
}

size_t own_files__count(const struct own_files *files)
{
	return files->n;
}

const struct own_file *own_files__get(const struct own_files *files, size_t index)
{
	return &files->list[index];
}

const char *own_files__skipped(const struct own_files *files, size_t index)
{
	return index < files->n_skipped ? files->skipped[index].text : NULL;
}

void own_files__configure(const struct own_files *files, struct session_options *options)
{
	const struct own_file *first = &files->list[0];

	options->engine = SESSION_ENGINE_PRELOAD;
	options->stacks = true;
	options->live = first->settings.mode == INSIDE_LIVE;
	options->max_depth = first->settings.max_depth;
	options->sample_bytes = first->origin.sample_bytes;
	options->functions = AP_ALL_FUNCTIONS & ~AP_FREEING;
	options->follow = true;
	options->max_records = INT32_MAX;
	options->free_bytes = UINT64_MAX;
}

char *const *own_files__command(const struct own_files *files)
{
	return files->argv;
}
