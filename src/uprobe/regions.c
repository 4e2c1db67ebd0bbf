// SPDX-License-Identifier: GPL-3.0-or-later
#include "regions.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "array.h"
#include "attachment.h"
#include "bpf_maps.h"
#include "cleanup.h"
#include "error.h"
#include "profile.h"
#include "profile_totals.h"
#include "region_marks.h"

struct region_file {
	dev_t device;
	ino_t inode;
	struct attachment *attachment; /* NULL: the file has no marks */
};

struct regions {
	struct regions_options options;
	struct region list[AP_MAX_REGIONS]; /* indexed by the region's number */
	size_t n;
	struct region_file *files;
	size_t n_files, files_room;
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
	free(regions->files);
	free(regions);
}

/* Adds a gap. If there is no memory for it, all counts are wrong anyway. */
static void add_gap(struct regions *regions, const struct profile_gap *gap)
{
	(void)profile__add_gap(regions->options.profile, gap);
}

/* The marks of one file that are probed. */
struct marks {
	struct regions *regions;
	const char *path;
	int fd;
	size_t n, n_not_code, n_reads;
	char unnumbered[AP_REGION_NAME_BYTES + 1]; /* the first region beyond AP_MAX_REGIONS */
	__u64 offsets[REGION_MARKS_MAX], cookies[REGION_MARKS_MAX];
};

/* Returns the number of the region, which is added if it is new; -E2BIG if there are too many,
 * -ENOMEM. */
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

/* Adds a mark to the probes. Returns 0 or -ENOMEM. */
static int add_mark(struct marks *marks, const struct region_mark *mark)
{
	int number = 0;

	/* If the mark's address is data, a breakpoint would change the data. */
	if (!mark->is_at_nop) {
		marks->n_not_code++;
		return 0;
	}
	if (region_mark__is_named(mark->kind))
		number = number_of(marks->regions, mark->name);
	if (number == -E2BIG) {
		if (!marks->unnumbered[0])
			snprintf(marks->unnumbered, sizeof(marks->unnumbered), "%s", mark->name);
		return 0;
	}
	if (number < 0)
		return number;
	marks->n_reads += mark->kind == AP_REGION_READ;
	marks->offsets[marks->n] = mark->offset;
	marks->cookies[marks->n++] = (__u64)mark->kind * AP_MAX_REGIONS + number;
	return 0;
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
	/* This must be set before the probes, since the programs would ignore the first marks. */
	regions->options.shared->active = 1;
	err = regions->options.load_program(regions->options.context, &request.run.program, &error);
	if (!err)
		err = attachment__new(&request, &file->attachment, &error);
	if (err)
		add_gap(regions, &(struct profile_gap){ .kind = GAP_REGION_FAILED,
							.object = marks->path,
							.detail = error.text[0] ? error.text
										: strerror(-err) });
}

static void tell(const struct marks *marks, const struct region_marks *found, pid_t late_pid)
{
	const struct {
		enum gap kind;
		bool is_there;
		__u64 number;
	} all[] = {
		{ GAP_REGION_MARKS_MORE, found->has_more, REGION_MARKS_MAX },
		{ GAP_REGION_MARKS_NO_NOP, marks->n_not_code, marks->n_not_code },
		{ GAP_REGION_MARKS_UNNAMED, found->n_unnamed, found->n_unnamed },
		{ GAP_REGION_MANY, marks->unnumbered[0], 0 },
		{ GAP_REGION_LATE, late_pid && marks->n > marks->n_reads, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].is_there)
			add_gap(marks->regions,
				&(struct profile_gap){ .kind = all[i].kind,
						       .number = all[i].number,
						       .pid = late_pid,
						       .object = marks->path,
						       .detail = marks->unnumbered });
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

static int probe_marks(struct regions *regions, int fd, const char *path,
		       const struct region_marks *found, struct region_file *file, pid_t late_pid)
{
	_cleanup_(free_ptr) struct marks *marks = calloc(1, sizeof(*marks));
	int err = 0;

	if (!marks)
		return -ENOMEM;
	marks->regions = regions;
	marks->path = path;
	marks->fd = fd;
	for (size_t i = 0; i < found->n && !err; i++)
		err = add_mark(marks, &found->list[i]);
	if (err)
		return err;
	attach(marks, file);
	tell(marks, found, late_pid);
	return 0;
}

bool regions__want(const struct regions *regions, int fd, const char *path)
{
	struct region_marks found;
	bool want;

	if (region_marks__parse(regions->options.parser, fd, path, &found, NULL))
		return false;
	want = found.n;
	region_marks__release(&found);
	return want;
}

void regions__on_new_file(struct regions *regions, int fd, const char *path, pid_t late_pid)
{
	struct region_marks found = { 0 };
	struct region_file *file;
	struct error error = { 0 };
	struct stat st;
	int err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	file = add_file(regions, &st);
	if (!file)
		return;
	err = region_marks__parse(regions->options.parser, fd, path, &found, &error);
	if (!err && (found.n || found.n_unnamed))
		err = probe_marks(regions, fd, path, &found, file, late_pid);
	if (err && err != -ENOEXEC)
		add_gap(regions, &(struct profile_gap){ .kind = GAP_REGION_UNREAD,
							.object = path,
							.detail = error.text[0] ? error.text
										: strerror(-err) });
	region_marks__release(&found);
}

/* Adds the counters of a set to each of its regions. */
static void add_set(struct regions *regions, __u32 set)
{
	const struct regions_options *options = &regions->options;
	__u64 mask = options->shared->masks[set];
	struct ap_region_counts counts;

	counters__sum(options->counters, options->counts_fd, &set, (__u64 *)&counts,
		      sizeof(counts) / sizeof(__u64));
	for (size_t i = 0; i < regions->n; i++) {
		struct region *region = &regions->list[i];

		if (!(mask >> i & 1))
			continue;
		for (int j = 0; j < AP_FUNCTIONS; j++)
			site_counts__add(&region->counts[j], &counts.functions[j]);
		for (int j = 0; j < AP_STATS; j++)
			region->stats[j] += counts.stats[j];
	}
}

void regions__collect(struct regions *regions)
{
	for (__u32 i = 0; i < regions->n; i++)
		counters__sum(regions->options.counters, regions->options.begins_fd, &i,
			      &regions->list[i].entered, 1);
	for (__u32 set = 1; set < AP_MAX_REGION_SETS && regions->options.shared->masks[set]; set++)
		add_set(regions, set);
}

const struct region *regions__list(const struct regions *regions, size_t *n)
{
	*n = regions->n;
	return regions->list;
}
