// SPDX-License-Identifier: GPL-3.0-or-later
#include "isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cleanup.h"
#include "error.h"
#include "file.h"
#include "mapped_file.h"

/* How many files are copied; further ones are probed where they are. */
#define MAX_COPIES 256

/* The kernel's limit (XATTR_LIST_MAX, XATTR_SIZE_MAX). */
#define MAX_XATTR_BYTES 65536

struct copy {
	dev_t device; /* device of the original */
	ino_t inode;
	dev_t copy_device;
	ino_t copy_inode;
	int fd, original_fd; /* descriptors of copy and original, both open for reading */
};

/* The place where the child puts a copy. */
struct original {
	dev_t device; /* device of the original, which must be at @path */
	ino_t inode;
	__u64 attributes;    /* MOUNT_ATTR_* of the mount that has the original */
	char path[PATH_MAX]; /* path of the original, without links */
};

/* Memory that parent and child share, and nobody else: the parent fills the list after the child
 * was forked. */
struct originals {
	size_t n;
	size_t failed; /* index of the copy that the child is working on */
	struct original list[MAX_COPIES];
};

struct isolation {
	int tree_fd; /* the root of the tmpfs */
	size_t n;
	struct copy copies[MAX_COPIES];
	struct originals *originals;
	/* The child's root directory as the kernel names it to this process: "", unless it is a
	 * chroot, outside of which the child's mounts are. Paths of descriptors from the child
	 * begin with it. */
	char root[PATH_MAX];
};

struct copy_name {
	char text[24];
};

/* The name of a copy in the tmpfs. */
static struct copy_name copy_name(size_t index)
{
	struct copy_name name;

	snprintf(name.text, sizeof(name.text), "%zu", index);
	return name;
}

