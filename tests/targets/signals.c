// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Handlers that allocate, run by raise() at places where the allocator is not active, on the stack
 * of the thread and on one of their own. Above start-up:
 *
 *   malloc: 500 calls, 22500 bytes
 *   calloc: 1 calls, 65536 bytes
 *   free: 501 calls, 0 bytes
 *
 * Prints the number of signals handled, exit status 0.
 */
#include <signal.h>
#include "raw.h"

DEFINE_SINK;

static volatile unsigned long handled;

static void handler(int signal, siginfo_t *info, void *context)
{
	void *block = malloc(40);

	sink = block;
	handled++;
	/* A signal in a handler. */
	if (signal == SIGUSR1)
		raise(SIGUSR2);
	free(block);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	stack_t stack = { .ss_size = 65536, .ss_sp = calloc(1, 65536) };

	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags |= SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaltstack(&stack, NULL);
	for (int i = 0; i < 100; i++) {
		void *block = malloc(65);

		raise(SIGUSR1);
		raise(SIGUSR2);
		raise(SIGALRM);
		free(block);
	}
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
	free(stack.ss_sp);
	say_number("", handled, " handled\n");
	return 0;
}
