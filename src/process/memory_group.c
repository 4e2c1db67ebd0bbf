// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads what control groups permit, and how much memory this process and the kernel use for it,
 * from /proc and the groups' files. */
#include "memory_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cleanup.h"
#include "file.h"

#define MOST_BYTES (1 << 20)

/* Names of files, and of lines in them, of one version of control groups. */
struct hierarchy {
	const char *type;      /* type of its file system */
	const char *limits[2]; /* at the second limit the kernel slows the group down */
	const char *usage;
	/* Lines of memory.stat: pages of files, which the kernel reclaims first. */
	const char *pages[2];
	const char *kills; /* file with a line "oom_kill N" */
};

static const struct hierarchy hierarchies[] = {
	{ "cgroup2",
	  { "memory.max", "memory.high" },
	  "memory.current",
	  { "inactive_file", "active_file" },
	  "memory.events" },
	{ "cgroup",
	  { "memory.limit_in_bytes", NULL },
	  "memory.usage_in_bytes",
	  { "total_inactive_file", "total_active_file" },
	  "memory.oom_control" },
};

/* Returns a file's text, which the caller frees; NULL if it cannot be read. */
static char *read_text(const char *directory, const char *name)
{
	_cleanup_(close_fd) int fd = -1;
	char path[PATH_MAX + 64], *text;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || text_file__read(fd, MOST_BYTES, &text, &size) ? NULL : text;
}

/* Finds the number behind @key at the beginning of a line; with "" the number that is the file.
 * Returns false if there is none. */
static bool find_number(const char *text, const char *key, __u64 *value)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		char *end;

		line += *line == '\n';
		if (strncmp(line, key, len) || (len && line[len] != ' ' && line[len] != '\t'))
			continue;
		errno = 0;
		*value = strtoull(line + len, &end, 10);
		return end > line + len && !errno;
	}
	return false;
}

static bool read_number(const char *directory, const char *name, const char *key, __u64 *value)
{
	_cleanup_(free_ptr) char *text = name ? read_text(directory, name) : NULL;

	return text && find_number(text, key, value);
}

/* Returns whether @word is in the list @words, which is separated by commas. */
static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* Finds the path of the process's group in @text, which is from /proc/PID/cgroup, and terminates
 * it there. */
static char *find_group(char *text, const struct hierarchy *hierarchy)
{
	bool is_v2 = hierarchy == &hierarchies[0];

	for (char *line; (line = strsep(&text, "\n"));) {
		char *controllers = strchr(line, ':'), *path = NULL;

		if (controllers)
			path = strchr(++controllers, ':');
		if (!path)
			continue;
		*path++ = '\0';
		if (is_v2 ? !*controllers : has_word(controllers, "memory"))
			return path;
	}
	return NULL;
}

/* Finds where the hierarchy is mounted, and which of its groups is the root of that mount. Returns
 * false if it is not mounted. */
static bool find_mount(const struct hierarchy *hierarchy, char *root, char *mount_point)
{
	_cleanup_(free_ptr) char *text = read_text("/proc/self", "mountinfo");
	char type[32], options[1024];

	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		const char *behind = strstr(line, " - ");

		if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount_point) != 2 ||
		    sscanf(behind, " - %31s %*s %1023s", type, options) != 2)
			continue;
		if (!strcmp(type, hierarchy->type) &&
		    (hierarchy == &hierarchies[0] || has_word(options, "memory")))
			return true;
	}
	return false;
}

/* Sets @directory to the directory of the group @path, and *@top to the length of the mount point in
 * it. Returns false if the hierarchy is not mounted. */
static bool name_directory(const struct hierarchy *hierarchy, const char *path, char *directory,
			   size_t *top)
{
	char root[PATH_MAX], mount_point[PATH_MAX], made[2 * PATH_MAX];
	size_t len;

	if (!find_mount(hierarchy, root, mount_point))
		return false;
	/* In a container the mount may begin at its group. */
	len = strcmp(root, "/") ? strlen(root) : 0;
	if (len && !strncmp(path, root, len) && (path[len] == '/' || !path[len]))
		path += len;
	snprintf(made, sizeof(made), "%s%s", mount_point, strcmp(path, "/") ? path : "");
	if (strlen(made) >= PATH_MAX)
		return false;
	strcpy(directory, made);
	*top = strlen(mount_point);
	return true;
}

