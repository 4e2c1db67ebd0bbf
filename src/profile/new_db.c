// SPDX-License-Identifier: GPL-3.0-or-later
#include "new_db.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "data_file_db.h"

#define VFS_NAME "allocprof-new"

static int nothing_there(sqlite3_vfs *vfs, const char *name, int flags, int *is_there)
{
	*is_there = 0;
	return SQLITE_OK;
}

static int delete_nothing(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
	return SQLITE_OK;
}

/* As it is: SQLite's own resolves links, and then has none left that open(2) would refuse. */
static int same_path(sqlite3_vfs *vfs, const char *name, int size, char *path)
{
	return snprintf(path, size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

int new_db__open(struct new_db *db, const char *name, int fd)
{
	const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
	struct stat ours, there;

	*db = (struct new_db){ 0 };
	if (!usual)
		return -ENOMEM;
	db->vfs = *usual;
	db->vfs.pNext = NULL;
	db->vfs.zName = VFS_NAME;
	db->vfs.xAccess = nothing_there;
	db->vfs.xDelete = delete_nothing;
	db->vfs.xFullPathname = same_path;
	if (sqlite3_vfs_register(&db->vfs, 0) != SQLITE_OK)
		return -ENOMEM;
	if (sqlite3_open_v2(name, &db->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, VFS_NAME) !=
	    SQLITE_OK)
		return db->db ? db_errno(db->db) : -ENOMEM;
	if (fstat(fd, &ours) || lstat(name, &there))
		return -errno;
	return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino ? 0 : -EEXIST;
}

void new_db__close(struct new_db *db)
{
	sqlite3_close(db->db);
	/* It has the name only if it was registered. */
	if (db->vfs.zName)
		sqlite3_vfs_unregister(&db->vfs);
}
