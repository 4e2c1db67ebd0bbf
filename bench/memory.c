// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * memory threads|blocks N: what N threads, which each call malloc and free a few times and are there at the same
 * time, or N live blocks of 32 bytes take of memory. Prints "memory: N bytes M": the process's resident
 * memory then, without files.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS	    20
#define STACK_BYTES 65536

static pthread_barrier_t barrier;
static void *volatile sink;

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < CALLS; i++) {
		void *block = malloc(16 + i);

		sink = block;
		free(block);
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static unsigned long kib_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

/* Shared memory that is of no file counts too: a control group pays for it. */
static unsigned long resident_bytes(void)
{
	char text[8192];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return (kib_of(text, "RssAnon:") + kib_of(text, "RssShmem:")) * 1024;
}

static int run_threads(unsigned long n)
{
	pthread_t *threads = malloc(n * sizeof(*threads));
	unsigned long bytes;
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (unsigned long i = 0; i < n; i++)
		if (pthread_create(&threads[i], &attributes, work, NULL))
			return 1;
	pthread_barrier_wait(&barrier);
	bytes = resident_bytes();
	pthread_barrier_wait(&barrier);
	for (unsigned long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("memory: %lu bytes %lu\n", n, bytes);
	return 0;
}

static int run_blocks(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink = malloc(32);
	printf("memory: %lu bytes %lu\n", n, resident_bytes());
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	if (!n)
		return 2;
	if (!strcmp(argv[1], "threads"))
		return run_threads(n);
	return strcmp(argv[1], "blocks") ? 2 : run_blocks(n);
}
