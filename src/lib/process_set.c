// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the running processes that a user names, in /proc. */
#include "process_set.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "control_group.h"
#include "error.h"
#include "proc.h"
#include "user.h"

/* The kernel keeps so many bytes of a program's name. */
#define NAME_BYTES 15
/* Where control groups are mounted, or their hierarchies are, each in a directory of its own. */
#define GROUPS "/sys/fs/cgroup"

struct process_set *process_set__new(void)
{
	return calloc(1, sizeof(struct process_set));
}

void process_set__free(struct process_set *set)
{
	if (!set)
		return;
	free(set->pids);
	free(set->joining.group);
	free(set->other_group);
	free(set->group);
	free(set);
}

pid_t process_set__first(const struct process_set *set)
{
	return set->n ? set->pids[0] : 0;
}

size_t process_set__size(const struct process_set *set)
{
	return set->n;
}

__u64 process_set__rss_bytes(const struct process_set *set)
{
	struct proc_memory memory;
	__u64 sum = 0;

	for (size_t i = 0; i < set->n; i++)
		if (proc_memory__read(set->pids[i], &memory))
			sum += memory.rss_bytes;
	return sum;
}

const struct process_joining *process_set__joining(const struct process_set *set)
{
	return set->was_searched ? &set->joining : NULL;
}

static int add_pid(struct process_set *set, pid_t pid)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->pids[i] == pid)
			return 0;
	if (array__reserve(&set->pids, &set->room, set->n + 1, sizeof(*set->pids)))
		return -ENOMEM;
	set->pids[set->n++] = pid;
	return 0;
}

int process_set__add_numbers(struct process_set *set, const char *text, struct error *error)
{
	_cleanup_(free_ptr) char *copy = strdup(text);
	char *rest = copy, *word;

	while ((word = strsep(&rest, ","))) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(word, &end, 10);
		if (!isdigit((unsigned char)*word) || *end || errno || pid < 1 || pid > INT_MAX)
			return error__set(
				error, -EINVAL,
				"'%s' is no process id; give numbers, as ps shows them, with commas between",
				word);
		if (add_pid(set, pid))
			return -ENOMEM;
	}
	return copy ? 0 : -ENOMEM;
}

static bool is_id(const char *text)
{
	return strlen(text) >= CONTAINER_ID_SHOWN &&
	       strspn(text, "0123456789abcdef") == strlen(text);
}

static size_t match_path(const char *path, const char *group)
{
	size_t len = strlen(group);

	/* The root of all groups. */
	if (len == 1)
		return *path == '/';
	return !strncmp(path, group, len) && (!path[len] || path[len] == '/') ? len : 0;
}

/* Returns the length of the group in @path that @group names, which is @path up to the end of one
 * of its words; 0: it names none of them. */
static size_t match_group(const char *path, const char *group)
{
	size_t len = strlen(group);

	if (group[0] == '/')
		return match_path(path, group);
	for (const char *word = path; *word;) {
		size_t length;

		word += *word == '/';
		length = strcspn(word, "/");
		if (length >= len && !strncmp(word, group, len) &&
		    (length == len || (length == len + strlen(".service") &&
				       !strncmp(word + len, ".service", strlen(".service")))))
			return word + length - path;
		if (is_id(group) && memmem(word, length, group, len) &&
		    !memmem(word, length, "conmon-", strlen("conmon-")))
			return word + length - path;
		word += length;
	}
	return 0;
}

/* Keeps the first @len bytes of the group @path of the process, if @line, from /proc/PID/cgroup, is
 * of version 2. Fails with -ENOTUNIQ if another one is kept. */
static int keep_group(struct process_set *set, const char *line, const char *path, size_t len)
{
	const char *kept = set->joining.group;

	if (strncmp(line, "0::", 3))
		return 0;
	if (!kept) {
		set->joining.group = strndup(path, len);
		return set->joining.group ? 0 : -ENOMEM;
	}
	if (!strncmp(kept, path, len) && !kept[len])
		return 0;
	free(set->other_group);
	set->other_group = strndup(path, len);
	return set->other_group ? -ENOTUNIQ : -ENOMEM;
}

/* Returns 1 if the process is in the group, 0 if not, or the error of keep_group(). */
static int is_in_group(struct process_set *set, pid_t pid, const char *group)
{
	_cleanup_(free_ptr) char *text = proc_file__read(pid, "cgroup", NULL);
	char *rest = text, *line;
	int found = 0, err;

	while (rest && (line = strsep(&rest, "\n"))) {
		const char *path = strchr(line, ':');
		size_t len;

		path = path ? strchr(path + 1, ':') : NULL;
		len = path ? match_group(path + 1, group) : 0;
		if (!len)
			continue;
		found = 1;
		err = keep_group(set, line, path + 1, len);
		if (err)
			return err;
	}
	return found;
}

