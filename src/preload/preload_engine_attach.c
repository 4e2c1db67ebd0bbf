// SPDX-License-Identifier: GPL-3.0-or-later
/* Attaches the engine to processes that run already, and lets them and what they have forked go on without it. */
#include "preload_engine_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "definitions.h"
#include "error.h"
#include "proc.h"
#include "target.h"

static void add_attached(struct preload_attached *sum, const struct preload_attached *one)
{
	sum->n_threads += one->n_threads;
	sum->n_words += one->n_words;
	sum->n_lost += one->n_lost;
	if (one->stopped_ns > sum->stopped_ns)
		sum->stopped_ns = one->stopped_ns;
}

/* Lines of /proc/PID/status that decide who may change a process. */
static const char *const rights[] = { "Uid", "Gid", "Groups", "CapPrm" };

/* All processes write to the same shared memory, so one with fewer rights could change what the library
 * reads in another. */
static int check_rights(const struct preload_engine *engine, pid_t pid, struct error *error)
{
	pid_t first = target__process(engine->target, 0);

	for (size_t i = 0; i < ARRAY_SIZE(rights); i++)
		if (pid != first && !proc_status__is_same(first, pid, rights[i]))
			return error__set(
				error, -EPERM,
				"--engine=inside measures processes of one user at a time, since they "
				"share memory, and %d and %d have different users, groups or "
				"capabilities; choose those of one, or leave out --engine",
				first, pid);
	return 0;
}

static int attach_process(struct preload_engine *engine, pid_t pid, struct error *error)
{
	struct attached_process *process;
	struct preload_attached entered = { 0 };
	int err = check_rights(engine, pid, error);

	if (err)
		return err;
	if (!engine->n_attached)
		engine->attached_ticks =
			clock__ns(CLOCK_BOOTTIME) / (NS_PER_S / sysconf(_SC_CLK_TCK));
	if (array__reserve(&engine->attached, &engine->attached_room, engine->n_attached + 1,
			   sizeof(*engine->attached)))
		return -ENOMEM;
	process = &engine->attached[engine->n_attached];
	*process = (struct attached_process){ .pid = pid };
	err = preload_attach__new(engine->preload, engine->parser, pid, &process->attach, error);
	if (err)
		return err;
	engine->n_attached++;
	err = preload_engine__prepare_process(engine, pid, error);
	if (!err)
		err = preload_attach__enter(process->attach, engine->stop_limit_ns, &entered,
					    error);
	if (err)
		return err;
	process->is_entered = true;
	add_attached(&engine->entered, &entered);
	return 0;
}

int preload_engine__attach_more(struct engine *base, size_t from, struct error *error)
{
	struct preload_engine *engine = preload_engine__of(base);
	const struct target *target = engine->target;
	int err = 0;

	for (size_t i = from; i < target__n_processes(target) && !err; i++)
		err = attach_process(engine, target__process(target, i), error);
	return err;
}

int preload_engine__attach(struct engine *base, struct error *error)
{
	if (definitions__any_counted(preload_engine__of(base)->options.definitions))
		return error__set(
			error, -EOPNOTSUPP,
			"`count` lines cannot be used with -p and the engine preload, which "
			"counts these calls in programs that it starts; use --engine=uprobe, as root");
	return preload_engine__attach_more(base, 0, error);
}

int preload_engine__list_redirections(const struct engine *base, size_t index,
				      struct inside_redirections *out)
{
	const struct preload_engine *engine = preload_engine__of(base);

	return index < engine->n_attached
		       ? preload_attach__list(engine->attached[index].attach, out)
		       : -ENOENT;
}

/* Counts how a process was left. */
static void note_left(struct preload_engine *engine, int err, const struct preload_attached *left)
{
	if (!err)
		add_attached(&engine->left, left);
	/* If the process runs on with changed words, it is not known which calls went past the
	 * library. */
	else if (err == -ESTALE)
		engine->n_executed++;
	else if (err != -ESRCH)
		engine->n_not_left++;
}

static const struct attached_process *find_origin(const struct preload_engine *engine, pid_t pid,
						  struct preload_forked *child)
{
	struct proc_stat stat;

	if (proc_stat__read(pid, &stat) || stat.start_ticks < engine->attached_ticks)
		return NULL;
	for (size_t i = 0; i < engine->n_attached; i++)
		if (engine->attached[i].pid == pid)
			return NULL;
	if (!preload_forked__find(engine->preload, pid, child))
		return NULL;
	for (size_t i = 0; i < engine->n_attached; i++)
		if (preload_attach__is_origin(engine->attached[i].attach, child))
			return &engine->attached[i];
	return NULL;
}

/* Children whose turn it was. */
struct left_children {
	pid_t *pids;
	size_t n, room;
};

static bool left_children__have(const struct left_children *children, pid_t pid)
{
	for (size_t i = 0; i < children->n; i++)
		if (children->pids[i] == pid)
			return true;
	return false;
}

/* Leaves the children that are there now. Returns whether there was a new one. */
static bool leave_children(struct preload_engine *engine, struct left_children *children)
{
	_cleanup_(close_directory) DIR *processes = opendir("/proc");
	const struct dirent *entry;
	size_t had = children->n;

	while (processes && (entry = readdir(processes))) {
		struct preload_attached left = { 0 };
		struct preload_forked child;
		pid_t pid = atoi(entry->d_name);
		const struct attached_process *origin =
			pid > 0 ? find_origin(engine, pid, &child) : NULL;
		int err;

		if (!origin || left_children__have(children, pid) ||
		    array__reserve(&children->pids, &children->room, children->n + 1, sizeof(pid)))
			continue;
		children->pids[children->n++] = pid;
		err = preload_attach__leave_forked(origin->attach, &child, &left);
		/* A child that has executed a program has no words any more. */
		if (err != -ESTALE)
			note_left(engine, err, &left);
	}
	return children->n > had;
}

void preload_engine__leave(struct preload_engine *engine)
{
	struct left_children children = { 0 };
	bool was_entered = false;

	for (size_t i = 0; i < engine->n_attached && !engine->is_snapshot; i++) {
		struct attached_process *process = &engine->attached[i];
		struct preload_attached left = { 0 };

		if (!process->is_entered)
			continue;
		was_entered = true;
		process->is_entered = false;
		note_left(engine, preload_attach__leave(process->attach, &left), &left);
	}
	/* A child may have forked another one before it was left. */
	while (was_entered && leave_children(engine, &children))
		;
	free(children.pids);
}

void preload_engine__free_attached(struct preload_engine *engine)
{
	for (size_t i = 0; i < engine->n_attached && !engine->is_snapshot; i++)
		preload_attach__free(engine->attached[i].attach);
	free(engine->attached);
}
