// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * stuck_tail_call: a thread stands between realloc(NULL) and the malloc that it jumps to, for the page
 * of malloc has no access rights in between, while main calls realloc(NULL) 100 times. Above start-up:
 *
 *   realloc: 101 calls, 2020 bytes, 101 fresh of 2020 bytes
 *   calloc: 1 calls, 288 bytes
 *
 * The first realloc never gets a block. Prints "done", exit status 0; 77 where malloc and realloc
 * share a page and this cannot be made.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include "raw.h"

DEFINE_SINK;

static int stuck[2];
static char *page;

/* Holds the thread for ever. */
static void on_fault(int signal)
{
	write(stuck[1], "x", 1);
	for (;;)
		pause();
}

static void *work(void *unused)
{
	if (mprotect(page, 4096, PROT_NONE))
		_exit(1);
	sink = realloc(NULL, 20);
	_exit(1);
}

int main(void)
{
	void *(*volatile from)(void *, size_t) = realloc;
	void *(*volatile to)(size_t) = malloc;
	pthread_t thread;
	char c;

	page = (char *)((unsigned long)to & ~4095ul);
	/* The way through realloc up to its jump is a few dozen bytes. */
	if ((char *)from - page < 4096 && (char *)from - page > -256)
		return 77;
	signal(SIGSEGV, on_fault);
	if (pipe(stuck) || pthread_create(&thread, NULL, work, NULL) || read(stuck[0], &c, 1) != 1)
		return 1;
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return 1;
	for (int i = 0; i < 100; i++)
		sink = realloc(NULL, 20);
	say("done\n");
	_exit(0);
}
