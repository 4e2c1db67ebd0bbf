// SPDX-License-Identifier: GPL-3.0-or-later
/* Which files of a launched command are copied for it alone: those in which a probe will be. */
#include "probes_internal.h"

#include <sys/stat.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "sources.h"

static bool has_source(const struct probes *probes, int fd, const char *path)
{
	const struct sources *sources = probes->options.sources;

	for (size_t i = 0; sources && i < sources->n; i++) {
		struct allocator *allocator;

		if (allocator__parse_source(probes->options.parser, fd, path, &sources->list[i],
					    &allocator, NULL))
			continue;
		allocator__free(allocator);
		return true;
	}
	return false;
}

static bool has_allocator(const struct probes *probes, int fd, const char *path)
{
	struct allocator *allocator;
	bool is;

	if (allocator__parse(probes->options.parser, fd, path, &allocator, NULL))
		return false;
	is = !allocator->is_wrapper;
	allocator__free(allocator);
	return is;
}

int probes__isolate(struct probes *probes, int fd, const char *path)
{
	const struct probes_options *options = &probes->options;
	int copy;

	if (!options->isolate)
		return fd;
	copy = options->find_isolated(fd, path, options->context);
	if (copy == fd && (has_allocator(probes, fd, path) || has_source(probes, fd, path) ||
			   options->is_wanted(fd, path, options->context)))
		copy = options->isolate(fd, path, options->context);
	return copy;
}

void probes__end_copies(struct probes *probes)
{
	probes->options.isolate = NULL;
}

bool probes__has_copy(const struct probes *probes, int fd)
{
	const struct probes_options *options = &probes->options;
	int copy = options->find_isolated(fd, NULL, options->context);
	struct stat of_file, of_copy;

	return copy != fd && !fstat(fd, &of_file) && !fstat(copy, &of_copy) &&
	       (of_file.st_ino != of_copy.st_ino || of_file.st_dev != of_copy.st_dev);
}
