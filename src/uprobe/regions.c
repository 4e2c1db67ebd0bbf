// SPDX-License-Identifier: GPL-3.0-or-later
#include "regions.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "attachment.h"
#include "cleanup.h"
#include "counters.h"
#include "debug_file.h"
#include "elf_file.h"
#include "error.h"
#include "function_code.h"
#include "usdt.h"
#include "utf8.h"

/* Maximum number of marks in one file. A macro in a template or an inlined function may make
 * many. */
#define MAX_MARKS 4096

#define MAX_NAME_BYTES 200

struct region_file {
	dev_t device;
	ino_t inode;
	struct attachment *attachment; /* NULL: the file has no marks */
};

struct regions {
	struct regions_options options;
	struct region list[AP_MAX_REGIONS]; /* by number; after regions__collect() sorted by name */
	size_t n;
	struct region_file *files;
	size_t n_files, files_room;
	char **gaps;
	size_t n_gaps, gaps_room;
};

int regions__new(const struct regions_options *options, struct regions **out)
{
	struct regions *regions = calloc(1, sizeof(*regions));

	if (!regions)
		return -ENOMEM;
	regions->options = *options;
	*out = regions;
	return 0;
}

void regions__detach(struct regions *regions)
{
	for (size_t i = 0; regions && i < regions->n_files; i++) {
		attachment__free(regions->files[i].attachment);
		regions->files[i].attachment = NULL;
	}
}

void regions__free(struct regions *regions)
{
	if (!regions)
		return;
	regions__detach(regions);
	for (size_t i = 0; i < regions->n; i++)
		free((char *)regions->list[i].name);
	for (size_t i = 0; i < regions->n_gaps; i++)
		free(regions->gaps[i]);
	free(regions->gaps);
	free(regions->files);
	free(regions);
}

__attribute__((format(printf, 2, 3))) static void add_gap(struct regions *regions, const char *fmt,
							  ...)
{
	char *text;
	va_list args;
	int n;

	if (array__reserve(&regions->gaps, &regions->gaps_room, regions->n_gaps + 1,
			   sizeof(*regions->gaps)))
		return;
	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n >= 0)
		regions->gaps[regions->n_gaps++] = text;
}

struct marks {
	struct regions *regions;
	const char *path;
	struct elf_file *elf; /* opened at the first mark */
	int fd, err;
	size_t n, n_not_code, n_no_name;
	char unnumbered[MAX_NAME_BYTES + 1]; /* the first region beyond AP_MAX_REGIONS */
	__u64 offsets[MAX_MARKS], cookies[MAX_MARKS];
};

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > MAX_NAME_BYTES)
		return false;
	while (*name) {
		size_t size = utf8__printable(name);

		if (!size)
			return false;
		name += size;
	}
	return true;
}

/* The number of the region; -E2BIG if there are too many, -ENOMEM. */
static int number_of(struct regions *regions, const char *name)
{
	for (size_t i = 0; i < regions->n; i++)
		if (!strcmp(regions->list[i].name, name))
			return i;
	if (regions->n == AP_MAX_REGIONS)
		return -E2BIG;
	regions->list[regions->n].name = strdup(name);
	if (!regions->list[regions->n].name)
		return -ENOMEM;
	return regions->n++;
}

static int kind_of(const struct usdt_probe *probe)
{
	if (!strcmp(probe->provider, "allocprof_begin"))
		return strcmp(probe->arguments, "-4@$1") != 0 ? AP_REGION_BEGIN : AP_REGION_ENTER;
	if (!strcmp(probe->provider, "allocprof_end"))
		return AP_REGION_END;
	return strcmp(probe->provider, "allocprof_leave") != 0 ? -ENOENT : AP_REGION_LEAVE;
}

static int add_mark(const struct usdt_probe *probe, void *arg)
{
	struct marks *marks = arg;
	int kind = kind_of(probe), number = 0;

	if (kind < 0)
		return 0;
	if (kind != AP_REGION_LEAVE && !is_name(probe->name)) {
		marks->n_no_name++;
		return 0;
	}
	if (!marks->elf)
		marks->err = elf_file__open(marks->fd, marks->path, &marks->elf, NULL);
	if (marks->err)
		return marks->err;
	/* A breakpoint in data would change the data. */
	if (function_code__nop_offset(marks->elf, probe->vaddr, &marks->offsets[marks->n])) {
		marks->n_not_code++;
		return 0;
	}
	if (kind != AP_REGION_LEAVE)
		number = number_of(marks->regions, probe->name);
	if (number == -E2BIG) {
		if (!marks->unnumbered[0])
			snprintf(marks->unnumbered, sizeof(marks->unnumbered), "%s", probe->name);
		return 0;
	}
	if (number < 0)
		return marks->err = number;
	marks->cookies[marks->n++] = (__u64)kind * AP_MAX_REGIONS + number;
	return marks->n == MAX_MARKS ? -E2BIG : 0;
}