/* Does the same for @pid's group. */
static bool find_directory(pid_t pid, const struct hierarchy *hierarchy, char *directory,
			   size_t *top)
{
	_cleanup_(free_ptr) char *text = NULL;
	const char *path;
	char process[32];

	snprintf(process, sizeof(process), "/proc/%d", pid);
	text = read_text(process, "cgroup");
	path = text ? find_group(text, hierarchy) : NULL;
	/* This process cannot see groups outside of its cgroup namespace. */
	return path && !strstr(path, "/..") && name_directory(hierarchy, path, directory, top);
}

char *memory_group__directory(const char *group)
{
	char directory[PATH_MAX];
	size_t top;

	return name_directory(&hierarchies[0], group, directory, &top) ? strdup(directory) : NULL;
}

/* Reads how much memory the group of @directory may still use, regardless of its parents' limits. */
static bool read_group(const char *directory, const struct hierarchy *hierarchy, __u64 most,
		       struct memory_group *out)
{
	__u64 limit, used, pages;

	out->limit_bytes = most;
	for (int i = 0; i < 2; i++)
		if (read_number(directory, hierarchy->limits[i], "", &limit) &&
		    limit < out->limit_bytes)
			out->limit_bytes = limit;
	if (out->limit_bytes == most || !read_number(directory, hierarchy->usage, "", &used))
		return false;
	for (int i = 0; i < 2; i++)
		if (read_number(directory, "memory.stat", hierarchy->pages[i], &pages))
			used -= pages < used ? pages : used;
	out->free_bytes = used < out->limit_bytes ? out->limit_bytes - used : 0;
	return true;
}

bool memory_group__read(pid_t pid, struct memory_group *out)
{
	char directory[PATH_MAX];
	bool found = false;
	struct sysinfo info;
	size_t top;

	if (sysinfo(&info))
		return false;
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
		if (!find_directory(pid, &hierarchies[i], directory, &top))
			continue;
		for (;;) {
			struct memory_group group;

			if (read_group(directory, &hierarchies[i],
				       (__u64)info.totalram * info.mem_unit, &group) &&
			    (!found || group.free_bytes < out->free_bytes)) {
				snprintf(group.path, sizeof(group.path), "%s", directory + top);
				*out = group;
				found = true;
			}
			if (strlen(directory) <= top)
				break;
			*strrchr(directory, '/') = '\0';
		}
	}
	return found;
}

int memory_group__open_kills(pid_t pid)
{
	char directory[PATH_MAX], path[PATH_MAX + 64];
	__u64 kills;
	size_t top;

	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
		int fd;

		if (!find_directory(pid, &hierarchies[i], directory, &top))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, hierarchies[i].kills);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && memory_group__read_kills(fd, &kills))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

bool memory_group__read_kills(int fd, __u64 *kills)
{
	char text[4096];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return false;
	text[len] = '\0';
	return find_number(text, "oom_kill", kills);
}

bool memory_group__is_frozen(pid_t pid)
{
	char directory[PATH_MAX];
	__u64 is_frozen = 0, is_freezing = 0;
	size_t top;

	return find_directory(pid, &hierarchies[0], directory, &top) &&
	       ((read_number(directory, "cgroup.events", "frozen", &is_frozen) && is_frozen) ||
		(read_number(directory, "cgroup.freeze", "", &is_freezing) && is_freezing));
}

__u64 memory_group__own_bytes(void)
{
	_cleanup_(free_ptr) char *status = read_text("/proc/self", "status");
	DIR *files = opendir("/proc/self/fdinfo");
	const struct dirent *file;
	__u64 sum = 0, bytes;

	if (status && find_number(status, "RssAnon:", &bytes))
		sum = bytes << 10;
	while (files && (file = readdir(files)))
		if (read_number("/proc/self/fdinfo", file->d_name, "memlock:", &bytes))
			sum += bytes;
	if (files)
		closedir(files);
	return sum;
}
