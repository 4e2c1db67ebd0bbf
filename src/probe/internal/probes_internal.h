/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the list of probed files is made of, for the files that implement it. */
#ifndef ALLOCPROF_PROBES_INTERNAL_H
#define ALLOCPROF_PROBES_INTERNAL_H

#include "file_identity.h"
#include "hash_table.h"
#include "probes.h"

#define GO_HAS_NO_MALLOC                                                                             \
	"which has no malloc: Go's runtime allocates memory itself, and Go's package runtime/pprof " \
	"profiles that"

/* A static program without an allocator that has a name. It may need none. */
struct opaque {
	struct probed_allocator entry; /* as it is listed if it turns out to need one */
	__u32 pid;		       /* that mapped it first */
};

struct probes {
	struct probes_options options;
	struct probed_allocator *list;
	size_t n_list;
	__u32 n_sites;
	struct opaque *opaque;
	size_t n_opaque;
	/* Files of mapping events that were looked at, so that each is opened once. */
	struct file_identity *seen;
	size_t n_seen;
	struct hash_table seen_index;
};

/* Tells the programs of the sites. */
int probes__describe_sites(struct probes *probes, const struct allocator *allocator,
			   __u32 allocator_index);

int probes__attach(struct probes *probes, struct probed_allocator *entry, int fd,
		   struct error *error);

/* Allocators that are files. */
size_t probes__n_files(const struct probes *probes);

/*
 * Probes the file if it is an allocator. -ENOENT where it is none, or only hands on to another;
 * -EEXIST where it is probed already. Other errors leave an entry that is not probed.
 */
int probes__add_file(struct probes *probes, int fd, const char *path, struct error *error);

int probes__add_path(struct probes *probes, const char *path, struct error *error);

bool probes__is_failure(int err);

#endif
