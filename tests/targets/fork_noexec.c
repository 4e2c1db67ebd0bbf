// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Forks without exec. Above start-up of the one program:
 *
 *   malloc: 317 calls, 18100 bytes
 *   calloc: 50 calls, 3500 bytes
 *   free: 166 calls, 0 bytes
 *
 * The parent makes 7 blocks of 300 bytes before and 10 of 100 bytes after. Each of three children
 * makes 100 blocks of 50 bytes: the first frees them and the parent's 7 and exits, the second frees
 * 50 and calls _exit, the third frees none and dies by SIGKILL. A daemon, forked twice, makes 50
 * blocks of 70 bytes by calloc and frees 9. Prints "done", exit status 0.
 */
#include <signal.h>
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

#define CHILD_BLOCKS 100

static void *inherited[7];

static void child(int which)
{
	void *blocks[CHILD_BLOCKS];
	int kept = which == 0 ? 0 : which == 1 ? CHILD_BLOCKS / 2 : CHILD_BLOCKS;

	for (int i = 0; i < CHILD_BLOCKS; i++)
		blocks[i] = malloc(50);
	for (int i = CHILD_BLOCKS; i > kept; i--)
		free(blocks[i - 1]);
	switch (which) {
	case 0:
		for (int i = 0; i < 7; i++)
			free(inherited[i]);
		exit(0);
	case 1:
		_exit(0);
	default:
		raise(SIGKILL);
	}
}

static void become_daemon(int done)
{
	void *blocks[50];

	if (fork())
		_exit(0);
	setsid();
	for (int i = 0; i < 50; i++)
		blocks[i] = calloc(7, 10);
	for (int i = 0; i < 9; i++)
		free(blocks[i]);
	write(done, "x", 1);
	_exit(0);
}

int main(void)
{
	int done[2];
	pid_t pid;
	char c;

	for (int i = 0; i < 7; i++)
		inherited[i] = malloc(300);
	for (int i = 0; i < 3; i++) {
		pid = fork();
		if (!pid)
			child(i);
		if (waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	if (pipe(done))
		return 1;
	pid = fork();
	if (!pid)
		become_daemon(done[1]);
	close(done[1]);
	/* Until it has ended, which closes the other end. */
	if (waitpid(pid, NULL, 0) != pid || read(done[0], &c, 1) != 1 || read(done[0], &c, 1))
		return 1;
	for (int i = 0; i < 10; i++)
		sink = malloc(100);
	say("done\n");
	return 0;
}