static bool has_name(pid_t pid, const char *pattern)
{
	_cleanup_(free_ptr) char *name = proc_file__read(pid, "comm", NULL);

	if (!name)
		return false;
	name[strcspn(name, "\n")] = '\0';
	return !fnmatch(pattern, name, 0);
}

static bool has_user(pid_t pid, uid_t user)
{
	int real;

	return proc_status__number(pid, "Uid", &real) && (uid_t)real == user;
}

static bool is_own(const struct process_set *set, pid_t pid)
{
	return pid == getpid() || (set->owner && pid == set->owner);
}

/* Returns whether it is a process that could be measured: no thread of the kernel, none that has
 * ended, and neither this one nor its owner, nor one that either has forked. */
static bool is_measurable(const struct process_set *set, pid_t pid)
{
	struct proc_stat stat;

	return pid > 0 && !is_own(set, pid) && !proc_stat__read(pid, &stat) && stat.state != 'Z' &&
	       !(is_own(set, stat.parent) && has_name(pid, "allocprof*")) &&
	       !(stat.flags & PROC_IS_KERNEL_THREAD);
}

/* Calls @visit with each process that could be measured, until it returns an error, which it returns. */
static int visit_processes(struct process_set *set,
			   int (*visit)(struct process_set *set, pid_t pid, const void *context),
			   const void *context)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	int err = 0;

	if (!directory)
		return -errno;
	while (!err && (entry = readdir(directory))) {
		pid_t pid = atoi(entry->d_name);

		if (is_measurable(set, pid))
			err = visit(set, pid, context);
	}
	closedir(directory);
	return err;
}

static int add_matching(struct process_set *set, pid_t pid, const void *context)
{
	const char *name = set->joining.name;
	int err;

	if ((*name && !has_name(pid, name)) ||
	    (set->joining.has_user && !has_user(pid, set->joining.user)))
		return 0;
	err = set->group ? is_in_group(set, pid, set->group) : 1;
	return err > 0 ? add_pid(set, pid) : err;
}

/* Keeps the id of the process's container if @context is the name or the begin of the id. Fails with
 * -ENOTUNIQ if another one is kept. */
static int keep_container(struct process_set *set, pid_t pid, const void *context)
{
	_cleanup_(free_ptr) char *path = control_group__read(pid);
	const char *wanted = context, *id = path ? control_group__container(path) : NULL;
	_cleanup_(free_ptr) char *name = NULL;

	if (!id || (set->group && !strncmp(set->group, id, CONTAINER_ID_DIGITS)))
		return 0;
	name = control_group__name(path, pid);
	if (!name)
		return -ENOMEM;
	if (strcmp(name, wanted) && !(is_id(wanted) && !strncmp(id, wanted, strlen(wanted))))
		return 0;
	if (set->group) {
		set->other_group = strndup(id, CONTAINER_ID_DIGITS);
		return set->other_group ? -ENOTUNIQ : -ENOMEM;
	}
	set->group = strndup(id, CONTAINER_ID_DIGITS);
	return set->group ? 0 : -ENOMEM;
}

/* Keeps the path of the process's group up to the word that is the name @context, as runc(8) names groups.
 * Fails with -ENOTUNIQ if another one is kept. */
static int keep_named_group(struct process_set *set, pid_t pid, const void *context)
{
	_cleanup_(free_ptr) char *path = control_group__read(pid);
	size_t wanted = strlen(context);

	for (char *word = path; word && (word = strchr(word, '/'));) {
		size_t length = strcspn(++word, "/");

		if (length != wanted || strncmp(word, context, length) != 0)
			continue;
		word[length] = '\0';
		if (set->group && strcmp(set->group, path) != 0)
			return -ENOTUNIQ;
		free(set->group);
		set->group = path;
		path = NULL;
		return 0;
	}
	return 0;
}

