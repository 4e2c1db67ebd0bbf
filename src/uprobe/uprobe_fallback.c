// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * For a session in which another engine counts inside of the processes that the library can be
 * preloaded into: follows the processes that this engine was told of and the programs that these
 * execute, and counts their calls unless a process says that the other engine counts.
 */
#include "uprobe_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator_parse.h"
#include "allocprof.skel.h"
#include "array.h"
#include "attachment.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "error.h"
#include "file.h"
#include "function_code.h"
#include "hash_table.h"
#include "inside_abi.h"
#include "path.h"
#include "probes.h"
#include "record_abi.h"

/* If the other engine counts in a process, the process says so within this time after it maps a
 * file. */
#define DECISION_NS (2 * NS_PER_S)

/* A program that ran in a process, from one exec to the next. */
struct followed_program {
	__u32 pid;
	__u32 before;		/* id of the program that ran in the process before; 0: none */
	__u64 begin_ns, end_ns; /* CLOCK_MONOTONIC; @end_ns is 0 while it runs */
	bool by_other_engine;
	char comm[AP_COMM_LEN];
	bool is_seeded; /* the program was running when it was first followed */
};

struct followed_pid {
	__u32 pid;
	__u32 last; /* id of the process's last program */
};

/* A process for which seed() was called, and whose record has not come yet. */
struct awaited {
	__u32 pid;
	__u32 program;
};

struct fallback {
	struct attachment *begins;	   /* the probe at INSIDE_BEGINS */
	struct followed_program *programs; /* indexed by id - 1 */
	size_t n_programs, programs_room;
	struct followed_pid *pids;
	size_t n_pids, pids_room;
	struct hash_table pid_index;
	__u32 *ids; /* indexed by the other engine's number - 1 */
	size_t n_ids, ids_room;
	struct unprobed measured; /* programs that this engine has measured, set by finish() */
	struct awaited *awaited;
	size_t n_awaited, awaited_room;
};

int uprobe__new_fallback(struct uprobe *uprobe)
{
	uprobe->fallback = calloc(1, sizeof(*uprobe->fallback));
	return uprobe->fallback ? 0 : -ENOMEM;
}

void uprobe__detach_fallback(struct uprobe *uprobe)
{
	if (!uprobe->fallback)
		return;
	attachment__free(uprobe->fallback->begins);
	uprobe->fallback->begins = NULL;
}

void uprobe__free_fallback(struct uprobe *uprobe)
{
	struct fallback *fallback = uprobe->fallback;

	if (!fallback)
		return;
	uprobe__detach_fallback(uprobe);
	free(fallback->programs);
	free(fallback->pids);
	hash_table__release(&fallback->pid_index);
	free(fallback->ids);
	free(fallback->awaited);
	unprobed__release(&fallback->measured);
	free(fallback);
	uprobe->fallback = NULL;
}

static bool has_pid(const void *owner, __u32 id, const void *key)
{
	const struct fallback *fallback = owner;

	return fallback->pids[id - 1].pid == *(const __u32 *)key;
}

static struct followed_pid *find_pid(const struct fallback *fallback, __u32 pid)
{
	__u32 id =
		hash_table__find(&fallback->pid_index, hash_mix(0, pid), has_pid, fallback, &pid);

	return id ? &fallback->pids[id - 1] : NULL;
}

static struct followed_pid *get_pid(struct fallback *fallback, __u32 pid)
{
	struct followed_pid *found = find_pid(fallback, pid);

	if (found)
		return found;
	if (array__reserve(&fallback->pids, &fallback->pids_room, fallback->n_pids + 1,
			   sizeof(*fallback->pids)) ||
	    hash_table__insert(&fallback->pid_index, hash_mix(0, pid), fallback->n_pids + 1))
		return NULL;
	found = &fallback->pids[fallback->n_pids++];
	*found = (struct followed_pid){ .pid = pid };
	return found;
}

static struct followed_program *get_program(const struct fallback *fallback, __u32 id)
{
	return id && id <= fallback->n_programs ? &fallback->programs[id - 1] : NULL;
}

/* Notes that program @id has the other engine's number @number. */
static int set_number(struct fallback *fallback, __u32 number, __u32 id)
{
	if (!number || number > INSIDE_FIRST << INSIDE_CHUNKS)
		return 0;
	if (array__reserve_zeroed(&fallback->ids, &fallback->ids_room, number,
				  sizeof(*fallback->ids)))
		return -ENOMEM;
	if (number > fallback->n_ids)
		fallback->n_ids = number;
	/* A process may report any number, so only the first report of a number counts. */
	if (!fallback->ids[number - 1])
		fallback->ids[number - 1] = id;
	return 0;
}

