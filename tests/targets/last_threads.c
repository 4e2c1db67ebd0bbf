// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * last_threads N: N processes, one after the other, of which each ends with its last two threads, which exit at a time.
 * Each keeps 3 blocks of 1000 bytes and has allocated nothing else but what starting a thread takes. When all have
 * ended the first process allocates a block of 100000 bytes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept[3];
static int n_ready;

/* Both leave as soon as both are there. */
static void *leave(void *unused)
{
	__atomic_fetch_add(&n_ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&n_ready, __ATOMIC_SEQ_CST) < 2)
		;
	syscall(SYS_exit, 0);
	return unused;
}

static void child(void)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++)
		kept[i] = malloc(1000);
	if (pthread_create(&thread, NULL, leave, NULL))
		_exit(1);
	leave(NULL);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			child();
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	kept[0] = malloc(100000);
	return !kept[0];
}
