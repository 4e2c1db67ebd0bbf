/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Makes copies of the files that are probed, for a launched command alone: the command and what it
 * starts see the copies at the paths of the originals, in a mount namespace of their own. Probes
 * are set in inodes, and no other process has the inodes of the copies. The copies are in a tmpfs
 * that is mounted nowhere else.
 */
#ifndef ALLOCPROF_ISOLATION_H
#define ALLOCPROF_ISOLATION_H

#include <stdbool.h>

struct error;
struct isolation;
struct stat;

/* Makes the file system, for a child that is forked afterwards. Fails with -EPERM if this process
 * lacks CAP_SYS_ADMIN. */
int isolation__new(struct isolation **out, struct error *error);
/* To be called when the child has been forked: children that are forked later do not share the
 * memory. */
void isolation__has_forked(struct isolation *isolation);
/* Frees @isolation, or accepts NULL. The child's mounts stay until the last process in its
 * namespace has ended. */
void isolation__free(struct isolation *isolation);

/*
 * Copies the regular file @fd, which is at @path. Returns the descriptor of the copy, which
 * belongs to @isolation; a file that was copied before is not copied again. Returns a negative
 * errno if it cannot be copied such that nobody notices: -EPERM for a file that gives privileges
 * to whoever executes it.
 */
int isolation__copy(struct isolation *isolation, int fd, const char *path);
/* Returns the descriptor of the copy of the file with this identity, or of the copy that itself
 * has this identity. Fails with -ENOENT if there is none. */
int isolation__find(const struct isolation *isolation, const struct stat *st);
/* Returns a new descriptor of the file of which @fd is a copy, or of the same file by its path in
 * this namespace if the kernel would tell another path. A negative errno: @fd is as good. */
int isolation__original(const struct isolation *isolation, int fd);

/* To be called in the child, which must have no threads: makes its mount namespace. Later mounts
 * of the host appear in it, its own do not appear outside. Returns 0 or a negative errno. */
int isolation__unshare(void);
/* To be called in the child: puts the copies in their places. On error isolation__failed() tells
 * the parent which file it was. */
int isolation__enter(struct isolation *isolation);
const char *isolation__failed(const struct isolation *isolation);
/* To be called in the parent, when the child @pid has its namespace: notes how paths in it look
 * from here. Returns 0 or a negative errno. */
int isolation__look_at(struct isolation *isolation, int pid);

#endif
