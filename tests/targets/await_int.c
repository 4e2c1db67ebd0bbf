// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Prints "ready", waits for SIGINT, prints "caught" from its handler. Exit status 44. The signal is blocked except
 * while it waits, so it is also taken when it comes between "ready" and the wait. Above start-up:
 *
 *   malloc: 2 calls, 22 bytes
 */
#include <signal.h>
#include "raw.h"

DEFINE_SINK;

static void handle(int signal)
{
	say("caught\n");
}

int main(void)
{
	struct sigaction action = { .sa_handler = handle };
	sigset_t blocked, before;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	sigaction(SIGINT, &action, NULL);
	sink = malloc(11);
	say("ready\n");
	sigsuspend(&before);
	sink = malloc(11);
	return 44;
}
