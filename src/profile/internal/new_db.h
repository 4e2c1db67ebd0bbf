/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_NEW_DB_H
#define ALLOCPROF_NEW_DB_H

#include <sqlite3.h>

/*
 * A database that is being written under a temporary name, in a directory where others may make files: SQLite
 * looks for no journal beside it, which it would play back and delete with the file that the journal names, and
 * follows no link.
 */
struct new_db {
	sqlite3 *db;
	sqlite3_vfs vfs; /* how it opens files; SQLite has a pointer to it */
};

/* Opens the file @name, which @fd refers to, for writing. @db stays where it is until new_db__close(), which the
 * caller calls whatever comes of it. Returns 0, -EEXIST if another file is at @name, or another negative errno. */
int new_db__open(struct new_db *db, const char *name, int fd);

void new_db__close(struct new_db *db);

#endif
