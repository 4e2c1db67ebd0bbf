// SPDX-License-Identifier: GPL-3.0-or-later
/* Stops the threads of processes by ptrace(2), and lets them go on. */
#include "hold.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "clock.h"
#include "proc.h"

#define LOOK_US 20

/* A thread in an uninterruptible sleep, which is over soon unless it is vfork(2)'s, is looked at so
 * many times more. */
#define MORE_LOOKS   10
#define MORE_LOOK_US 200

/* The nice value while threads are held, so that this process need not wait for a processor. */
#define HOLDING_NICE -20

struct held_thread {
	pid_t tid;
	bool is_stopped;
	/* si_status of the stop. Without an event above it, it is a signal that the stop has kept
	 * from the thread, to be delivered when it goes on. */
	int status;
};

struct hold {
	struct held_thread *threads;
	size_t n, room;
	size_t n_left_out; /* number of threads that stood still, and may go on meanwhile */
	size_t n_sleeping; /* number of those in an uninterruptible sleep */
	__u64 begin_ns;	   /* when the first thread was interrupted; 0: none */
	/* Nice value and timer slack of the calling thread before it held any thread. */
	int nice, slack_ns;
};

struct hold *hold__new(void)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		return NULL;
	hold->nice = getpriority(PRIO_PROCESS, 0);
	hold->slack_ns = prctl(PR_GET_TIMERSLACK);
	/* Only root may do so. Otherwise the threads stand still for longer where the processors
	 * are busy. */
	(void)setpriority(PRIO_PROCESS, 0, HOLDING_NICE);
	(void)prctl(PR_SET_TIMERSLACK, 1);
	return hold;
}

/* Returns whether the thread has been added. /proc lists threads in the order in which they were
 * added, so the search begins at *@next. */
static bool has(const struct hold *hold, pid_t tid, size_t *next)
{
	for (size_t i = 0; i < hold->n; i++) {
		size_t at = (*next + i) % hold->n;

		if (hold->threads[at].tid == tid) {
			*next = at + 1;
			return true;
		}
	}
	return false;
}

static bool thread_has_ended(pid_t pid, pid_t tid, struct proc_stat *stat)
{
	return proc_stat__read_thread(pid, tid, stat) || strchr("ZXx", stat->state);
}

/* Returns whether the thread neither runs nor can stop at once, such as the parent of a vfork(2),
 * or is stopped already, or has ended. */
static bool stands_still(struct hold *hold, pid_t pid, pid_t tid)
{
	struct proc_stat stat;
	bool has_ended = thread_has_ended(pid, tid, &stat);
	bool stands = !has_ended && strchr("DT", stat.state);

	hold->n_left_out += stands;
	hold->n_sleeping += stands && stat.state == 'D';
	return has_ended || stands;
}

/* Notes the thread, unless it cannot run or has ended. Returns 0 or -ENOMEM. */
static int note_thread(struct hold *hold, pid_t pid, pid_t tid)
{
	if (stands_still(hold, pid, tid))
		return 0;
	if (array__reserve(&hold->threads, &hold->room, hold->n + 1, sizeof(*hold->threads)))
		return -ENOMEM;
	hold->threads[hold->n++] = (struct held_thread){ .tid = tid };
	return 0;
}

/* Seizes and interrupts the threads from number @from on, and removes those that have ended
 * meanwhile. */
static int seize_threads(struct hold *hold, size_t from)
{
	size_t n = from;
	int err = 0;

	if (from < hold->n && !hold->begin_ns)
		hold->begin_ns = clock__now_ns();
	for (size_t i = from; i < hold->n && !err; i++) {
		pid_t tid = hold->threads[i].tid;
		struct proc_stat stat;

		if (!ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
			hold->threads[n++].tid = tid;
			continue;
		}
		err = -errno;
		/* The kernel says EPERM, too, of a thread that is just ending. */
		if (err == -ESRCH || (err == -EPERM && thread_has_ended(tid, tid, &stat)))
			err = 0;
	}
	hold->n = n;
	/* This fails for a thread that has ended, which hold__release() notices. */
	for (size_t i = from; i < n; i++)
		(void)ptrace(PTRACE_INTERRUPT, hold->threads[i].tid, NULL, NULL);
	return err;
}

/* Returns whether the thread has stopped. Ends are not collected here, since others wait for them. */
static bool look(struct held_thread *thread)
{
	siginfo_t info = { 0 };

	if (thread->is_stopped)
		return true;
	if (waitid(P_PID, thread->tid, &info, WSTOPPED | WNOHANG | __WALL) || !info.si_pid)
		return false;
	thread->is_stopped = true;
	thread->status = info.si_status;
	return true;
}

/* Returns whether the thread has ended and nobody has waited for it. waitid(2) reports stops of
 * traced threads, too. */
static bool is_dead(pid_t tid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) ||
	       (info.si_pid && info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED);
}

static void await(struct hold *hold, size_t from, __u64 until_ns)
{
	for (size_t i = from; i < hold->n; i++)
		while (!look(&hold->threads[i]) && !is_dead(hold->threads[i].tid) &&
		       clock__now_ns() < until_ns)
			usleep(LOOK_US);
}

