// SPDX-License-Identifier: GPL-3.0-or-later
#include "terminal_users.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "proc.h"

#define MAX_ANCESTORS 64

/* Descriptors that are checked per process; a process with more is assumed to have the terminal. */
#define MAX_DESCRIPTORS 1024

/* /dev/tty stands for the controlling terminal, whichever that is. */
#define IS_CONTROLLING(device) ((device) == makedev(5, 0))

/*
 * The parent of @pid and its controlling terminal, each 0 if there is none. -EBUSY if its first
 * thread has ended and others may still run: then /proc does not list its descriptors.
 */
static int read_stat(pid_t pid, pid_t *parent, dev_t *terminal)
{
	struct proc_stat stat;
	unsigned int device;
	int err = proc_stat__read(pid, &stat);

	if (err)
		return err;
	if (stat.state == 'Z')
		return -EBUSY;
	*parent = stat.parent;
	device = stat.terminal;
	*terminal =
		device ? makedev(device >> 8 & 0xfff, (device & 0xff) | (device >> 12 & 0xfff00))
		       : 0;
	return 0;
}

static bool is_ours(const struct terminal_users *terminal, dev_t device)
{
	for (size_t i = 0; i < terminal->n; i++)
		if (terminal->devices[i] == device)
			return true;
	return false;
}

static void add(struct terminal_users *terminal, dev_t device)
{
	size_t room = ARRAY_SIZE(terminal->devices);

	if (device && terminal->n < room && !is_ours(terminal, device))
		terminal->devices[terminal->n++] = device;
}

int terminal_users__of(int fd, struct terminal_users *terminal)
{
	struct stat st;
	pid_t pid = getpid();
	dev_t device;

	if (!isatty(fd) || fstat(fd, &st))
		return -ENOTTY;
	terminal->n = 0;
	add(terminal, st.st_rdev);
	for (int i = 0; pid > 0 && i < MAX_ANCESTORS && !read_stat(pid, &pid, &device); i++)
		add(terminal, device);
	return 0;
}

/* Whether descriptor @name in @directory (/proc/PID/fd) is our terminal; -ENOENT if closed. */
static int is_terminal(const struct terminal_users *terminal, int directory, const char *name,
		       bool controls)
{
	struct stat st;

	if (fstatat(directory, name, &st, 0))
		return -errno;
	return S_ISCHR(st.st_mode) &&
	       (is_ours(terminal, st.st_rdev) || (controls && IS_CONTROLLING(st.st_rdev)));
}

static bool has_any(const struct terminal_users *terminal, DIR *directory)
{
	const struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "0"))
			continue;
		if (n++ == MAX_DESCRIPTORS ||
		    is_terminal(terminal, dirfd(directory), entry->d_name, true) > 0)
			return true;
	}
	return false;
}

bool terminal_users__has(const struct terminal_users *terminal, pid_t pid)
{
	_cleanup_(close_directory) DIR *directory = NULL;
	dev_t controlling;
	char path[64];
	pid_t parent;
	int err = read_stat(pid, &parent, &controlling);

	if (err)
		return err != -ENOENT && err != -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	directory = opendir(path);
	if (!directory)
		return errno != ENOENT && errno != ESRCH;
	if (controlling && is_ours(terminal, controlling))
		return has_any(terminal, directory);
	return is_terminal(terminal, dirfd(directory), "1", false) > 0 ||
	       is_terminal(terminal, dirfd(directory), "2", false) > 0;
}
