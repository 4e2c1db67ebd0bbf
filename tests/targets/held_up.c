// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Makes, above start-up,
 *
 *   malloc: 300 calls, 12000 bytes
 *   free: 300 calls
 *
 * while a timer's signals come and a child stops it, lets it go on and ends. Prints what it has noticed: calls that
 * failed or left errno, the clock or memory changed, and which signals came. Only how long it takes may differ.
 */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include "raw.h"

DEFINE_SINK;

#define CALLS 300

static volatile sig_atomic_t alarms, continued, children;

static void count(int signal)
{
	if (signal == SIGALRM)
		alarms = 1;
	else if (signal == SIGCONT)
		continued++;
	else if (signal == SIGCHLD)
		children++;
}

static void handle(int signal)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART | SA_NOCLDSTOP };

	sigaction(signal, &action, NULL);
}

static unsigned long long clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static pid_t start_child(void)
{
	struct timespec moment = { .tv_nsec = 20000000 };
	pid_t parent = getpid(), child = fork();

	if (child)
		return child;
	nanosleep(&moment, NULL);
	kill(parent, SIGSTOP);
	nanosleep(&moment, NULL);
	kill(parent, SIGCONT);
	nanosleep(&moment, NULL);
	_exit(7);
}

int main(void)
{
	struct itimerval timer = { { 0, 3000 }, { 0, 3000 } }, off = { 0 };
	unsigned long failed = 0, errnos = 0, backwards = 0, changed = 0;
	unsigned long long before = clock_ns();
	struct timespec moment = { .tv_nsec = 1000000 };
	int status = 0;
	pid_t child;

	handle(SIGALRM);
	handle(SIGCONT);
	handle(SIGCHLD);
	child = start_child();
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < CALLS; i++) {
		unsigned long long now;
		unsigned char *block;

		errno = 1000 + i;
		block = malloc(40);
		failed += !block;
		errnos += errno != 1000 + i;
		memset(block, i, 40);
		now = clock_ns();
		backwards += now < before;
		before = now;
		for (int j = 0; j < 40; j++)
			changed += block[j] != (unsigned char)i;
		sink = block;
		free(block);
	}
	while (!alarms || !continued || !children)
		nanosleep(&moment, NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	if (waitpid(child, &status, 0) != child)
		return 1;
	say_number("failed ", failed, ", ");
	say_number("errno ", errnos, ", ");
	say_number("clock ", backwards, ", ");
	say_number("memory ", changed, "; ");
	say_number("alarms ", alarms, ", ");
	say_number("continued ", continued, ", ");
	say_number("children ", children, ", ");
	say_number("with status ", WEXITSTATUS(status), "\n");
	return 0;
}
