// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads which pages of a process are resident from its pagemap (proc_pid_pagemap(5)). */
#include "resident_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "pagemap.h"
#include "proc.h"

/* The request PAGEMAP_SCAN of Linux 6.7, whose names older headers lack. */
struct page_region {
	__u64 start, end, categories;
};
struct scan_request {
	__u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	__u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN_PAGES	_IOWR('f', 16, struct scan_request)
#define SCAN_IS_PRESENT (1ULL << 3)

/* Mappings of which at most this share is resident are scanned for what is, if the kernel can: a
 * reservation of terabytes would take seconds. */
#define SPARSE_SHARE 16

static int add_page(struct resident_pages *memory, __u32 mapping, __u64 address, __u64 entry)
{
	struct memory_run *last = memory->n_runs ? &memory->runs[memory->n_runs - 1] : NULL;
	struct memory_run run = {
		.begin = address,
		.end = address + RESIDENT_PAGE_BYTES,
		.mapping = mapping,
		.is_of_file = entry & PAGEMAP_FILE,
		.is_shared = !(entry & (PAGEMAP_EXCLUSIVE | PAGEMAP_FILE)),
	};

	if (last && last->end == address && last->mapping == mapping &&
	    last->is_of_file == run.is_of_file && last->is_shared == run.is_shared) {
		last->end = run.end;
		return 0;
	}
	if (array__reserve(&memory->runs, &memory->runs_room, memory->n_runs + 1,
			   sizeof(*memory->runs)))
		return -ENOMEM;
	memory->runs[memory->n_runs++] = run;
	return 0;
}

struct page_reading {
	struct resident_pages *memory;
	int pagemap;
	bool cannot_scan;
	__u64 entries[8192];
};

static int read_pages(struct page_reading *reading, __u32 mapping, __u64 begin, __u64 end)
{
	int err = 0;

	while (begin < end && !err) {
		size_t n = (end - begin) / RESIDENT_PAGE_BYTES;
		ssize_t len;

		if (n > ARRAY_SIZE(reading->entries))
			n = ARRAY_SIZE(reading->entries);
		len = pread(reading->pagemap, reading->entries, n * sizeof(__u64),
			    begin / RESIDENT_PAGE_BYTES * sizeof(__u64));
		if (len < (ssize_t)sizeof(__u64))
			return len < 0 ? -errno : 0;
		n = len / sizeof(__u64);
		for (size_t i = 0; i < n && !err; i++, begin += RESIDENT_PAGE_BYTES)
			if (reading->entries[i] & PAGEMAP_PRESENT)
				err = add_page(reading->memory, mapping, begin,
					       reading->entries[i]);
	}
	return err;
}

/* Reads the pages of the regions that have any. Returns -ENOTTY before Linux 6.7. */
static int scan_pages(struct page_reading *reading, __u32 mapping, __u64 begin, __u64 end)
{
	struct page_region regions[64];
	struct scan_request request = {
		.size = sizeof(request),
		.start = begin,
		.end = end,
		.vec = (__u64)regions,
		.vec_len = ARRAY_SIZE(regions),
		.category_mask = SCAN_IS_PRESENT,
		.return_mask = SCAN_IS_PRESENT,
	};
	int err = 0;

	while (request.start < end && !err) {
		int n = ioctl(reading->pagemap, SCAN_PAGES, &request);

		if (n < 0)
			return -errno;
		for (int i = 0; i < n && !err; i++)
			err = read_pages(reading, mapping, regions[i].start, regions[i].end);
		if (request.walk_end <= request.start)
			break;
		request.start = request.walk_end;
	}
	return err;
}

static int read_resident(struct page_reading *reading, __u32 at)
{
	const struct memory_mapping *mapping = &reading->memory->of.mappings[at];
	bool is_sparse = mapping->rss_bytes < (mapping->end - mapping->begin) / SPARSE_SHARE;
	size_t n_before = reading->memory->n_runs;
	int err = -ENOTTY;

	if (!mapping->rss_bytes)
		return 0;
	if (is_sparse && !reading->cannot_scan)
		err = scan_pages(reading, at, mapping->begin, mapping->end);
	if (err != -ENOTTY && err != -EINVAL)
		return err;
	reading->cannot_scan |= is_sparse;
	reading->memory->n_runs = n_before;
	return read_pages(reading, at, mapping->begin, mapping->end);
}

/* Removes pages that are mapped and not counted in Rss: the kernel's page of zeros, which anonymous
 * memory has that was read and never written. Nothing tells it from a page that another process
 * has, too, so the first of these are taken for it. */
static void leave_out_zeros(struct resident_pages *memory, __u32 at, size_t first_run)
{
	__u64 excess = 0, rss = memory->of.mappings[at].rss_bytes;

	for (size_t i = first_run; i < memory->n_runs; i++)
		excess += memory->runs[i].end - memory->runs[i].begin;
	excess -= excess > rss ? rss : excess;
	for (size_t i = first_run; i < memory->n_runs && excess; i++) {
		struct memory_run *run = &memory->runs[i];
		__u64 bytes = run->is_shared ? run->end - run->begin : 0;

		bytes = bytes < excess ? bytes : excess;
		run->begin += bytes;
		excess -= bytes;
	}
}

static int read_runs(struct resident_pages *memory)
{
	_cleanup_(free_ptr) struct page_reading *reading = calloc(1, sizeof(*reading));
	_cleanup_(close_fd) int pagemap = -1;
	char path[64];
	int err = 0;

	if (!reading)
		return -ENOMEM;
	if (pagemap__page_bytes() != RESIDENT_PAGE_BYTES)
		return -EOPNOTSUPP;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", memory->of.pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return -errno;
	reading->memory = memory;
	reading->pagemap = pagemap;
	for (__u32 i = 0; i < memory->of.n && !err; i++) {
		size_t first_run = memory->n_runs;

		err = read_resident(reading, i);
		if (!err)
			leave_out_zeros(memory, i, first_run);
	}
	return err;
}

int resident_pages__read(pid_t pid, struct resident_pages *out)
{
	struct resident_pages memory = { 0 };
	int err = memory_mappings__read(pid, true, &memory.of), kilobytes;

	if (!err)
		err = read_runs(&memory);
	if (!err && proc_status__number(pid, "VmHWM", &kilobytes) && kilobytes > 0)
		memory.highest_bytes = (__u64)kilobytes << 10;
	if (err)
		resident_pages__release(&memory);
	else
		*out = memory;
	return err;
}

void resident_pages__release(struct resident_pages *memory)
{
	memory_mappings__release(&memory->of);
	free(memory->runs);
	*memory = (struct resident_pages){ 0 };
}
