// SPDX-License-Identifier: GPL-3.0-or-later
/* Traces the first thread of a child until it exits. */
#include "exit_stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "proc.h"

#define LOOK_US 100
/* How long the other threads may take to end when the process is ending. */
#define THREADS_END_NS (200 * NS_PER_MS)

int exit_stop__begin(struct exit_stop *stop, pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_TRACEEXIT))
		return -errno;
	stop->pid = pid;
	return 0;
}

/* Returns the status of a stop that was not reported before, with the ptrace event above the
 * signal; 0: there is none. The process's end is left for others to wait for. */
static int next_stop(const struct exit_stop *stop)
{
	siginfo_t info = { 0 };

	if (waitid(P_PID, stop->pid, &info, WSTOPPED | WNOHANG | __WALL) || !info.si_pid)
		return 0;
	return info.si_status;
}

/* A first thread may end alone, by pthread_exit(3): then the others go on. */
static bool is_alone(pid_t pid)
{
	__u64 until_ns = clock__now_ns() + THREADS_END_NS;
	int n_threads;

	while (proc_status__number(pid, "Threads", &n_threads) && n_threads > 1) {
		if (clock__now_ns() >= until_ns)
			return false;
		usleep(LOOK_US);
	}
	return true;
}

/* Handles a stop for another reason than the end. */
static void handle(const struct exit_stop *stop, int status)
{
	int event = status >> 8, signal = status & 0xff;

	/* SIGSTOP or the like has stopped the process, which stays stopped. */
	if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
		(void)ptrace(PTRACE_LISTEN, stop->pid, NULL, NULL);
	else
		(void)ptrace(PTRACE_CONT, stop->pid, NULL, (void *)(long)(event ? 0 : signal));
}

bool exit_stop__attend(struct exit_stop *stop)
{
	int status;

	while (stop->pid && (status = stop->status ?: next_stop(stop))) {
		stop->status = 0;
		if (status >> 8 != PTRACE_EVENT_EXIT) {
			handle(stop, status);
			continue;
		}
		if (is_alone(stop->pid))
			return true;
		exit_stop__release(stop);
	}
	return false;
}

void exit_stop__resume(struct exit_stop *stop, int status)
{
	if (status >> 8 == PTRACE_EVENT_EXIT)
		stop->status = status;
	else if (status)
		handle(stop, status);
}

void exit_stop__release(struct exit_stop *stop)
{
	if (stop->pid)
		(void)ptrace(PTRACE_DETACH, stop->pid, NULL, NULL);
	stop->pid = 0;
}

void exit_stop__end(struct exit_stop *stop)
{
	int status = 0;
	siginfo_t info;

	if (!stop->pid || ptrace(PTRACE_INTERRUPT, stop->pid, NULL, NULL)) {
		stop->pid = 0;
		return;
	}
	/* A process that has ended has no further stop. */
	while (!(status = stop->status ?: next_stop(stop))) {
		info.si_pid = 0;
		if (waitid(P_PID, stop->pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) ||
		    info.si_pid)
			break;
		usleep(LOOK_US);
	}
	(void)ptrace(PTRACE_DETACH, stop->pid, NULL,
		     (void *)(long)(status >> 8 ? 0 : status & 0xff));
	stop->pid = 0;
}
