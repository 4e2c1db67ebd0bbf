/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Copies of the files that are probed, for a launched command alone: it and what it starts see them at the paths of
 * the originals, in a mount namespace of their own. Probes are set in inodes, and those of the copies are in no other
 * process. The copies are in a tmpfs that is mounted nowhere else.
 */
#ifndef ALLOCPROF_ISOLATION_H
#define ALLOCPROF_ISOLATION_H

#include <stdbool.h>

struct error;
struct isolation;
struct stat;

/* Makes the file system, for a child that is forked afterwards. -EPERM: it takes CAP_SYS_ADMIN. */
int isolation__new(struct isolation **out, struct error *error);
/* The child has been forked: what it shares with the parent is in no later child. */
void isolation__has_forked(struct isolation *isolation);
/* The child's mounts stay until its last process has ended. Accepts NULL. */
void isolation__free(struct isolation *isolation);

/*
 * Copies the regular file @fd, which is at @path. The descriptor of the copy, owned by @isolation. A file that has
 * been copied is not copied again. A negative errno where it cannot be, as nobody would notice: -EPERM for one that
 * gives privileges to whoever executes it, whose copy would not be the same file to the kernel.
 */
int isolation__copy(struct isolation *isolation, int fd, const char *path);
/* The descriptor of the copy of the file that has this identity, or of the copy that has it. -ENOENT: there is none. */
int isolation__find(const struct isolation *isolation, const struct stat *st);
/* A new descriptor of the file that @fd is a copy of, or of the same file by the path that it has in this namespace
 * where the kernel would tell another one; a negative errno: @fd is as good. */
int isolation__original(const struct isolation *isolation, int fd);

/* In the child, which has no threads: makes its mount namespace. Mounts of the host still come in, and its own do not
 * get out. 0 or a negative errno. */
int isolation__unshare(void);
/* In the child: puts the copies in their places. On error isolation__failed() names the file in the parent. */
int isolation__enter(struct isolation *isolation);
const char *isolation__failed(const struct isolation *isolation);
/* In the parent, once the child @pid has its namespace: notes how paths in it look from here. 0 or a negative errno. */
int isolation__look_at(struct isolation *isolation, int pid);

#endif
