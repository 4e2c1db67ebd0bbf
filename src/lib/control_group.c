// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads the control group of a process in /proc, and the name of a container where those who start
 * containers keep it: Docker and containerd in files of root, Podman and CRI-O in the arguments of
 * conmon(8), which is an ancestor of the container's processes. No socket is asked.
 */
#include "control_group.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "file.h"
#include "proc.h"

#define DIGITS "0123456789abcdef"
/* Limits for a file of a container, and for the processes between it and conmon. */
#define MOST_FILE_BYTES (1 << 20)
#define MOST_ANCESTORS	64

/* Says how much a line of /proc/PID/cgroup with this path says. */
static size_t rank_path(const char *line, const char *path)
{
	size_t length = strlen(path);

	if (control_group__container(path))
		return SIZE_MAX;
	return !strncmp(line, "0::", 3) && length > 1 ? SIZE_MAX - 1 : length;
}

char *control_group__read(pid_t pid)
{
	_cleanup_(free_ptr) char *text = proc_file__read(pid, "cgroup", NULL);
	char *rest = text, *line;
	const char *best = NULL;
	size_t best_rank = 0;

	while (rest && (line = strsep(&rest, "\n"))) {
		const char *path = strchr(line, ':');
		size_t rank;

		path = path ? strchr(path + 1, ':') : NULL;
		rank = path ? rank_path(line, path + 1) : 0;
		if (rank > best_rank) {
			best = path + 1;
			best_rank = rank;
		}
	}
	return best ? strdup(best) : NULL;
}

/* conmon(8) itself is in a group that has the id of its container, too. */
static bool is_of_monitor(const char *path, const char *id)
{
	static const char word[] = "conmon-";

	return (size_t)(id - path) >= strlen(word) &&
	       !strncmp(id - strlen(word), word, strlen(word));
}

const char *control_group__container(const char *path)
{
	for (const char *at = path; *(at += strcspn(at, DIGITS));) {
		size_t length = strspn(at, DIGITS);

		if (length == CONTAINER_ID_DIGITS && !is_of_monitor(path, at))
			return at;
		at += length;
	}
	return NULL;
}

static void put_json(json_object **object)
{
	json_object_put(*object);
}

/* Returns the value of @key in the JSON file, which has to be below @within if that is not NULL. */
static char *read_member(const char *path, const char *within, const char *key)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	_cleanup_(put_json) json_object *object = NULL;
	_cleanup_(free_ptr) char *text = NULL;
	json_object *found;
	size_t size;

	if (fd < 0 || text_file__read(fd, MOST_FILE_BYTES, &text, &size))
		return NULL;
	object = json_tokener_parse(text);
	found = object;
	if ((within && !json_object_object_get_ex(found, within, &found)) ||
	    !json_object_object_get_ex(found, key, &found) ||
	    !json_object_is_type(found, json_type_string))
		return NULL;
	return strdup(json_object_get_string(found));
}

static char *find_in_docker(const char *id)
{
	char path[128 + CONTAINER_ID_DIGITS];
	char *name;

	snprintf(path, sizeof(path), "/var/lib/docker/containers/%.*s/config.v2.json",
		 CONTAINER_ID_DIGITS, id);
	name = read_member(path, NULL, "Name");
	if (name && *name == '/')
		memmove(name, name + 1, strlen(name));
	return name;
}

/* What kubelet has containerd start. */
static char *find_in_containerd(const char *id)
{
	char path[128 + CONTAINER_ID_DIGITS];

	snprintf(path, sizeof(path),
		 "/run/containerd/io.containerd.runtime.v2.task/k8s.io/%.*s/config.json",
		 CONTAINER_ID_DIGITS, id);
	return read_member(path, "annotations", "io.kubernetes.cri.container-name");
}

/* Returns the argument behind @option in @text, of @size bytes, which ends with a NUL. */
static const char *find_argument(const char *text, size_t size, const char *option)
{
	for (const char *at = text; at < text + size; at += strlen(at) + 1) {
		const char *next = at + strlen(at) + 1;

		if (!strcmp(at, option) && next < text + size)
			return next;
	}
	return NULL;
}

/* Returns whether the process is in the container: then it is none of those who start containers, whatever
 * it calls itself. */
static bool is_in_container(pid_t pid, const char *id)
{
	_cleanup_(free_ptr) char *path = control_group__read(pid);
	const char *own = path ? control_group__container(path) : NULL;

	return own && !strncmp(own, id, CONTAINER_ID_DIGITS);
}

static char *find_by_conmon(const char *id, pid_t pid)
{
	struct proc_stat stat;

	for (int i = 0; i < MOST_ANCESTORS && !proc_stat__read(pid, &stat) && stat.parent > 1;
	     i++) {
		_cleanup_(free_ptr) char *comm = proc_file__read(stat.parent, "comm", NULL);
		_cleanup_(free_ptr) char *arguments = NULL;
		const char *name, *of;
		size_t size;

		pid = stat.parent;
		if (!comm || strcmp(comm, "conmon\n") != 0 || is_in_container(pid, id))
			continue;
		arguments = proc_file__read(pid, "cmdline", &size);
		of = arguments ? find_argument(arguments, size, "-c") : NULL;
		name = of && !strncmp(of, id, CONTAINER_ID_DIGITS)
			       ? find_argument(arguments, size, "-n")
			       : NULL;
		return name ? strdup(name) : NULL;
	}
	return NULL;
}

static char *name_container(const char *id, pid_t pid)
{
	char *name = find_in_docker(id);

	name = name ?: find_in_containerd(id);
	name = name ?: find_by_conmon(id, pid);
	if (name && *name)
		return name;
	free(name);
	return strndup(id, CONTAINER_ID_SHOWN);
}

static bool is_unit(const char *word, size_t length)
{
	static const char *const kinds[] = { ".service", ".scope", ".slice" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (length > strlen(kinds[i]) &&
		    !strncmp(word + length - strlen(kinds[i]), kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

bool control_group__is_unit(const char *word)
{
	return is_unit(word, strlen(word));
}

char *control_group__name(const char *path, pid_t pid)
{
	const char *id = control_group__container(path), *word = path, *unit = NULL;
	size_t unit_length = 0;

	if (id)
		return name_container(id, pid);
	for (const char *at = path; *at;) {
		size_t length;

		at += *at == '/';
		length = strcspn(at, "/");
		if (length)
			word = at;
		if (is_unit(at, length)) {
			unit = at;
			unit_length = length;
		}
		at += length;
	}
	return unit ? strndup(unit, unit_length) : strdup(word);
}