static int handle_begin(struct fallback *fallback, const struct ap_process_record *record)
{
	const struct followed_program *parent = get_program(fallback, record->parent);
	bool by_other_engine =
		record->event == AP_PROCESS_SEEDED ||
		(record->event == AP_PROCESS_FORKED && parent && parent->by_other_engine);
	struct followed_pid *pid = get_pid(fallback, record->pid);
	struct followed_program *before;

	if (!pid || array__reserve_zeroed(&fallback->programs, &fallback->programs_room, record->id,
					  sizeof(*fallback->programs)))
		return -ENOMEM;
	if (record->id > fallback->n_programs)
		fallback->n_programs = record->id;
	before = get_program(fallback, pid->last);
	if (before && !before->end_ns)
		before->end_ns = record->time_ns;
	fallback->programs[record->id - 1] = (struct followed_program){
		.pid = record->pid,
		.before = pid->last,
		.begin_ns = record->time_ns,
		.by_other_engine = by_other_engine,
		.is_seeded = record->event == AP_PROCESS_SEEDED,
	};
	memcpy(fallback->programs[record->id - 1].comm, record->comm, AP_COMM_LEN);
	pid->last = record->id;
	for (size_t i = 0; i < fallback->n_awaited && record->event == AP_PROCESS_SEEDED; i++)
		if (fallback->awaited[i].pid == record->pid)
			return set_number(fallback, fallback->awaited[i].program, record->id);
	return 0;
}

int uprobe__handle_program(struct uprobe *uprobe, const void *data, size_t size)
{
	const struct ap_process_record *record = data;
	const struct ap_program_record *begins = data;
	struct fallback *fallback = uprobe->fallback;
	struct followed_program *program;

	if (size >= sizeof(*begins) && begins->type == AP_RECORD_PROGRAM) {
		program = get_program(fallback, begins->id);
		if (program)
			program->by_other_engine = true;
		return set_number(fallback, begins->program, begins->id);
	}
	if (size < sizeof(*record) || record->type != AP_RECORD_PROCESS || !record->id)
		return 0;
	if (record->event != AP_PROCESS_EXITED)
		return handle_begin(fallback, record);
	program = get_program(fallback, record->id);
	if (program)
		program->end_ns = record->time_ns;
	return 0;
}

enum measuring_engine uprobe__measuring_engine(const struct uprobe *uprobe, pid_t pid,
					       __u64 time_ns)
{
	const struct fallback *fallback = uprobe->fallback;
	const struct followed_pid *followed = fallback ? find_pid(fallback, pid) : NULL;
	const struct followed_program *program =
		followed ? get_program(fallback, followed->last) : NULL;

	if (!program)
		return MEASURED_BY_UPROBE;
	while (program->begin_ns > time_ns && get_program(fallback, program->before))
		program = get_program(fallback, program->before);
	if (program->by_other_engine)
		return MEASURED_BY_OTHER;
	if (program->end_ns || clock__now_ns() > time_ns + DECISION_NS || uprobe->target->end_ns)
		return MEASURED_BY_UPROBE;
	return MEASURED_BY_UNKNOWN;
}

int uprobe__list_fallback(struct uprobe *uprobe)
{
	struct fallback *fallback = uprobe->fallback;
	int err = 0;

	for (size_t i = 0; fallback && i < fallback->n_programs && !err; i++) {
		const struct followed_program *program = &fallback->programs[i];
		struct ap_unprobed_record unprobed = { .pid = program->pid };

		if (program->by_other_engine || !program->pid)
			continue;
		memcpy(unprobed.comm, program->comm, AP_COMM_LEN);
		err = unprobed__add(&fallback->measured, &unprobed);
	}
	return err;
}

const struct unprobed *uprobe__fallback_programs(const struct uprobe *uprobe)
{
	return uprobe->fallback ? &uprobe->fallback->measured : NULL;
}

static int attach_begins(struct uprobe *uprobe, const char *library, struct error *error)
{
	_cleanup_(close_fd) int fd = open(library, O_RDONLY | O_CLOEXEC);
	struct function_code code;
	__u64 cookie = 0;
	struct attachment_request request = {
		.run = uprobe__at_probes(uprobe, uprobe->skeleton->progs.program_begins, 0),
		.fd = fd,
		.path = library,
		.n = 1,
		.offsets = code.entries,
		.cookies = &cookie,
	};
	int err;

	if (fd < 0)
		return error__set(error, -errno, "cannot open '%s': %s", library, strerror(errno));
	err = function_code__parse(uprobe->parser, fd, library, INSIDE_BEGINS, true, &code, error);
	return err ? err : attachment__new(&request, &uprobe->fallback->begins, error);
}

static int prepare(struct uprobe *uprobe, const struct handover *process, struct error *error)
{
	int err = 0;

	if (!uprobe->probes) {
		err = uprobe__open_regions(uprobe, 0);
		if (!err)
			err = uprobe__new_fallback_probes(uprobe, error);
	}
	if (!err && !uprobe->fallback->begins)
		err = attach_begins(uprobe, process->library, error);
	return err;
}

