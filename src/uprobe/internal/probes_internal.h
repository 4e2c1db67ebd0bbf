/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internals of the list of probed files. */
#ifndef ALLOCPROF_PROBES_INTERNAL_H
#define ALLOCPROF_PROBES_INTERNAL_H

#include <errno.h>

#include "hash_table.h"
#include "mapped_file.h"
#include "probes.h"

#define GO_HAS_NO_MALLOC                                                                             \
	"which has no malloc: Go's runtime allocates memory itself, and Go's package runtime/pprof " \
	"profiles that"

/* A static program without a named allocator, of which it is not known whether it allocates at
 * all. */
struct opaque {
	/* Entry for the list if it turns out that the program allocates. */
	struct probed_allocator entry;
	__u32 pid; /* process that mapped it first */
};

struct probes {
	struct probes_options options;
	struct probed_allocator *list;
	size_t n_list, list_room;
	__u32 n_sites;
	__u64 since_ns; /* CLOCK_MONOTONIC: since when all listed files are probed */
	struct opaque *opaque;
	size_t n_opaque, opaque_room;
	/* Files of handled mapping events, so that each is opened once. */
	struct file_identity *seen;
	size_t n_seen, seen_room;
	struct hash_table seen_index;
	/* Processes that run code of another word size or processor. */
	__u32 *foreign_pids;
	size_t n_foreign, foreign_room;
	int contents_fd; /* inotify(7) of the probed files; -1: there is none */
};

/* Writes the sites to the programs' map. */
int probes__describe_sites(struct probes *probes, const struct allocator *allocator,
			   __u32 allocator_index);

int probes__attach(struct probes *probes, struct probed_allocator *entry, int fd,
		   struct error *error);

/* Lists a file that is not probed; @gap says why. */
void probes__add_unprobed(struct probes *probes, int fd, const char *path, const char *gap);

/* Lists a mapped file that could not be opened; @err is the error of mapped_file__open(). */
void probes__add_unopened(struct probes *probes, const struct mapped_file *file, int err);

/* Returns why a mapped file could not be opened. */
static inline const char *unopened__reason(int err)
{
	return err == -EACCES ? "may not be read (FUSE and NFS may refuse root)"
			      : "was replaced or removed since";
}

/* Returns the number of list entries that are files. */
size_t probes__n_files(const struct probes *probes);

/*
 * Probes the file if it is an allocator. Fails with -ENOENT if it is none, or only forwards to
 * another; -EEXIST if it is already probed. Other errors leave an unprobed entry in the list.
 */
int probes__add_file(struct probes *probes, int fd, const char *path, struct error *error);

/* probes_command.c: returns the descriptor of the copy to probe instead of @fd, or @fd. */
int probes__isolate(struct probes *probes, int fd, const char *path);
/* Returns whether @fd is a file of which a private copy is probed. */
bool probes__has_copy(const struct probes *probes, int fd);

int probes__add_path(struct probes *probes, const char *path, struct error *error);

bool probes__is_failure(int err);

#endif