static int make_tmpfs(void)
{
	_cleanup_(close_fd) int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int fd;

	if (context < 0)
		return -errno;
	if (fsconfig(context, FSCONFIG_SET_STRING, "source", "allocprof", 0) ||
	    fsconfig(context, FSCONFIG_SET_STRING, "mode", "0700", 0) ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	fd = fsmount(context, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int isolation__new(struct isolation **out, struct error *error)
{
	struct isolation *isolation = calloc(1, sizeof(*isolation));
	int err;

	if (!isolation)
		return -ENOMEM;
	isolation->originals = mmap(NULL, sizeof(*isolation->originals), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (isolation->originals == MAP_FAILED) {
		free(isolation);
		return -ENOMEM;
	}
	isolation->tree_fd = make_tmpfs();
	if (isolation->tree_fd < 0) {
		err = isolation->tree_fd;
		isolation__free(isolation);
		return error__set(error, err,
				  "--isolate: cannot mount a file system for the copies of probed "
				  "files: %s; %s",
				  strerror(-err),
				  err == -EPERM ? "run allocprof as root, with CAP_SYS_ADMIN"
						: "do not use --isolate");
	}
	*out = isolation;
	return 0;
}

void isolation__has_forked(struct isolation *isolation)
{
	madvise(isolation->originals, sizeof(*isolation->originals), MADV_DONTFORK);
}

void isolation__free(struct isolation *isolation)
{
	if (!isolation)
		return;
	for (size_t i = 0; i < isolation->n; i++) {
		close(isolation->copies[i].fd);
		close(isolation->copies[i].original_fd);
	}
	close_fd(&isolation->tree_fd);
	munmap(isolation->originals, sizeof(*isolation->originals));
	free(isolation);
}

static int copy_contents(int from, int to, off_t size)
{
	off_t at = 0;

	while (at < size) {
		ssize_t n = sendfile(to, from, &at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
	}
	return 0;
}

/* Returns whether an extended attribute decides who may access the file: labels and access lists
 * do; attributes that users and other file systems set do not. */
static bool decides_access(const char *name)
{
	return strncmp(name, "user.", 5) != 0 && strncmp(name, "trusted.", 8) != 0;
}

static int copy_xattrs(int from, int to)
{
	_cleanup_(free_ptr) char *names = malloc(MAX_XATTR_BYTES), *value = malloc(MAX_XATTR_BYTES);
	ssize_t n, size;

	if (!names || !value)
		return -ENOMEM;
	n = flistxattr(from, names, MAX_XATTR_BYTES);
	if (n < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *name = names; name < names + n; name += strlen(name) + 1) {
		if (!decides_access(name))
			continue;
		size = fgetxattr(from, name, value, MAX_XATTR_BYTES);
		if (size < 0 || fsetxattr(to, name, value, size, 0))
			return -errno;
	}
	return 0;
}

static int copy_file(int from, int to, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	int err = copy_contents(from, to, st->st_size);

	if (err)
		return err;
	if (fchown(to, st->st_uid, st->st_gid) || fchmod(to, st->st_mode & 07777))
		return -errno;
	err = copy_xattrs(from, to);
	if (!err && futimens(to, times))
		err = -errno;
	return err;
}

/* Returns whether the file gives privileges to whoever executes it: then the kernel and the
 * program itself check more than the file's contents. */
static bool gives_privileges(int fd, const struct stat *st)
{
	char none[1];

	return st->st_mode & (S_ISUID | S_ISGID) ||
	       fgetxattr(fd, "security.capability", none, sizeof(none)) >= 0 || errno == ERANGE;
}

/* Returns the attributes of the mount that has the original, so that mount(8) shows the same for
 * the copy. The copy is read-only, since what is written to it would be lost. */
static __u64 mount_attributes(int fd)
{
	struct statvfs at;
	__u64 attributes = MOUNT_ATTR_RDONLY;

	if (fstatvfs(fd, &at))
		return attributes;
	attributes |= at.f_flag & ST_NOSUID ? MOUNT_ATTR_NOSUID : 0;
	attributes |= at.f_flag & ST_NODEV ? MOUNT_ATTR_NODEV : 0;
	attributes |= at.f_flag & ST_NOEXEC ? MOUNT_ATTR_NOEXEC : 0;
	return attributes;
}

static bool is_at(const char *path, const struct stat *st)
{
	struct stat found;

	return !stat(path, &found) && found.st_dev == st->st_dev && found.st_ino == st->st_ino;
}

static int describe(int fd, const char *path, const struct stat *st, struct original *original)
{
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	if (gives_privileges(fd, st))
		return -EPERM;
	if (!realpath(path, original->path))
		return -errno;
	if (!is_at(original->path, st))
		return -ESTALE;
	original->device = st->st_dev;
	original->inode = st->st_ino;
	original->attributes = mount_attributes(fd);
	return 0;
}

/* Opens the copy at @name for reading: if a process had it open for writing, it could not be
 * executed. */
static int open_copy(int tree_fd, const char *name, struct copy *copy)
{
	struct stat st;
	int fd = openat(tree_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		close(fd);
		return -errno;
	}
	copy->copy_device = st.st_dev;
	copy->copy_inode = st.st_ino;
	return fd;
}

int isolation__copy(struct isolation *isolation, int fd, const char *path)
{
	struct copy_name name = copy_name(isolation->n);
	struct copy *copy = &isolation->copies[isolation->n];
	struct stat st;
	int to, err;

	if (fstat(fd, &st))
		return -errno;
	err = isolation__find(isolation, &st);
	if (err >= 0)
		return err;
	if (isolation->n == MAX_COPIES)
		return -ENFILE;
	copy->device = st.st_dev;
	copy->inode = st.st_ino;
	err = describe(fd, path, &st, &isolation->originals->list[isolation->n]);
	if (err)
		return err;
	to = openat(isolation->tree_fd, name.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	err = copy_file(fd, to, &st);
	close(to);
	copy->fd = err ? err : open_copy(isolation->tree_fd, name.text, copy);
	copy->original_fd = copy->fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy->original_fd >= 0) {
		isolation->originals->n = ++isolation->n;
		return copy->fd;
	}
	err = copy->fd < 0 ? copy->fd : -errno;
	close_fd(&copy->fd);
	unlinkat(isolation->tree_fd, name.text, 0);
	return err;
}

static const struct copy *find(const struct isolation *isolation, const struct stat *st)
{
	for (size_t i = 0; i < isolation->n; i++) {
		const struct copy *copy = &isolation->copies[i];

		if ((copy->inode == st->st_ino && copy->device == st->st_dev) ||
		    (copy->copy_inode == st->st_ino && copy->copy_device == st->st_dev))
			return copy;
	}
	return NULL;
}

int isolation__find(const struct isolation *isolation, const struct stat *st)
{
	const struct copy *copy = find(isolation, st);

	return copy ? copy->fd : -ENOENT;
}

/* Opens the file again by its path without the child's root. */
static int reopen(const struct isolation *isolation, int fd, const struct stat *st)
{
	const size_t len = strlen(isolation->root);
	char path[PATH_MAX];
	struct stat found;
	int again;

	if (!len)
		return -ENOENT;
	mapped_file__path(fd, path, sizeof(path));
	if (strncmp(path, isolation->root, len) != 0 || path[len] != '/')
		return -ENOENT;
	again = regular_file__open(path + len);
	if (again < 0 ||
	    (!fstat(again, &found) && found.st_ino == st->st_ino && found.st_dev == st->st_dev))
		return again;
	close(again);
	return -ESTALE;
}

int isolation__original(const struct isolation *isolation, int fd)
{
	const struct copy *copy;
	struct stat st;
	int original;

	if (fstat(fd, &st))
		return -errno;
	copy = find(isolation, &st);
	if (!copy)
		return reopen(isolation, fd, &st);
	original = fcntl(copy->original_fd, F_DUPFD_CLOEXEC, 0);
	return original < 0 ? -errno : original;
}

int isolation__unshare(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	return 0;
}

int isolation__look_at(struct isolation *isolation, int pid)
{
	char name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	n = readlink(name, isolation->root, sizeof(isolation->root));
	if (n < 0)
		return -errno;
	if (n == sizeof(isolation->root))
		return -ENAMETOOLONG;
	if (n == 1)
		n = 0;
	isolation->root[n] = '\0';
	return 0;
}

/* Opens the file at the path of the original, before anything is mounted. */
static int open_original(const struct original *original)
{
	int fd = open(original->path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_dev == original->device && st.st_ino == original->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

static int put(const struct isolation *isolation, size_t index, int at_fd)
{
	struct copy_name name = copy_name(index);
	struct mount_attr attr = { .attr_set = isolation->originals->list[index].attributes };
	_cleanup_(close_fd) int fd =
		open_tree(isolation->tree_fd, name.text, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) ||
	    move_mount(fd, "", at_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
		return -errno;
	return 0;
}

int isolation__enter(struct isolation *isolation)
{
	struct originals *originals = isolation->originals;
	_cleanup_(free_ptr) int *fds = calloc(originals->n + 1, sizeof(*fds));
	char tree[32];
	int err = fds ? 0 : -ENOMEM;

	for (size_t i = 0; i < originals->n && !err; i++) {
		originals->failed = i;
		fds[i] = open_original(&originals->list[i]);
		err = fds[i] < 0 ? fds[i] : 0;
	}
	/* Until Linux 6.15 a file system can be mounted again only if it is mounted in the
	 * process's own namespace. So the tmpfs is mounted over the root, where nobody looks it
	 * up, until its files are in their places. */
	if (!err && move_mount(isolation->tree_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH))
		err = -errno;
	for (size_t i = 0; i < originals->n && !err; i++) {
		originals->failed = i;
		err = put(isolation, i, fds[i]);
	}
	snprintf(tree, sizeof(tree), "/proc/self/fd/%d", isolation->tree_fd);
	if (!err && umount2(tree, MNT_DETACH))
		err = -errno;
	/* The descriptors are not closed: the child executes the command, or ends. */
	return err;
}

const char *isolation__failed(const struct isolation *isolation)
{
	const struct originals *originals = isolation->originals;

	return originals->n ? originals->list[originals->failed].path : "nothing";
}