static bool is_file_at(const struct stat *file, const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static bool read_link(const char *link, char out[PATH_MAX])
{
	ssize_t n = readlink(link, out, PATH_MAX - 1);

	if (n < 0)
		return false;
	out[n] = '\0';
	return true;
}

/* Removes the path of the process's root directory from the start of @path, which comes from a
 * link in /proc. Returns false if @path is not below that root. */
static bool cut_root(pid_t pid, char path[PATH_MAX])
{
	char link[64], root[PATH_MAX];
	size_t size;

	snprintf(link, sizeof(link), "/proc/%d/root", pid);
	if (!read_link(link, root))
		return false;
	size = strcmp(root, "/") ? strlen(root) : 0;
	if (strncmp(path, root, size) != 0 || path[size] != '/')
		return false;
	memmove(path, path + size, strlen(path + size) + 1);
	return true;
}

/* Turns the path that the process names into one from the process's root directory. Returns false
 * if it is too long, or the process's working directory is not below the root. */
static bool find_path(const struct handover *process, char out[PATH_MAX])
{
	char link[64], directory[PATH_MAX];

	if (*process->path == '/')
		return snprintf(out, PATH_MAX, "%s", process->path) < PATH_MAX;
	snprintf(link, sizeof(link), "/proc/%d/cwd", process->pid);
	/* A slash is appended, which cut_root() needs even if the working directory is the root
	 * itself. */
	if (!read_link(link, directory) || strlen(directory) >= PATH_MAX - 1)
		return false;
	strcat(directory, "/");
	return cut_root(process->pid, directory) &&
	       snprintf(out, PATH_MAX, "%s%s", directory, process->path) < PATH_MAX;
}

/* Opens the file that the process names. Links do not lead out of the process's root directory,
 * except those of its own directory in /proc. */
static int open_named(const struct handover *process)
{
	static const char *const selves[] = { "/proc/self/", "/proc/thread-self/" };
	char root[64], path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(selves); i++) {
		size_t size = strlen(selves[i]);

		if (strncmp(process->path, selves[i], size) != 0)
			continue;
		if (snprintf(path, sizeof(path), "/proc/%d/%s", process->pid,
			     process->path + size) >= PATH_MAX)
			return -ENAMETOOLONG;
		return path__has_parent(path) ? -ENOENT : regular_file__open(path);
	}
	if (!find_path(process, path))
		return -ENOENT;
	snprintf(root, sizeof(root), "/proc/%d/root", process->pid);
	return regular_file__open_in(root, path);
}

/* Finds a path by which allocprof can open the file that the process names. */
static int resolve(const struct handover *process, char out[PATH_MAX], struct error *error)
{
	_cleanup_(close_fd) int fd = open_named(process);
	char link[64], path[PATH_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return error__set(error, fd < 0 ? fd : -errno, "cannot read '%s': %s",
				  process->path, strerror(fd < 0 ? -fd : errno));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!read_link(link, path))
		return error__set(error, -errno, "cannot read '%s': %s", link, strerror(errno));
	if (is_file_at(&st, path)) {
		strcpy(out, path);
		return 0;
	}
	/* If the process is in another mount namespace, its path leads to another file here, so it
	 * is looked up below the process's root. */
	if (cut_root(process->pid, path) &&
	    snprintf(out, PATH_MAX, "/proc/%d/root%s", process->pid, path) < PATH_MAX &&
	    is_file_at(&st, out))
		return 0;
	return error__set(error, -ENOENT, "cannot find the file of '%s'", process->path);
}

static int await(struct fallback *fallback, const struct handover *process)
{
	if (!process->program)
		return 0;
	if (array__reserve(&fallback->awaited, &fallback->awaited_room, fallback->n_awaited + 1,
			   sizeof(*fallback->awaited)))
		return -ENOMEM;
	/* This is the last process with this pid. */
	memmove(fallback->awaited + 1, fallback->awaited,
		fallback->n_awaited * sizeof(*fallback->awaited));
	fallback->awaited[0] = (struct awaited){ process->pid, process->program };
	fallback->n_awaited++;
	return 0;
}

int uprobe__take_over(struct engine *engine, const struct handover *process, struct error *error)
{
	struct uprobe *uprobe = uprobe__of(engine);
	char path[PATH_MAX];
	int err = prepare(uprobe, process, error);

	if (err || !process->pid)
		return err;
	err = resolve(process, path, error);
	if (!err)
		err = probes__add_program(uprobe->probes, path, error);
	if (!err)
		err = await(uprobe->fallback, process);
	if (!err)
		err = uprobe__seed(uprobe, process->pid, !process->program, error);
	if (!err)
		collector__await_tables(uprobe->collector);
	return err;
}

bool uprobe__find_program(const struct engine *engine, __u32 program, struct followed_by_other *out)
{
	const struct uprobe *uprobe = uprobe__of(engine);
	const struct fallback *fallback = uprobe->fallback;
	const struct followed_program *followed;

	if (!fallback || !program || program > fallback->n_ids || !fallback->ids[program - 1])
		return false;
	followed = get_program(fallback, fallback->ids[program - 1]);
	*out = (struct followed_by_other){
		.process = collector__process_of(uprobe->collector, fallback->ids[program - 1]),
		.is_known = followed && followed->is_seeded,
	};
	return true;
}