/* Notes those threads of the process that are not held yet. */
static int note_threads(struct hold *hold, pid_t pid, DIR *tasks)
{
	const struct dirent *entry;
	size_t next = 0;
	int err = 0;

	hold->n_left_out = hold->n_sleeping = 0;
	while (!err && (entry = readdir(tasks))) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && !has(hold, tid, &next))
			err = note_thread(hold, pid, tid);
	}
	return err;
}

/* Waits a moment if a thread may leave its sleep. Returns false if none is in one, or not for the
 * first times any more. */
static bool looks_again(const struct hold *hold, int *n_more)
{
	if (!hold->n_sleeping || ++*n_more > MORE_LOOKS)
		return false;
	usleep(MORE_LOOK_US);
	return true;
}

/* Repeats until no thread is new, since threads that are not held yet may start others meanwhile. */
int hold__add(struct hold *hold, pid_t pid, __u64 until_ns)
{
	size_t before = hold->n, from;
	char path[64];
	DIR *tasks;
	int err = 0, seized, n_more = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	do {
		tasks = opendir(path);
		from = hold->n;
		if (tasks)
			err = note_threads(hold, pid, tasks);
		if (tasks)
			closedir(tasks);
		seized = seize_threads(hold, from);
		err = err ? err : seized;
		await(hold, from, until_ns);
	} while (!err && (hold->n > from || looks_again(hold, &n_more)) &&
		 clock__now_ns() < until_ns);
	return err ? err : (int)(hold->n - before);
}

int hold__add_thread(struct hold *hold, pid_t tid, __u64 until_ns)
{
	size_t before = hold->n, next = 0;
	int err = 0, n_more = 0;

	do {
		hold->n_left_out = hold->n_sleeping = 0;
		if (!has(hold, tid, &next))
			err = note_thread(hold, tid, tid);
	} while (!err && looks_again(hold, &n_more) && clock__now_ns() < until_ns);
	if (!err)
		err = seize_threads(hold, before);
	if (err)
		return err;
	await(hold, before, until_ns);
	return hold->n > before && hold->threads[before].is_stopped;
}

/* A thread in an uninterruptible sleep stops by itself after it, which its tracer sees. */
int hold__borrow(struct hold *hold, pid_t tid, __u64 until_ns)
{
	struct proc_stat stat;
	int n_more = 0;

	if (array__reserve(&hold->threads, &hold->room, hold->n + 1, sizeof(*hold->threads)))
		return -ENOMEM;
	if (!hold->begin_ns)
		hold->begin_ns = clock__now_ns();
	hold->threads[hold->n++] = (struct held_thread){ .tid = tid };
	(void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	while (!look(&hold->threads[hold->n - 1]) && !thread_has_ended(tid, tid, &stat) &&
	       clock__now_ns() < until_ns) {
		if (stat.state == 'D' && ++n_more > MORE_LOOKS)
			break;
		usleep(stat.state == 'D' ? MORE_LOOK_US : LOOK_US);
	}
	return 0;
}

int hold__give_back(struct hold *hold, pid_t tid)
{
	int status = 0;
	size_t n = 0;

	for (size_t i = 0; i < hold->n; i++)
		if (hold->threads[i].tid == tid)
			status = hold->threads[i].status;
		else
			hold->threads[n++] = hold->threads[i];
	hold->n = n;
	return status;
}

__u64 hold__begin_ns(const struct hold *hold)
{
	return hold->begin_ns;
}

int hold__each_stopped(const struct hold *hold, int (*fn)(void *context, pid_t tid), void *context)
{
	int result = 0;

	for (size_t i = 0; i < hold->n && !result; i++)
		if (hold->threads[i].is_stopped)
			result = fn(context, hold->threads[i].tid);
	return result;
}

size_t hold__count_running(const struct hold *hold)
{
	size_t n = hold->n_left_out;

	for (size_t i = 0; i < hold->n; i++)
		n += !hold->threads[i].is_stopped && !is_dead(hold->threads[i].tid);
	return n;
}

/* Lets a thread go on. A thread that is not stopped cannot be detached, so its stop is awaited
 * first. */
static void let_go(struct held_thread *thread, pid_t child)
{
	int signal;

	while (!look(thread) && !is_dead(thread->tid))
		usleep(LOOK_US);
	signal = thread->status >> 8 ? 0 : thread->status;
	if (!ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)signal))
		return;
	/* The thread was killed; as its tracer this process has to wait for it before its parent
	 * can. */
	if (thread->tid != child)
		waitpid(thread->tid, NULL, __WALL | WNOHANG);
}

void hold__release(struct hold *hold, pid_t child)
{
	size_t n_left = 0;

	if (!hold)
		return;
	for (size_t i = 0; i < hold->n; i++)
		if (look(&hold->threads[i]))
			let_go(&hold->threads[i], child);
		else
			hold->threads[n_left++] = hold->threads[i];
	for (size_t i = 0; i < n_left; i++)
		let_go(&hold->threads[i], child);
	(void)setpriority(PRIO_PROCESS, 0, hold->nice);
	(void)prctl(PR_SET_TIMERSLACK, hold->slack_ns);
	free(hold->threads);
	free(hold);
}
