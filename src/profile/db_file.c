// SPDX-License-Identifier: GPL-3.0-or-later
/* Gives SQLite a VFS whose only file is an open descriptor: it opens, locks and removes nothing by name. */
#include "db_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data_rows.h"
#include "file.h"

#define VFS_NAME "allocprof"

/* SQLite's object for an open file. */
struct db_file {
	sqlite3_file base;
	int fd;
};

static int close_nothing(sqlite3_file *file)
{
	return SQLITE_OK;
}

static int read_at(sqlite3_file *file, void *to, int size, sqlite3_int64 offset)
{
	ssize_t n, done = 0;

	while (done < size) {
		n = pread(((struct db_file *)file)->fd, (char *)to + done, size - done,
			  offset + done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return SQLITE_IOERR_READ;
		if (!n) {
			memset((char *)to + done, 0, size - done);
			return SQLITE_IOERR_SHORT_READ;
		}
		done += n;
	}
	return SQLITE_OK;
}

static int write_at(sqlite3_file *file, const void *from, int size, sqlite3_int64 offset)
{
	int err = fd__write_all_at(((struct db_file *)file)->fd, from, size, offset);

	errno = -err;
	return !err ? SQLITE_OK : err == -ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int cut(sqlite3_file *file, sqlite3_int64 size)
{
	return ftruncate(((struct db_file *)file)->fd, size) ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

/* Does nothing, since the caller syncs when everything is written. */
static int sync_nothing(sqlite3_file *file, int flags)
{
	return SQLITE_OK;
}

static int get_size(sqlite3_file *file, sqlite3_int64 *size)
{
	struct stat st;

	if (fstat(((struct db_file *)file)->fd, &st))
		return SQLITE_IOERR_FSTAT;
	*size = st.st_size;
	return SQLITE_OK;
}

static int lock_nothing(sqlite3_file *file, int level)
{
	return SQLITE_OK;
}

static int is_never_locked(sqlite3_file *file, int *is_locked)
{
	*is_locked = 0;
	return SQLITE_OK;
}

static int control_nothing(sqlite3_file *file, int operation, void *argument)
{
	return SQLITE_NOTFOUND;
}

static int usual_sector(sqlite3_file *file)
{
	return 4096;
}

static int may_change(sqlite3_file *file)
{
	return 0;
}

/* Tells SQLite that nobody else writes the file: then it takes no locks, and never opens a
 * write-ahead log. */
static int never_changes(sqlite3_file *file)
{
	return SQLITE_IOCAP_IMMUTABLE;
}

#define METHODS                                                                                    \
	.iVersion = 1, .xClose = close_nothing, .xRead = read_at, .xWrite = write_at,              \
	.xTruncate = cut, .xSync = sync_nothing, .xFileSize = get_size, .xLock = lock_nothing,     \
	.xUnlock = lock_nothing, .xCheckReservedLock = is_never_locked,                            \
	.xFileControl = control_nothing, .xSectorSize = usual_sector

static int open_descriptor(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
			   int *done)
{
	static const sqlite3_io_methods written = { METHODS, .xDeviceCharacteristics = may_change };
	static const sqlite3_io_methods read = { METHODS, .xDeviceCharacteristics = never_changes };
	struct db_file *opened = (struct db_file *)file;

	file->pMethods = NULL;
	/* There is neither a journal nor a temporary file. */
	if (!(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	opened->fd = atoi(name);
	file->pMethods = flags & SQLITE_OPEN_READWRITE ? &written : &read;
	if (done)
		*done = flags;
	return SQLITE_OK;
}

static int nothing_there(sqlite3_vfs *vfs, const char *name, int flags, int *is_there)
{
	*is_there = 0;
	return SQLITE_OK;
}

static int delete_nothing(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
	return SQLITE_OK;
}

static int same_path(sqlite3_vfs *vfs, const char *name, int size, char *path)
{
	return snprintf(path, size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* Registers the VFS, which SQLite keeps for as long as the process runs. */
static int register_once(void)
{
	const sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
	sqlite3_vfs *vfs;

	if (sqlite3_vfs_find(VFS_NAME))
		return 0;
	vfs = usual ? malloc(sizeof(*vfs)) : NULL;
	if (!vfs)
		return -ENOMEM;
	*vfs = *usual;
	vfs->pNext = NULL;
	vfs->zName = VFS_NAME;
	vfs->szOsFile = sizeof(struct db_file);
	vfs->xOpen = open_descriptor;
	vfs->xAccess = nothing_there;
	vfs->xDelete = delete_nothing;
	vfs->xFullPathname = same_path;
	if (sqlite3_vfs_register(vfs, 0) == SQLITE_OK)
		return 0;
	free(vfs);
	return -ENOMEM;
}

int db_file__open(int fd, bool writes, sqlite3 **db)
{
	int flags = writes ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, err = register_once();
	char name[12];

	*db = NULL;
	if (err)
		return err;
	snprintf(name, sizeof(name), "%d", fd);
	if (sqlite3_open_v2(name, db, flags | SQLITE_OPEN_NOMUTEX, VFS_NAME) != SQLITE_OK)
		return *db ? db_errno(*db) : -ENOMEM;
	return 0;
}
