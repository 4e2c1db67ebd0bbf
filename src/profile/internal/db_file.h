/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_DB_FILE_H
#define ALLOCPROF_DB_FILE_H

#include <sqlite3.h>
#include <stdbool.h>

/*
 * Opens the database in the open file @fd, which needs no name. SQLite looks for no files beside
 * it: it would play back and delete a journal that others have put there. Nobody else may write
 * the file meanwhile. @fd stays the caller's, and must be open for as long as *@db, which the
 * caller closes even if this fails. Returns 0 or a negative errno.
 */
int db_file__open(int fd, bool writes, sqlite3 **db);

#endif
