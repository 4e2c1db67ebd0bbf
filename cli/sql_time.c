// SPDX-License-Identifier: GPL-3.0-or-later
/* Ends the process by a timer when SQL of the user takes too long: SQLite cannot stop within an instruction. */
#include "sql_time.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"

static const char *over_time;

static void end_at_once(int signal)
{
	ssize_t written = write(STDERR_FILENO, over_time, strlen(over_time));

	(void)written;
	/* Let a pager show what was printed until now. */
	close(STDOUT_FILENO);
	while (waitpid(-1, NULL, 0) > 0)
		;
	_exit(EXIT_FAILED);
}

void sql_time__limit(__u64 cpu_ns, const char *message)
{
	struct itimerval limit = { .it_value.tv_sec = cpu_ns / NS_PER_S + 1,
				   .it_value.tv_usec = cpu_ns % NS_PER_S / 1000 };

	over_time = message;
	sigaction(SIGPROF, &(struct sigaction){ .sa_handler = end_at_once }, NULL);
	setitimer(ITIMER_PROF, &limit, NULL);
}

void sql_time__unlimit(void)
{
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
}