static int find_container(struct process_set *set, const char *container, struct error *error)
{
	int err = visit_processes(set, keep_container, container);

	if (!err && !set->group && !control_group__is_unit(container))
		err = visit_processes(set, keep_named_group, container);
	if (err == -ENOTUNIQ)
		return error__set(
			error, err,
			"'%s' is the name of several containers; give the id of one, or --cgroup and "
			"its path",
			container);
	if (err)
		return error__set(error, err, "cannot search for processes in /proc: %s",
				  strerror(-err));
	if (set->group)
		return 0;
	return error__set(
		error, -ESRCH,
		"no process that runs now is in the container %s; podman ps, docker ps or "
		"crictl ps show containers",
		container);
}

static int compare_pids(const void *left, const void *right)
{
	pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;

	return a < b ? -1 : a > b;
}

static int keep_name(struct process_set *set, const char *name, struct error *error)
{
	bool is_pattern = strpbrk(name, "*?");

	if (!*name || strpbrk(name, "[]\\/"))
		return error__set(
			error, -EINVAL,
			"'%s' is no name of a program; give it without its directory, with * "
			"and ? for any text and any character",
			name);
	if (is_pattern && strlen(name) > NAME_BYTES)
		return error__set(
			error, -EINVAL,
			"'%s' is too long: the kernel keeps 15 bytes of a program's name; "
			"end the pattern with *",
			name);
	snprintf(set->joining.name, sizeof(set->joining.name), "%s", name);
	return 0;
}

/* Keeps the group as /proc/PID/cgroup has it, of which the path of its directory is as good. */
static int name_group(struct process_set *set, const char *group)
{
	size_t len;

	if (!strncmp(group, GROUPS "/", strlen(GROUPS "/"))) {
		const char *below;

		group += strlen(GROUPS);
		/* Where each hierarchy has a directory of its own, its name comes first. */
		below = strchr(group + 1, '/');
		if (access(GROUPS "/cgroup.procs", F_OK))
			group = below ?: "/";
	}
	len = strlen(group);
	while (len > 1 && group[len - 1] == '/')
		len--;
	set->group = strndup(group, len);
	return set->group ? 0 : -ENOMEM;
}

static int search(struct process_set *set, struct error *error)
{
	int err = visit_processes(set, add_matching, NULL);

	if (err == -ENOTUNIQ)
		return error__set(
			error, err,
			"'%s' fits several control groups, %s and %s; give the path of one",
			set->group, set->joining.group, set->other_group);
	if (err)
		return error__set(error, err, "cannot search for processes in /proc: %s",
				  strerror(-err));
	qsort(set->pids, set->n, sizeof(*set->pids), compare_pids);
	set->joining.is_unknown = set->group && !set->joining.group;
	return 0;
}

/* Returns what was searched for in words, which the caller frees, or NULL. */
static char *choice__words(const struct process_choice *choice)
{
	const struct {
		const char *before, *text, *behind;
	} parts[] = {
		{ "has the name '", choice->name, "'" },
		{ "is in the control group ", choice->group, "" },
		{ "is in the container ", choice->container, "" },
		{ "is of the user '", choice->user, "'" },
	};
	char *words = NULL;
	size_t size;
	FILE *to = open_memstream(&words, &size);

	if (!to)
		return NULL;
	for (size_t i = 0, n = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].text)
			fprintf(to, "%s%s%s%s", n++ ? " and " : "", parts[i].before, parts[i].text,
				parts[i].behind);
	fclose(to);
	return words;
}

int process_set__search(struct process_set *set, const struct process_choice *choice,
			struct error *error)
{
	_cleanup_(free_ptr) char *words = NULL;
	int err = choice->name ? keep_name(set, choice->name, error) : 0;

	if (err)
		return err;
	if ((choice->group && !*choice->group) || (choice->container && !*choice->container))
		return error__set(error, -EINVAL,
				  "'' is no control group; give its path, a unit such as "
				  "nginx.service, or the name or id of a container");
	set->owner = choice->owner;
	err = choice->group	  ? name_group(set, choice->group)
	      : choice->container ? find_container(set, choice->container, error)
				  : 0;
	if (!err && choice->user)
		err = user__find(choice->user, &set->joining.user, error);
	if (err)
		return err;
	set->joining.has_user = choice->user;
	set->was_searched = true;
	err = search(set, error);
	if (err || set->n)
		return err;
	words = choice__words(choice);
	return error__set(error, -ESRCH, "no process that runs now %s; %s",
			  words && *words ? words : "can be measured",
			  choice->container ? "podman ps, docker ps or crictl ps show containers"
					    : "ps -eo pid,ruser,comm,cgroup shows all");
}

int process_set__search_again(struct process_set *set, struct error *error)
{
	return set->was_searched ? search(set, error) : 0;
}