static void attach(struct marks *marks, struct region_file *file)
{
	struct regions *regions = marks->regions;
	struct error error = { 0 };
	struct attachment_request request = {
		.run = regions->options.run,
		.fd = marks->fd,
		.path = marks->path,
		.n = marks->n,
		.offsets = marks->offsets,
		.cookies = marks->cookies,
	};
	int err;

	if (!marks->n)
		return;
	/* Before the probes are set, or the programs would ignore the first marks. */
	regions->options.shared->active = 1;
	err = attachment__new(&request, &file->attachment, &error);
	if (err)
		add_gap(regions, "the regions of %s are not counted: %s", marks->path,
			error.text[0] ? error.text : strerror(-err));
}

static void tell(const struct marks *marks, int err, pid_t late_pid)
{
	struct regions *regions = marks->regions;

	if (err == -E2BIG)
		add_gap(regions, "%s has more than %d marks of regions; the others are ignored",
			marks->path, MAX_MARKS);
	else if (err)
		add_gap(regions, "the regions of %s are not counted: %s", marks->path,
			strerror(-err));
	if (marks->n_not_code)
		add_gap(regions, "%zu marks of regions in %s are not at a nop and are ignored",
			marks->n_not_code, marks->path);
	if (marks->n_no_name)
		add_gap(regions, "%zu marks of regions in %s have no printable name",
			marks->n_no_name, marks->path);
	if (marks->unnumbered[0])
		add_gap(regions, "there are more than %d regions; '%s' of %s is not counted",
			AP_MAX_REGIONS, marks->unnumbered, marks->path);
	if (late_pid && marks->n)
		add_gap(regions,
			"the regions of %s were found only after process %d had mapped it: "
			"earlier calls in them are missing (--expect names such files "
			"beforehand)",
			marks->path, late_pid);
}

static struct region_file *add_file(struct regions *regions, const struct stat *st)
{
	struct region_file *file;

	for (size_t i = 0; i < regions->n_files; i++)
		if (regions->files[i].device == st->st_dev && regions->files[i].inode == st->st_ino)
			return NULL;
	if (array__reserve(&regions->files, &regions->files_room, regions->n_files + 1,
			   sizeof(*regions->files)))
		return NULL;
	file = &regions->files[regions->n_files++];
	*file = (struct region_file){ .device = st->st_dev, .inode = st->st_ino };
	return file;
}

void regions__on_new_file(struct regions *regions, int fd, const char *path, pid_t late_pid)
{
	_cleanup_(free_ptr) struct marks *marks = NULL;
	struct debug_file debug = DEBUG_FILE_NONE;
	struct region_file *file;
	struct stat st;
	int own, err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	file = add_file(regions, &st);
	if (!file)
		return;
	elf_version(EV_CURRENT);
	marks = calloc(1, sizeof(*marks));
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	err = own < 0 ? -errno : debug_file__open(own, path, &debug, NULL);
	if (!err && !marks)
		err = -ENOMEM;
	if (err) {
		if (err != -ENOEXEC)
			add_gap(regions, "the regions of %s, if any, are unknown: %s", path,
				strerror(-err));
		debug_file__close(&debug);
		return;
	}
	*marks = (struct marks){ .regions = regions, .path = path, .fd = fd };
	err = usdt__for_each(debug.elf, add_mark, marks);
	attach(marks, file);
	tell(marks, err, late_pid);
	elf_file__free(marks->elf);
	debug_file__close(&debug);
}

static void add_counts(struct ap_site_counts *sum, const struct ap_site_counts *counts)
{
	sum->calls += counts->calls;
	sum->size_bytes += counts->size_bytes;
	sum->fresh += counts->fresh;
	sum->fresh_size_bytes += counts->fresh_size_bytes;
	sum->released += counts->released;
	sum->null += counts->null;
}

/* Adds the counters of a set to each of its regions. */
static void add_set(struct regions *regions, __u32 set)
{
	const struct regions_options *options = &regions->options;
	__u64 mask = options->shared->masks[set], stat;
	struct ap_site_counts counts;

	for (__u32 i = 0; i < AP_FUNCTIONS; i++) {
		__u32 at = set * AP_FUNCTIONS + i;

		counters__sum(options->counters, options->counts_fd, &at, (__u64 *)&counts,
			      sizeof(counts) / sizeof(__u64));
		for (size_t j = 0; j < regions->n; j++)
			if (mask >> j & 1)
				add_counts(&regions->list[j].counts[i], &counts);
	}
	for (__u32 i = 0; i < AP_STATS; i++) {
		__u32 at = set * AP_STATS + i;

		counters__sum(options->counters, options->stats_fd, &at, &stat, 1);
		for (size_t j = 0; j < regions->n; j++)
			if (mask >> j & 1)
				regions->list[j].stats[i] += stat;
	}
}

static int compare_names(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	return strcmp(x->name, y->name);
}

void regions__collect(struct regions *regions)
{
	for (__u32 i = 0; i < regions->n; i++)
		counters__sum(regions->options.counters, regions->options.begins_fd, &i,
			      &regions->list[i].entered, 1);
	for (__u32 set = 1; set < AP_MAX_REGION_SETS && regions->options.shared->masks[set]; set++)
		add_set(regions, set);
	qsort(regions->list, regions->n, sizeof(regions->list[0]), compare_names);
}

const struct region *regions__list(const struct regions *regions, size_t *n)
{
	*n = regions->n;
	return regions->list;
}

char *const *regions__gaps(const struct regions *regions, size_t *n)
{
	*n = regions->n_gaps;
	return regions->gaps;
}
