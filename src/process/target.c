// SPDX-License-Identifier: GPL-3.0-or-later
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "file.h"
#include "isolation.h"
#include "proc.h"
#include "process_set.h"
#include "text.h"
#include "user.h"

/* Exit status of a child that never ran the command; nobody reads it. */
#define HELD_CHILD_FAILED 125

static void close_and_clear(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

static void tell(int exec_fd, int err)
{
	if (write(exec_fd, &err, sizeof(err)) != sizeof(err))
		_exit(HELD_CHILD_FAILED);
}

/* Runs in the child. It reports errors of exec as they are, and those of the isolation as negative
 * numbers; with isolation it first reports whether its namespace was made. */
static void run_held_child(int go_fd, int exec_fd, char *const argv[],
			   const struct target_inheritance *inheritance,
			   struct isolation *isolation)
{
	ssize_t n;
	char go;
	int err;

	if (isolation)
		tell(exec_fd, isolation__unshare());
	do {
		n = read(go_fd, &go, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(HELD_CHILD_FAILED);
	err = isolation ? isolation__enter(isolation) : 0;
	if (err) {
		tell(exec_fd, err);
		_exit(HELD_CHILD_FAILED);
	}
	setrlimit(RLIMIT_NOFILE, &inheritance->files);
	sigprocmask(SIG_SETMASK, &inheritance->signal_mask, NULL);
	err = inheritance->user ? -target_user__become(inheritance->user) : 0;
	if (!err) {
		execvpe(argv[0], argv,
			inheritance->environment ? inheritance->environment : environ);
		err = errno;
	}
	tell(exec_fd, err);
	_exit(HELD_CHILD_FAILED);
}

/* Reads a report of the child. Returns false if the child has closed the pipe. */
static bool hear(const struct target *target, int *err)
{
	ssize_t n;

	do {
		n = read(target->exec_fd, err, sizeof(*err));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(*err);
}

static int await_namespace(struct target *target, struct error *error)
{
	int err;

	isolation__has_forked(target->isolation);
	if (!hear(target, &err))
		return error__set(error, -ECHILD, "the command's process has just ended");
	if (err)
		return error__set(
			error, err == -EACCES ? -EPERM : err,
			"--isolate: cannot make a mount namespace for the command: %s; %s",
			strerror(-err),
			err == -EPERM	 ? "run allocprof as root, with CAP_SYS_ADMIN"
			: err == -EINVAL ? "the root directory is no mount point, as in a plain "
					   "chroot: do not use --isolate"
					 : "do not use --isolate");
	err = isolation__look_at(target->isolation, target->pid);
	if (err)
		return error__set(error, err, "cannot read the command's root directory: %s",
				  strerror(-err));
	return 0;
}

int target__hold(struct target *target, char *const argv[],
		 const struct target_inheritance *inheritance, struct error *error)
{
	int go[2] = { -1, -1 }, exec[2] = { -1, -1 };
	pid_t pid;
	int err;

	memset(target, 0, sizeof(*target));
	target->pidfd = target->go_fd = target->exec_fd = -1;
	if (inheritance->isolates) {
		err = isolation__new(&target->isolation, error);
		if (err)
			return err;
	}
	if (pipe2(go, O_CLOEXEC) || pipe2(exec, O_CLOEXEC)) {
		err = error__set(error, -errno, "cannot make a pipe: %s", strerror(errno));
		goto fail;
	}
	pid = fork();
	if (pid < 0) {
		err = error__set(error, -errno, "cannot start a process: %s", strerror(errno));
		goto fail;
	}
	if (!pid) {
		close(go[1]);
		close(exec[0]);
		run_held_child(go[0], exec[1], argv, inheritance, target->isolation);
	}
	close_and_clear(&go[0]);
	close_and_clear(&exec[1]);
	target->pid = target->ends_with = pid;
	target->launched = true;
	target->go_fd = go[1];
	target->exec_fd = exec[0];
	target->pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (target->pidfd < 0) {
		err = error__set(error, -errno, "cannot open the command's pidfd: %s",
				 strerror(errno));
	} else {
		err = target->isolation ? await_namespace(target, error) : 0;
	}
	if (err)
		target__close(target);
	return err;
fail:
	isolation__free(target->isolation);
	target->isolation = NULL;
	close_fd(&go[0]);
	close_fd(&go[1]);
	close_fd(&exec[0]);
	close_fd(&exec[1]);
	return err;
}

int target__go(struct target *target, const char *command, struct error *error)
{
	int err;

	if (write(target->go_fd, "g", 1) != 1)
		return error__set(error, -errno, "cannot let the command go: %s", strerror(errno));
	close_and_clear(&target->go_fd);
	/* A successful exec closes the pipe without data. */
	if (!hear(target, &err))
		err = 0;
	close_and_clear(&target->exec_fd);
	if (!err)
		return 0;
	if (err < 0)
		return error__set(error, -ENOTRECOVERABLE,
				  "--isolate: cannot put the copy of %s in its place: %s; do "
				  "not use --isolate",
				  isolation__failed(target->isolation), strerror(-err));
	if (err == ENOENT)
		return error__set(
			error, -err, "cannot run '%s': %s; check the spelling, or give its path",
			command,
			strchr(command, '/') ? "there is no such file, or its interpreter is "
					       "missing"
					     : "it is in no directory of PATH");
	if (err == EACCES)
		return error__set(
			error, -err,
			"cannot run '%s': it is not an executable file; chmod +x it, or name "
			"the program that runs it",
			command);
	return error__set(error, -err, "cannot run '%s': %s", command, strerror(err));
}

static bool is_running(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) != 1 || !(poll_fd.revents & POLLIN);
}

static bool is_kernel_thread(pid_t pid)
{
	struct proc_stat stat;

	return !proc_stat__read(pid, &stat) && stat.flags & PROC_IS_KERNEL_THREAD;
}

/* Returns the thread group of @tid; @tid itself if it is unknown. */
static pid_t thread_group(pid_t tid)
{
	int tgid;

	return proc_status__number(tid, "Tgid", &tgid) ? tgid : tid;
}

/* Opens a running process, to notice when it ends. Returns its pidfd, or a negative errno with @error
 * set. */
static int open_process(pid_t pid, struct error *error)
{
	pid_t group;
	int pidfd;

	if (pid <= 0)
		return error__set(error, -EINVAL,
				  "%d is no process id; give the number that ps shows", pid);
	if (kill(pid, 0) && errno == ESRCH)
		return error__set(error, -ESRCH,
				  "there is no process %d; ps -e lists those that run", pid);
	if (is_kernel_thread(pid))
		return error__set(
			error, -EINVAL,
			"process %d is a kernel thread, which has no allocator of its own; "
			"name a user-space process",
			pid);
	group = thread_group(pid);
	if (group != pid)
		return error__set(
			error, -EINVAL,
			"%d is a thread of process %d; allocprof takes whole processes: -p %d", pid,
			group, group);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		if (errno == ESRCH)
			return error__set(error, -ESRCH, "process %d has just ended", pid);
		return error__set(error, -errno, "cannot watch process %d: %s", pid,
				  strerror(errno));
	}
	if (is_running(pidfd))
		return pidfd;
	close(pidfd);
	return error__set(error, -ESRCH,
			  "process %d has ended and only waits for its parent to notice", pid);
}

bool target__has(const struct target *target, pid_t pid)
{
	for (size_t i = 0; target->pid && i < target__n_processes(target); i++)
		if (target__process(target, i) == pid)
			return true;
	return false;
}

static int attach_process(struct target *target, pid_t pid, struct error *error)
{
	int pidfd = open_process(pid, error);

	if (pidfd < 0)
		return pidfd;
	if (!target->pid) {
		target->pid = pid;
		target->pidfd = pidfd;
		return 0;
	}
	if (array__reserve(&target->fellows, &target->fellows_room, target->n_fellows + 1,
			   sizeof(*target->fellows))) {
		close(pidfd);
		return -ENOMEM;
	}
	target->fellows[target->n_fellows++] = (struct fellow){ pid, pidfd };
	return 0;
}

static int attach_processes(struct target *target, const struct process_set *set,
			    struct error *error)
{
	int err = 0;

	for (size_t i = 0; i < set->n && !err; i++) {
		if (!target__has(target, set->pids[i]))
			err = attach_process(target, set->pids[i], error);
		if (err == -ESRCH && set->was_searched)
			err = 0;
	}
	return err;
}

int target__add(struct target *target, const struct process_set *set)
{
	struct error error;

	return attach_processes(target, set, &error);
}

int target__attach(struct target *target, const struct process_set *set, struct error *error)
{
	int err;

	memset(target, 0, sizeof(*target));
	target->pidfd = target->go_fd = target->exec_fd = -1;
	target->is_open = set->was_searched;
	err = attach_processes(target, set, error);
	if (!err && !target->pid)
		err = error__set(error, -ESRCH, "all of the processes have just ended");
	if (err)
		target__close(target);
	else if (!target->n_fellows && !target->is_open)
		target->ends_with = target->pid;
	return err;
}

size_t target__n_processes(const struct target *target)
{
	return 1 + target->n_fellows;
}

pid_t target__process(const struct target *target, size_t i)
{
	return i ? target->fellows[i - 1].pid : target->pid;
}

static size_t count_running(const struct target *target)
{
	size_t n = is_running(target->pidfd);

	for (size_t i = 0; i < target->n_fellows; i++)
		n += is_running(target->fellows[i].pidfd);
	return n;
}

bool target__is_running(const struct target *target)
{
	return count_running(target) > 0;
}

size_t target__n_left(const struct target *target)
{
	return target->launched ? !target->waited : count_running(target);
}

bool target__has_ended(struct target *target)
{
	if (target->end_ns)
		return true;
	if (target->is_open || target__is_running(target))
		return false;
	target->end_ns = clock__now_ns();
	if (target->launched &&
	    wait4(target->pid, &target->wait_status, 0, &target->usage) == target->pid)
		target->waited = true;
	return true;
}

int target__exit_status(const struct target *target)
{
	if (!target->waited)
		return 0;
	if (WIFSIGNALED(target->wait_status))
		return 128 + WTERMSIG(target->wait_status);
	return WEXITSTATUS(target->wait_status);
}

int target__exit_signal(const struct target *target)
{
	return target->waited && WIFSIGNALED(target->wait_status) ? WTERMSIG(target->wait_status)
								  : 0;
}

void target__close(struct target *target)
{
	bool held = target->go_fd >= 0;

	close_and_clear(&target->go_fd);
	close_and_clear(&target->exec_fd);
	close_and_clear(&target->pidfd);
	while (target->n_fellows)
		close_fd(&target->fellows[--target->n_fellows].pidfd);
	free(target->fellows);
	target->fellows = NULL;
	if (held && target->launched && !target->waited)
		waitpid(target->pid, NULL, 0);
	isolation__free(target->isolation);
	target->isolation = NULL;
}

/* Reads the command line, the resident memory and the children of a running process from /proc. */

/* How many bytes of a command line are kept; arguments can have megabytes. */
#define MOST_COMMAND_BYTES 4096
/* Maximum number of bytes that are kept of a child's command line. */
#define MOST_CHILD_BYTES 60
/* How many children are listed; a server may have thousands, of which a reader needs only some. */
#define MOST_CHILDREN 64

/* Returns the command line, or the name alone; NULL if the process has ended, or there is no memory. */
static char *read_command(pid_t pid, bool arguments)
{
	return (arguments ? proc_command__read(pid, MOST_COMMAND_BYTES) : NULL)
		       ?: proc_comm__read(pid);
}

/* A name of programs, and how many processes have it. */
struct name_count {
	char name[16];
	size_t n;
};

static size_t count_name(struct name_count *counts, size_t n, const char *name)
{
	size_t i = 0;

	while (i < n && strncmp(counts[i].name, name, sizeof(counts[i].name) - 1) != 0)
		i++;
	if (i == n)
		snprintf(counts[n++].name, sizeof(counts->name), "%s", name);
	counts[i].n++;
	return n;
}

/* Returns "postgres (12 processes), pgbouncer"; NULL if there is no memory. */
static char *name_programs(const struct target *target)
{
	_cleanup_(free_ptr) struct name_count *counts =
		calloc(target__n_processes(target), sizeof(*counts));
	char *text = NULL;
	size_t size, n = 0;
	FILE *to = counts ? open_memstream(&text, &size) : NULL;

	if (!to)
		return NULL;
	for (size_t i = 0; i < target__n_processes(target); i++) {
		_cleanup_(free_ptr) char *name = proc_comm__read(target__process(target, i));

		if (name)
			n = count_name(counts, n, name);
	}
	for (size_t i = 0; i < n; i++) {
		fprintf(to, "%s%s", i ? ", " : "", counts[i].name);
		if (counts[i].n > 1)
			fprintf(to, " (%zu processes)", counts[i].n);
	}
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	utf8__clean(text);
	return text;
}

void attached__read(const struct target *target, bool arguments, struct attached *out)
{
	*out = (struct attached){ .command = target->n_fellows
						     ? name_programs(target)
						     : read_command(target->pid, arguments) };
	for (size_t i = 0; i < target__n_processes(target); i++) {
		struct proc_memory memory;

		if (proc_memory__read(target__process(target, i), &memory))
			out->rss_bytes += memory.rss_bytes;
	}
}

void attached__release(struct attached *attached)
{
	free(attached->command);
	free(attached->children);
	attached->command = attached->children = NULL;
}

static void print_child(pid_t pid, bool arguments, FILE *to)
{
	_cleanup_(free_ptr) char *command = read_command(pid, arguments);

	if (command)
		fprintf(to, "%d %.*s\n", pid, MOST_CHILD_BYTES, command);
}

int attached__list_children(const struct target *target, bool arguments, char **lines)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	struct proc_stat stat;
	char *text = NULL;
	size_t size, n = 0;
	FILE *to;

	*lines = NULL;
	if (!directory)
		return 0;
	to = open_memstream(&text, &size);
	while (to && n < MOST_CHILDREN && (entry = readdir(directory))) {
		pid_t child = atoi(entry->d_name);

		if (child <= 0 || proc_stat__read(child, &stat) || stat.state == 'Z' ||
		    !target__has(target, stat.parent) || target__has(target, child))
			continue;
		print_child(child, arguments, to);
		n++;
	}
	closedir(directory);
	if (!to || fclose(to)) {
		free(text);
		return -ENOMEM;
	}
	if (!size) {
		free(text);
		return 0;
	}
	text[size - 1] = '\0'; /* replaces the last newline */
	*lines = text;
	return 0;
}
