// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * streaming one|all: its first thread is in the processor's streaming mode (SME), in which it counts until it is killed. With "one" another thread
 * allocates meanwhile. Prints "ready", or "none" where there is no such mode.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define HAS_SME (1UL << 23)

static void *allocate(void *unused)
{
	for (;;) {
		void *volatile block = malloc(32);

		free(block);
		usleep(1000);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2)
		return 64;
	if (!(getauxval(AT_HWCAP2) & HAS_SME)) {
		puts("none");
		return 0;
	}
	if (!strcmp(argv[1], "one") && pthread_create(&thread, NULL, allocate, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	/* smstart sm; b . */
	__asm__ volatile(".inst 0xd503437f\n1: add x9, x9, 1\nb 1b" : : : "x9");
	return 0;
}
